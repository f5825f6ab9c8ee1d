// The smallest way from JavaScript to the engine: one attention plan and its buffers, made once and run again
// and again. web/bench/call.mjs measures what a call costs.
#include <fovea/fovea.hpp>

#include <emscripten/emscripten.h>

#include <cstdint>
#include <cstdlib>
#include <optional>

namespace {

struct PreparedCall {
    fovea::Plan plan;
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    FoveaCpuRun run{};

    ~PreparedCall() {
        std::free(run.workspace.data);
        for (const FoveaHostBuffer& buffer : bindings) std::free(buffer.data);
    }
};

std::optional<PreparedCall>& prepared() {
    static std::optional<PreparedCall> call;
    return call;
}

bool allocate(FoveaHostBuffer& buffer, uint64_t size_bytes) {
    constexpr size_t kAlignment = 64;
    if (size_bytes == 0) return true;
    const auto size = static_cast<size_t>((size_bytes + kAlignment - 1) / kAlignment * kAlignment);
    buffer = {std::aligned_alloc(kAlignment, size), size_bytes};
    return buffer.data != nullptr;
}

}  // namespace

extern "C" {

// Plans a call of packed float32 [batch, heads, tokens, dim]; 0 where that cannot be.
EMSCRIPTEN_KEEPALIVE int32_t callPrepare(uint32_t batch, uint32_t heads, uint32_t tokens, uint32_t dim,
                                         int32_t causal) {
    prepared().reset();
    fovea::Attention attention;
    attention.batch(batch).heads(heads).lengths(tokens, tokens).dims(dim);
    if (causal) attention.causal();
    fovea::Result<FoveaDeviceProperties> properties = fovea::cpu_properties(1);
    if (!properties) return 0;
    fovea::Result<fovea::Plan> plan = fovea::plan_attention(*properties, attention.desc);
    if (!plan) return 0;
    PreparedCall& call = prepared().emplace();
    call.plan = std::move(*plan);
    const FoveaPlanInfo info = call.plan.info();
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if ((info.binding_mask >> i & 1) && !allocate(call.bindings[i], info.binding_bytes[i])) return 0;
    call.run.struct_size = sizeof call.run;
    call.run.binding_count = FOVEA_BIND_COUNT;
    call.run.bindings = call.bindings;
    return allocate(call.run.workspace, info.workspace_bytes) ? 1 : 0;
}

// Where q, k, v (FoveaBinding 0 to 2) are to be written and o (3) is to be read; valid until the next
// callPrepare.
EMSCRIPTEN_KEEPALIVE float* callBuffer(uint32_t binding) {
    const bool is_there = prepared() && binding < FOVEA_BIND_COUNT;
    return is_there ? static_cast<float*>(prepared()->bindings[binding].data) : nullptr;
}

EMSCRIPTEN_KEEPALIVE int32_t callRun() {
    return prepared() && prepared()->plan.run_cpu(prepared()->run) ? 1 : 0;
}
}
