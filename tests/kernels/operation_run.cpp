#include "kernels/operation_run.hpp"

#include "support/guarded_buffer.hpp"
#include "support/number_types.hpp"

#include <fovea/half.hpp>
#include <fovea/thread_pool.hpp>

#include <cstring>
#include <optional>

namespace fovea::test {
namespace {

constexpr std::byte kUntouched{0xff};

bool is_whole_number(uint32_t binding) {
    return binding == FOVEA_BIND_POSITIONS || binding == FOVEA_BIND_SEQUENCES ||
           binding == FOVEA_BIND_BLOCK_TABLE;
}

// -2 .. 21, so that some must be clamped or lead nowhere. The pages of a block table are distinct: two rows
// may not go to one place.
void fill_whole_numbers(Random& random, uint32_t binding, Bytes& out) {
    const uint64_t first = random.below(24);
    for (uint64_t n = 0; n + 4 <= out.size(); n += 4) {
        const uint64_t drawn =
            binding == FOVEA_BIND_BLOCK_TABLE ? (first + 7 * (n / 4)) % 24 : random.below(24);
        const int32_t value = int32_t(drawn) - 2;
        memcpy(&out[n], &value, 4);
    }
}

void fill_numbers(Random& random, FoveaDtype type, Bytes& out) {
    if (is_compressed(type)) {
        const StorageBlock block = storage_block(type);
        std::vector<float> numbers(out.size() / block.bytes * block.numbers);
        for (float& number : numbers) number = bell(random.next());
        return store_numbers(out.data(), type, 0, numbers.data(), numbers.size());
    }
    const uint64_t size = type == FOVEA_F32 ? 4 : 2;
    for (uint64_t n = 0; n + size <= out.size(); n += size) {
        const float value = bell(random.next());
        const uint16_t half = type == FOVEA_BF16 ? foveaFloatToBfloat(value) : float_to_half(value);
        memcpy(&out[n], size == 2 ? static_cast<const void*>(&half) : &value, size);
    }
}

}  // namespace

Result<void> run_in_place(const Plan& plan, Buffers& buffers) {
    const uint64_t workspace_bytes = plan.info().workspace_bytes;
    Bytes workspace(workspace_bytes + 64);
    const auto address = reinterpret_cast<uintptr_t>(workspace.data());
    FoveaHostBuffer bound[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) bound[i] = {buffers[i].data(), buffers[i].size()};
    FoveaCpuRun run{};
    run.struct_size = sizeof run;
    run.binding_count = FOVEA_BIND_COUNT;
    run.bindings = bound;
    run.workspace = {workspace.data() + (64 - address % 64) % 64, workspace_bytes};
    return plan.run_cpu(run);
}

std::vector<uint32_t> runnable_targets() {
    std::vector<uint32_t> targets;
    FoveaLinearDesc d{};
    d.struct_size = sizeof d;
    d.n_in = d.n_out = 1, d.rows = 1;
    Buffers buffers;
    for (const uint32_t binding : {FOVEA_BIND_X, FOVEA_BIND_WEIGHT, FOVEA_BIND_Y}) buffers[binding].resize(4);
    for (uint32_t id = 1; strcmp(foveaCpuTargetName(id), "unknown") != 0; ++id) {
        const Plan plan = plan_of(foveaPlanLinear, d, cpu_device(1, id));
        if (run_in_place(plan, buffers)) targets.push_back(id);
    }
    EXPECT_FALSE(targets.empty());
    return targets;
}

Buffers random_buffers(Random& random, const FoveaPlanInfo& info, FoveaDtype x_type, FoveaDtype w_type) {
    Buffers buffers;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.binding_mask >> i & 1) || info.binding_bytes[i] == 0) continue;
        buffers[i].assign(info.binding_bytes[i], kUntouched);
        if (i == FOVEA_BIND_Y) continue;
        if (is_whole_number(i))
            fill_whole_numbers(random, i, buffers[i]);
        else
            fill_numbers(random,
                         i == FOVEA_BIND_X        ? x_type
                         : i == FOVEA_BIND_WEIGHT ? w_type
                                                  : FOVEA_F32,
                         buffers[i]);
    }
    return buffers;
}

Bytes run(const Plan& plan, const Buffers& given, uint32_t workers, uint64_t shuffle_seed) {
    const FoveaPlanInfo info = plan.info();
    std::array<std::optional<GuardedBuffer>, FOVEA_BIND_COUNT> guarded;
    FoveaHostBuffer bound[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.binding_mask >> i & 1) || given[i].empty()) continue;
        guarded[i].emplace(given[i].size(), 4 + 4 * (i % 3), kUntouched,
                           i == FOVEA_BIND_Y ? Behind::margin : Behind::wall);
        guarded[i]->assign(given[i]);
        bound[i] = {guarded[i]->data(), given[i].size()};
    }
    GuardedBuffer workspace(info.workspace_bytes, 0, kUntouched);
    ThreadPool pool(workers);
    const FoveaParallel parallel = pool.parallel();
    FoveaCpuRun run{};
    run.struct_size = sizeof run;
    run.binding_count = FOVEA_BIND_COUNT;
    run.bindings = bound;
    run.workspace = {workspace.data(), info.workspace_bytes};
    if (workers > 1) run.parallel = &parallel;
    Random random(shuffle_seed);
    std::vector<uint64_t> order{0};
    if (shuffle_seed) {
        order.clear();
        for (uint64_t n = 0; n < info.slice_count; ++n)
            order.insert(order.end(), random.chance(0.25) ? 2 : 1, n);
        for (size_t n = order.size(); n > 1; --n) std::swap(order[n - 1], order[random.below(n)]);
        run.slice_count = 1;
    }
    for (const uint64_t slice : order) {
        run.first_slice = slice;
        const Result<void> done = plan.run_cpu(run);
        EXPECT_TRUE(done) << done.error().field << ": " << done.error().text;
    }
    EXPECT_EQ(workspace.changed_margin(), 0) << "outside the workspace";
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!guarded[i]) continue;
        EXPECT_EQ(guarded[i]->changed_margin(), 0) << "outside binding " << i;
        if (i == FOVEA_BIND_Y) continue;
        EXPECT_TRUE(guarded[i]->contents() == given[i]) << "binding " << i << " is an input";
    }
    return guarded[FOVEA_BIND_Y] ? guarded[FOVEA_BIND_Y]->contents() : Bytes();
}

double element(const Bytes& bytes, FoveaDtype type, uint64_t index) {
    if (type != FOVEA_F32) {
        uint16_t half;
        memcpy(&half, &bytes[index * 2], 2);
        return type == FOVEA_BF16 ? foveaBfloatToFloat(half) : half_to_float(half);
    }
    float value;
    memcpy(&value, &bytes[index * 4], 4);
    return value;
}

void for_cases(uint64_t count, const std::function<void(Random&)>& body) {
    const char* only = getenv("FOVEA_TEST_SEED");
    for (uint64_t n = only ? strtoull(only, nullptr, 0) : 0; n < count; ++n) {
        SCOPED_TRACE(std::string("replay: FOVEA_TEST_SEED=") + std::to_string(n) + " fovea_test_kernels");
        Random random(n);
        const Running running("FOVEA_TEST_SEED=" + std::to_string(n) + " fovea_test_kernels");
        body(random);
        if (only || testing::Test::HasFailure()) return;
    }
}

}  // namespace fovea::test
