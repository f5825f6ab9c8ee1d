/* The smallest application that uses Fovea, in C99: its own Vulkan device, its own compute pass, and after it
 * attention in the same command buffer. The pass writes q, k and v; the program computes the result again and
 * compares. fovea_embed_minimal [--forget-barrier]     the option plants a bug for the validation layer to
 * find */
#include "minimal_host.h"

#include <fovea/fovea_vulkan.h>

#include <math.h>
#include <string.h>

enum { kHeads = 4, kRows = 96, kDim = 32, kTensor = kHeads * kRows * kDim };
enum { kTensorBytes = kTensor * sizeof(float) }; /* a multiple of 256, so that tensors may be contiguous */

/* Causal attention in plain loops over the values that inputs.comp makes. */
static float largest_difference(const float* o) {
    static float x[3 * kTensor];
    float largest = 0;
    for (uint32_t i = 0; i < 3 * kTensor; ++i) x[i] = (float)((i * 2654435761u) >> 8) / 8388608.0f - 1.0f;
    for (uint32_t row = 0; row < kHeads * kRows; ++row) {
        const uint32_t first = row / kRows * kRows; /* this head's first key */
        const float *q = &x[row * kDim], *k = &x[kTensor + first * kDim], *v = &x[2 * kTensor + first * kDim];
        double sum[kDim + 1] = {0};
        for (uint32_t j = 0; first + j <= row; ++j) {
            double dot = 0;
            for (uint32_t c = 0; c < kDim; ++c) dot += (double)q[c] * k[j * kDim + c];
            const double weight = exp(dot / sqrt((double)kDim));
            for (uint32_t c = 0; c < kDim; ++c) sum[c] += weight * v[j * kDim + c];
            sum[kDim] += weight;
        }
        for (uint32_t c = 0; c < kDim; ++c)
            largest = fmaxf(largest, fabsf(o[row * kDim + c] - (float)(sum[c] / sum[kDim])));
    }
    return largest;
}

int main(int argc, char** argv) {
    const int forget_barrier = argc > 1 && strcmp(argv[1], "--forget-barrier") == 0;
    Host h = {0};
    open_device(&h);
    FoveaDiag diag = foveaDiag();

    /* Fovea uses the device; the struct lists the features that it was created with. */
    const FoveaVulkanDevice adopted = {.struct_size = sizeof adopted,
                                     .api_version = VK_API_VERSION_1_1,
                                     .instance = h.instance,
                                     .physical_device = h.gpu,
                                     .device = h.device,
                                     .get_instance_proc_addr = vkGetInstanceProcAddr,
                                     .enabled_features = foveaEnabledFeatures2(&h.enabled),
                                     .enabled_extensions = h.enabled.extensions,
                                     .enabled_extension_count = h.enabled.extension_count};
    FoveaContext context;
    require(foveaCreateContext(&adopted, &context, &diag) == FOVEA_OK, diag.text);
    FoveaDeviceProperties properties = foveaDeviceProperties();
    foveaContextProperties(context, &properties, &diag);

    /* q, k, v and o are [1, kHeads, kRows, kDim], float32, packed; a row sees itself and those before it. */
    FoveaAttentionDesc desc = foveaAttentionDesc();
    desc.batch = 1;
    desc.heads_q = desc.heads_kv = kHeads;
    desc.len_q = desc.len_kv = kRows;
    desc.dim_qk = desc.dim_v = kDim;
    desc.flags = FOVEA_FLAG_CAUSAL;
    FoveaPlan plan;
    require(foveaPlanAttention(&properties, &desc, NULL, &plan, &diag) == FOVEA_OK, diag.text);
    require(foveaCompilePlan(context, plan, &diag) == FOVEA_OK, diag.text); /* may take long: do it ahead */
    FoveaPlanInfo info = foveaPlanInfo();
    foveaGetPlanInfo(plan, &info, &diag);

    create_buffer(&h, 4 * kTensorBytes + info.workspace_bytes);
    const Pass pass =
        create_pass(&h, 3 * kTensorBytes, (uint32_t)info.slice_count * info.dispatches_per_slice);
    begin(&h);
    vkCmdBindPipeline(h.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pass.pipeline);
    vkCmdBindDescriptorSets(h.cmd, VK_PIPELINE_BIND_POINT_COMPUTE, pass.layout, 0, 1, &pass.set, 0, NULL);
    vkCmdDispatch(h.cmd, 3 * kTensor / 64, 1, 1);

    /* Into the same command buffer. The barriers at both ends are the host's. */
    FoveaBuffer bindings[FOVEA_BIND_O + 1]; /* Q, K, V, O */
    for (uint32_t i = 0; i <= FOVEA_BIND_O; ++i)
        bindings[i] = (FoveaBuffer){h.buffer, i * kTensorBytes, kTensorBytes};
    const FoveaRecord attention = {
        .struct_size = sizeof attention,
        .cmd = h.cmd,
        .bindings = bindings,
        .binding_count = FOVEA_BIND_O + 1,
        .workspace = {h.buffer, 4 * kTensorBytes, info.workspace_bytes},
        .descriptor_pool = {pass.pool}, /* only used without push descriptors */
    };
    if (!forget_barrier) cmd_barrier(h.cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT);
    require(foveaCmdRun(plan, &attention, &diag) == FOVEA_OK, diag.text);
    cmd_barrier(h.cmd, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    submit_and_wait(&h);

    const float difference = largest_difference(h.mapped + 3 * kTensor);
    printf("attention of %d heads x %d rows behind the host's own pass: largest difference %.2g\n", kHeads,
           kRows, difference);
    require(forget_barrier || difference < 2e-6f, "the result is wrong");
    destroy_pass(&h, &pass);
    foveaDestroyPlan(plan);
    foveaDestroyContext(context);
    close_device(&h);
    return 0;
}
