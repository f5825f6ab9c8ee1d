// The judge itself: what it must reject. A test that cannot fail shows nothing.
#include "semantics/under_test.hpp"
#include "support/case_generator.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace fovea::test {
namespace {

struct Judged {
    PreparedCase prepared;
    Outcome outcome;
    Verdict verdict() const { return judge(prepared.c, prepared.oracle, outcome); }
};

// A causal f32 case with peaked rows whose first rows are empty, on the plain loops.
Judged judged_case(FoveaDtype o_type = FOVEA_F32) {
    Case c = plain_case(71, 2, 2, 1, 40, 48, 16, 8);
    c.desc.o_type = o_type;
    c.desc.flags |= FOVEA_FLAG_CAUSAL;
    c.desc.align = FOVEA_ALIGN_OFFSET;
    c.desc.q_offset = -2;
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_WEIGHTS | FOVEA_OUTPUT_ROW_STATS;
    c.desc.o_strides = {2 * 40 * 11, 11, 22};  // gaps of three elements
    c.values = Values::peaked;
    settle(c);
    Judged judged{std::move(*prepare(c)), {}};
    std::string error;
    judged.outcome = make_executor("plain", error)->run(c.desc, judged.prepared.poisoned);
    return judged;
}

void change(Judged& judged, FoveaBinding output, int64_t element, float value) {
    write_float(judged.outcome.outputs[output], FOVEA_F32, element, value);
}
float at(const Judged& judged, FoveaBinding output, int64_t element) {
    return read_float(judged.outcome.outputs[output], FOVEA_F32, element);
}
// Element of o in row (b, h, i), column 0.
int64_t o_at(const Judged& judged, uint32_t b, uint32_t h, int64_t i) {
    return query_element(judged.prepared.c, o_strides(judged.prepared.c), b, h, i);
}

TEST(Verdict, accepts_the_plain_computation) {
    const Verdict verdict = judged_case().verdict();
    EXPECT_TRUE(verdict.ok) << verdict.text;
    EXPECT_LE(verdict.worst_share, 0.5);
}

TEST(Verdict, rejects_one_wrong_row_among_many) {
    Judged judged = judged_case();
    const int64_t element = o_at(judged, 1, 1, 39);
    change(judged, FOVEA_BIND_O, element, at(judged, FOVEA_BIND_O, element) * 1.001f);
    const Verdict verdict = judged.verdict();
    EXPECT_FALSE(verdict.ok);
    EXPECT_NE(verdict.text.find("o[b=1, h=1, i=39, 0]"), std::string::npos) << verdict.text;
}

TEST(Verdict, rejects_the_neighbour_of_the_right_key) {
    // Values encode their key, so a row of the wrong one is far off.
    Judged judged = judged_case();
    int64_t i = 20;
    const auto first = [&](int64_t row) { return at(judged, FOVEA_BIND_O, o_at(judged, 0, 0, row)); };
    while (std::fabs(first(i) - first(i + 1)) < 0.5f) ++i;  // rows that look for different keys
    for (uint32_t n = 0; n < 8; ++n)
        change(judged, FOVEA_BIND_O, o_at(judged, 0, 0, i) + n,
               at(judged, FOVEA_BIND_O, o_at(judged, 0, 0, i + 1) + n));
    EXPECT_FALSE(judged.verdict().ok);
}

TEST(Verdict, rejects_nan_and_infinity) {
    for (const float bad : {NAN, INFINITY, -INFINITY}) {
        Judged judged = judged_case();
        change(judged, FOVEA_BIND_O, o_at(judged, 0, 1, 30), bad);
        EXPECT_FALSE(judged.verdict().ok) << bad;
    }
}

TEST(Verdict, rejects_a_negative_zero_in_an_empty_row) {
    Judged judged = judged_case();
    ASSERT_EQ(std::bit_cast<uint32_t>(at(judged, FOVEA_BIND_O, o_at(judged, 0, 0, 1))), 0u);
    change(judged, FOVEA_BIND_O, o_at(judged, 0, 0, 1), -0.0f);
    EXPECT_FALSE(judged.verdict().ok);
}

TEST(Verdict, rejects_a_large_negative_number_for_minus_infinity) {
    Judged judged = judged_case();
    ASSERT_EQ(at(judged, FOVEA_BIND_LSE, 0), -INFINITY);
    change(judged, FOVEA_BIND_LSE, 0, -3.0e38f);
    EXPECT_FALSE(judged.verdict().ok);
}

TEST(Verdict, rejects_a_write_between_rows) {
    Judged judged = judged_case();
    change(judged, FOVEA_BIND_O, o_at(judged, 0, 1, 30) + 8, 0.0f);
    const Verdict verdict = judged.verdict();
    EXPECT_FALSE(verdict.ok);
    EXPECT_NE(verdict.text.find("belongs to no row"), std::string::npos) << verdict.text;
}

TEST(Verdict, rejects_a_row_that_was_not_written) {
    Judged judged = judged_case();
    memset(judged.outcome.outputs[FOVEA_BIND_WEIGHTS].data() + 4 * 48 * 17, 0xff, 4);
    EXPECT_FALSE(judged.verdict().ok);
}

TEST(Verdict, rejects_wrong_statistics) {
    Judged judged = judged_case();
    FoveaRowStats stats;
    std::byte* place = judged.outcome.outputs[FOVEA_BIND_ROW_STATS].data() + 30 * sizeof stats;
    memcpy(&stats, place, sizeof stats);
    for (const int field : {0, 1, 2, 3}) {
        FoveaRowStats wrong = stats;
        if (field == 0) wrong.max_weight *= 0.99f;
        if (field == 1) wrong.entropy += 0.001f;
        if (field == 2) wrong.argmax_key ^= 1;
        if (field == 3) ++wrong.visible_keys;
        memcpy(place, &wrong, sizeof wrong);
        EXPECT_FALSE(judged.verdict().ok) << "field " << field;
    }
}

TEST(Verdict, allows_one_unit_in_the_last_place_of_float16_and_not_three) {
    for (const int units : {1, 3}) {
        Judged judged = judged_case(FOVEA_F16);
        Bytes& o = judged.outcome.outputs[FOVEA_BIND_O];
        uint16_t half = 0;
        memcpy(&half, o.data() + 2 * o_at(judged, 1, 0, 33), 2);
        half = uint16_t(half + units);
        memcpy(o.data() + 2 * o_at(judged, 1, 0, 33), &half, 2);
        EXPECT_EQ(judged.verdict().ok, units == 1);
    }
}

// Rows of four keys, whose floor is all that the plain loops' luck leaves: what the roundings of a product
// come to, and not one part in a hundred more. The largest sum of |q_n k_n| of the row says it, not |q| |k|.
TEST(Verdict, allows_the_roundings_of_a_score_of_few_keys_and_no_more) {
    for (const FoveaPrecision precision :
         {FOVEA_PRECISION_F32, FOVEA_PRECISION_F16_INPUTS, FOVEA_PRECISION_BF16_INPUTS}) {
        Case c = plain_case(72, 1, 1, 1, 5, 4, 64, 8);
        c.desc.outputs = FOVEA_OUTPUT_SCORES;
        c.desc.precision = precision;
        settle(c);
        Judged judged{std::move(*prepare(c)), {}};
        const Oracle& oracle = judged.prepared.oracle;
        for (const double part : {0.99, 1.01}) {
            judged.outcome.outputs = oracle.exact;
            const int64_t row = 3;
            double magnitude = 0, plain_error = 0;
            for (int64_t j = 0; j < 4; ++j) {
                double sum = 0;
                for (int64_t n = 0; n < 64; ++n)
                    sum += std::fabs(
                        double(read_float(judged.prepared.poisoned[FOVEA_BIND_Q], FOVEA_F32, row * 64 + n)) *
                        read_float(judged.prepared.poisoned[FOVEA_BIND_K], FOVEA_F32, j * 64 + n));
                magnitude = std::max(magnitude, sum / 8);  // the scale
                plain_error = std::max(
                    plain_error,
                    std::fabs(double(read_float(oracle.plain[FOVEA_BIND_SCORES], FOVEA_F32, row * 4 + j)) -
                              at(judged, FOVEA_BIND_SCORES, row * 4 + j)));
            }
            double floor = 0x1p-24 * (8 + 2 * std::log(5.0) + 0.75 * 8 * magnitude);
            if (precision == FOVEA_PRECISION_F16_INPUTS) floor += 0x1p-11 * (2 + 0x1p-11) * magnitude;
            if (precision == FOVEA_PRECISION_BF16_INPUTS) floor += 0x1p-8 * (2 + 0x1p-8) * magnitude;
            change(judged, FOVEA_BIND_SCORES, row * 4 + 2,
                   float(at(judged, FOVEA_BIND_SCORES, row * 4 + 2) + part * (2 * plain_error + floor)));
            EXPECT_EQ(judged.verdict().ok, part < 1) << precision << ", " << part;
        }
    }
}

}  // namespace
}  // namespace fovea::test
