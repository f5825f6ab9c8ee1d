/* Attention by an engine's own interface: no FoveaContext, no Vulkan call. Fovea plans; the engine makes the shaders from
 * foveaDispatchCode and dispatches what foveaGetDispatches lists. rhi_vulkan.c plays the engine. */
#include "rhi.h"

#include "rhi_main.h"

#include <fovea/fovea.h>

#include <stdlib.h>
#include <string.h>

enum { kMaxShaders = 32, kMaxDispatches = 16 }; /* in a plan; in a slice (dispatches_per_slice) */

typedef struct Made { /* a shader, by what it was made of */
    FoveaDispatch of;
    RhiShader* shader;
} Made;

static uint32_t slots_of(const FoveaDispatch* d) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < d->binding_count; ++i) mask |= 1u << d->bindings[i].slot;
    return mask;
}

static int same_shader(const FoveaDispatch* a, const FoveaDispatch* b) {
    return a->shader == b->shader && a->subgroup_size == b->subgroup_size && a->spec_count == b->spec_count &&
           slots_of(a) == slots_of(b) && memcmp(a->spec, b->spec, a->spec_count * sizeof *a->spec) == 0;
}

static RhiShader* shader_of(Rhi* rhi, const FoveaDispatch* d, Made* made, uint32_t* count) {
    for (uint32_t i = 0; i < *count; ++i)
        if (same_shader(&made[i].of, d)) return made[i].shader;
    size_t words = 0;
    if (*count == kMaxShaders || foveaDispatchCode(d, NULL, &words, NULL) != FOVEA_OK) return NULL;
    uint32_t* spirv = malloc(words * sizeof *spirv);
    if (!spirv || foveaDispatchCode(d, spirv, &words, NULL) != FOVEA_OK) {
        free(spirv);
        return NULL;
    }
    const RhiShaderDesc desc = {.constants = d->spec,
                                .constant_count = d->spec_count,
                                .push_bytes = d->push_words * 4,
                                .subgroup_size = d->subgroup_size,
                                .slot_mask = slots_of(d),
                                .spirv = spirv,
                                .word_count = words};
    made[*count] = (Made){*d, rhi_shader(rhi, &desc)};
    free(spirv);
    return made[(*count)++].shader;
}

/* Plays a whole plan; `buffers` are indexed by FoveaBinding, the workspace among them. */
FoveaResult play_plan(Rhi* rhi, FoveaPlan plan, RhiBuffer* const* buffers, FoveaDiag* diag) {
    Made made[kMaxShaders];
    uint32_t made_count = 0;
    FoveaPlanInfo info = foveaPlanInfo();
    FoveaResult result = foveaGetPlanInfo(plan, &info, diag);
    for (uint64_t slice = 0; result == FOVEA_OK && slice < info.slice_count; ++slice) {
        FoveaDispatch dispatches[kMaxDispatches];
        uint32_t count = kMaxDispatches; /* more: FOVEA_LIMIT_EXCEEDED */
        result = foveaGetDispatches(plan, slice, dispatches, &count, diag);
        if (result == FOVEA_OK && slice > 0 && info.slices_share_workspace) rhi_barrier(rhi);
        for (uint32_t i = 0; result == FOVEA_OK && i < count; ++i) {
            const FoveaDispatch* d = &dispatches[i];
            RhiBinding bindings[FOVEA_MAX_DISPATCH_BINDINGS];
            for (uint32_t n = 0; n < d->binding_count; ++n)
                bindings[n] = (RhiBinding){d->bindings[n].slot, buffers[d->bindings[n].source], d->bindings[n].offset,
                                           d->bindings[n].size};
            RhiShader* shader = shader_of(rhi, d, made, &made_count);
            if (!shader) return FOVEA_UNSUPPORTED;
            if (d->barrier_before) rhi_barrier(rhi);
            rhi_constants(rhi, shader, d->push, d->push_words * 4);
            rhi_dispatch(rhi, shader, bindings, d->binding_count, d->groups);
        }
    }
    return result;
}

/* The properties of the engine's device for Fovea: the limits and features that the engine enabled. These are
 * the minimum of every Vulkan 1.1 device, except the alignment, which may be less. */
FoveaDeviceProperties properties_of_any_device(void) {
    FoveaDeviceProperties properties = foveaDeviceProperties();
    properties.backend = FOVEA_BACKEND_VULKAN;
    properties.device_class = FOVEA_CLASS_DISCRETE;
    properties.features = FOVEA_FEATURE_DEVICE_ATOMICS; /* vulkanMemoryModel was not enabled */
    properties.max_workgroup_invocations = 128;
    properties.max_shared_bytes = 16384;
    properties.max_push_bytes = 128;
    properties.max_workgroup_count[0] = properties.max_workgroup_count[1] = properties.max_workgroup_count[2] = 65535;
    properties.storage_offset_alignment = 256;
    properties.max_storage_range = 1u << 27;
    properties.max_storage_buffers = 4; /* maxPerStageDescriptorStorageBuffers, or what else bounds a shader's buffers */
    return properties;
}
