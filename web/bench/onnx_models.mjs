// ONNX models of one attention node, written by hand (the fields of onnx.proto3 that they need), one for each
// operator that ONNX Runtime has for it. Not GroupQueryAttention: on one thread that took 3.3 s where MultiHeadAttention took 0.3.

function varint(value) {
    const bytes = [];
    for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
    return [...bytes, value];
}
const number = (field, value) => [...varint(field << 3), ...varint(value)];
const bytes = (field, content) => [...varint((field << 3) | 2), ...varint(content.length), ...content];
const text = (field, value) => bytes(field, [...new TextEncoder().encode(value)]);

const intAttribute = ([name, value]) => bytes(5, [...text(1, name), ...number(3, value), ...number(20, 2)]);
const dimension = (size) => bytes(1, number(1, size));
const value = (field, name, { shape }) =>
    bytes(field, [
        ...text(1, name),
        ...bytes(2, bytes(1, [...number(1, 1), ...bytes(2, shape.flatMap(dimension))])),
    ]);

function model({ domain, version, operator, attributes, inputs, outputs }) {
    const node = [
        ...inputs.flatMap(([name]) => text(1, name)),
        ...outputs.flatMap(([name]) => text(2, name)),
        ...text(4, operator),
        ...Object.entries(attributes).flatMap(intAttribute),
        ...text(7, domain),
    ];
    const graph = [
        ...bytes(1, node),
        ...text(2, "attention"),
        ...inputs.flatMap(([name, facts]) => value(11, name, facts)),
        ...outputs.flatMap(([name, facts]) => value(12, name, facts)),
    ];
    const opset = (of, at) => bytes(8, [...text(1, of), ...number(2, at)]);
    const sets = domain ? [...opset("", 21), ...opset(domain, version)] : opset("", version);
    return { bytes: [...number(1, 10), ...bytes(7, graph), ...sets], inputs: Object.fromEntries(inputs) };
}

export function operators({ heads, tokens, dim, causal }) {
    const float = (...shape) => ({ shape }),
        apart = float(1, heads, tokens, dim),
        packed = float(1, tokens, heads * dim);
    const qkv = (facts) => ["q", "k", "v"].map((name) => [name, facts]);
    return {
        Attention: model({
            domain: "",
            version: 23,
            operator: "Attention",
            attributes: { is_causal: Number(causal) },
            inputs: qkv(apart),
            outputs: [["y", apart]],
        }),
        MultiHeadAttention: model({
            domain: "com.microsoft",
            version: 1,
            operator: "MultiHeadAttention",
            attributes: { num_heads: heads, unidirectional: Number(causal) },
            inputs: qkv(packed),
            outputs: [["y", packed]],
        }),
    };
}
