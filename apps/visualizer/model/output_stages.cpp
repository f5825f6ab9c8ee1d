// What comes behind the contexts of several heads: side by side, and through the output projection. Computed
// on this thread once the contexts are there; their stages and buffers are there before.
#include "model/host_call.hpp"
#include "model/session.hpp"

#include <cstring>

namespace fovea::visualizer {
namespace {

// Levels that have several heads.
constexpr int kFirstLevel = 5;

FoveaHostBuffer host(const std::vector<float>& values) {
    return {const_cast<float*>(values.data()), values.size() * 4};  // inputs are not written to
}

// [heads, rows, width] -> [rows, heads * width]
std::vector<float> side_by_side(const Stage& context) {
    const uint64_t heads = context.heads, rows = context.rows, width = context.columns;
    std::vector<float> joined(heads * rows * width);
    for (uint64_t head = 0; head < heads; ++head)
        for (uint64_t row = 0; row < rows; ++row)
            std::memcpy(&joined[(row * heads + head) * width], &context.values[(head * rows + row) * width],
                        width * 4);
    return joined;
}

Result<std::vector<float>> through(const Linear& layer, const std::vector<float>& x, uint64_t rows) {
    const Result<FoveaDeviceFacts> facts = cpu_facts(1);
    if (!facts) return facts.error();
    FoveaLinearDesc desc{};
    desc.struct_size = sizeof desc;
    desc.n_in = uint32_t(layer.d_in()), desc.n_out = uint32_t(layer.d_out());
    desc.has_bias = layer.has_bias();
    desc.rows = rows;
    const Result<Plan> plan = plan_linear(*facts, desc);
    if (!plan) return plan.error();
    std::vector<float> y(rows * layer.d_out());
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_X] = host(x);
    bindings[FOVEA_BIND_WEIGHT] = host(layer.weight.values);
    if (layer.has_bias()) bindings[FOVEA_BIND_BIAS] = host(layer.bias.values);
    bindings[FOVEA_BIND_Y] = {y.data(), y.size() * 4};
    if (Result<void> r = run_on_host(*plan, bindings); !r) return r.error();
    return y;
}

void fill(GpuBuffer& buffer, const std::vector<float>& values) {
    std::memcpy(buffer.data(), values.data(), values.size() * 4);
    buffer.flush();
}

}  // namespace

Result<void> Session::add_output_stages() {
    joined_ = output_ = nullptr;
    const bool from_file = settings_.file && settings_.mapping.kind != ImportKind::tables;
    if (settings_.level < kFirstLevel || from_file) return {};
    const FoveaAttentionDesc& d = run_->desc();
    Result<GpuBuffer*> added = add_host_stage({"joined", "contexts of all heads, side by side",
                                               F32Tensor({d.len_q, uint64_t(d.heads_q) * d.dim_v})});
    if (!added) return added.error();
    joined_ = *added;
    if (!projected_.has_output_layer) return {};
    const Linear& layer = projected_.output_layer;
    added = add_host_stage({"W_output", "drawn from the seed", layer.weight});
    if (!added) return added.error();
    added = add_host_stage(
        {"output", layer.has_bias() ? "joined W_output transposed + bias" : "joined W_output transposed",
         F32Tensor({d.len_q, layer.d_out()})});
    if (!added) return added.error();
    output_ = *added;
    return {};
}

void Session::fill_output_stages() {
    if (!joined_) return;
    const std::vector<float> joined = side_by_side(*find_stage("context"));
    fill(*joined_, joined);
    if (!output_) return;
    const Result<std::vector<float>> y = through(projected_.output_layer, joined, run_->desc().len_q);
    if (!y) return report("output", y.error().text, true);
    fill(*output_, *y);
}

}  // namespace fovea::visualizer
