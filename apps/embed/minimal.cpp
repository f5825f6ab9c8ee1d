// The smallest program that hosts Fovea: its own Vulkan device, its own compute pass, and attention behind it
// in the same command buffer. The pass writes q, k and v; the program computes the result again and compares.
//   fovea_embed_minimal [--forget-barrier]     the option plants a bug for the validation layer to find
#include "minimal_host.hpp"

#include <fovea/fovea_vulkan.h>
#include <fovea/fovea.hpp>

#include <cmath>
#include <cstring>
#include <vector>

using minimal::require;

namespace {

constexpr uint32_t kHeads = 4, kRows = 96, kDim = 32, kTensor = kHeads * kRows * kDim;
constexpr uint64_t kTensorBytes = kTensor * sizeof(float);  // a multiple of 256: tensors may lie end to end

// Causal attention in plain loops over the numbers that inputs.comp makes.
float largest_difference(const float* o) {
    std::vector<float> x(3 * kTensor);
    for (uint32_t i = 0; i < x.size(); ++i) x[i] = float((i * 2654435761u) >> 8) / 8388608.0f - 1.0f;
    float largest = 0;
    for (uint32_t row = 0; row < kHeads * kRows; ++row) {
        const uint32_t first = row / kRows * kRows;  // this head's first key
        const float *q = &x[row * kDim], *k = &x[kTensor + first * kDim], *v = &x[2 * kTensor + first * kDim];
        std::vector<double> sum(kDim + 1);
        for (uint32_t j = 0; first + j <= row; ++j) {
            double dot = 0;
            for (uint32_t c = 0; c < kDim; ++c) dot += double(q[c]) * k[j * kDim + c];
            const double weight = std::exp(dot / std::sqrt(double(kDim)));
            for (uint32_t c = 0; c < kDim; ++c) sum[c] += weight * v[j * kDim + c];
            sum[kDim] += weight;
        }
        for (uint32_t c = 0; c < kDim; ++c)
            largest = std::fmax(largest, std::fabs(o[row * kDim + c] - float(sum[c] / sum[kDim])));
    }
    return largest;
}

}  // namespace

int main(int argc, char** argv) {
    const bool forget_barrier = argc > 1 && std::strcmp(argv[1], "--forget-barrier") == 0;
    minimal::Host h = minimal::open_device();

    // Fovea adopts the device; this one has nothing enabled beyond Vulkan 1.1.
    FoveaVulkanHost adopted{sizeof adopted, VK_API_VERSION_1_1, h.instance,
                            h.gpu,          h.device,           vkGetInstanceProcAddr};
    FoveaContext context = nullptr;
    fovea::Diag diag;
    require(foveaCreateContext(&adopted, &context, &diag) == FOVEA_OK, diag.text);
    FoveaDeviceFacts facts{sizeof facts};
    foveaContextFacts(context, &facts, &diag);
    {
        fovea::Attention call;
        call.batch(1).heads(kHeads).lengths(kRows, kRows).dims(kDim).causal();
        fovea::Result<fovea::Plan> plan = fovea::plan_attention(facts, call);
        require(plan.has_value(), "no plan");
        require(foveaCompilePlan(context, plan->get(), &diag) == FOVEA_OK, diag.text);
        const FoveaPlanInfo info = plan->info();
        minimal::create_buffer(h, 4 * kTensorBytes + info.workspace_bytes);
        const minimal::Pass pass =
            minimal::create_pass(h, 3 * kTensorBytes, uint32_t(info.slice_count) * info.dispatches_per_slice);

        FoveaBuffer bindings[FOVEA_BIND_O + 1];  // Q, K, V, O
        for (uint32_t i = 0; i <= FOVEA_BIND_O; ++i) bindings[i] = {h.buffer, i * kTensorBytes, kTensorBytes};
        FoveaRecord attention{sizeof attention, FOVEA_BIND_O + 1, h.cmd, bindings};
        attention.workspace = {h.buffer, 4 * kTensorBytes, info.workspace_bytes};
        attention.arena.pool = pass.pool;

        minimal::begin(h);
        vkCmdBindPipeline(h.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pass.pipeline);
        vkCmdBindDescriptorSets(h.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pass.layout, 0, 1, &pass.set, 0,
                                nullptr);
        vkCmdDispatch(h.cmd, 3 * kTensor / 64, 1, 1);
        if (!forget_barrier)
            minimal::cmd_barrier(h.cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT);
        require(foveaCmdRun(plan->get(), &attention, &diag) == FOVEA_OK, diag.text);
        minimal::cmd_barrier(h.cmd, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
        minimal::submit_and_wait(h);

        const float difference = largest_difference(h.mapped + 3 * kTensor);
        std::printf("attention of %u heads x %u rows behind the host's own pass: largest difference %.2g\n",
                    kHeads, kRows, difference);
        require(forget_barrier || difference < 2e-6f, "the result is wrong");
        minimal::destroy_pass(h, pass);
    }
    foveaDestroyContext(context);
    minimal::close(h);
}
