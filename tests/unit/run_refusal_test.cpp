// Bad arguments of foveaRunCpu: the code, the field, and that not one byte of an output was written.
#include "problem/bindings.hpp"

#include <fovea/fovea.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

namespace {

constexpr FoveaResult kInvalid = FOVEA_INVALID_ARGUMENT;

// A plan that needs every kind of buffer, and arguments for it that are all good.
struct Call {
    fovea::Plan plan;
    std::vector<std::byte> memory = std::vector<std::byte>(1 << 18, std::byte{0xff});
    std::byte* next = nullptr;
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    FoveaHostBuffer more[FOVEA_BIND_COUNT + 1] = {};  // as a caller with a longer list has them
    FoveaParallel parallel{nullptr, nullptr, 1};
    FoveaCpuRun run{};

    Call() {
        FoveaAttentionDesc d = foveaAttentionDesc();
        d.batch = 2, d.heads_q = d.heads_kv = 2, d.len_q = 8, d.len_kv = 16, d.dim_qk = 32, d.dim_v = 24;
        d.k_type = FOVEA_F16;
        d.flags = FOVEA_FLAG_SINKS | FOVEA_FLAG_VARLEN;
        d.mask.present = 1, d.mask.type = FOVEA_U8;
        d.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_WEIGHTS;
        d.kernel = FOVEA_KERNEL_PLAIN;
        d.max_slice_cost = 20000;
        plan = fovea::plan_cpu(d, 2).value();
        const FoveaPlanInfo info = plan.info();
        const uintptr_t base = reinterpret_cast<uintptr_t>(memory.data());
        next = memory.data() + ((base + 63) / 64 * 64 - base);
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) bindings[i] = take(info.binding_bytes[i]);
        run.struct_size = sizeof run;
        run.binding_count = FOVEA_BIND_COUNT;
        run.bindings = bindings;
        run.workspace = take(info.workspace_bytes);
    }
    FoveaHostBuffer take(uint64_t bytes) {
        if (bytes == 0) return {};
        const FoveaHostBuffer buffer{next, bytes};
        next += (bytes + 63) / 64 * 64;
        return buffer;
    }
    bool untouched() const {
        return std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == std::byte{0xff}; });
    }
};

void move(FoveaHostBuffer& buffer, ptrdiff_t bytes) {
    buffer.data = static_cast<std::byte*>(buffer.data) + bytes;
}

struct BadRun {
    const char* what;
    std::function<void(Call&)> edit;
    FoveaResult code;
    const char* field;
};

const BadRun kRuns[] = {
    {"struct_size not set", [](Call& c) { c.run.struct_size = 0; }, FOVEA_ABI_MISMATCH, "struct_size"},
    {"no bindings", [](Call& c) { c.run.bindings = nullptr; }, kInvalid, "bindings"},
    {"too few bindings", [](Call& c) { c.run.binding_count = FOVEA_BIND_V; }, kInvalid, "bindings[V]"},
    {"q is null", [](Call& c) { c.bindings[FOVEA_BIND_Q].data = nullptr; }, kInvalid, "bindings[Q]"},
    {"o is null", [](Call& c) { c.bindings[FOVEA_BIND_O].data = nullptr; }, kInvalid, "bindings[O]"},
    {"mask is null", [](Call& c) { c.bindings[FOVEA_BIND_MASK] = {}; }, kInvalid, "bindings[MASK]"},
    {"sinks are null", [](Call& c) { c.bindings[FOVEA_BIND_SINKS] = {}; }, kInvalid, "bindings[SINKS]"},
    {"table is null", [](Call& c) { c.bindings[FOVEA_BIND_SEQUENCES] = {}; }, kInvalid,
     "bindings[SEQUENCES]"},
    {"lse is null", [](Call& c) { c.bindings[FOVEA_BIND_LSE] = {}; }, kInvalid, "bindings[LSE]"},
    {"q one byte short", [](Call& c) { --c.bindings[FOVEA_BIND_Q].size_bytes; }, kInvalid,
     "bindings[Q].size_bytes"},
    {"k one byte short", [](Call& c) { --c.bindings[FOVEA_BIND_K].size_bytes; }, kInvalid,
     "bindings[K].size_bytes"},
    {"o one byte short", [](Call& c) { --c.bindings[FOVEA_BIND_O].size_bytes; }, kInvalid,
     "bindings[O].size_bytes"},
    {"mask one byte short", [](Call& c) { --c.bindings[FOVEA_BIND_MASK].size_bytes; }, kInvalid,
     "bindings[MASK].size_bytes"},
    {"weights one byte short", [](Call& c) { --c.bindings[FOVEA_BIND_WEIGHTS].size_bytes; }, kInvalid,
     "bindings[WEIGHTS].size_bytes"},
    {"table of one entry", [](Call& c) { c.bindings[FOVEA_BIND_SEQUENCES].size_bytes = 16; }, kInvalid,
     "bindings[SEQUENCES].size_bytes"},
    {"q off by two bytes", [](Call& c) { move(c.bindings[FOVEA_BIND_Q], 2); }, kInvalid, "bindings[Q].data"},
    {"f16 k off by one byte", [](Call& c) { move(c.bindings[FOVEA_BIND_K], 1); }, kInvalid,
     "bindings[K].data"},
    {"o off by one byte", [](Call& c) { move(c.bindings[FOVEA_BIND_O], 1); }, kInvalid, "bindings[O].data"},
    {"o is q", [](Call& c) { c.bindings[FOVEA_BIND_O].data = c.bindings[FOVEA_BIND_Q].data; }, kInvalid,
     "bindings[O]"},
    {"o reaches into v",
     [](Call& c) {
         c.bindings[FOVEA_BIND_O].data = c.bindings[FOVEA_BIND_V].data, move(c.bindings[FOVEA_BIND_O], 64);
     },
     kInvalid, "bindings[O]"},
    {"weights are lse",
     [](Call& c) { c.bindings[FOVEA_BIND_LSE].data = c.bindings[FOVEA_BIND_WEIGHTS].data; }, kInvalid,
     "bindings[LSE]"},
    {"no workspace", [](Call& c) { c.run.workspace = {}; }, kInvalid, "workspace"},
    {"workspace one byte short", [](Call& c) { --c.run.workspace.size_bytes; }, kInvalid,
     "workspace.size_bytes"},
    {"workspace off its alignment", [](Call& c) { move(c.run.workspace, 4); }, kInvalid, "workspace.data"},
    {"workspace in k", [](Call& c) { c.run.workspace.data = c.bindings[FOVEA_BIND_K].data; }, kInvalid,
     "workspace"},
    {"slices past the end", [](Call& c) { c.run.first_slice = c.plan.info().slice_count + 1; }, kInvalid,
     "first_slice"},
    {"one slice too many",
     [](Call& c) { c.run.first_slice = 1, c.run.slice_count = c.plan.info().slice_count; }, kInvalid,
     "slice_count"},
    {"slices that wrap around", [](Call& c) { c.run.first_slice = 2, c.run.slice_count = UINT64_MAX; },
     kInvalid, "slice_count"},
    {"a bias that the plan does not have",
     [](Call& c) { c.bindings[FOVEA_BIND_BIAS] = c.bindings[FOVEA_BIND_Q]; }, kInvalid, "bindings[BIAS]"},
    {"slopes without their flag",
     [](Call& c) { c.bindings[FOVEA_BIND_ALIBI] = c.bindings[FOVEA_BIND_SINKS]; }, kInvalid,
     "bindings[ALIBI]"},
    {"scores that were not asked for",
     [](Call& c) { c.bindings[FOVEA_BIND_SCORES] = c.bindings[FOVEA_BIND_WEIGHTS]; }, kInvalid,
     "bindings[SCORES]"},
    {"an argument of another operation", [](Call& c) { c.bindings[FOVEA_BIND_X] = c.bindings[FOVEA_BIND_Q]; },
     kInvalid, "bindings[X]"},
    {"a binding of a newer header",
     [](Call& c) {
         c.more[FOVEA_BIND_COUNT] = c.bindings[FOVEA_BIND_Q], c.run.bindings = c.more,
         c.run.binding_count = FOVEA_BIND_COUNT + 1;
     },
     FOVEA_ABI_MISMATCH, "bindings"},
    {"a binding of a number that is kept", [](Call& c) { c.bindings[40] = c.bindings[FOVEA_BIND_Q]; },
     FOVEA_ABI_MISMATCH, "bindings"},
    {"the workspace among the bindings", [](Call& c) { c.bindings[FOVEA_BIND_WORKSPACE] = c.run.workspace; },
     kInvalid, "bindings"},
    {"more bindings than anybody has", [](Call& c) { c.run.binding_count = UINT32_MAX; }, kInvalid,
     "binding_count"},
    {"workers without a function", [](Call& c) { c.run.parallel = &c.parallel; }, kInvalid, "parallel"},
    {"a function without workers",
     [](Call& c) {
         c.parallel.run = [](void*, uint32_t, FoveaTask, void*) {};
         c.parallel.worker_count = 0;
         c.run.parallel = &c.parallel;
     },
     kInvalid, "parallel"},
    {"more workers than planned",
     [](Call& c) {
         c.parallel.run = [](void*, uint32_t, FoveaTask, void*) {};
         c.parallel.worker_count = 3;
         c.run.parallel = &c.parallel;
     },
     kInvalid, "parallel.worker_count"},
};

TEST(RunRefusal, names_the_field_and_writes_nothing) {
    for (const BadRun& bad : kRuns) {
        SCOPED_TRACE(bad.what);
        Call call;
        bad.edit(call);
        fovea::Diag diag;
        EXPECT_EQ(foveaRunCpu(call.plan.get(), &call.run, &diag), bad.code);
        EXPECT_EQ(diag.code, bad.code);
        EXPECT_STREQ(diag.field, bad.field);
        EXPECT_NE(diag.text[0], '\0');
        EXPECT_TRUE(call.untouched());
    }
}

// Without the table every entry reads the whole pool: with it bound and its flag forgotten that would pass.
TEST(RunRefusal, sequences_without_their_flag_say_which_flag) {
    FoveaAttentionDesc d = foveaAttentionDesc();
    d.batch = d.heads_q = d.heads_kv = 1, d.len_q = d.len_kv = 2, d.dim_qk = d.dim_v = 4;
    const fovea::Plan plan = fovea::plan_cpu(d).value();
    float tensor[4][8] = {};
    FoveaSequence table{0, 2, 0, 1};
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = FOVEA_BIND_Q; i <= FOVEA_BIND_O; ++i) bindings[i] = {tensor[i], sizeof tensor[i]};
    bindings[FOVEA_BIND_SEQUENCES] = {&table, sizeof table};
    alignas(64) static std::byte workspace[1 << 16];
    FoveaCpuRun run{};
    run.struct_size = sizeof run;
    run.binding_count = FOVEA_BIND_COUNT;
    run.bindings = bindings;
    run.workspace = {workspace, sizeof workspace};  // more than needed, or not needed: both are fine
    fovea::Diag diag;
    EXPECT_EQ(foveaRunCpu(plan.get(), &run, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "bindings[SEQUENCES]");
    EXPECT_NE(strstr(diag.text, "FOVEA_FLAG_VARLEN"), nullptr) << diag.text;
    bindings[FOVEA_BIND_SEQUENCES] = {};
    EXPECT_EQ(foveaRunCpu(plan.get(), &run, &diag), FOVEA_OK) << diag.text;
}

// A map tile takes the bindings of the call whose weights it shows; its own are as strict as any.
TEST(RunRefusal, a_map_tile_takes_the_bindings_of_its_call) {
    FoveaAttentionDesc d = foveaAttentionDesc();
    d.batch = d.heads_q = d.heads_kv = 1, d.len_q = d.len_kv = 2, d.dim_qk = d.dim_v = 4;
    d.flags = FOVEA_FLAG_SINKS;
    d.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    const fovea::Result<FoveaDeviceProperties> properties = fovea::cpu_properties();
    ASSERT_TRUE(properties);
    const fovea::Plan plan = fovea::plan_map_tile(*properties, d, foveaMapTileDesc()).value();
    float tensor[FOVEA_BIND_COUNT][8] = {};
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (const FoveaBinding i : {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V, FOVEA_BIND_O, FOVEA_BIND_SINKS,
                                 FOVEA_BIND_LSE, FOVEA_BIND_TILE_MASS})
        bindings[i] = {tensor[i], sizeof tensor[i]};
    alignas(64) static std::byte workspace[1 << 16];
    FoveaCpuRun run = foveaCpuRun();
    run.binding_count = FOVEA_BIND_COUNT;
    run.bindings = bindings;
    run.workspace = {workspace, sizeof workspace};
    fovea::Diag diag;
    EXPECT_EQ(foveaRunCpu(plan.get(), &run, &diag), FOVEA_OK) << diag.text;
    bindings[FOVEA_BIND_TILE_MAX] = {tensor[FOVEA_BIND_TILE_MAX], sizeof tensor[0]};
    EXPECT_EQ(foveaRunCpu(plan.get(), &run, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "bindings[TILE_MAX]");
    bindings[FOVEA_BIND_TILE_MAX] = {};
    bindings[FOVEA_BIND_MASK] = bindings[FOVEA_BIND_Q];
    EXPECT_EQ(foveaRunCpu(plan.get(), &run, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "bindings[MASK]");
}

TEST(RunRefusal, null_arguments) {
    Call call;
    fovea::Diag diag;
    EXPECT_EQ(foveaRunCpu(nullptr, &call.run, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "plan");
    EXPECT_EQ(foveaRunCpu(call.plan.get(), nullptr, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "run");
    EXPECT_EQ(foveaGetPlanInfo(nullptr, nullptr, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "plan");
    EXPECT_EQ(foveaGetPlanInfo(call.plan.get(), nullptr, &diag), kInvalid);
    EXPECT_STREQ(diag.field, "info");
    foveaDestroyPlan(nullptr);
}

TEST(RunRefusal, the_good_call_is_good_and_rooms_may_be_larger) {
    Call call;
    for (FoveaHostBuffer& buffer : call.bindings)
        if (buffer.data)
            buffer.size_bytes += 32;  // into the next buffer: only the bytes in use may not overlap
    fovea::Diag diag;
    EXPECT_EQ(foveaRunCpu(call.plan.get(), &call.run, &diag), FOVEA_OK) << diag.text;
    EXPECT_FALSE(call.untouched());
}

// A rotary embedding may work in place; anything else that Y shares with X would be read after it was
// written.
TEST(RunRefusal, rope_runs_in_place_and_nowhere_near) {
    FoveaRopeDesc d{};
    d.struct_size = sizeof d;
    d.batch = 1, d.heads = 2, d.dim = 16, d.len = 5;
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    fovea::Diag diag;
    FoveaPlan handle = nullptr;
    ASSERT_EQ(foveaPlanRope(&properties, &d, nullptr, &handle, &diag), FOVEA_OK) << diag.text;
    const fovea::Plan plan(handle);
    const FoveaPlanInfo info = plan.info();
    alignas(64) static std::byte memory[1 << 14];
    const auto run_at = [&](size_t x, size_t y) {
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        size_t next = 8192;
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (info.binding_bytes[i] == 0) continue;
            bindings[i] = {memory + next, info.binding_bytes[i]};
            next += (info.binding_bytes[i] + 63) / 64 * 64;
        }
        bindings[FOVEA_BIND_X].data = memory + x, bindings[FOVEA_BIND_Y].data = memory + y;
        FoveaCpuRun run{};
        run.struct_size = sizeof run;
        run.binding_count = FOVEA_BIND_COUNT, run.bindings = bindings;
        run.workspace = {memory + 4096, info.workspace_bytes};
        return foveaRunCpu(plan.get(), &run, &diag);
    };
    const size_t row = 16 * sizeof(float), all = 2 * 5 * row;
    EXPECT_EQ(run_at(0, 0), FOVEA_OK) << diag.text;
    EXPECT_EQ(run_at(0, all), FOVEA_OK) << diag.text;
    for (const auto& [x, y] :
         {std::pair<size_t, size_t>{0, row}, {row, 0}, {0, 4}, {0, all - 4}, {all - 4, 0}}) {
        EXPECT_EQ(run_at(x, y), kInvalid) << x << " to " << y;
        EXPECT_STREQ(diag.field, "bindings[Y]");
    }
}

FoveaDeviceProperties any_cpu() {
    FoveaDeviceProperties properties = foveaDeviceProperties();
    return properties;
}

// The same memory under another type or at other distances would be read after it was written.
TEST(RunRefusal, rope_in_place_needs_the_same_type_and_strides) {
    FoveaRopeDesc good = foveaRopeDesc();
    good.batch = 1, good.heads = 2, good.dim = 4, good.len = 5;
    const struct {
        const char* what;
        void (*edit)(FoveaRopeDesc&);
        FoveaResult code;
    } cases[] = {
        {"as it is", [](FoveaRopeDesc&) {}, FOVEA_OK},
        {"the same strides, stated once",
         [](FoveaRopeDesc& d) {
             d.y_strides = {40, 20, 4};
         },
         FOVEA_OK},
        {"a batch of one, whose stride is nothing",
         [](FoveaRopeDesc& d) {
             d.y_strides = {0, 20, 4};
         },
         FOVEA_OK},
        {"another type", [](FoveaRopeDesc& d) { d.y_type = FOVEA_F16; }, kInvalid},
        {"heads and rows exchanged",
         [](FoveaRopeDesc& d) {
             d.y_strides = {40, 4, 8};
         },
         kInvalid},
        {"rows further apart",
         [](FoveaRopeDesc& d) {
             d.y_strides = {60, 30, 6};
         },
         kInvalid},
        {"one head for all",
         [](FoveaRopeDesc& d) {
             d.x_strides = {40, FOVEA_BROADCAST, 4};
         },
         kInvalid},
    };
    for (const auto& c : cases) {
        SCOPED_TRACE(c.what);
        FoveaRopeDesc d = good;
        c.edit(d);
        const fovea::Result<fovea::Plan> plan = fovea::plan_rope(any_cpu(), d);
        ASSERT_TRUE(plan) << plan.error().text;
        std::vector<float> x(60, 1.0f), cosine(10), sine(10);
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        bindings[FOVEA_BIND_X] = bindings[FOVEA_BIND_Y] = {x.data(), x.size() * 4};
        bindings[FOVEA_BIND_COS] = {cosine.data(), 40}, bindings[FOVEA_BIND_SIN] = {sine.data(), 40};
        fovea::Workspace workspace;
        const fovea::Result<void> ran = fovea::run_on_host(*plan, bindings, workspace);
        EXPECT_EQ(ran ? FOVEA_OK : ran.error().code, c.code) << (ran ? "" : ran.error().text);
        if (!ran) {
            EXPECT_EQ(ran.error().field, "bindings[Y]");
        }
    }
}

// A process of 32 bits that is asked for 4 GiB and 16 bytes must not take 16 bytes for it.
TEST(RunRefusal, a_tensor_larger_than_the_address_space_is_refused) {
    FoveaPlanInfo info = foveaPlanInfo();
    info.binding_mask = fovea::binding_bit(FOVEA_BIND_Q);
    info.binding_bytes[FOVEA_BIND_Q] = (uint64_t{1} << 32) + 16;
    fovea::BindingRules rules{0, false, {}, true};
    fovea::BindingRange ranges[FOVEA_BIND_COUNT] = {};
    ranges[FOVEA_BIND_Q] = {true, 0, 64, info.binding_bytes[FOVEA_BIND_Q]};
    fovea::Diag diag;
    EXPECT_EQ(fovea::check_bindings(info, rules, ranges, &diag), FOVEA_OK) << diag.text;
    rules.most_bytes = UINT32_MAX;  // as where SIZE_MAX is
    EXPECT_EQ(fovea::check_bindings(info, rules, ranges, &diag), FOVEA_LIMIT_EXCEEDED);
    EXPECT_STREQ(diag.field, "bindings[Q].size_bytes");
}

// A run that begins after the last slice: for every operation and every kernel that iterates over rows.
TEST(RunRefusal, running_no_slices_does_nothing) {
    std::vector<fovea::Result<fovea::Plan>> plans;
    const FoveaDeviceProperties properties = any_cpu();
    fovea::Attention call;
    call.batch(1).heads(2).lengths(10, 10).dims(8);
    call.desc.max_slice_cost = 1000;
    for (int kernel = FOVEA_KERNEL_AUTO; kernel < FOVEA_KERNEL_COUNT; ++kernel) {
        if (kernel == FOVEA_KERNEL_FLASH_COOPMAT || kernel == FOVEA_KERNEL_FLASH_COOPMAT2) continue;
        fovea::Attention one = call;
        one.kernel(FoveaKernel(kernel)).outputs(kernel == FOVEA_KERNEL_STAGED ? FOVEA_OUTPUT_WEIGHTS : 0);
        if (kernel == FOVEA_KERNEL_DECODE) one.lengths(1, 10);
        plans.push_back(fovea::plan_attention(properties, one));
    }
    for (const FoveaKernel kernel : {FOVEA_KERNEL_AUTO, FOVEA_KERNEL_PLAIN, FOVEA_KERNEL_REFERENCE}) {
        FoveaAttentionBackwardDesc backward = foveaAttentionBackwardDesc();
        backward.kernel = kernel;
        plans.push_back(fovea::plan_attention_backward(properties, call, backward));
        fovea::Attention mapped = call;
        plans.push_back(fovea::plan_map_tile(properties, mapped.kernel(kernel), foveaMapTileDesc()));
        FoveaRopeDesc rope = foveaRopeDesc();
        rope.batch = 1, rope.heads = 2, rope.dim = 8, rope.len = 10, rope.kernel = kernel;
        plans.push_back(fovea::plan_rope(properties, rope));
        FoveaLinearDesc linear = foveaLinearDesc();
        linear.n_in = linear.n_out = 8, linear.rows = 10, linear.kernel = kernel;
        plans.push_back(fovea::plan_linear(properties, linear));
        FoveaMergeDesc merge = foveaMergeDesc();
        merge.parts = 2, merge.batch = 1, merge.heads = 2, merge.dim = 8, merge.len = 10,
        merge.kernel = kernel;
        plans.push_back(fovea::plan_merge(properties, merge));
    }
    FoveaAppendDesc append = foveaAppendDesc();
    append.batch = 1, append.heads = 2, append.dim = 8, append.len = append.capacity = 10;
    plans.push_back(fovea::plan_append(properties, append));
    FoveaGatherDesc gather = foveaGatherDesc();
    gather.batch = 1, gather.heads = 2, gather.dim = 8, gather.len = gather.capacity = 10;
    plans.push_back(fovea::plan_gather(properties, gather));
    for (size_t n = 0; n < plans.size(); ++n) {
        SCOPED_TRACE(n);
        ASSERT_TRUE(plans[n]) << plans[n].error().text;
        const FoveaPlanInfo info = plans[n]->info();
        std::vector<std::vector<uint32_t>> memory(FOVEA_BIND_COUNT);
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
            if (info.binding_mask >> i & 1) {
                memory[i].assign((info.binding_bytes[i] + 3) / 4, 0xabababab);
                bindings[i] = {memory[i].data(), info.binding_bytes[i]};
            }
        fovea::Workspace workspace;
        uint32_t tasks = 0;
        const FoveaParallel counted{
            &tasks,
            [](void* user, uint32_t count, FoveaTask, void*) { *static_cast<uint32_t*>(user) += count; }, 1};
        const fovea::Result<void> ran =
            fovea::run_on_host(*plans[n], bindings, workspace, &counted, info.slice_count, 0);
        EXPECT_TRUE(ran) << ran.error().text;
        EXPECT_EQ(tasks, 0u);
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
            for (const uint32_t word : memory[i]) ASSERT_EQ(word, 0xabababab) << "binding " << i;
    }
}

}  // namespace
