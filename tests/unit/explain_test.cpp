// How foveaExplainPlan describes the call as it was read, so that an application's author finds mistakes.
#include "support/cpu_device.hpp"

#include <fovea/fovea.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <initializer_list>

namespace fovea::test {
namespace {

std::string explained(const std::function<void(FoveaAttentionDesc&)>& edit) {
    FoveaAttentionDesc d = Attention().batch(2).heads(4, 2).lengths(4, 208).dims(32, 24).desc;
    edit(d);
    const Result<Plan> plan = plan_attention(cpu_device(1), d);
    if (!plan) return plan.error().text;
    return plan->explain();
}

void expect_lines(const std::string& text, std::initializer_list<const char*> lines) {
    for (const char* line : lines)
        EXPECT_NE(text.find(std::string("\n") + line + "\n"), std::string::npos) << line << "\nis not in\n"
                                                                                 << text;
}

TEST(Explain, says_where_query_0_stands) {
    using D = FoveaAttentionDesc;
    expect_lines(explained([](D&) {}), {"positions: do not count; every query may see every key"});
    // A decoder with the wrong alignment learns here that its queries are at the first keys.
    expect_lines(explained([](D& d) { d.flags = FOVEA_FLAG_CAUSAL, d.align = FOVEA_ALIGN_TOP_LEFT; }),
                 {"positions: query 0 is at key 0 (TOP_LEFT), causal"});
    expect_lines(explained([](D& d) { d.flags = FOVEA_FLAG_CAUSAL, d.align = FOVEA_ALIGN_BOTTOM_RIGHT; }),
                 {"positions: query 0 is at key 204 (BOTTOM_RIGHT: len_kv - len_q), causal"});
    expect_lines(
        explained([](D& d) {
            d.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_VARLEN, d.align = FOVEA_ALIGN_BOTTOM_RIGHT;
        }),
        {"positions: query 0 is at key kv_length - q_length of its batch entry (BOTTOM_RIGHT), causal",
         "lengths: of each batch entry, from SEQUENCES"});
    expect_lines(explained([](D& d) {
                     d.flags = FOVEA_FLAG_WINDOW | FOVEA_FLAG_ALIBI, d.align = FOVEA_ALIGN_OFFSET;
                     d.q_offset = -3, d.window_left = 7, d.window_right = 1;
                 }),
                 {"positions: query 0 is at key -3 (OFFSET), window of 7 before, window of 1 after, ALiBi"});
}

TEST(Explain, says_how_each_tensor_is_read_and_what_is_shared) {
    using D = FoveaAttentionDesc;
    expect_lines(explained([](D&) {}),
                 {"q: f32, batch 2, heads 4, rows 4, dim 32; strides 512, 128, 32",
                  "k: f32, batch 2, heads 2, rows 208, dim 32; strides 13312, 6656, 32",
                  "o: f32, batch 2, heads 4, rows 4, dim 24; strides 384, 96, 24",
                  "groups: 2 query heads read each key/value head", "mask and bias: none"});
    expect_lines(
        explained([](D& d) {
            d.k_type = FOVEA_F16;
            d.k_strides = {FOVEA_BROADCAST, FOVEA_BROADCAST, 40};
            d.v_strides = {FOVEA_BROADCAST, 208 * 24, 24};
        }),
        {"k: f16, batch 2, heads 2, rows 208, dim 32; strides 0, 0, 40; one for the whole batch and all "
         "heads",
         "v: f32, batch 2, heads 2, rows 208, dim 24; strides 0, 4992, 24; one for the whole batch"});
    expect_lines(explained([](D& d) {
                     d.page_size = 16, d.page_count = 9, d.block_table_pages = 13;
                     d.mask.present = 1, d.mask.type = FOVEA_U8, d.mask.heads = 4, d.mask.keys = 200;
                 }),
                 {"k: f32, pages 9, heads 2, rows 16, dim 32; strides 1024, 512, 32",
                  "mask: u8, keys 200 of 208; strides 0, 800, 200; one for the whole batch"});
    expect_lines(explained([](D& d) { d.flags = FOVEA_FLAG_VARLEN, d.packed_rows_q = 6; }),
                 {"q: f32, packed batch 1, heads 4, rows 6, dim 32; strides 0, 32, 128"});
}

TEST(Explain, no_slice_costs_more_than_the_whole) {
    for (const uint64_t rows : {4u, 64u, 1024u}) {
        const std::string text =
            explained([&](FoveaAttentionDesc& d) { d.flags = FOVEA_FLAG_CAUSAL, d.len_q = d.len_kv = rows; });
        double slice = 0, whole = -1;
        const size_t at = text.find("at most ");
        ASSERT_NE(at, std::string::npos) << text;
        EXPECT_EQ(std::sscanf(text.c_str() + at, "at most %lg FLOP each; %lg FLOP in all", &slice, &whole),
                  2);
        EXPECT_LE(slice, whole) << text;
    }
}

}  // namespace
}  // namespace fovea::test
