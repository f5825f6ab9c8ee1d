#include "plan/vulkan/device_traits.hpp"
#include "problem/bindings.hpp"
#include "problem/status.hpp"
#include "vulkan/context.hpp"

#include <new>

namespace fovea::vulkan {
namespace {

struct Limit {
    const char* field;
    uint64_t planned, device;
};

// A plan may ask for less than the device has, never for more.
FoveaResult check_properties(const FoveaDeviceProperties& plan, const FoveaDeviceProperties& device,
                             FoveaDiag* diag) {
    if (const uint32_t missing = plan.features & ~device.features) {
        char names[160];
        write_feature_names(missing, names, sizeof names);
        return fail(diag, FOVEA_UNSUPPORTED, "properties.features",
                    "the plan was made for features that this device was not created with: %s", names);
    }
    const Limit limits[] = {
        {"properties.max_workgroup_invocations", plan.max_workgroup_invocations,
         device.max_workgroup_invocations},
        {"properties.max_shared_bytes", plan.max_shared_bytes, device.max_shared_bytes},
        {"properties.max_push_bytes", plan.max_push_bytes, device.max_push_bytes},
        {"properties.max_workgroup_count[0]", plan.max_workgroup_count[0], device.max_workgroup_count[0]},
        {"properties.max_workgroup_count[1]", plan.max_workgroup_count[1], device.max_workgroup_count[1]},
        {"properties.max_workgroup_count[2]", plan.max_workgroup_count[2], device.max_workgroup_count[2]},
        {"properties.max_storage_range", plan.max_storage_range, device.max_storage_range},
        {"properties.storage_offset_alignment", device.storage_offset_alignment,
         plan.storage_offset_alignment},
    };
    for (const Limit& limit : limits) {
        if (limit.planned > limit.device)
            return fail(diag, FOVEA_LIMIT_EXCEEDED, limit.field,
                        "the plan was made for another device: its %s is beyond this device's (%llu > %llu)",
                        limit.field, static_cast<unsigned long long>(limit.planned),
                        static_cast<unsigned long long>(limit.device));
    }
    return FOVEA_OK;
}

// One visit takes microseconds: more of them are a budget that was chosen too small, not work.
constexpr uint64_t kMaxSlices = 1u << 20;

FoveaResult check_slice_count(const FoveaPlanInfo& info, FoveaDiag* diag) {
    if (info.slice_count <= kMaxSlices) return FOVEA_OK;
    return fail(
        diag, FOVEA_LIMIT_EXCEEDED, "max_slice_cost",
        "the plan has %llu slices of at most %.3g FLOP; the limit is %llu slices: plan it with a larger "
        "max_slice_cost",
        static_cast<unsigned long long>(info.slice_count), info.max_slice_flops,
        static_cast<unsigned long long>(kMaxSlices));
}

// Matrices come in the shapes that the driver lists; the context keeps the one that it would use.
FoveaResult check_matrices(const FoveaDeviceProperties& plan, const FoveaDeviceProperties& device,
                           FoveaDiag* diag) {
    if ((plan.features & FOVEA_FEATURE_COOPMAT2) && plan.coopmat2_m &&
        (plan.coopmat2_m != device.coopmat2_m || plan.coopmat2_n != device.coopmat2_n ||
         plan.coopmat2_k != device.coopmat2_k || plan.coopmat2_threads != device.coopmat2_threads ||
         plan.coopmat2_max_side > device.coopmat2_max_side ||
         plan.coopmat2_reserved_bytes < device.coopmat2_reserved_bytes))
        return fail(diag, FOVEA_UNSUPPORTED, "properties.coopmat2_m",
                    "the plan was made for matrices of flexible dimensions in steps of %u x %u x %u by %u "
                    "threads, up to %u; "
                    "this device's are %u x %u x %u by %u, up to %u",
                    plan.coopmat2_m, plan.coopmat2_n, plan.coopmat2_k, plan.coopmat2_threads,
                    plan.coopmat2_max_side, device.coopmat2_m, device.coopmat2_n, device.coopmat2_k,
                    device.coopmat2_threads, device.coopmat2_max_side);
    const bool has_shape = (plan.features & FOVEA_FEATURE_COOPMAT) && plan.coopmat_m;
    if (!has_shape || (plan.coopmat_m == device.coopmat_m && plan.coopmat_n == device.coopmat_n &&
                       plan.coopmat_k == device.coopmat_k))
        return FOVEA_OK;
    return fail(diag, FOVEA_UNSUPPORTED, "properties.coopmat_m",
                "the plan was made for cooperative matrices of %u x %u x %u; this device's are %u x %u x %u",
                plan.coopmat_m, plan.coopmat_n, plan.coopmat_k, device.coopmat_m, device.coopmat_n,
                device.coopmat_k);
}

FoveaResult add_dispatch(FoveaContext_T& context, const FoveaDispatch& dispatch, PlanPipelines& out,
                         FoveaDiag* diag) {
    if (out.find(dispatch)) return FOVEA_OK;
    if (out.count == kMaxPipelinesOfPlan)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "plan", "the plan has more than %u different pipelines",
                    kMaxPipelinesOfPlan);
    const uint32_t most = context.properties.max_storage_buffers;
    if (dispatch.binding_count > most)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "properties.max_storage_buffers",
                    "the plan was made for another device: shader %s binds %u storage buffers, this device's "
                    "limit is %u",
                    foveaShaderName(dispatch.shader), dispatch.binding_count, most);
    const uint32_t size = dispatch.subgroup_size;
    if (size && (!(context.properties.features & FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL) ||
                 size < context.properties.min_subgroup_size || size > context.properties.max_subgroup_size))
        return fail(diag, FOVEA_UNSUPPORTED, "subgroup_size",
                    "the plan needs subgroups of %u; this device has %u to %u", size,
                    context.properties.min_subgroup_size, context.properties.max_subgroup_size);
    if (FoveaResult r = get_pipeline(context, key_of(dispatch), out.pipelines[out.count], diag)) return r;
    ++out.count;
    return FOVEA_OK;
}

// A last look at what the planner made: whatever it says, nothing is bound outside the ranges that every
// recording checks the host's buffers for.
FoveaResult check_dispatch(const FoveaContext_T& context, const FoveaPlanInfo& info, const FoveaDispatch& d,
                           FoveaDiag* diag) {
    for (uint32_t i = 0; i < d.binding_count; ++i) {
        const FoveaDispatchBinding& b = d.bindings[i];
        const uint64_t bytes =
            b.source == FOVEA_BIND_WORKSPACE ? info.workspace_bytes : info.binding_bytes[b.source];
        if (b.size == 0 || b.offset > bytes || b.size > bytes - b.offset)
            return fail(diag, FOVEA_INVALID_ARGUMENT, binding_name(b.source),
                        "%s is %llu bytes; shader %s uses %llu from byte %llu on", binding_name(b.source),
                        static_cast<unsigned long long>(bytes), foveaShaderName(d.shader),
                        static_cast<unsigned long long>(b.size), static_cast<unsigned long long>(b.offset));
        if (b.size > context.properties.max_storage_range)
            return fail(diag, FOVEA_LIMIT_EXCEEDED, binding_name(b.source),
                        "%s needs %llu bytes in one descriptor; the device's limit is %llu",
                        binding_name(b.source), static_cast<unsigned long long>(b.size),
                        static_cast<unsigned long long>(context.properties.max_storage_range));
    }
    return FOVEA_OK;
}

// The one visit to all slices: their pipelines are made and their bindings checked, so that recording does
// neither.
FoveaResult visit_slices(FoveaContext_T& context, const FoveaPlan_T& plan, PlanPipelines& out,
                         FoveaDiag* diag) {
    FoveaDispatch dispatches[kMaxDispatchesPerSlice];
    out.slices_alike = true;
    for (uint64_t slice = 0; slice < plan.info.slice_count; ++slice) {
        uint32_t total = 0;
        for (uint32_t count; true; total += count) {
            count = kMaxDispatchesPerSlice;
            if (FoveaResult r = vulkan_slice(plan, slice, total, dispatches, count, diag)) return r;
            if (count == 0) break;
            if (total > 0) out.slices_alike = false;
            for (uint32_t i = 0; i < count; ++i) {
                if (FoveaResult r = check_dispatch(context, plan.info, dispatches[i], diag)) return r;
                if (FoveaResult r = add_dispatch(context, dispatches[i], out, diag)) return r;
                const uint32_t index = uint32_t(out.find(dispatches[i]) - out.pipelines);
                if (slice == 0 && total == 0) out.of_dispatch[i] = index;
                if (out.of_dispatch[i] != index) out.slices_alike = false;
            }
        }
        if (slice == 0) out.dispatches_per_slice = total;
        if (total != out.dispatches_per_slice) out.slices_alike = false;
    }
    return FOVEA_OK;
}

}  // namespace
}  // namespace fovea::vulkan

using namespace fovea;
using namespace fovea::vulkan;

FoveaResult foveaCompilePlan(FoveaContext context, FoveaPlan plan, FoveaDiag* diag) {
    if (!context) return fail(diag, FOVEA_INVALID_ARGUMENT, "context", "context is null");
    if (!plan) return fail(diag, FOVEA_INVALID_ARGUMENT, "plan", "plan is null");
    if (FoveaResult r = check_alive(*context, diag)) return r;
    if (plan->properties.backend != FOVEA_BACKEND_VULKAN)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "plan", "the plan is for the CPU; run it with foveaRunCpu");
    if (const PlanPipelines* compiled = pipelines_of(*plan)) {
        if (compiled->context == context) return FOVEA_OK;
        return fail(diag, FOVEA_INVALID_ARGUMENT, "context", "the plan is compiled for another context");
    }
    if (FoveaResult r = check_properties(plan->properties, context->properties, diag)) return r;
    if (FoveaResult r = check_matrices(plan->properties, context->properties, diag)) return r;
    if (FoveaResult r = check_slice_count(plan->info, diag)) return r;
    const FoveaHostAllocator& allocator = plan->allocator;
    void* memory = allocator.allocate(allocator.user, sizeof(PlanPipelines), alignof(PlanPipelines));
    if (!memory)
        return fail(diag, FOVEA_OUT_OF_HOST_MEMORY, "allocator", "no host memory for the plan's pipelines");
    auto* compiled = new (memory) PlanPipelines{};
    compiled->size_bytes = sizeof(PlanPipelines);
    compiled->context = context;
    if (FoveaResult r = visit_slices(*context, *plan, *compiled, diag)) {
        allocator.release(allocator.user, memory, sizeof(PlanPipelines));
        return r;
    }
    plan->compiled = compiled;
    return FOVEA_OK;
}
