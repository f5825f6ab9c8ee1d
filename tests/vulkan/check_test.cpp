// foveaCheckDevice on real drivers, which must pass, and on drivers with a planted fault, which must not.
#include "plan/vulkan/checked.hpp"
#include "runtime/driver_check.hpp"
#include "support/scratch.hpp"
#include "vulkan/check_problem.hpp"
#include "vulkan/faulty_driver.hpp"
#include "vulkan/gpu.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <span>

namespace fovea::test {
namespace {

using runtime::CheckedShaders;

constexpr double kTimeout = 600;

// A context of the device, through the layer that corrupts or not.
class Context {
  public:
    Context(const Gpu& gpu, const Fault* fault) {
        FoveaVulkanDevice host = gpu.device->host();
        plant(fault);
        host.get_device_proc_addr = faulty_get_proc(host.get_device_proc_addr);
        Diag diag;
        EXPECT_EQ(foveaCreateContext(&host, &handle_, &diag), FOVEA_OK) << diag.text;
    }
    ~Context() {
        foveaDestroyContext(handle_);
        plant(nullptr);
    }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    FoveaContext get() const { return handle_; }

  private:
    FoveaContext handle_ = nullptr;
};

Result<FoveaCheckReport> check(const Gpu& gpu, FoveaContext context, const CheckedShaders& shaders,
                               uint32_t seed) {
    return runtime::check_device(context, *gpu.allocator, shaders, seed, kTimeout);
}

CheckedShaders only(Shader kernel, uint32_t type) {
    CheckedShaders shaders{};
    shaders[type] = uint64_t{1} << uint32_t(kernel);
    return shaders;
}

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// ---- healthy drivers ----

// Every kernel that a plan may use, under validation. Then again one by one, when every pipeline is there:
// what the first use of a kernel costs the runtime.
TEST(DeviceCheck, a_healthy_driver_passes) {
    const Gpu gpu;
    ASSERT_TRUE(gpu.ok());
    const Result<FoveaCheckReport> report = check(gpu, gpu.device->context(), {}, 1);
    ASSERT_TRUE(report) << report.error().text;
    EXPECT_STREQ(report->text, "");
    for (const uint64_t failed : report->failed_shaders) EXPECT_EQ(failed, 0u);
    EXPECT_GT(report->problem_count, 200u);
    EXPECT_TRUE(report->checked_shaders[FOVEA_CHECK_F32] >> uint32_t(Shader::softmax) & 1);
    double most = 0, all = 0;
    for (uint32_t type = 0; type < FOVEA_CHECK_CLASS_COUNT; ++type)
        for (uint32_t shader = 0; shader < kShaderCount; ++shader) {
            if (!(report->checked_shaders[type] >> shader & 1)) continue;
            const Clock::time_point start = Clock::now();
            const std::clock_t cpu = std::clock();
            const Result<FoveaCheckReport> one =
                check(gpu, gpu.device->context(), only(Shader(shader), type), 2 + shader);
            const double seconds = since(start);  // on a busy machine far more than the CPU time
            ASSERT_TRUE(one) << one.error().text;
            EXPECT_STREQ(one->text, "");
            std::printf("%-18s %-10s %2u problems %6.1f ms, %.0f ms of CPU\n",
                        checked_kernel_name(Shader(shader)), check_class_name(type), one->problem_count,
                        1e3 * seconds, 1e3 * double(std::clock() - cpu) / CLOCKS_PER_SEC);
            most = std::max(most, seconds), all += seconds;
        }
    std::printf("%u problems in %.0f ms, at most %.0f ms for a kernel\n", report->problem_count, 1e3 * all,
                1e3 * most);
}

// ---- the runtime ----

// The engine plans without a kernel that failed, also for a plan that was made before; the folder keeps it.
TEST(DeviceCheck, the_runtime_leaves_out_what_failed) {
    Gpu gpu({}, false);
    ASSERT_TRUE(gpu.ok());
    const Scratch folder;
    FoveaCheckReport found = foveaCheckReport();
    const CheckedShaders flash = {(uint64_t{1} << uint32_t(Shader::flash)) |
                                  (uint64_t{1} << uint32_t(Shader::flash_shuffle)) |
                                  (uint64_t{1} << uint32_t(Shader::flash_subgroup))};
    std::copy(flash.begin(), flash.end(), found.failed_shaders);
    strcpy(found.text, "flash is off for float32 tensors: a test\n");
    runtime::DriverCheck(gpu.device->vulkan_properties(), folder.folder().string()).add(found, flash);
    gpu.close();

    EngineOptions options;
    options.backend = BackendChoice::vulkan;
    options.driver_checks = DriverChecks::none;
    FoveaAttentionDesc desc = foveaAttentionDesc();
    desc.batch = desc.heads_q = desc.heads_kv = 1, desc.len_q = desc.len_kv = 20,
    desc.dim_qk = desc.dim_v = 8;
    std::vector<float> q = random_floats(160, 1), k = random_floats(160, 2), v = random_floats(160, 3),
                       o(160), right(160);
    HostBindings bindings = {};
    bindings[FOVEA_BIND_Q] = {q.data(), 640}, bindings[FOVEA_BIND_K] = {k.data(), 640};
    bindings[FOVEA_BIND_V] = {v.data(), 640}, bindings[FOVEA_BIND_O] = {right.data(), 640};
    Result<Engine> healthy = Engine::open(options);
    ASSERT_TRUE(healthy) << healthy.error().text;
    Result<Plan> plan = plan_attention(healthy->properties(), desc);
    ASSERT_TRUE(plan) << plan.error().text;
    EXPECT_EQ(plan->info().kernel, FOVEA_KERNEL_FLASH);
    ASSERT_TRUE(healthy->run_on_host(*plan, bindings));

    options.driver_checks = DriverChecks::all;
    options.check_folder = folder.folder().string();
    Result<Engine> engine = Engine::open(options);
    ASSERT_TRUE(engine) << engine.error().text;
    EXPECT_EQ(engine->properties().failed_shaders[FOVEA_CHECK_F32], flash[FOVEA_CHECK_F32]);
    EXPECT_EQ(engine->device().notes.back(), "flash is off for float32 tensors: a test");
    bindings[FOVEA_BIND_O] = {o.data(), 640};
    const Result<RunReport> report = engine->run_on_host(*plan, bindings);
    ASSERT_TRUE(report) << report.error().text;
    EXPECT_EQ(report->kernel, FOVEA_KERNEL_STAGED);
    expect_close(o, right, 1e-5f);
    desc.kernel = FOVEA_KERNEL_FLASH;
    const Result<Plan> forced = plan_attention(healthy->properties(), desc);
    ASSERT_TRUE(forced);
    const Result<RunReport> refused = engine->run_on_host(*forced, bindings);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "properties.failed_shaders");
    // Staged was checked at its first run, and the folder has it.
    const runtime::DriverCheck kept = [&] {
        const Gpu again({}, false);
        return runtime::DriverCheck(again.device->vulkan_properties(), folder.folder().string());
    }();
    EXPECT_TRUE(kept.knows(FOVEA_CHECK_F32, uint32_t(Shader::softmax)));
    EXPECT_EQ(kept.failed()[FOVEA_CHECK_F32], flash[FOVEA_CHECK_F32]);
}

// ---- drivers with a fault ----

enum : uint32_t {  // SPIR-V's opcodes
    kExtInst = 12,
    kCompositeConstruct = 80,
    kCompositeExtract = 81,
    kCopyObject = 83,
    kConvertSToF = 111,
    kFConvert = 115,
    kFAdd = 129,
    kFSub = 131,
    kFMul = 133,
    kUDiv = 134,
    kUMod = 137,
    kVectorTimesScalar = 142,
    kSelect = 169,
    kIEqual = 170,
    kShiftRightLogical = 194,
    kShiftRightArithmetic = 195,
    kBitwiseAnd = 199,
    kControlBarrier = 224,
    kAtomicIAdd = 234,
    kAtomicUMin = 237,
    kAtomicUMax = 239,
    kAtomicOr = 241,
    kShuffle = 345,
    kShuffleXor = 346,
    kSubgroupFMax = 358,
    kMatrixMulAdd = 4459,
    // in GLSL.std.450
    kExtFAbs = 4,
    kExtExp = 27,
    kExtLog = 28,
    kExtExp2 = 29,
    kExtSqrt = 31,
    kExtFMin = 37,
    kExtFMax = 40,
    kExtFMix = 46,
    kExtStep = 48,
    kExtFma = 50,
    kExtPackHalf = 58,
    kExtUnpackHalf = 62,
    // built-in values
    kNumWorkgroups = 24,
    kWorkgroupId = 26
};
using Out = std::vector<uint32_t>;
using Edit = std::function<void(SpirvEdit&)>;

void emit(Out& out, uint32_t opcode, std::initializer_list<uint32_t> operands) {
    out.push_back(uint32_t(operands.size() + 1) << 16 | opcode);
    out.insert(out.end(), operands);
}

// Results of an instruction are off by a relative error.
Edit imprecise(uint32_t opcode, uint32_t ext, float factor) {
    return [=](SpirvEdit& m) {
        const uint32_t by = m.float_constant(factor), scalar = m.float_type(), two = m.vector_type(2),
                       four = m.vector_type(4);
        m.after(opcode, ext, [&](Out& out, const uint32_t* i, uint32_t raw) {
            if (i[1] == scalar)
                emit(out, kFMul, {i[1], i[2], raw, by});
            else if (i[1] == two || i[1] == four)
                emit(out, kVectorTimesScalar, {i[1], i[2], raw, by});
        });
    };
}

// Conversions from float16 take its subnormal values for zero.
void flush_halves(SpirvEdit& m) {
    const uint32_t least = m.float_constant(0x1p-14f), set = m.glsl();
    m.after(kExtInst, kExtUnpackHalf, [&](Out& out, const uint32_t* i, uint32_t raw) {
        const uint32_t edge = m.new_id(), size = m.new_id(), step = m.new_id();
        emit(out, kCompositeConstruct, {i[1], edge, least, least});
        emit(out, kExtInst, {i[1], size, set, kExtFAbs, raw});
        emit(out, kExtInst, {i[1], step, set, kExtStep, edge, size});
        emit(out, kFMul, {i[1], i[2], raw, step});
    });
}

// Both sides of a choice are computed and weighed with 0 and 1: NaN of the other side leaks.
void mix_for_select(SpirvEdit& m) {
    const uint32_t one = m.float_constant(1), zero = m.float_constant(0), scalar = m.float_type(),
                   set = m.glsl();
    m.after(kSelect, 0, [&](Out& out, const uint32_t* i, uint32_t) {
        if (i[1] != scalar) return;
        const uint32_t share = m.new_id();
        emit(out, kSelect, {scalar, share, i[3], one, zero});
        emit(out, kExtInst, {scalar, i[2], set, kExtFMix, i[5], i[4], share});
    });
}

// A value that other lanes get is rounded to float16.
Edit through_half(uint32_t opcode) {
    return [=](SpirvEdit& m) {
        const uint32_t scalar = m.float_type(), pair = m.vector_type(2), word = m.uint_type(), set = m.glsl();
        m.after(opcode, 0, [&](Out& out, const uint32_t* i, uint32_t raw) {
            if (i[1] != scalar) return;
            const uint32_t both = m.new_id(), packed = m.new_id(), unpacked = m.new_id();
            emit(out, kCompositeConstruct, {pair, both, raw, raw});
            emit(out, kExtInst, {word, packed, set, kExtPackHalf, both});
            emit(out, kExtInst, {pair, unpacked, set, kExtUnpackHalf, packed});
            emit(out, kCompositeExtract, {scalar, i[2], unpacked, 0});
        });
    };
}

// Lane 3 is read as lane 2.
void wrong_lane(SpirvEdit& m) {
    const uint32_t two = m.constant(m.uint_type(), 2), three = m.constant(m.uint_type(), 3),
                   flag = m.bool_type();
    m.after(kShuffle, 0, [&](Out& out, const uint32_t* i, uint32_t) {
        const uint32_t is_three = m.new_id(), lane = m.new_id();
        emit(out, kIEqual, {flag, is_three, i[5], three});
        emit(out, kSelect, {m.uint_type(), lane, is_three, two, i[5]});
        emit(out, kShuffle, {i[1], i[2], i[3], i[4], lane});
    });
}

// The instruction gives back its operand number `n`.
Edit does_nothing(uint32_t opcode, uint32_t n) {
    return [=](SpirvEdit& m) {
        m.after(opcode, 0, [&](Out& out, const uint32_t* i, uint32_t) {
            emit(out, kCopyObject, {i[1], i[2], i[n]});
        });
    };
}

// Integers: divided by one more than the divisor; a remainder without its last bit.
void wrong_quotient(SpirvEdit& m) {
    constexpr uint32_t kIAdd = 128;
    const uint32_t one = m.constant(m.uint_type(), 1), word = m.uint_type();
    m.after(kUDiv, 0, [&](Out& out, const uint32_t* i, uint32_t) {
        if (i[1] != word) return;
        const uint32_t more = m.new_id();
        emit(out, kIAdd, {word, more, i[4], one});
        emit(out, kUDiv, {word, i[2], i[3], more});
    });
}
void wrong_remainder(SpirvEdit& m) {
    const uint32_t mask = m.constant(m.uint_type(), ~1u), word = m.uint_type();
    m.after(kUMod, 0, [&](Out& out, const uint32_t* i, uint32_t raw) {
        if (i[1] == word) emit(out, kBitwiseAnd, {word, i[2], raw, mask});
    });
}

void drop_barriers(SpirvEdit& m) { m.remove(kControlBarrier); }
void wrong_workgroup(SpirvEdit& m) { m.built_in(kWorkgroupId, kNumWorkgroups); }
Edit other(uint32_t from, uint32_t to) {
    return [=](SpirvEdit& m) { m.replace(from, to); };
}
Edit other_ext(uint32_t from, uint32_t to) {
    return [=](SpirvEdit& m) { m.replace_ext(from, to); };
}

constexpr uint32_t kF32 = FOVEA_CHECK_F32, kF16 = FOVEA_CHECK_F16, kQuantized = FOVEA_CHECK_QUANTIZED;
constexpr float kOff = 1 + 0x1p-12f;
const Fault kFaults[] = {
    {"fma is off by 2^-12", Shader::flash, kF32, imprecise(kExtInst, kExtFma, kOff)},
    {"multiplication is off by 2^-12", Shader::pointwise, kF32, imprecise(kFMul, 0, kOff)},
    {"log is off by 2^-12", Shader::merge, kF32, imprecise(kExtInst, kExtLog, kOff)},
    {"exp is off by 2^-12", Shader::merge, kF32, imprecise(kExtInst, kExtExp, kOff)},
    {"sqrt is off by 2^-12", Shader::norm, kF32, imprecise(kExtInst, kExtSqrt, kOff)},
    {"float16 subnormals are zero", Shader::flash, kF16, flush_halves},
    {"float16 subnormals are zero", Shader::softmax, kF16, flush_halves},
    {"float16 subnormals are zero", Shader::cache_rows, kF16, flush_halves},
    {"float16 subnormals are zero", Shader::linear_direct, kF16, flush_halves},
    {"float16 subnormals are zero", Shader::map_tile, kF16, flush_halves},
    {"float16 subnormals are zero", Shader::rope, kF16, flush_halves},
    {"float16 scales are off by 2^-9", Shader::linear_direct, kQuantized,
     imprecise(kExtInst, kExtUnpackHalf, 1 + 0x1p-9f)},
    {"float16 scales are off by 2^-9", Shader::flash, kQuantized,
     imprecise(kExtInst, kExtUnpackHalf, 1 + 0x1p-9f)},
    {"integers are converted with 7 bits", Shader::cache_rows, kQuantized,
     imprecise(kConvertSToF, 0, 1 + 0x1p-7f)},
    {"a maximum is a minimum", Shader::flash, kF32, other_ext(kExtFMax, kExtFMin)},
    {"a maximum is a minimum", Shader::backward_query, kF32, other_ext(kExtFMax, kExtFMin)},
    {"NaN of masked keys leaks", Shader::flash, kF32, mix_for_select},
    {"NaN of masked keys leaks", Shader::flash, kF16, mix_for_select},
    {"a workgroup's barriers are dropped", Shader::flash, kF32, drop_barriers},
    {"a workgroup's barriers are dropped", Shader::softmax, kF32, drop_barriers},
    {"a workgroup's barriers are dropped", Shader::map_tile, kF32, drop_barriers},
    {"a workgroup's barriers are dropped", Shader::norm, kF32, drop_barriers},
    {"a workgroup's barriers are dropped", Shader::backward_query, kF32, drop_barriers},
    {"integer division is wrong", Shader::cache_rows, kF32, wrong_quotient},
    {"integer remainders are even", Shader::cache_rows, kF32, wrong_remainder},
    {"the workgroup's ID is wrong", Shader::linear_direct, kF32, wrong_workgroup},
    {"atomic additions are lost", Shader::map_tile, kF32, other(kAtomicIAdd, kAtomicOr)},
    {"an atomic maximum is a minimum", Shader::map_tile, kF32, other(kAtomicUMax, kAtomicUMin)},
    {"subtraction adds", Shader::rope, kF32, other(kFSub, kFAdd)},
    {"a logical shift keeps the sign", Shader::linear_direct, kQuantized,
     other(kShiftRightLogical, kShiftRightArithmetic)},
    {"one dispatch in four is left out", Shader::flash, kF32, nullptr, CallFault::skip_dispatch},
    {"one dispatch in four is left out", Shader::cache_rows, kF32, nullptr, CallFault::skip_dispatch},
    {"a barrier between dispatches is dropped", Shader::softmax, kF32, nullptr, CallFault::skip_first},
    {"a barrier between dispatches is dropped", Shader::flash, kF32, nullptr, CallFault::skip_first},
    {"the last workgroup in x is left out", Shader::linear_direct, kF32, nullptr, CallFault::short_x},
    {"the last workgroup in z is left out", Shader::flash, kF32, nullptr, CallFault::short_z},
    {"push constants are those of the first call", Shader::flash, kF32, nullptr, CallFault::stale_push},
    {"push constants are one word off", Shader::rope, kF32, nullptr, CallFault::shift_push},
    {"the end of the push constants is zero", Shader::merge, kF32, nullptr, CallFault::cut_push},
    {"offsets of buffers are ignored", Shader::softmax, kF32, nullptr, CallFault::offset_ignored},
    {"two descriptors are swapped", Shader::merge, kF32, nullptr, CallFault::swapped_buffers},
    {"a pipeline is bound late", Shader::softmax, kF32, nullptr, CallFault::stale_pipeline},
    {"specialization constants are ignored", Shader::flash, kF16, nullptr, CallFault::no_constants},
};
// Where a driver has subgroups and matrices.
const Fault kMatrixFaults[] = {
    {"a shuffle reads another lane", Shader::flash_shuffle, kF32, wrong_lane},
    {"a shuffle rounds to float16", Shader::flash_shuffle, kF32, through_half(kShuffle)},
    {"a subgroup's maximum is a lane's own", Shader::flash_subgroup, kF32, does_nothing(kSubgroupFMax, 5)},
    {"a shuffle-xor gives the lane's own value", Shader::flash_coopmat, kF32, does_nothing(kShuffleXor, 4)},
    {"a shuffle-xor rounds to float16", Shader::flash_coopmat, kF32, through_half(kShuffleXor)},
    {"exp2 is off by 2^-12", Shader::flash_coopmat, kF32, imprecise(kExtInst, kExtExp2, kOff)},
    {"matrices are not multiplied", Shader::flash_coopmat, kF32, does_nothing(kMatrixMulAdd, 5)},
    {"a workgroup's barriers are dropped", Shader::flash_coopmat, kF32, drop_barriers},
};

// Bytes of the outputs of calls that are not among the check's: longer ones of the same kind, on another
// seed.
std::vector<std::byte> outputs_of(const Gpu& gpu, FoveaContext context,
                                  const FoveaDeviceProperties& properties,
                                  const vulkan::CheckProblem& problem) {
    FoveaPlan plan = nullptr;
    Diag diag;
    const FoveaHostAllocator allocator{nullptr, [](void*, size_t size, size_t) { return malloc(size); },
                                       [](void*, void* pointer, size_t) { free(pointer); }};
    if (vulkan::plan_problem(problem, FOVEA_KERNEL_AUTO, properties, allocator, &plan, &diag) != FOVEA_OK)
        return {};
    const Plan owned(plan);
    EXPECT_EQ(foveaCompilePlan(context, plan, &diag), FOVEA_OK) << diag.text;
    const FoveaPlanInfo info = owned.info();
    std::unique_ptr<VulkanMemory> memory[FOVEA_BIND_COUNT], workspace;
    FoveaBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.binding_mask >> i & 1) || !info.binding_bytes[i]) continue;
        std::vector<unsigned char> bytes(info.binding_bytes[i]);
        if (!(info.output_mask >> i & 1)) fill_input(problem, i, 99, bytes.data(), info.tensor_bytes[i]);
        memory[i] = gpu.memory(bytes.size());
        EXPECT_TRUE(memory[i]->upload(std::as_bytes(std::span(bytes)), 0));
        bindings[i] = {memory[i]->buffer(), 0, info.binding_bytes[i]};
    }
    FoveaRecord record = foveaRecord();
    record.binding_count = FOVEA_BIND_COUNT;
    record.bindings = bindings;
    if (info.workspace_bytes) {
        workspace = gpu.memory(info.workspace_bytes);
        EXPECT_TRUE(workspace->fill_zero());
        record.workspace = {workspace->buffer(), 0, info.workspace_bytes};
    }
    const Result<runtime::Submission> submission = gpu.queue->begin(kTimeout);
    EXPECT_TRUE(submission);
    record.cmd = submission->cmd;
    record.descriptor_pool.pool = submission->sets;
    gpu.queue->cmd_full_barrier(record.cmd);
    EXPECT_EQ(foveaCmdRun(plan, &record, &diag), FOVEA_OK) << diag.text;
    finish_commands();
    gpu.queue->cmd_full_barrier(record.cmd);
    EXPECT_TRUE(gpu.queue->submit("a call", false, nullptr));
    EXPECT_TRUE(gpu.queue->finish(kTimeout));
    std::vector<std::byte> all;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.output_mask >> i & 1) || !memory[i]) continue;
        std::vector<std::byte> bytes(info.tensor_bytes[i]);
        EXPECT_TRUE(memory[i]->download(bytes, 0));
        all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
}

// True if the fault changes a result of some call of the kernel.
bool is_real(const Gpu& gpu, const Fault& fault) {
    for (uint32_t n = 0; n < 20; ++n) {
        FoveaDeviceProperties properties = gpu.device->properties();
        vulkan::CheckProblem problem;
        if (!vulkan::check_problem(fault.kernel, fault.type, n, properties, problem)) break;
        problem.attention.len_q += 13;
        if (problem.operation != Operation::append && problem.operation != Operation::gather) {
            problem.attention.len_kv += 32;
            if (problem.attention.page_size)
                problem.attention.block_table_pages += 2, problem.attention.page_count += 4;
        }
        const std::vector<std::byte> healthy = [&] {
            const Context context(gpu, nullptr);
            return outputs_of(gpu, context.get(), properties, problem);
        }();
        const Context context(gpu, &fault);
        for (int times = 0; times < 4; ++times)
            if (outputs_of(gpu, context.get(), properties, problem) != healthy) return true;
    }
    return false;
}

// At least 95% must be found and named, on the kernel that they are in; each must change a result.
void expect_named(std::span<const Fault> faults) {
    const Gpu gpu({}, false);
    ASSERT_TRUE(gpu.ok());
    uint32_t planted = 0, caught = 0;
    for (const Fault& fault : faults) {
        const CheckedShaders shaders = only(fault.kernel, fault.type);
        const Result<FoveaCheckReport> report = [&] {
            const Context context(gpu, &fault);
            return check(gpu, context.get(), shaders, 3);
        }();
        ASSERT_TRUE(report) << fault.name << ": " << report.error().text;
        if (report->problem_count == 0) continue;  // the driver has no such kernel
        const bool found = report->failed_shaders[fault.type] == shaders[fault.type];
        std::printf("%s  %s: %s\n", found ? "caught" : "missed", fault.name, found ? report->text : "");
        std::fflush(stdout);
        EXPECT_TRUE(is_real(gpu, fault))
            << fault.name << " changes no result of " << checked_kernel_name(fault.kernel);
        ++planted, caught += found;
    }
    std::printf("%u of %u planted faults caught and named\n", caught, planted);
    EXPECT_GE(20 * caught, 19 * planted);
    if (!planted) GTEST_SKIP() << "the driver has none of the kernels";
}

TEST(DeviceCheck, names_planted_faults) { expect_named(kFaults); }
TEST(DeviceCheck, names_planted_faults_of_subgroups_and_matrices) { expect_named(kMatrixFaults); }

}  // namespace
}  // namespace fovea::test
