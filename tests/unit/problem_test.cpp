// The checked form of a description: the values that every kernel uses without further checks.
#include "problem/problem.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace fovea::test {
namespace {

FoveaAttentionDesc small_call() {
    FoveaAttentionDesc d = foveaAttentionDesc();
    d.batch = 2, d.heads_q = 4, d.heads_kv = 2, d.len_q = 8, d.len_kv = 16, d.dim_qk = 32, d.dim_v = 24;
    return d;
}

Problem problem_of(const FoveaAttentionDesc& desc) {
    Problem p{};
    FoveaDiag diag{};
    diag.struct_size = sizeof diag;
    EXPECT_EQ(make_problem(&desc, p, &diag), FOVEA_OK) << diag.text;
    return p;
}

void expect_strides(const FoveaStrides& s, int64_t batch, int64_t head, int64_t row) {
    EXPECT_EQ(s.batch, batch);
    EXPECT_EQ(s.head, head);
    EXPECT_EQ(s.row, row);
}

// p * 2^32 rounded down, as the header says: one word more or less would change what some seed drops.
TEST(Problem, dropout_drops_the_words_below_p_times_2_to_the_32) {
    const struct {
        float p;
        uint32_t threshold;
    } kCases[] = {{0.1f, 429496736}, {0.5f, 2147483648u},          {0.25f, 1073741824},
                  {1e-5f, 42949},    {0.3f, 1288490240},           {1e-10f, 0},
                  {3e-10f, 1},       {0x1.fffffep-1f, 4294967040u}};
    for (const auto& c : kCases) {
        FoveaAttentionDesc desc = small_call();
        desc.dropout_p = c.p;
        const Problem p = problem_of(desc);
        EXPECT_TRUE(p.dropout);
        EXPECT_EQ(p.drop_threshold, c.threshold) << c.p;
        EXPECT_EQ(p.keep_scale, 1.0f / (1.0f - c.p));
    }
    EXPECT_FALSE(problem_of(small_call()).dropout);
    FoveaAttentionDesc kept = small_call();
    kept.dropout_mask.present = 1, kept.dropout_mask.type = FOVEA_U8;
    EXPECT_TRUE(problem_of(kept).dropout) << "a dropout mask drops without a probability";
    EXPECT_EQ(problem_of(kept).keep_scale, 1.0f);
}

TEST(Problem, takes_the_defaults_of_the_header) {
    const Problem p = problem_of(small_call());
    EXPECT_EQ(p.scale, float(1 / std::sqrt(32.0)));
    EXPECT_EQ(p.workspace_limit, uint64_t{64} << 20);
    EXPECT_EQ(p.outputs, uint32_t{FOVEA_OUTPUT_O});
    EXPECT_EQ(p.group, 2u);
    EXPECT_EQ(p.window_left, kUnbounded);
    EXPECT_EQ(p.window_right, kUnbounded);
    expect_strides(p.q, 4 * 8 * 32, 8 * 32, 32);
    expect_strides(p.v, 2 * 16 * 24, 16 * 24, 24);
    EXPECT_EQ(p.binding_bytes[FOVEA_BIND_O], uint64_t{2} * 4 * 8 * 24 * 4);
    EXPECT_EQ(p.binding_mask,
              1u << FOVEA_BIND_Q | 1u << FOVEA_BIND_K | 1u << FOVEA_BIND_V | 1u << FOVEA_BIND_O);
    EXPECT_EQ(p.output_mask, 1u << FOVEA_BIND_O);
}

TEST(Problem, a_window_is_bounded_on_the_sides_that_are_given) {
    FoveaAttentionDesc desc = small_call();
    desc.flags = FOVEA_FLAG_WINDOW, desc.align = FOVEA_ALIGN_TOP_LEFT;
    desc.window_left = 0, desc.window_right = -1;
    EXPECT_EQ(problem_of(desc).window_left, 0);
    EXPECT_EQ(problem_of(desc).window_right, kUnbounded);
    desc.window_left = -1, desc.window_right = INT64_MAX;
    EXPECT_EQ(problem_of(desc).window_left, kUnbounded);
    EXPECT_EQ(problem_of(desc).window_right, kUnbounded);
    desc.window_left = INT64_MAX, desc.window_right = -1;
    EXPECT_EQ(problem_of(desc).window_left, kUnbounded) << "a position less a wider one would wrap";
}

// A matrix that counts for every entry, head or row has a stride of zero there, whatever the caller wrote.
TEST(Problem, matrices_that_count_for_all_do_not_move) {
    FoveaAttentionDesc desc = small_call();
    desc.mask.present = 1, desc.mask.type = FOVEA_U8, desc.mask.rows = 1, desc.mask.keys = 9;
    desc.mask.strides = {1000, 100, 10};
    const Problem p = problem_of(desc);
    expect_strides(p.mask.strides, 0, 0, 0);
    EXPECT_EQ(p.mask.keys, 9);
    EXPECT_EQ(p.binding_bytes[FOVEA_BIND_MASK], 12u);
    desc.mask.batch = 2, desc.mask.heads = 4, desc.mask.rows = 8;
    const Problem whole = problem_of(desc);
    expect_strides(whole.mask.strides, 1000, 100, 10);
    EXPECT_EQ(whole.binding_bytes[FOVEA_BIND_MASK], (1000u + 300 + 70 + 9 + 3) / 4 * 4);
}

// Packed rows are token by token; a pool of pages is page by page.
TEST(Problem, packed_and_paged_tensors_have_strides_of_their_own) {
    FoveaAttentionDesc desc = small_call();
    desc.flags = FOVEA_FLAG_VARLEN;
    desc.packed_rows_q = 11, desc.packed_rows_kv = 23;
    const Problem packed = problem_of(desc);
    expect_strides(packed.q, 0, 32, 4 * 32);
    expect_strides(packed.o, 0, 24, 4 * 24);
    expect_strides(packed.k, 0, 32, 2 * 32);
    expect_strides(packed.v, 0, 24, 2 * 24);
    EXPECT_EQ(packed.binding_bytes[FOVEA_BIND_Q], 11u * 4 * 32 * 4);
    EXPECT_EQ(packed.binding_bytes[FOVEA_BIND_V], 23u * 2 * 24 * 4);
    EXPECT_EQ(packed.binding_bytes[FOVEA_BIND_SEQUENCES], 2u * sizeof(FoveaSequence));
    desc = small_call();
    desc.page_size = 5, desc.page_count = 9, desc.block_table_pages = 4;
    const Problem paged = problem_of(desc);
    expect_strides(paged.k, 2 * 5 * 32, 5 * 32, 32);
    EXPECT_EQ(paged.binding_bytes[FOVEA_BIND_K], 9u * 2 * 5 * 32 * 4);
    EXPECT_EQ(paged.binding_bytes[FOVEA_BIND_BLOCK_TABLE], 2u * 4 * 4);
}

}  // namespace
}  // namespace fovea::test
