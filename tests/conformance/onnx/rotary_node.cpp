// RotaryEmbedding of opset 23 and later, as one call of Engine::rope.
#include "onnx/node_runner.hpp"
#include "onnx/tensor_values.hpp"

#include <algorithm>

namespace fovea::onnx {
namespace {

Error invalid(std::string field, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

const Tensor* input(const Tensors& inputs, size_t place) {
    return place < inputs.size() && inputs[place] ? &*inputs[place] : nullptr;
}

// Batch, heads, length and head size of X in either form.
Result<FoveaRopeDesc> describe(const Tensor& x, const AttributeReader& attributes) {
    FoveaRopeDesc desc{};
    desc.struct_size = sizeof desc;
    const Result<int64_t> heads = attributes.integer("num_heads", 0, 0, 1 << 20);
    const Result<int64_t> interleaved = attributes.integer("interleaved", 0, 0, 1);
    const Result<int64_t> rotary = attributes.integer("rotary_embedding_dim", 0, 0, 1 << 20);
    for (const Result<int64_t>* r : {&heads, &interleaved, &rotary})
        if (!*r) return r->error();
    for (const int64_t dim : x.dims)
        if (dim > INT32_MAX) return invalid("X", x.shape_text() + " is too large");
    if (x.dims.size() == 4) {
        desc.heads = uint32_t(x.dims[1]), desc.len = uint64_t(x.dims[2]), desc.dim = uint32_t(x.dims[3]);
    } else if (x.dims.size() == 3) {
        if (*heads == 0 || x.dims[2] % *heads != 0)
            return invalid("num_heads",
                           std::to_string(*heads) + " does not divide the last axis of " + x.shape_text());
        desc.heads = uint32_t(*heads), desc.len = uint64_t(x.dims[1]),
        desc.dim = uint32_t(x.dims[2] / *heads);
        const int64_t row = x.dims[2];
        desc.x_strides = desc.y_strides = {x.dims[1] * row, desc.dim, row};
    } else {
        return invalid("X", x.shape_text() + " has neither 3 nor 4 axes");
    }
    desc.batch = uint32_t(x.dims[0]);
    desc.interleaved = uint32_t(*interleaved);
    desc.rotary_dim = uint32_t(*rotary);
    return desc;
}

// Shapes of the caches, and table_rows where there are positions.
Result<void> check_caches(FoveaRopeDesc& desc, const Tensor& cos, const Tensor& sin,
                          const Tensor* positions) {
    const int64_t half = (desc.rotary_dim ? desc.rotary_dim : desc.dim) / 2;
    if (cos.dims != sin.dims) return invalid("sin_cache", sin.shape_text() + " beside " + cos.shape_text());
    if (!positions) {
        if (cos.dims != std::vector<int64_t>{int64_t(desc.batch), int64_t(desc.len), half})
            return invalid("cos_cache", cos.shape_text() + " does not fit X");
        return {};
    }
    if (cos.dims.size() != 2 || cos.dims[1] != half || cos.dims[0] < 1)
        return invalid("cos_cache", cos.shape_text() + " is not a table of rows of " + std::to_string(half));
    if (positions->dims != std::vector<int64_t>{int64_t(desc.batch), int64_t(desc.len)})
        return invalid("position_ids", positions->shape_text() + " does not fit X");
    desc.table_rows = uint64_t(cos.dims[0]);
    return {};
}

}  // namespace

Result<Tensors> run_rotary_embedding(Engine& engine, const Model& model, const Tensors& inputs) {
    const Result<AttributeReader> attributes =
        AttributeReader::make(model.node, {"interleaved", "num_heads", "rotary_embedding_dim"});
    if (!attributes) return attributes.error();
    const Tensor *x = input(inputs, 0), *cos = input(inputs, 1), *sin = input(inputs, 2),
                 *ids = input(inputs, 3);
    if (!x || !cos || !sin) return invalid("inputs", "X, cos_cache and sin_cache are required");
    Result<FoveaRopeDesc> desc = describe(*x, *attributes);
    if (!desc) return desc.error();
    if (Result<void> fits = check_caches(*desc, *cos, *sin, ids); !fits) return fits.error();
    Result<HostTensor> x_host = to_host(*x, "X"), cos_host = to_host_float(*cos, "cos_cache"),
                       sin_host = to_host_float(*sin, "sin_cache");
    for (const Result<HostTensor>* r : {&x_host, &cos_host, &sin_host})
        if (!*r) return r->error();
    desc->x_type = desc->y_type = x_host->type;
    HostTensor y = make_host(x_host->type, x->elements()), positions;
    if (ids) {
        const Result<std::vector<int64_t>> rows =
            to_integers(*ids, "position_ids", 0, std::min<int64_t>(int64_t(desc->table_rows) - 1, INT32_MAX));
        if (!rows) return rows.error();
        positions = make_host(FOVEA_I32, rows->size());
        for (size_t n = 0; n < rows->size(); ++n)
            reinterpret_cast<int32_t*>(positions.bytes.data())[n] = int32_t((*rows)[n]);
    }
    HostBindings bindings{};
    bindings[FOVEA_BIND_X] = x_host->buffer();
    bindings[FOVEA_BIND_Y] = y.buffer();
    bindings[FOVEA_BIND_COS] = cos_host->buffer();
    bindings[FOVEA_BIND_SIN] = sin_host->buffer();
    bindings[FOVEA_BIND_POSITIONS] = positions.buffer();
    const Result<RunReport> report = engine.run_on_host(plan_rope(engine.properties(), *desc), bindings);
    if (!report) return report.error();
    return Tensors{from_host(y, x->type, x->dims)};
}

}  // namespace fovea::onnx
