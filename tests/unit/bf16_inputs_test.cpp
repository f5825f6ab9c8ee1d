// Products of pairs of bfloat16: who takes them, and what the instruction's order must not show. Whether they
// are right is the sweep's to say, which draws the precision (semantics.cpu.sweep_bf16_inputs).
#include "cpu/target.hpp"

#include <fovea/fovea.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace fovea {
namespace {

FoveaDeviceProperties properties_with(uint32_t target, bool pairs) {
    FoveaDeviceProperties properties = *cpu_properties(1);
    properties.cpu_target = target;
    properties.features &= ~uint32_t(FOVEA_FEATURE_BF16_INPUTS);
    if (pairs) properties.features |= FOVEA_FEATURE_BF16_INPUTS;
    return properties;
}

FoveaAttentionDesc call_of(uint64_t rows, uint64_t keys, FoveaPrecision precision) {
    Attention call;
    call.batch(1).heads(1).lengths(rows, keys).dims(33, 20).kernel(FOVEA_KERNEL_FLASH).precision(precision);
    return call.desc;
}

std::string explained(const FoveaDeviceProperties& properties, const FoveaAttentionDesc& desc) {
    const Result<Plan> plan = plan_attention(properties, desc);
    EXPECT_TRUE(plan) << plan.error().text;
    return plan ? plan->explain() : std::string();
}

TEST(Bf16Inputs, are_taken_by_flash_where_the_call_allows_them_and_the_processor_has_them) {
    const std::string taken = "products: pairs of bfloat16 (AVX512-BF16)", left = "products: float32;";
    const FoveaAttentionDesc allowed = call_of(300, 300, FOVEA_PRECISION_BF16_INPUTS);
    EXPECT_NE(explained(properties_with(cpu::kTargetAvx512, true), allowed).find(taken), std::string::npos);
    EXPECT_NE(explained(properties_with(cpu::kTargetAvx512, false), allowed).find(left), std::string::npos);
    EXPECT_NE(explained(properties_with(cpu::kTargetAvx2, true), allowed).find(left), std::string::npos);
    FoveaAttentionDesc matrices = allowed;
    matrices.kernel = FOVEA_KERNEL_STAGED;
    matrices.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS;
    EXPECT_NE(explained(properties_with(cpu::kTargetAvx512, true), matrices).find(left), std::string::npos);
    for (const FoveaPrecision other : {FOVEA_PRECISION_F32, FOVEA_PRECISION_F16_INPUTS}) {
        const std::string text =
            explained(properties_with(cpu::kTargetAvx512, true), call_of(300, 300, other));
        EXPECT_EQ(text.find("products: "), std::string::npos) << text;
    }
}

class Prepared {
  public:
    explicit Prepared(const FoveaAttentionDesc& desc) : plan_(plan_attention(*cpu_properties(1), desc)) {
        EXPECT_TRUE(plan_) << plan_.error().text;
        const FoveaPlanInfo info = plan_->info();
        for (uint32_t n = 0; n < FOVEA_BIND_COUNT; ++n) memory[n].resize(size_t(info.binding_bytes[n] / 4));
        workspace_.resize(size_t(info.workspace_bytes) + 64);
    }
    const std::vector<float>& o() {
        FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
        for (uint32_t n = 0; n < FOVEA_BIND_COUNT; ++n)
            bindings[n] = {memory[n].data(), memory[n].size() * 4};
        const size_t skew = (64 - reinterpret_cast<uintptr_t>(workspace_.data()) % 64) % 64;
        FoveaCpuRun run = foveaCpuRun();
        run.binding_count = FOVEA_BIND_COUNT;
        run.bindings = bindings;
        run.workspace = {workspace_.data() + skew, workspace_.size() - 64};
        const Result<void> done = plan_->run_cpu(run);
        EXPECT_TRUE(done) << done.error().text;
        return memory[FOVEA_BIND_O];
    }
    std::vector<float> memory[FOVEA_BIND_COUNT];

  private:
    Result<Plan> plan_;
    std::vector<std::byte> workspace_;
};

void fill(std::vector<float>& numbers, uint32_t state) {
    for (float& x : numbers) state = state * 1664525u + 1013904223u, x = float(state >> 8) * 0x1p-23f - 1;
}

#define FOVEA_SKIP_WITHOUT_PAIRS() \
    if (!cpu::has_pair_products()) GTEST_SKIP() << "no AVX512-BF16 on this processor or in this build"

// By itself a row begins at another key of its block, so that other keys share a word, and its neighbors
// begin and end elsewhere.
TEST(Bf16Inputs, a_row_has_the_same_bits_whatever_rows_and_keys_are_beside_it) {
    FOVEA_SKIP_WITHOUT_PAIRS();
    constexpr uint64_t kRows = 150, kKeys = 371;
    FoveaAttentionDesc desc = call_of(kRows, kKeys, FOVEA_PRECISION_BF16_INPUTS);
    desc.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_WINDOW, desc.align = FOVEA_ALIGN_TOP_LEFT;
    desc.window_left = 180, desc.window_right = -1;
    desc.align = FOVEA_ALIGN_OFFSET;
    desc.q_offset = 201;
    Prepared whole(desc);
    for (const FoveaBinding n : {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V}) fill(whole.memory[n], n + 5);
    const std::vector<float>& all = whole.o();
    for (uint64_t row = 0; row < kRows; ++row) {
        desc.len_q = 1;
        desc.q_offset = 201 + int64_t(row);
        Prepared alone(desc);
        const auto q = whole.memory[FOVEA_BIND_Q].begin() + ptrdiff_t(row * 33);
        alone.memory[FOVEA_BIND_Q].assign(q, q + 33);
        alone.memory[FOVEA_BIND_K] = whole.memory[FOVEA_BIND_K];
        alone.memory[FOVEA_BIND_V] = whole.memory[FOVEA_BIND_V];
        ASSERT_EQ(memcmp(alone.o().data(), all.data() + row * 20, 20 * sizeof(float)), 0) << "row " << row;
    }
}

// A key that no row sees, in the same word as one that is seen.
TEST(Bf16Inputs, a_hidden_neighbour_that_is_no_number_reaches_nothing) {
    FOVEA_SKIP_WITHOUT_PAIRS();
    for (const int64_t left : {0, 1, 2, 7}) {
        FoveaAttentionDesc desc = call_of(9, 60, FOVEA_PRECISION_BF16_INPUTS);
        desc.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_WINDOW, desc.align = FOVEA_ALIGN_TOP_LEFT;
        desc.window_left = left, desc.window_right = -1;
        desc.align = FOVEA_ALIGN_OFFSET;
        desc.q_offset = 21;
        Prepared clean(desc), poisoned(desc);
        for (const FoveaBinding n : {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V}) {
            fill(clean.memory[n], n + 5);
            poisoned.memory[n] = clean.memory[n];
        }
        for (uint64_t key = 0; key < 60; ++key) {
            if (key + uint64_t(left) >= 21 && key < 30) continue;
            for (size_t n = 0; n < 20; ++n)
                poisoned.memory[FOVEA_BIND_V][key * 20 + n] =
                    n % 2 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
        }
        EXPECT_EQ(poisoned.o(), clean.o()) << left;
    }
}

// The next query's key, in the word of the last one that a whole panel sees: a group fills a panel.
TEST(Bf16Inputs, the_key_behind_a_panels_last_one_reaches_nothing) {
    FOVEA_SKIP_WITHOUT_PAIRS();
    const uint32_t group = cpu::target_shape(cpu::kTargetAvx512).panel();
    FoveaAttentionDesc desc = call_of(2, 60, FOVEA_PRECISION_BF16_INPUTS);
    desc.heads_q = group;
    desc.flags = FOVEA_FLAG_CAUSAL;
    desc.align = FOVEA_ALIGN_OFFSET;
    desc.q_offset = 20;
    Prepared clean(desc), poisoned(desc);
    for (const FoveaBinding n : {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V}) {
        fill(clean.memory[n], n + 5);
        poisoned.memory[n] = clean.memory[n];
    }
    for (size_t n = 0; n < 20; ++n)
        poisoned.memory[FOVEA_BIND_V][21 * 20 + n] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float>&o = poisoned.o(), &expected = clean.o();
    for (size_t row = 0; row < 2 * group; ++row)
        for (size_t n = row * 20; n < (row + 1) * 20; ++n) {
            if (row % 2 == 0)
                ASSERT_EQ(o[n], expected[n]) << row;
            else
                ASSERT_TRUE(std::isnan(o[n])) << row;
        }
}

// Past the largest bfloat16 and within float32. One key, for unnormalised sums of more would be infinite in
// float32 too.
TEST(Bf16Inputs, finite_numbers_stay_finite) {
    FOVEA_SKIP_WITHOUT_PAIRS();
    Prepared run(call_of(3, 1, FOVEA_PRECISION_BF16_INPUTS));
    for (float& v : run.memory[FOVEA_BIND_V]) v = -std::numeric_limits<float>::max();
    for (const float o : run.o()) EXPECT_NEAR(o / std::numeric_limits<float>::max(), -1, 0x1p-8);
    for (float& v : run.memory[FOVEA_BIND_V]) v = std::numeric_limits<float>::infinity();
    for (const float o : run.o()) EXPECT_EQ(o, std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace fovea
