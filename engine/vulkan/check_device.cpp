// foveaCheckDevice: problems for each kernel, run on the application's queue and compared with the reference.
#include "plan/vulkan/checked.hpp"
#include "problem/abi_struct.hpp"
#include "problem/bindings.hpp"
#include "problem/checked.hpp"
#include "problem/compressed.hpp"
#include "vulkan/check_verdict.hpp"
#include "vulkan/context.hpp"

#include <cstdio>
#include <cstring>

namespace fovea {
FOVEA_FIELDS(FoveaDeviceCheck, struct_size, seed, buffer, mapped, user, begin, run, shaders);
FOVEA_FIELDS(FoveaCheckReport, struct_size, problem_count, checked_shaders, failed_shaders, text);
}  // namespace fovea

namespace fovea::vulkan {
namespace {

constexpr Shader kMainShaders[] = {
    Shader::softmax,       Shader::flash,          Shader::flash_subgroup, Shader::flash_shuffle,
    Shader::flash_coopmat, Shader::flash_coopmat2, Shader::map_tile,       Shader::backward_query,
    Shader::linear_direct, Shader::linear_shared,  Shader::linear_coopmat, Shader::rope,
    Shader::cache_rows,    Shader::merge,          Shader::norm,           Shader::pointwise,
};

constexpr uint64_t kHostBytes = 8u << 20;
constexpr uint64_t kGuardBytes = 64;
constexpr unsigned char kGuard = 0xa7, kUntouched = 0xff;  // the second a NaN in every type

// Memory of one problem, handed out from front to back.
class Arena {
  public:
    explicit Arena(const FoveaHostAllocator& allocator) : allocator_(allocator) {
        memory_ = static_cast<unsigned char*>(allocator.allocate(allocator.user, kHostBytes, 64));
    }
    ~Arena() {
        if (memory_) allocator_.release(allocator_.user, memory_, kHostBytes);
    }
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    bool exists() const { return memory_ != nullptr; }
    void clear() { used_ = 0; }
    unsigned char* take(uint64_t bytes) {  // null: too little is left
        const uint64_t at = used_;
        if (bytes > kHostBytes - at) return nullptr;
        used_ = std::min(align_up(at + bytes, 64), kHostBytes);
        return memory_ + at;
    }

  private:
    const FoveaHostAllocator& allocator_;
    unsigned char* memory_;
    uint64_t used_ = 0;
};

// A plan that goes with its scope.
struct OwnedPlan {
    FoveaPlan plan = nullptr;
    OwnedPlan() = default;
    ~OwnedPlan() { foveaDestroyPlan(plan); }
    OwnedPlan(const OwnedPlan&) = delete;
    OwnedPlan& operator=(const OwnedPlan&) = delete;
};

bool is_in_and_out(const CheckProblem& p, uint32_t binding) {
    return (p.operation == Operation::append && binding == FOVEA_BIND_Y) ||
           (p.operation == Operation::norm && binding == FOVEA_BIND_O);
}
bool attends(const CheckProblem& p) {
    return p.operation == Operation::attention || p.operation == Operation::map_tile ||
           p.operation == Operation::backward;
}
bool is_no_fit(FoveaResult r) { return r == FOVEA_UNSUPPORTED || r == FOVEA_LIMIT_EXCEEDED; }

class DeviceChecker {
  public:
    DeviceChecker(FoveaContext context, const FoveaDeviceCheck& check, FoveaCheckReport& report,
                  FoveaDiag* diag)
        : context_(context), check_(check), report_(report), diag_(diag), arena_(context->allocator) {
        cpu_.struct_size = sizeof cpu_;
        foveaCpuProperties(1, &cpu_, nullptr);
    }

    FoveaResult run() {
        if (!arena_.exists())
            return fail(diag_, FOVEA_OUT_OF_HOST_MEMORY, "host_allocator", "no host memory for the check");
        uint64_t any = 0;
        for (const uint64_t shaders : check_.shaders) any |= shaders;
        for (uint32_t type = 0; type < FOVEA_CHECK_CLASS_COUNT; ++type)
            for (const Shader main : kMainShaders) {
                const uint64_t bit = uint64_t{1} << uint32_t(main);
                if (any && !(check_.shaders[type] & bit)) continue;
                if (FoveaResult r = run_kernel(main, type)) return r;
            }
        return FOVEA_OK;
    }

  private:
    // Until the first wrong result.
    FoveaResult run_kernel(Shader main, uint32_t type) {
        const uint64_t bit = uint64_t{1} << uint32_t(main);
        CheckProblem problem;
        for (uint32_t n = 0;; ++n) {
            FoveaDeviceProperties properties = context_->properties;
            if (!check_problem(main, type, n, properties, problem)) return FOVEA_OK;
            char text[160] = "";
            bool ran = false;
            arena_.clear();
            if (FoveaResult r = run_problem(problem, main, type, properties, n, ran, text, sizeof text))
                return r;
            if (!ran) continue;
            ++report_.problem_count;
            report_.checked_shaders[type] |= bit;
            if (!text[0]) continue;
            report_.failed_shaders[type] |= bit;
            note(main, type, n, text);
            return FOVEA_OK;
        }
    }

    void note(Shader main, uint32_t type, uint32_t n, const char* text) {
        const size_t length = strlen(report_.text);
        snprintf(report_.text + length, sizeof report_.text - length,
                 "%s is off for %s tensors: problem %u: %s\n", checked_kernel_name(main),
                 check_class_name(type), n, text);
    }

    FoveaResult run_problem(const CheckProblem& problem, Shader main, uint32_t type,
                            const FoveaDeviceProperties& properties, uint32_t n, bool& ran, char* text,
                            size_t room) {
        OwnedPlan gpu;
        FoveaResult r =
            plan_problem(problem, FOVEA_KERNEL_AUTO, properties, context_->allocator, &gpu.plan, diag_);
        if (is_no_fit(r)) return FOVEA_OK;
        if (r) return r;
        if (main_shader(*gpu.plan) != main || check_class(*gpu.plan) != type) return FOVEA_OK;
        const FoveaPlanInfo& info = gpu.plan->info;
        CheckResults results{};
        const uint64_t seed = uint64_t{check_.seed} << 32 ^ uint64_t(main) << 16 ^ n;
        if ((r = make_inputs(problem, info, seed, results))) return r;
        if ((r = run_on_host(problem, FOVEA_KERNEL_PLAIN, results.inputs, results.plain))) return r;
        if ((r = run_on_host(problem, FOVEA_KERNEL_REFERENCE, results.inputs, results.exact))) return r;
        if (problem.operation == Operation::attention) read_forward(results.exact, results);
        if ((r = run_on_device(gpu.plan, results, ran, text, room)) || !ran || text[0]) return r;
        results.sums = reinterpret_cast<double*>(arena_.take(kCheckSums * sizeof(double)));
        if (!results.sums || !widen_inputs(problem, info, results)) return no_room();
        is_right(problem, info, results, text, room);
        return FOVEA_OK;
    }

    // Bits of caches are compared as they are.
    bool widen_inputs(const CheckProblem& problem, const FoveaPlanInfo& info, CheckResults& results) {
        if (problem.operation == Operation::append || problem.operation == Operation::gather) return true;
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            const FoveaDtype type = input_type(problem, i);
            if (!results.inputs[i] || type == FOVEA_U8 || type == FOVEA_I32) continue;
            const StorageBlock block = storage_block(type);
            const uint64_t count = info.tensor_bytes[i] / block.bytes * block.numbers;
            auto* values = reinterpret_cast<float*>(arena_.take(4 * count));
            if (!values) return false;
            with_numbers(type, static_cast<const void*>(results.inputs[i]), [&](auto from) {
                for (uint64_t n = 0; n < count; ++n)
                    if constexpr (std::is_pointer_v<decltype(from)>)
                        values[n] = widened(from[n]);
                    else
                        values[n] = from[int64_t(n)];
            });
            results.values[i] = values;
        }
        return true;
    }

    FoveaResult no_room() {
        return fail(diag_, FOVEA_LIMIT_EXCEEDED, "check",
                    "a problem of the check needs more than its memory");
    }

    static void read_forward(const unsigned char* const* exact, CheckResults& results) {
        results.masked = reinterpret_cast<const float*>(exact[FOVEA_BIND_MASKED]);
        results.lse = reinterpret_cast<const float*>(exact[FOVEA_BIND_LSE]);
    }

    // Inputs of gradients and map tiles come from the forward call.
    FoveaResult make_inputs(const CheckProblem& problem, const FoveaPlanInfo& info, uint64_t seed,
                            CheckResults& results) {
        CheckProblem forward = problem;
        forward.operation = Operation::attention;
        const bool has_forward = attends(problem) && problem.operation != Operation::attention;
        uint64_t bytes[FOVEA_BIND_COUNT], mask = info.binding_mask & ~info.output_mask;
        memcpy(bytes, info.tensor_bytes, sizeof bytes);
        if (has_forward) {
            OwnedPlan plan;
            if (FoveaResult r = plan_problem(forward, FOVEA_KERNEL_REFERENCE, cpu_, context_->allocator,
                                             &plan.plan, diag_))
                return r;
            mask |= plan.plan->info.binding_mask & ~plan.plan->info.output_mask;
            for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
                if (plan.plan->info.tensor_bytes[i] > bytes[i]) bytes[i] = plan.plan->info.tensor_bytes[i];
        }
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(mask >> i & 1) && !(info.binding_mask >> i & 1 && is_in_and_out(problem, i))) continue;
            unsigned char* data = arena_.take(align_up(bytes[i], 4));
            if (!data) return no_room();
            if (bytes[i]) fill_input(problem, i, seed, data, bytes[i]);
            results.inputs[i] = data;
        }
        if (!has_forward) return FOVEA_OK;
        const unsigned char* out[FOVEA_BIND_COUNT] = {};
        if (FoveaResult r = run_on_host(forward, FOVEA_KERNEL_REFERENCE, results.inputs, out)) return r;
        read_forward(out, results);
        results.inputs[FOVEA_BIND_LSE] = out[FOVEA_BIND_LSE];
        if (problem.operation != Operation::backward) return FOVEA_OK;
        const FoveaDtype type = problem.attention.o_type;
        unsigned char* o = arena_.take(align_up(bytes[FOVEA_BIND_O], 4));
        if (!o) return no_room();
        with_type(type, [&](auto number) {
            for (uint64_t n = 0; n < info.tensor_bytes[FOVEA_BIND_O] / sizeof number; ++n) {
                narrow(element_at(out[FOVEA_BIND_O], FOVEA_F32, int64_t(n)), number);
                memcpy(o + n * sizeof number, &number, sizeof number);
            }
        });
        results.inputs[FOVEA_BIND_O] = o;
        return FOVEA_OK;
    }

    FoveaResult run_on_host(const CheckProblem& problem, FoveaKernel kernel,
                            const unsigned char* const* inputs, const unsigned char** out) {
        OwnedPlan cpu;
        if (FoveaResult r = plan_problem(problem, kernel, cpu_, context_->allocator, &cpu.plan, diag_))
            return r;
        const FoveaPlanInfo& info = cpu.plan->info;
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.binding_mask >> i & 1)) continue;
            const uint64_t bytes = info.binding_bytes[i];
            auto* data = const_cast<unsigned char*>(inputs[i]);
            if (info.output_mask >> i & 1) {
                if (!(data = arena_.take(bytes))) return no_room();
                if (is_in_and_out(problem, i)) memcpy(data, inputs[i], bytes);
                out[i] = data;
            }
            bindings[i] = {data, bytes};
        }
        FoveaCpuRun run = foveaCpuRun();
        run.binding_count = FOVEA_BIND_COUNT;
        run.bindings = bindings;
        run.workspace = {arena_.take(info.workspace_bytes), info.workspace_bytes};
        if (!run.workspace.data) return no_room();
        return foveaRunCpu(cpu.plan, &run, diag_);
    }

    // ---- on the device: every buffer between guards ----

    struct Placed {
        uint64_t at[FOVEA_BIND_COUNT] = {}, workspace = 0, end = 0;
    };
    Placed place(const FoveaPlanInfo& info) const {
        Placed placed;
        const auto next = [&](uint64_t bytes) {
            const uint64_t at = align_up(placed.end + kGuardBytes, 256);
            placed.end = at + bytes + kGuardBytes;
            return at;
        };
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
            if (info.binding_mask >> i & 1) placed.at[i] = next(info.binding_bytes[i]);
        placed.workspace = next(info.workspace_bytes);
        return placed;
    }

    FoveaResult run_on_device(FoveaPlan plan, CheckResults& results, bool& ran, char* text, size_t room) {
        const FoveaPlanInfo& info = plan->info;
        const Placed placed = place(info);
        if (placed.end > FOVEA_CHECK_BUFFER_BYTES ||
            info.slice_count * info.dispatches_per_slice > FOVEA_CHECK_DESCRIPTOR_SETS)
            return FOVEA_OK;
        if (FoveaResult r = foveaCompilePlan(context_, plan, diag_)) return is_no_fit(r) ? FOVEA_OK : r;
        auto* mapped = static_cast<unsigned char*>(check_.mapped);
        unsigned char* before = arena_.take(placed.end);
        unsigned char* after = arena_.take(placed.end);
        if (!before || !after) return no_room();
        memset(before, kGuard, placed.end);
        memset(before + placed.workspace, kUntouched, info.workspace_bytes);
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.binding_mask >> i & 1)) continue;
            memset(before + placed.at[i], kUntouched, info.binding_bytes[i]);
            if (results.inputs[i]) memcpy(before + placed.at[i], results.inputs[i], info.tensor_bytes[i]);
        }
        memcpy(mapped, before, placed.end);
        if (FoveaResult r = submit(plan, placed)) return r;
        memcpy(after, mapped, placed.end);
        ran = true;
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
            if (info.output_mask >> i & 1) results.got[i] = after + placed.at[i];
        if (!is_untouched(info, placed, before, after))
            snprintf(text, room, "a byte outside the outputs was written");
        return FOVEA_OK;
    }

    FoveaResult submit(FoveaPlan plan, const Placed& placed) {
        const FoveaPlanInfo& info = plan->info;
        FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
        const auto range = [&](uint64_t at, uint64_t bytes) {
            return FoveaBuffer{check_.buffer.buffer, check_.buffer.offset + at, bytes};
        };
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
            if (info.binding_mask >> i & 1 && info.binding_bytes[i])
                bindings[i] = range(placed.at[i], info.binding_bytes[i]);
        FoveaRecord record = foveaRecord();
        FoveaResult r = check_.begin(check_.user, &record.cmd, &record.descriptor_pool, diag_);
        if (r) return r;
        record.binding_count = FOVEA_BIND_COUNT;
        record.bindings = bindings;
        if (info.workspace_bytes) record.workspace = range(placed.workspace, info.workspace_bytes);
        if ((r = foveaCmdRun(plan, &record, diag_))) return r;
        const VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                                      VK_ACCESS_HOST_READ_BIT};
        context_->vk.vkCmdPipelineBarrier(record.cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                          VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
        return check_.run(check_.user, diag_);
    }

    static bool is_untouched(const FoveaPlanInfo& info, const Placed& placed, const unsigned char* before,
                             const unsigned char* after) {
        uint64_t at = 0;
        const auto same_to = [&](uint64_t end) { return memcmp(before + at, after + at, end - at) == 0; };
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {  // in the order of their places
            if (!(info.output_mask >> i & 1)) continue;
            if (!same_to(placed.at[i])) return false;
            at = placed.at[i] + info.binding_bytes[i];
        }
        if (!same_to(placed.workspace)) return false;
        at = placed.workspace + info.workspace_bytes;
        return same_to(placed.end);
    }

    FoveaContext context_;
    const FoveaDeviceCheck& check_;
    FoveaCheckReport& report_;
    FoveaDiag* diag_;
    FoveaDeviceProperties cpu_{};
    Arena arena_;
};

FoveaResult check_arguments(FoveaContext context, const FoveaDeviceCheck& check, FoveaDiag* diag) {
    const std::pair<const char*, bool> given[] = {{"buffer.buffer", check.buffer.buffer != VK_NULL_HANDLE},
                                                  {"mapped", check.mapped != nullptr},
                                                  {"begin", check.begin != nullptr},
                                                  {"run", check.run != nullptr}};
    for (const auto& [field, is_given] : given)
        if (!is_given) return fail(diag, FOVEA_INVALID_ARGUMENT, field, "%s is null", field);
    if (check.buffer.size < FOVEA_CHECK_BUFFER_BYTES)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "buffer.size",
                    "buffer.size is %llu bytes; it must be at least %d",
                    static_cast<unsigned long long>(check.buffer.size), int(FOVEA_CHECK_BUFFER_BYTES));
    const uint32_t alignment = context->properties.storage_offset_alignment;
    if (check.buffer.offset % alignment)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "buffer.offset",
                    "buffer.offset is %llu; it must be a multiple of %u bytes (storage_offset_alignment)",
                    static_cast<unsigned long long>(check.buffer.offset), alignment);
    return check_alive(*context, diag);
}

}  // namespace
}  // namespace fovea::vulkan

using namespace fovea;
using namespace fovea::vulkan;

FoveaResult foveaCheckDevice(FoveaContext context, const FoveaDeviceCheck* given, FoveaCheckReport* report,
                             FoveaDiag* diag) {
    if (!context) return fail(diag, FOVEA_INVALID_ARGUMENT, "context", "context is null");
    FoveaDeviceCheck check;
    FoveaCheckReport out = foveaCheckReport();
    if (FoveaResult r = read_struct(given, check, "check", diag)) return r;
    if (FoveaResult r = check_arguments(context, check, diag)) return r;
    // Fails now rather than after the run.
    if (FoveaResult r = write_struct(out, report, "report", diag)) return r;
    if (FoveaResult r = DeviceChecker(context, check, out, diag).run()) return r;
    return write_struct(out, report, "report", diag);
}
