// Creation of plans and what can be asked of them. The C boundary: checks, copies, dispatches to the layers
// below.
#include "api/explain_call.hpp"
#include "plan/plan.hpp"
#include "plan/text_sink.hpp"
#include "plan/vulkan/rotation.hpp"
#include "problem/abi_struct.hpp"
#include "problem/bindings.hpp"
#include "problem/checked.hpp"
#include "problem/host_memory.hpp"
#include "problem/parts.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace fovea {
namespace {

constexpr uint32_t kMaxThreads = 1u << 16;  // times the scratch of one: a size that stays within 64 bits

FoveaResult read_properties(const FoveaDeviceProperties* given, FoveaDeviceProperties& properties,
                            FoveaDiag* diag) {
    if (FoveaResult r = read_struct(given, properties, "properties", diag)) return r;
    const int backend = enum_number(properties.backend);
    if (backend != FOVEA_BACKEND_CPU && backend != FOVEA_BACKEND_VULKAN)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "properties.backend",
                    "properties.backend is %d; it must be a FoveaBackend", backend);
    const int device_class = enum_number(properties.device_class);
    if (device_class < FOVEA_CLASS_CPU || device_class > FOVEA_CLASS_VIRTUAL)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "properties.device_class",
                    "properties.device_class is %d; it must be a FoveaDeviceClass", device_class);
    const int forced = enum_number(properties.forced_kernel);
    if (forced != FOVEA_KERNEL_AUTO && forced != FOVEA_KERNEL_PLAIN && forced != FOVEA_KERNEL_REFERENCE)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "properties.forced_kernel",
                    "properties.forced_kernel is %d; it must be AUTO, PLAIN or REFERENCE", forced);
    if (!(properties.slice_cost >= 0))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "properties.slice_cost",
                    "properties.slice_cost is %g; it must be at least 0", properties.slice_cost);
    if (properties.cpu_threads > kMaxThreads)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "properties.cpu_threads",
                    "properties.cpu_threads is %u; the limit is %u", properties.cpu_threads, kMaxThreads);
    return FOVEA_OK;
}

void begin_info(FoveaPlan_T& plan, BindingMask binding_mask, BindingMask output_mask,
                const uint64_t (&bytes)[FOVEA_BIND_COUNT]) {
    plan.info.struct_size = sizeof plan.info;
    plan.info.backend = plan.properties.backend;
    plan.info.binding_mask = binding_mask;
    plan.info.output_mask = output_mask;
    memcpy(plan.info.tensor_bytes, bytes, sizeof bytes);
    memcpy(plan.info.binding_bytes, bytes, sizeof bytes);
}

FoveaResult plan_for_backend(FoveaPlan_T& plan, FoveaDiag* diag) {
    if (const FoveaKernel forced = plan.properties.forced_kernel)
        plan.problem.kernel = plan.rope.kernel = plan.linear.kernel = plan.merge.kernel = plan.norm.kernel =
            plan.pointwise.kernel = forced;
    if (plan.properties.backend == FOVEA_BACKEND_CPU) return plan_cpu(plan, diag);
    if (has(kVulkanPlans)) return plan_vulkan(plan, diag);
    return fail(diag, FOVEA_UNSUPPORTED, "properties.backend",
                "properties.backend is not FOVEA_BACKEND_CPU, and this module plans only for the CPU");
}

// Runs `fill(plan)` on a zeroed plan of the allocator; hands the plan out only if that worked.
template <class Fill>
FoveaResult create(const FoveaDeviceProperties* properties, const FoveaHostAllocator* allocator,
                   FoveaPlan* out, FoveaDiag* diag, Fill fill) {
    if (!out) return fail(diag, FOVEA_INVALID_ARGUMENT, "out", "out is null");
    *out = nullptr;
    FoveaHostAllocator chosen;
    FoveaDeviceProperties checked_properties;
    FoveaResult r;
    if ((r = choose_allocator(allocator, chosen, diag))) return r;
    if ((r = read_properties(properties, checked_properties, diag))) return r;
    void* memory = chosen.allocate(chosen.user, sizeof(FoveaPlan_T), alignof(FoveaPlan_T));
    if (!memory)
        return fail(diag, FOVEA_OUT_OF_HOST_MEMORY, "allocator", "no host memory for a plan of %zu bytes",
                    sizeof(FoveaPlan_T));
    auto* plan = new (memory) FoveaPlan_T{};
    plan->allocator = chosen;
    plan->properties = checked_properties;
    r = fill(*plan);
    if (r == FOVEA_OK) r = plan_for_backend(*plan, diag);
    if (r != FOVEA_OK) {
        chosen.release(chosen.user, memory, sizeof(FoveaPlan_T));
        return r;
    }
    *out = plan;
    return FOVEA_OK;
}

void begin_attention_info(FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    note_narrow(plan.narrow, p.q_type, FOVEA_BIND_Q);
    note_narrow(plan.narrow, p.k_type, FOVEA_BIND_K);
    note_narrow(plan.narrow, p.v_type, FOVEA_BIND_V);
    note_narrow(plan.narrow, p.o_type, FOVEA_BIND_O);
    begin_info(plan, p.binding_mask, p.output_mask, p.binding_bytes);
    plan.info.ignored_mask = p.ignored_mask;
}

FoveaResult fill_attention(FoveaPlan_T& plan, const FoveaAttentionDesc* desc, FoveaDiag* diag) {
    plan.operation = Operation::attention;
    if (FoveaResult r = make_problem(desc, plan.problem, diag)) return r;
    begin_attention_info(plan);
    return FOVEA_OK;
}

FoveaResult fill_map_tile(FoveaPlan_T& plan, const FoveaAttentionDesc* attention,
                          const FoveaMapTileDesc* tile, FoveaDiag* diag) {
    plan.operation = Operation::map_tile;
    if (FoveaResult r = make_problem(attention, plan.problem, diag)) return r;
    if (FoveaResult r = make_map_tile(tile, plan.problem, plan.tile, diag)) return r;
    begin_attention_info(plan);
    return FOVEA_OK;
}

FoveaResult fill_backward(FoveaPlan_T& plan, const FoveaAttentionDesc* forward,
                          const FoveaAttentionBackwardDesc* backward, FoveaDiag* diag) {
    plan.operation = Operation::backward;
    if (FoveaResult r = make_problem(forward, plan.problem, diag, true)) return r;
    if (FoveaResult r = make_backward(backward, plan.problem, plan.backward, diag)) return r;
    const Backward& w = plan.backward;
    note_narrow(plan.narrow, w.do_type, FOVEA_BIND_DO);
    note_narrow(plan.narrow, w.dq_type, FOVEA_BIND_DQ);
    note_narrow(plan.narrow, w.dk_type, FOVEA_BIND_DK);
    note_narrow(plan.narrow, w.dv_type, FOVEA_BIND_DV);
    begin_attention_info(plan);
    return FOVEA_OK;
}

// A plan of an operation whose description is `member` of the plan as `make` leaves it.
template <Operation operation, auto member, auto make, class Desc>
FoveaResult create_of(const FoveaDeviceProperties* properties, const Desc* desc,
                      const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
    return create(properties, allocator, out, diag, [&](FoveaPlan_T& plan) {
        plan.operation = operation;
        OperationBindings bindings;
        if (FoveaResult r = make(desc, plan.*member, bindings, diag)) return r;
        plan.narrow = bindings.narrow;
        begin_info(plan, bindings.binding_mask, bindings.output_mask, bindings.bytes);
        return FOVEA_OK;
    });
}

}  // namespace
}  // namespace fovea

using namespace fovea;

FoveaResult foveaCheckAttention(const FoveaDeviceProperties* properties, const FoveaAttentionDesc* desc,
                                FoveaDiag* diag) {
    FoveaPlan_T plan{};
    if (FoveaResult r = fill_attention(plan, desc, diag)) return r;
    if (!properties) return FOVEA_OK;
    if (FoveaResult r = read_properties(properties, plan.properties, diag)) return r;
    plan.info.backend = plan.properties.backend;
    return plan_for_backend(plan, diag);
}

FoveaResult foveaPlanAttention(const FoveaDeviceProperties* properties, const FoveaAttentionDesc* desc,
                               const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
    return create(properties, allocator, out, diag,
                  [&](FoveaPlan_T& plan) { return fill_attention(plan, desc, diag); });
}

FoveaResult foveaPlanAttentionBackward(const FoveaDeviceProperties* properties,
                                       const FoveaAttentionDesc* forward,
                                       const FoveaAttentionBackwardDesc* backward,
                                       const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
    return create(properties, allocator, out, diag,
                  [&](FoveaPlan_T& plan) { return fill_backward(plan, forward, backward, diag); });
}

FoveaResult foveaPlanMapTile(const FoveaDeviceProperties* properties, const FoveaAttentionDesc* attention,
                             const FoveaMapTileDesc* tile, const FoveaHostAllocator* allocator,
                             FoveaPlan* out, FoveaDiag* diag) {
    return create(properties, allocator, out, diag,
                  [&](FoveaPlan_T& plan) { return fill_map_tile(plan, attention, tile, diag); });
}

FoveaResult foveaPlanRope(const FoveaDeviceProperties* properties, const FoveaRopeDesc* desc,
                          const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
    return create_of<Operation::rope, &Call::rope, make_rope>(properties, desc, allocator, out, diag);
}

FoveaResult foveaPlanLinear(const FoveaDeviceProperties* properties, const FoveaLinearDesc* desc,
                            const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
    return create_of<Operation::linear, &Call::linear, make_linear>(properties, desc, allocator, out, diag);
}

FoveaResult foveaPlanAppend(const FoveaDeviceProperties* properties, const FoveaAppendDesc* desc,
                            const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
    return create_of<Operation::append, &Call::append, make_append>(properties, desc, allocator, out, diag);
}

FoveaResult foveaPlanGather(const FoveaDeviceProperties* properties, const FoveaGatherDesc* desc,
                            const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
    return create_of<Operation::gather, &Call::gather, make_gather>(properties, desc, allocator, out, diag);
}

FoveaResult foveaPlanMerge(const FoveaDeviceProperties* properties, const FoveaMergeDesc* desc,
                           const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
    return create_of<Operation::merge, &Call::merge, make_merge>(properties, desc, allocator, out, diag);
}

FoveaResult fovea::plan_norm(const FoveaDeviceProperties* properties, const NormDesc* desc,
                             const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
    return create_of<Operation::norm, &Call::norm, make_norm>(properties, desc, allocator, out, diag);
}

FoveaResult fovea::plan_pointwise(const FoveaDeviceProperties* properties, const PointwiseDesc* desc,
                                  const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag) {
    return create_of<Operation::pointwise, &Call::pointwise, make_pointwise>(properties, desc, allocator, out,
                                                                             diag);
}

FoveaResult fovea::plan_again(const FoveaPlan_T& plan,
                              const uint64_t (&failed_shaders)[FOVEA_CHECK_CLASS_COUNT], FoveaPlan* out,
                              FoveaDiag* diag) {
    FoveaDeviceProperties properties = plan.properties;
    memcpy(properties.failed_shaders, failed_shaders, sizeof failed_shaders);
    return create(&properties, &plan.allocator, out, diag, [&](FoveaPlan_T& made) {
        static_cast<Call&>(made) = plan;
        made.narrow = plan.narrow;
        begin_info(made, plan.info.binding_mask, plan.info.output_mask, plan.info.tensor_bytes);
        made.info.ignored_mask = plan.info.ignored_mask;
        return FOVEA_OK;
    });
}

void foveaDestroyPlan(FoveaPlan plan) {
    if (!plan) return;
    const FoveaHostAllocator allocator = plan->allocator;
    if (plan->compiled) allocator.release(allocator.user, plan->compiled, plan->compiled->size_bytes);
    allocator.release(allocator.user, plan, sizeof(FoveaPlan_T));
}

FoveaResult foveaGetPlanInfo(FoveaPlan plan, FoveaPlanInfo* info, FoveaDiag* diag) {
    if (!plan) return fail(diag, FOVEA_INVALID_ARGUMENT, "plan", "plan is null");
    return write_struct(plan->info, info, "info", diag);
}

size_t foveaExplainPlan(FoveaPlan plan, char* text, size_t capacity) {
    TextSink sink(text, text ? capacity : 0);
    if (!plan) return sink.needed();
    const FoveaPlanInfo& info = plan->info;
    sink.line("%s", info.reason);
    // The bound of a slice is rounded up, and may be that of a call in which nothing is masked.
    sink.line("slices: %llu, at most %.4g FLOP each; %.4g FLOP in all",
              static_cast<unsigned long long>(info.slice_count), std::min(info.max_slice_flops, info.flops),
              info.flops);
    const bool attends = plan->operation == Operation::attention || plan->operation == Operation::map_tile ||
                         plan->operation == Operation::backward;
    if (attends)
        sink.line("pairs of query and key computed: %.6g of %.6g", info.visited_pairs, info.total_pairs);
    sink.line("workspace: %llu bytes", static_cast<unsigned long long>(info.workspace_bytes));
    if (plan->properties.backend == FOVEA_BACKEND_CPU)
        explain_cpu(*plan, sink);
    else if (has(kVulkanPlans))
        explain_vulkan(*plan, sink);
    if (attends) explain_call(call_of(*plan), sink);
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (info.binding_mask >> i & 1)
            sink.line("%s %s: %llu bytes", info.output_mask >> i & 1 ? "writes" : "reads", binding_name(i),
                      static_cast<unsigned long long>(info.binding_bytes[i]));
    }
    return sink.needed();
}

FoveaResult foveaGetDispatches(FoveaPlan plan, uint64_t slice, FoveaDispatch* out, uint32_t* count,
                               FoveaDiag* diag) {
    if (!plan || !count || !out) {
        const char* name = !plan ? "plan" : !count ? "count" : "out";
        return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is null", name);
    }
    if (plan->properties.backend != FOVEA_BACKEND_VULKAN)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "plan", "the plan is for the CPU; it has no dispatches");
    if (slice >= plan->info.slice_count)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "slice", "slice is %llu; the plan has %llu",
                    static_cast<unsigned long long>(slice),
                    static_cast<unsigned long long>(plan->info.slice_count));
    if (*count < plan->info.dispatches_per_slice)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "count", "count is %u; this slice has %u dispatches", *count,
                    plan->info.dispatches_per_slice);
    return has(kVulkanPlans) ? vulkan_slice(*plan, slice, 0, out, *count, diag) : FOVEA_UNSUPPORTED;
}
