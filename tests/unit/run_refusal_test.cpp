// Bad arguments of foveaRunCpu: the code, the field, and that not one byte of an output was written.
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
    FoveaParallel parallel{nullptr, nullptr, 1};
    FoveaCpuRun run{};

    Call() {
        FoveaAttentionDesc d = foveaAttentionDesc();
        d.batch = 2, d.heads_q = d.heads_kv = 2, d.len_q = 8, d.len_kv = 16, d.dim_qk = 32, d.dim_v = 24;
        d.k_type = FOVEA_F16;
        d.flags = FOVEA_FLAG_SINKS | FOVEA_FLAG_BATCH_TABLE;
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
    {"table is null", [](Call& c) { c.bindings[FOVEA_BIND_BATCH_TABLE] = {}; }, kInvalid,
     "bindings[BATCH_TABLE]"},
    {"lse is null", [](Call& c) { c.bindings[FOVEA_BIND_LSE] = {}; }, kInvalid, "bindings[LSE]"},
    {"q one byte short", [](Call& c) { --c.bindings[FOVEA_BIND_Q].size_bytes; }, kInvalid,
     "bindings[Q].size"},
    {"k one byte short", [](Call& c) { --c.bindings[FOVEA_BIND_K].size_bytes; }, kInvalid,
     "bindings[K].size"},
    {"o one byte short", [](Call& c) { --c.bindings[FOVEA_BIND_O].size_bytes; }, kInvalid,
     "bindings[O].size"},
    {"mask one byte short", [](Call& c) { --c.bindings[FOVEA_BIND_MASK].size_bytes; }, kInvalid,
     "bindings[MASK].size"},
    {"weights one byte short", [](Call& c) { --c.bindings[FOVEA_BIND_WEIGHTS].size_bytes; }, kInvalid,
     "bindings[WEIGHTS].size"},
    {"table of one entry", [](Call& c) { c.bindings[FOVEA_BIND_BATCH_TABLE].size_bytes = 16; }, kInvalid,
     "bindings[BATCH_TABLE].size"},
    {"q off by two bytes", [](Call& c) { move(c.bindings[FOVEA_BIND_Q], 2); }, kInvalid,
     "bindings[Q].offset"},
    {"f16 k off by one byte", [](Call& c) { move(c.bindings[FOVEA_BIND_K], 1); }, kInvalid,
     "bindings[K].offset"},
    {"o off by one byte", [](Call& c) { move(c.bindings[FOVEA_BIND_O], 1); }, kInvalid, "bindings[O].offset"},
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
    {"workspace one byte short", [](Call& c) { --c.run.workspace.size_bytes; }, kInvalid, "workspace.size"},
    {"workspace off its alignment", [](Call& c) { move(c.run.workspace, 4); }, kInvalid, "workspace.offset"},
    {"workspace in k", [](Call& c) { c.run.workspace.data = c.bindings[FOVEA_BIND_K].data; }, kInvalid,
     "workspace"},
    {"slices past the end", [](Call& c) { c.run.first_slice = c.plan.info().slice_count + 1; }, kInvalid,
     "first_slice"},
    {"one slice too many",
     [](Call& c) { c.run.first_slice = 1, c.run.slice_count = c.plan.info().slice_count; }, kInvalid,
     "first_slice"},
    {"slices that wrap around", [](Call& c) { c.run.first_slice = 2, c.run.slice_count = UINT64_MAX; },
     kInvalid, "first_slice"},
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

}  // namespace
