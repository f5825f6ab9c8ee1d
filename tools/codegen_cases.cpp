#include "codegen.hpp"

namespace fovea::app {
namespace {

const char* type_name(FoveaDtype type) {
    return type == FOVEA_F16 ? "f16" : type == FOVEA_BF16 ? "bf16" : "f32";
}

// A model of 32 query heads over 8 key/value heads, as Llama has them.
Attention grouped(uint64_t queries, uint64_t keys, uint32_t dim, FoveaDtype type) {
    Attention call;
    call.batch(1).heads(32, 8).lengths(queries, keys).dims(dim).types(type);
    return call;
}

CodegenCase attention(std::string name, bool gate, const FoveaAttentionDesc& desc) {
    return {std::move(name), gate,
            [desc](const FoveaDeviceProperties& properties) { return plan_attention(properties, desc); },
            desc.dim_qk};
}

void add_prefill(std::vector<CodegenCase>& to, uint32_t dim, FoveaDtype type) {
    const std::string end = "-d" + std::to_string(dim) + "-" + type_name(type);
    FoveaAttentionDesc desc = grouped(4096, 4096, dim, type).causal(Align::top_left).desc;
    to.push_back(attention("prefill" + end, dim == 128 || (dim == 64 && type == FOVEA_F32), desc));
    desc.precision = FOVEA_PRECISION_F16_INPUTS;
    to.push_back(attention("prefill" + end + "-inputs", type == FOVEA_F16 && dim != 80, desc));
    if (dim != 64) return;
    desc.softcap = 30;
    to.push_back(attention("softcap" + end + "-inputs", type == FOVEA_F16, desc));
    desc.precision = FOVEA_PRECISION_F32;
    to.push_back(attention("softcap" + end, false, desc));
    desc.softcap = 0;
    desc.mask.present = 1, desc.mask.type = FOVEA_U8, desc.mask.batch = desc.mask.heads = 1;
    to.push_back(attention("mask" + end, type == FOVEA_F32, desc));
}

// Cooperative-matrix products with a quantized KV cache, and those in bfloat16 on devices whose matrices
// support it.
void add_products(std::vector<CodegenCase>& to) {
    FoveaAttentionDesc cached = grouped(4096, 4096, 128, FOVEA_F16).causal(Align::top_left).desc;
    cached.k_type = cached.v_type = FOVEA_Q8_0;
    cached.precision = FOVEA_PRECISION_F16_INPUTS;
    to.push_back(attention("prefill-d128-q8_0-inputs", true, cached));
    for (const uint32_t dim : {64, 128}) {
        FoveaAttentionDesc desc = grouped(4096, 4096, dim, FOVEA_BF16).causal(Align::top_left).desc;
        desc.precision = FOVEA_PRECISION_BF16_INPUTS;
        to.push_back(attention("prefill-d" + std::to_string(dim) + "-bf16-inputs", false, desc));
    }
}

void add_decode(std::vector<CodegenCase>& to, uint32_t dim, FoveaDtype type) {
    const std::string end = "-d" + std::to_string(dim) + "-" + type_name(type);
    to.push_back(
        attention("decode" + end, dim == 128 && type == FOVEA_F16, grouped(1, 8192, dim, type).desc));
    if (dim == 128 && type == FOVEA_F16) {
        FoveaAttentionDesc cached = grouped(1, 8192, dim, type).desc;
        cached.k_type = cached.v_type = FOVEA_Q8_0;
        to.push_back(attention("decode-d128-q8_0", true, cached));
    }
    Attention alone;
    alone.batch(1).heads(32).lengths(1, 8192).dims(dim).types(type);
    to.push_back(attention("decode-one-row" + end, dim == 64 && type == FOVEA_F32, alone.desc));
}

void add_others(std::vector<CodegenCase>& to, FoveaDtype type) {
    const std::string end = std::string("-d64-") + type_name(type);
    Attention call;
    call.batch(1).heads(12).lengths(1024, 1024).dims(64).types(type).causal(Align::top_left);
    FoveaAttentionDesc desc = call.desc;
    desc.kernel = FOVEA_KERNEL_STAGED;
    to.push_back(attention("staged" + end, type == FOVEA_F32, desc));

    const FoveaAttentionDesc mapped = grouped(4096, 4096, 64, type).desc;
    to.push_back({"map" + end, type == FOVEA_F32,
                  [mapped](const FoveaDeviceProperties& properties) {
                      FoveaMapTileDesc tile{};
                      tile.struct_size = sizeof tile;
                      tile.width = tile.height = 512;
                      return plan_map_tile(properties, mapped, tile);
                  },
                  64});
    FoveaRopeDesc rope{};
    rope.struct_size = sizeof rope;
    rope.x_type = rope.y_type = type;
    rope.batch = 1, rope.heads = 32, rope.dim = 128, rope.len = 1024;
    to.push_back({std::string("rope-") + type_name(type), type == FOVEA_F16,
                  [rope](const FoveaDeviceProperties& properties) { return plan_rope(properties, rope); }});
    FoveaAppendDesc append{};
    append.struct_size = sizeof append;
    append.x_type = append.y_type = type;
    append.batch = 1, append.heads = 8, append.dim = 128, append.len = 16, append.capacity = 8192;
    to.push_back(
        {std::string("append-") + type_name(type), type == FOVEA_F16,
         [append](const FoveaDeviceProperties& properties) { return plan_append(properties, append); }});
}

void add_linear(std::vector<CodegenCase>& to, uint64_t rows, FoveaDtype type, FoveaPrecision precision) {
    FoveaLinearDesc desc{};
    desc.struct_size = sizeof desc;
    desc.x_type = desc.w_type = desc.y_type = type;
    desc.n_in = desc.n_out = 4096, desc.rows = rows;
    desc.precision = precision;
    const bool products = precision != FOVEA_PRECISION_F32;
    to.push_back({"linear-" + std::to_string(rows) + "-" + type_name(type) + (products ? "-inputs" : ""),
                  type == (products ? FOVEA_F16 : FOVEA_F32),
                  [desc](const FoveaDeviceProperties& properties) { return plan_linear(properties, desc); }});
}

}  // namespace

std::vector<CodegenCase> codegen_cases() {
    std::vector<CodegenCase> cases;
    for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16}) {
        for (const uint32_t dim : {64, 80, 128, 256}) add_prefill(cases, dim, type);
        for (const uint32_t dim : {64, 128}) add_decode(cases, dim, type);
        add_others(cases, type);
        add_linear(cases, 1, type, FOVEA_PRECISION_F32);
        add_linear(cases, 1024, type, FOVEA_PRECISION_F32);
        add_linear(cases, 1024, type, FOVEA_PRECISION_F16_INPUTS);
    }
    add_products(cases);
    add_linear(cases, 1024, FOVEA_BF16, FOVEA_PRECISION_BF16_INPUTS);
    return cases;
}

}  // namespace fovea::app
