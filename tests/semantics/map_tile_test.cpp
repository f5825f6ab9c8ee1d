// Map tiles against the weights of the reference, over seeded random calls with every feature: each pixel is
// the sum and the largest of its cells, and exactly what finer tiles, slices and other workers make of it.
//   FOVEA_TEST_SEED=n   runs only case n of a test
#include "reference/tolerance.hpp"
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"
#include "support/random.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace fovea::test {
namespace {

constexpr uint64_t kInvalid = FOVEA_TILE_INVALID;

struct Picture {
    std::vector<uint64_t> mass;
    std::vector<float> max;
    bool ran = false;
};

Picture picture_of(const Outcome& outcome) {
    Picture picture;
    picture.ran = outcome.ran();
    const auto copy = [](const Bytes& from, auto& to) {
        to.resize(from.size() / sizeof to[0]);
        if (!from.empty()) memcpy(to.data(), from.data(), from.size());
    };
    copy(outcome.outputs[FOVEA_BIND_TILE_MASS], picture.mass);
    copy(outcome.outputs[FOVEA_BIND_TILE_MAX], picture.max);
    return picture;
}

Picture paint(Executor& executor, FoveaAttentionDesc desc, const FoveaMapTileDesc& tile,
              const Tensors& inputs, const ExecuteOptions& options = {}) {
    Outcome outcome = executor.run_tile(desc, tile, inputs, options);
    // The least that a slice can cost depends on the kernel's tiles.
    while (outcome.code == FOVEA_LIMIT_EXCEEDED && outcome.text.rfind("max_slice_cost", 0) == 0 &&
           desc.max_slice_cost < 1e12) {
        desc.max_slice_cost *= 4;
        outcome = executor.run_tile(desc, tile, inputs, options);
    }
    EXPECT_TRUE(outcome.ran()) << outcome.text;
    return picture_of(outcome);
}

void expect_same_bits(const Picture& a, const Picture& b, const char* what) {
    if (!a.ran || !b.ran) return;
    EXPECT_TRUE(a.mass == b.mass) << "mass differs: " << what;
    ASSERT_EQ(a.max.size(), b.max.size());
    EXPECT_TRUE(a.max.empty() || memcmp(a.max.data(), b.max.data(), a.max.size() * 4) == 0)
        << "maximum differs: " << what;
}

struct Axis {
    uint64_t first, count, pixels;
    uint64_t begin(uint64_t n) const { return first + n * count / pixels; }
};
Axis rows_of(const FoveaMapTileDesc& t) { return {t.first_row, t.row_count, t.height}; }
Axis keys_of(const FoveaMapTileDesc& t) { return {t.first_key, t.key_count, t.width}; }

// The expected values of one pixel, and the tolerance for a float32 computation.
struct Expected {
    double mass = 0, max = 0, mass_tolerance = 0, max_tolerance = 0;
};

Expected expected_pixel(const PreparedCase& prepared, const FoveaMapTileDesc& tile, uint32_t head, uint64_t y,
                        uint64_t x) {
    const FoveaAttentionDesc& d = prepared.c.desc;
    Axis rows = rows_of(tile), keys = keys_of(tile);
    uint64_t i0 = rows.begin(y), i1 = rows.begin(y + 1), j0 = keys.begin(x), j1 = keys.begin(x + 1);
    if (tile.sampled) i0 += (i1 - i0) / 2, i1 = i0 + 1, j0 += (j1 - j0) / 2, j1 = j0 + 1;
    Expected e;
    for (uint64_t i = i0; i < std::min<uint64_t>(i1, d.len_q); ++i) {
        const size_t row = (size_t(tile.batch) * d.heads_q + head) * d.len_q + i;
        const double relative = reference::tile_weight_tolerance(prepared.oracle.logit_units[row]);
        for (uint64_t j = j0; j < std::min<uint64_t>(j1, d.len_kv); ++j) {
            const double w =
                read_float(prepared.oracle.exact[FOVEA_BIND_WEIGHTS], FOVEA_F32, int64_t(row * d.len_kv + j));
            e.mass += w;
            e.mass_tolerance += w * relative + FOVEA_TILE_UNIT;
            if (w > e.max) e.max = w, e.max_tolerance = w * relative + 0x1p-120;
        }
    }
    e.max_tolerance += 0x1p-100;
    return e;
}

void expect_right_pixels(const PreparedCase& prepared, const FoveaMapTileDesc& tile, const Picture& picture) {
    if (!picture.ran) return;
    size_t n = 0;
    for (uint32_t h = 0; h < tile.head_count; ++h) {
        for (uint64_t y = 0; y < tile.height; ++y) {
            for (uint64_t x = 0; x < tile.width; ++x, ++n) {
                const Expected e = expected_pixel(prepared, tile, tile.first_head + h, y, x);
                const auto place = [&] {
                    return "head " + std::to_string(h) + " y " + std::to_string(y) + " x " +
                           std::to_string(x);
                };
                ASSERT_NE(picture.mass[n], kInvalid) << place();
                ASSERT_NEAR(double(picture.mass[n]) * FOVEA_TILE_UNIT, e.mass, e.mass_tolerance) << place();
                ASSERT_NEAR(picture.max[n], e.max, e.max_tolerance) << place();
            }
        }
    }
}

// Tiles that are halves of this one along both axes have pixels of a quarter each.
FoveaMapTileDesc random_tile(Random& random, const FoveaAttentionDesc& d) {
    FoveaMapTileDesc t{};
    t.struct_size = sizeof t;
    t.batch = uint32_t(random.below(d.batch));
    t.first_head = uint32_t(random.below(d.heads_q));
    t.head_count = 1 + uint32_t(random.below(d.heads_q - t.first_head));
    const auto axis = [&](uint64_t length, uint64_t& first, uint64_t& count, uint32_t& pixels) {
        first = random.chance(0.5) ? 0 : random.below(length);
        // Sometimes past the end.
        count = std::max<uint64_t>(4, 1 + random.below(length - first + length / 4 + 1)) & ~uint64_t{1};
        pixels = random.chance(0.3) ? uint32_t(count) : 2 * (1 + uint32_t(random.below(count / 2)));
        pixels &= ~1u;
        if (random.chance(0.3)) pixels = 2;
    };
    axis(d.len_q, t.first_row, t.row_count, t.height);
    axis(d.len_kv, t.first_key, t.key_count, t.width);
    t.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    return t;
}

// The four tiles of half the cells with the parent's number of pixels. False where a pixel has too few cells.
bool expect_sum_of_children(Executor& executor, const FoveaAttentionDesc& desc,
                            const FoveaMapTileDesc& parent, const Tensors& inputs, const Picture& picture) {
    if (parent.row_count / 2 < parent.height || parent.key_count / 2 < parent.width) return false;
    std::vector<uint64_t> mass(picture.mass.size());
    std::vector<float> max(picture.max.size());
    for (uint64_t quarter = 0; quarter < 4; ++quarter) {
        FoveaMapTileDesc child = parent;
        child.row_count /= 2, child.key_count /= 2;
        child.first_row += quarter / 2 * child.row_count, child.first_key += quarter % 2 * child.key_count;
        if (child.first_row >= desc.len_q || child.first_key >= desc.len_kv) continue;
        const Picture part = paint(executor, desc, child, inputs);
        if (!part.ran) return false;
        for (uint64_t h = 0; h < parent.head_count; ++h) {
            for (uint64_t y = 0; y < parent.height; ++y) {
                for (uint64_t x = 0; x < parent.width; ++x) {
                    const uint64_t up_y = (quarter / 2 * parent.height + y) / 2;
                    const uint64_t up_x = (quarter % 2 * parent.width + x) / 2;
                    const size_t to = (h * parent.height + up_y) * parent.width + up_x;
                    const size_t from = (h * parent.height + y) * parent.width + x;
                    mass[to] += part.mass[from];
                    max[to] = std::max(max[to], part.max[from]);
                }
            }
        }
    }
    EXPECT_TRUE(mass == picture.mass) << "a pixel's mass is not the sum of its four";
    EXPECT_TRUE(max == picture.max) << "a pixel's maximum is not that of its four";
    return true;
}

// Counts of the random tiles, so that no check is skipped unnoticed.
struct Seen {
    int tiles = 0, parents = 0, past_the_end = 0;
};

void check_tile(Executor& executor, const PreparedCase& prepared, FoveaMapTileDesc tile, Random& random,
                Seen& seen) {
    Tensors inputs = prepared.poisoned;
    inputs[FOVEA_BIND_LSE] = prepared.oracle.exact[FOVEA_BIND_LSE];
    FoveaAttentionDesc desc = prepared.c.desc;
    desc.max_slice_cost = 0;
    const Picture picture = paint(executor, desc, tile, inputs);
    expect_right_pixels(prepared, tile, picture);
    seen.parents += expect_sum_of_children(executor, desc, tile, inputs, picture);
    ++seen.tiles;
    seen.past_the_end +=
        tile.first_row + tile.row_count > desc.len_q || tile.first_key + tile.key_count > desc.len_kv;

    ExecuteOptions cut;
    cut.workers = 1 + uint32_t(random.below(3));
    cut.shuffle_seed = random.next() | 1;
    desc.max_slice_cost = random.uniform(100, 20000);
    expect_same_bits(picture, paint(executor, desc, tile, inputs, cut), "in shuffled slices");

    tile.sampled = 1;
    desc.max_slice_cost = 0;
    expect_right_pixels(prepared, tile, paint(executor, desc, tile, inputs));
}

TEST(MapTile, random_calls) {
    // A software driver takes a hundred times as long for one.
    const uint64_t cases = names_under_test()[0].rfind("vulkan", 0) == 0 ? 60 : 150;
    CaseLimits limits{2e5};
    limits.compressed = true;
    Seen seen;
    const char* only = getenv("FOVEA_TEST_SEED");
    for (uint64_t n = only ? strtoull(only, nullptr, 0) : 0; n < cases; ++n) {
        Case c = generate_case(case_seed(0x71e5, n), limits);
        if (c.desc.len_q == 0 || c.desc.len_kv == 0) continue;
        // Near -FLT_MAX the rounding of lse is larger than all that tells weights apart.
        if (c.values == Values::low_bias) continue;
        c.desc.outputs = FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_LSE;
        Result<PreparedCase> prepared = prepare(std::move(c));
        ASSERT_TRUE(prepared) << prepared.error().text;
        SCOPED_TRACE(describe(prepared->c));
        SCOPED_TRACE("replay: FOVEA_TEST_SEED=" + std::to_string(n) +
                     " fovea_test_semantics --gtest_filter=MapTile.random_calls --on EXECUTOR");
        Random random(n);
        const FoveaMapTileDesc tile = random_tile(random, prepared->c.desc);
        on_each_executor([&](Executor& executor) { check_tile(executor, *prepared, tile, random, seen); });
        if (only || testing::Test::HasFailure()) return;
    }
    EXPECT_GT(seen.parents, seen.tiles / 5);
    EXPECT_GT(seen.past_the_end, seen.tiles / 10);
}

// The whole call as one tile, and its rows' mass: what a row's weights add up to is 1, or 0 where it is
// empty.
TEST(MapTile, defaults_are_the_whole_matrix) {
    Case c = plain_case(5, 1, 2, 1, 37, 53, 16, 8);
    c.desc.flags |= FOVEA_FLAG_CAUSAL, c.desc.align = FOVEA_ALIGN_TOP_LEFT;
    c.desc.outputs = FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_LSE;
    settle(c);
    Result<PreparedCase> prepared = prepare(c);
    ASSERT_TRUE(prepared);
    Tensors inputs = prepared->poisoned;
    inputs[FOVEA_BIND_LSE] = prepared->oracle.exact[FOVEA_BIND_LSE];
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile;
    on_each_executor([&](Executor& executor) {
        const Picture picture = paint(executor, c.desc, tile, inputs);
        if (!picture.ran) return;
        ASSERT_EQ(picture.mass.size(), size_t(2 * 37 * 53));
        EXPECT_TRUE(picture.max.empty());
        for (size_t row = 0; row < 2 * 37; ++row) {
            uint64_t sum = 0;
            for (size_t j = 0; j < 53; ++j) sum += picture.mass[row * 53 + j];
            EXPECT_NEAR(double(sum) * FOVEA_TILE_UNIT, 1.0, 1e-5) << "row " << row;
        }
    });
}

// A NaN shows in the pixels that contain it and nowhere else.
TEST(MapTile, invalid_weights_are_marked) {
    Case c = plain_case(6, 1, 1, 1, 40, 64, 16, 8);
    c.desc.outputs = FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_LSE;
    c.desc.flags |= FOVEA_FLAG_CAUSAL, c.desc.align = FOVEA_ALIGN_TOP_LEFT;
    settle(c);
    Result<PreparedCase> prepared = prepare(c);
    ASSERT_TRUE(prepared);
    Tensors inputs = prepared->poisoned;
    inputs[FOVEA_BIND_LSE] = prepared->oracle.exact[FOVEA_BIND_LSE];
    const float original = read_float(inputs[FOVEA_BIND_LSE], FOVEA_F32, 17);
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile;
    tile.height = 10, tile.width = 8;  // row 17 is in pixel row 4
    tile.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    on_each_executor([&](Executor& executor) {
        const Picture right = paint(executor, c.desc, tile, inputs);
        for (const float wrong : {NAN, original - 30, -INFINITY}) {
            Tensors spoilt = inputs;
            write_float(spoilt[FOVEA_BIND_LSE], FOVEA_F32, 17, wrong);
            const Picture picture = paint(executor, c.desc, tile, spoilt);
            if (!picture.ran || !right.ran) return;
            for (size_t n = 0; n < 80; ++n) {
                const bool seen = n / 8 == 4 && n % 8 <= 17 / 8;
                EXPECT_EQ(picture.mass[n], seen ? kInvalid : right.mass[n]) << "pixel " << n;
                if (seen)
                    EXPECT_TRUE(std::isnan(picture.max[n])) << "pixel " << n;
                else
                    EXPECT_EQ(picture.max[n], right.max[n]) << "pixel " << n;
            }
        }
    });
}

// One pixel over `rows` x `keys` cells, every logit 0, so that every weight is exp(-lse); with a dropout that
// keeps everything, and scales it.
Picture even_pixel(Executor& executor, uint64_t rows, uint64_t keys, float lse, float dropout_p = 0) {
    Case c = plain_case(7, 1, 1, 1, rows, keys, 4, 4);
    Tensors inputs;
    if (dropout_p > 0) {
        c.desc.dropout_p = dropout_p;
        c.desc.dropout_mask = {1, FOVEA_U8, 1, 1, 1, 0, {}};
        inputs[FOVEA_BIND_DROPOUT_MASK].assign(keys, std::byte{1});
    }
    inputs[FOVEA_BIND_Q].assign(rows * 16, std::byte{0});
    inputs[FOVEA_BIND_K].assign(keys * 16, std::byte{0});
    inputs[FOVEA_BIND_LSE].resize(rows * 4);
    for (uint64_t i = 0; i < rows; ++i) write_float(inputs[FOVEA_BIND_LSE], FOVEA_F32, int64_t(i), lse);
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile;
    tile.height = tile.width = 1;
    tile.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    return paint(executor, c.desc, tile, inputs);
}

// Sums are whole numbers: of weights of 1 they are exact up to the limit, and invalid from the limit on.
TEST(MapTile, a_pixel_counts_to_its_limit_and_no_further) {
    constexpr uint64_t kUnits = uint64_t{1} << 40;
    on_each_executor([&](Executor& executor) {
        for (const uint64_t rows : {2047, 2048}) {
            const Picture picture = even_pixel(executor, rows, 4096, 0);
            if (!picture.ran) return;
            EXPECT_EQ(picture.mass[0], rows < 2048 ? rows * 4096 * kUnits : kInvalid) << rows << " rows";
            EXPECT_EQ(picture.max[0], 1.0f);
        }
    });
}

// An lse that is too small by nearly ln 2 is still taken: the largest weights that may be added up.
TEST(MapTile, sums_of_the_largest_weights_do_not_wrap) {
    on_each_executor([&](Executor& executor) {
        for (const uint64_t rows : {1, 37}) {
            const Picture picture = even_pixel(executor, rows, 5000, -0.69314f);
            if (!picture.ran) return;
            const double expected = std::exp(double(0.69314f)) * double(rows) * 5000;
            EXPECT_NEAR(double(picture.mass[0]) * FOVEA_TILE_UNIT, expected, expected * 1e-5);
            EXPECT_NEAR(picture.max[0], std::exp(0.69314f), 1e-5);
            // Dropout's factor of 250, where a word of the kernel holds few keys, or of 10, where the mass of
            // all rows stays below its limit.
            const float dropout_p = rows == 1 ? 0.996f : 0.9f;
            const double kept = expected / (1 - double(dropout_p));
            const Picture scaled = even_pixel(executor, rows, 5000, -0.69314f, dropout_p);
            if (!scaled.ran) return;
            EXPECT_NEAR(double(scaled.mass[0]) * FOVEA_TILE_UNIT, kept, kept * 1e-5);
        }
    });
}

}  // namespace
}  // namespace fovea::test
