// Plans for devices that need not exist, and what they dispatch.
#pragma once

#include <fovea/fovea.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

namespace fovea::test {

// A compiler older than the module's language leaves it out of the build, and its plans are refused.
inline bool is_left_out(uint32_t shader) {
    if (foveaShaderCode(shader, nullptr)) return false;
    printf("skipped %s: this build's glslang is too old for it\n", foveaShaderName(shader));
    return true;
}
#define FOVEA_NEEDS_SHADER(shader) \
    if (is_left_out(uint32_t(shader))) GTEST_SKIP() << "this build's glslang is too old for the shader"

// The least that the engine runs on.
inline FoveaDeviceProperties floor_properties() {
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    properties.backend = FOVEA_BACKEND_VULKAN;
    properties.device_class = FOVEA_CLASS_CPU;
    properties.max_workgroup_invocations = 128;
    properties.max_shared_bytes = 16384;
    properties.max_push_bytes = 128;
    for (uint32_t& count : properties.max_workgroup_count) count = 65535;
    properties.storage_offset_alignment = 256;
    properties.max_storage_range = uint64_t{1} << 27;
    return properties;
}

inline FoveaDeviceProperties gpu_properties() {
    FoveaDeviceProperties properties = floor_properties();
    properties.device_class = FOVEA_CLASS_DISCRETE;
    properties.features = FOVEA_FEATURE_F16_STORAGE;
    properties.storage_offset_alignment = 16;
    properties.max_storage_range = UINT32_MAX;
    return properties;
}

// Adds the properties that kernels with subgroup reductions need.
inline void add_subgroups(FoveaDeviceProperties& properties, uint32_t least, uint32_t most) {
    properties.features |= FOVEA_FEATURE_SUBGROUP_ARITHMETIC | FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL;
    properties.subgroup_size = properties.min_subgroup_size = least;
    properties.max_subgroup_size = most;
}

// Adds the properties of a software driver of `lanes` lanes that flash by shuffles needs.
inline void add_shuffles(FoveaDeviceProperties& properties, uint32_t lanes) {
    properties.device_class = FOVEA_CLASS_CPU;
    add_subgroups(properties, lanes, lanes);
    properties.features |= FOVEA_FEATURE_SUBGROUP_SHUFFLE | FOVEA_FEATURE_COOPMAT;
}

// Adds the properties that flash_coopmat needs, as many GPUs have them.
inline void add_matrices(FoveaDeviceProperties& properties) {
    properties.features |= FOVEA_FEATURE_F16_STORAGE | FOVEA_FEATURE_F16_ARITHMETIC | FOVEA_FEATURE_COOPMAT |
                           FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL | FOVEA_FEATURE_SUBGROUP_SHUFFLE;
    properties.coopmat_m = properties.coopmat_n = properties.coopmat_k = 16;
    properties.subgroup_size = 32;
    properties.max_shared_bytes = 32768;
}

// Adds the properties that flash_coopmat2 needs: matrices of a workgroup of `threads`, or of a subgroup if it
// is 0.
inline void add_flexible_matrices(FoveaDeviceProperties& properties, uint32_t threads) {
    add_matrices(properties);
    properties.features |= FOVEA_FEATURE_COOPMAT2;
    properties.coopmat2_m = threads ? 32 : 16;
    properties.coopmat2_n = properties.coopmat2_k = 16;
    properties.coopmat2_threads = threads;
    properties.coopmat2_max_side = 1024;
    properties.coopmat2_reserved_bytes = 512;
    properties.max_shared_bytes = 49152;
}

inline FoveaAttentionDesc attention_desc(uint32_t batch, uint32_t heads_q, uint32_t heads_kv, uint64_t len_q,
                                         uint64_t len_kv, uint32_t dim_qk, uint32_t dim_v) {
    FoveaAttentionDesc desc = foveaAttentionDesc();
    desc.batch = batch;
    desc.heads_q = heads_q;
    desc.heads_kv = heads_kv;
    desc.len_q = len_q;
    desc.len_kv = len_kv;
    desc.dim_qk = dim_qk;
    desc.dim_v = dim_v;
    return desc;
}

inline std::vector<FoveaDispatch> dispatches_of(const Plan& plan, uint64_t slice) {
    std::vector<FoveaDispatch> all(plan.info().dispatches_per_slice);
    uint32_t count = uint32_t(all.size());
    if (foveaGetDispatches(plan.get(), slice, all.data(), &count, nullptr) != FOVEA_OK) count = 0;
    all.resize(count);
    return all;
}

template <class Push>
Push push_of(const FoveaDispatch& dispatch) {
    Push push;
    memcpy(&push, dispatch.push, sizeof push);
    return push;
}

inline const FoveaDispatchBinding* binding_at(const FoveaDispatch& dispatch, uint32_t slot) {
    for (uint32_t i = 0; i < dispatch.binding_count; ++i)
        if (dispatch.bindings[i].slot == slot) return &dispatch.bindings[i];
    return nullptr;
}

}  // namespace fovea::test
