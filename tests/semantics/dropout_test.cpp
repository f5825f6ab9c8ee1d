// Dropout: the mask depends only on its coordinates.
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"

#include <array>

namespace fovea::test {
namespace {

// Philox4x32-10 written from the paper (Salmon et al. 2011), apart from the engine's.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> x, uint32_t key_low, uint32_t key_high) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t first = 0xD2511F53ull * x[0], second = 0xCD9E8D57ull * x[2];
        x = {uint32_t(second >> 32) ^ x[1] ^ key_low, uint32_t(second),
             uint32_t(first >> 32) ^ x[3] ^ key_high, uint32_t(first)};
        key_low += 0x9E3779B9;
        key_high += 0xBB67AE85;
    }
    return x;
}

TEST(Dropout, philox_gives_the_published_numbers) {
    // Known answers of the authors' own library, Random123 (kat_vectors).
    EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0),
              (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff),
              (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
              (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

bool keeps(const FoveaAttentionDesc& d, uint32_t bh, uint32_t i, uint32_t j) {
    const uint64_t key = d.dropout_seed ^ (d.dropout_offset & 0xffffffff00000000ull);
    i += uint32_t(d.first_query), j += uint32_t(d.first_key), bh += uint32_t(d.first_batch_head);
    const auto words = philox({j / 4, i, bh, uint32_t(d.dropout_offset)}, uint32_t(key), uint32_t(key >> 32));
    return words[j % 4] >= uint32_t(double(d.dropout_p) * 4294967296.0);
}

Case dropout_case() {
    Case c = plain_case(51, 2, 3, 3, 45, 83, 12, 10);
    c.desc.dropout_p = 0.3f;
    c.desc.dropout_seed = 0x0123456789abcdefull;
    c.desc.dropout_offset = 0x1122334455667788ull;
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_LSE;
    return c;
}

Case part_of_a_longer_call() {
    Case c = dropout_case();
    c.desc.first_query = 1000003, c.desc.first_key = 70004, c.desc.first_batch_head = 77;
    return c;
}

void expect_the_headers_mask(Case c) {
    settle(c);
    Result<PreparedCase> prepared = prepare(c);
    ASSERT_TRUE(prepared) << prepared.error().text;
    on_each_executor([&](Executor& executor) {
        const Outcome outcome = run_or_fail(executor, c.desc, prepared->clean);
        if (!outcome.ran()) return;
        size_t at = 0, kept = 0;
        for (uint32_t bh = 0; bh < 6; ++bh)
            for (uint32_t i = 0; i < 45; ++i)
                for (uint32_t j = 0; j < 83; ++j, ++at) {
                    const bool is_kept =
                        read_float(outcome.outputs[FOVEA_BIND_WEIGHTS], FOVEA_F32, int64_t(at)) != 0;
                    ASSERT_EQ(is_kept, keeps(c.desc, bh, i, j)) << "bh " << bh << " i " << i << " j " << j;
                    kept += is_kept;
                }
        EXPECT_NEAR(double(kept) / double(at), 0.7, 0.01);
    });
}

TEST(Dropout, drops_the_keys_that_the_header_says) { expect_the_headers_mask(dropout_case()); }

TEST(Dropout, of_a_part_is_the_whole_calls_from_where_the_part_begins) {
    expect_the_headers_mask(part_of_a_longer_call());
}

TEST(Dropout, is_the_same_in_slices_of_any_order_and_on_any_number_of_workers) {
    Case c = dropout_case();
    settle(c);
    Result<PreparedCase> prepared = prepare(c);
    ASSERT_TRUE(prepared) << prepared.error().text;
    on_each_executor([&](Executor& executor) {
        const Outcome whole = run_or_fail(executor, c.desc, prepared->clean);
        FoveaAttentionDesc cut = c.desc;
        cut.max_slice_cost = 2e4;
        const Outcome slices = run_or_fail(executor, cut, prepared->clean, {.shuffle_seed = 5, .workers = 3});
        EXPECT_EQ(first_difference(whole.outputs, slices.outputs), "");
    });
}

// Tiles of one cell to a pixel, cut anywhere: what the whole call drops is what they drop.
TEST(Dropout, is_the_same_in_map_tiles) {
    Case c = part_of_a_longer_call();
    settle(c);
    Result<PreparedCase> prepared = prepare(c);
    ASSERT_TRUE(prepared) << prepared.error().text;
    Tensors inputs = prepared->clean;
    inputs[FOVEA_BIND_LSE] = prepared->oracle.exact[FOVEA_BIND_LSE];
    on_each_executor([&](Executor& executor) {
        for (const auto& [first_row, first_key] :
             {std::pair{0u, 0u}, std::pair{7u, 0u}, std::pair{31u, 50u}}) {
            FoveaMapTileDesc tile{};
            tile.struct_size = sizeof tile;
            tile.batch = 1, tile.first_head = 1, tile.head_count = 2;
            tile.first_row = first_row, tile.first_key = first_key;
            tile.outputs = FOVEA_TILE_MAX;
            const Outcome outcome = executor.run_tile(c.desc, tile, inputs);
            ASSERT_TRUE(outcome.ran()) << outcome.text;
            int64_t at = 0;
            for (uint32_t h = 1; h < 3; ++h)
                for (uint32_t i = first_row; i < 45; ++i)
                    for (uint32_t j = first_key; j < 83; ++j, ++at)
                        ASSERT_EQ(read_float(outcome.outputs[FOVEA_BIND_TILE_MAX], FOVEA_F32, at) != 0,
                                  keeps(c.desc, 3 + h, i, j))
                            << "h " << h << " i " << i << " j " << j;
        }
    });
}

TEST(Dropout, leaves_lse_alone_and_does_nothing_at_zero) {
    Case c = dropout_case();
    settle(c);
    Result<PreparedCase> prepared = prepare(c);
    ASSERT_TRUE(prepared) << prepared.error().text;
    on_each_executor([&](Executor& executor) {
        FoveaAttentionDesc zero = c.desc, none = c.desc;
        zero.dropout_p = 0;
        none.dropout_p = 0, none.dropout_seed = none.dropout_offset = 0;
        const Outcome dropped = run_or_fail(executor, c.desc, prepared->clean);
        const Outcome with_zero = run_or_fail(executor, zero, prepared->clean);
        const Outcome without = run_or_fail(executor, none, prepared->clean);
        EXPECT_EQ(first_difference(with_zero.outputs, without.outputs), "");
        EXPECT_EQ(dropped.outputs[FOVEA_BIND_LSE], without.outputs[FOVEA_BIND_LSE]);
        EXPECT_NE(dropped.outputs[FOVEA_BIND_O], without.outputs[FOVEA_BIND_O]);
    });
}

}  // namespace
}  // namespace fovea::test
