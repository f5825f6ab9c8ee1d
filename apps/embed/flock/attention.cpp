#include "attention.hpp"

namespace flock {
namespace {

fovea::Result<fovea::Plan> plan_attention(const Guest& guest, uint32_t birds) {
    // q is [1, kHeads, birds, kDim], k and v [1, 1, birds, kDim]: both heads look at the same keys. All
    // float32.
    fovea::Attention call;
    call.batch(1).heads(kHeads, 1).lengths(birds, birds).dims(kDim).scale(1);
    call.outputs(FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE);
    call.desc.max_slice_cost = 1e6;  // FLOP: by how much a misjudged budget is missed at most
    return fovea::plan_attention(guest.properties, call);
}

}  // namespace

Attention::Attention(const Gpu& gpu, uint32_t birds)
    : guest_(gpu), plan_(guest_, plan_attention(guest_, birds)) {
    const auto buffer = [&](FoveaBinding binding) { return gpu.buffer(plan_.info.binding_bytes[binding]); };
    q_ = buffer(FOVEA_BIND_Q);
    k_ = buffer(FOVEA_BIND_K);
    v_ = buffer(FOVEA_BIND_V);
    for (uint32_t side = 0; side < 2; ++side) {
        means_[side] = buffer(FOVEA_BIND_O);
        log_sums_[side] = buffer(FOVEA_BIND_LSE);
    }
}

Attention::~Attention() {
    for (const Buffer* b : {&q_, &k_, &v_, &means_[0], &means_[1], &log_sums_[0], &log_sums_[1]})
        guest_.gpu.destroy(*b);
}

uint32_t Attention::record(VkCommandBuffer cmd, double budget_seconds, VkQueryPool queries,
                           uint32_t first_query, uint32_t frame) {
    Bindings bindings = {};
    bind(bindings, FOVEA_BIND_Q, q_);
    bind(bindings, FOVEA_BIND_K, k_);
    bind(bindings, FOVEA_BIND_V, v_);
    bind(bindings, FOVEA_BIND_O, means_[side_]);
    bind(bindings, FOVEA_BIND_LSE, log_sums_[side_]);
    const uint32_t slices = plan_.record(cmd, bindings, budget_seconds, queries, first_query, frame);
    if (plan_.between_rounds()) side_ = 1 - side_;  // show this side, write the other
    return slices;
}

}  // namespace flock
