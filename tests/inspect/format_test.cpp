#include <gtest/gtest.h>
#include <fovea/files.hpp>
#include <fovea/inspect/format.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

namespace fovea {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

TEST(PrintTensor, scalar) { EXPECT_EQ(print_tensor(F32Tensor(Shape{}, {1.8524f})), "tensor(1.8524)"); }

TEST(PrintTensor, whole_numbers_have_a_point_and_no_decimals) {
    EXPECT_EQ(print_tensor(F32Tensor({2, 2}, {1, 0, 1, 1})),
              "tensor([[1., 0.],\n"
              "        [1., 1.]])");
}

TEST(PrintTensor, zeros_and_infinities_do_not_widen) {
    EXPECT_EQ(print_tensor(F32Tensor({3}, {0, kMinusInfinity, kMinusInfinity})), "tensor([0., -inf, -inf])");
    EXPECT_EQ(print_tensor(F32Tensor({2, 2}, {0.2899f, kMinusInfinity, 0.4656f, 0.1723f})),
              "tensor([[0.2899,   -inf],\n"
              "        [0.4656, 0.1723]])");
}

TEST(PrintTensor, columns_are_as_wide_as_the_widest) {
    EXPECT_EQ(print_tensor(F32Tensor({2, 2}, {-0.4519f, 0.2216f, 12.5f, 0.0f})),
              "tensor([[-0.4519,  0.2216],\n"
              "        [12.5000,  0.0000]])");
}

TEST(PrintTensor, scientific_over_a_ratio_of_1000) {
    EXPECT_EQ(print_tensor(F32Tensor({3}, {0.99995506f, 4.0538438e-7f, 0.0f})),
              "tensor([9.9996e-01, 4.0538e-07, 0.0000e+00])");
}

TEST(PrintTensor, matrices_of_a_batch_are_apart_by_a_line) {
    EXPECT_EQ(print_tensor(F32Tensor({2, 1, 2}, {1, 2, 3, 4})),
              "tensor([[[1., 2.]],\n"
              "\n"
              "        [[3., 4.]]])");
    EXPECT_EQ(print_tensor(F32Tensor({2, 1, 1, 1}, {1, 2})),
              "tensor([[[[1.]]],\n"
              "\n"
              "\n"
              "        [[[2.]]]])");
}

TEST(PrintTensor, booleans) {
    EXPECT_EQ(print_tensor(F32Tensor({2, 2}, {0, 1, 0, 0}), {.as_boolean = true}),
              "tensor([[False,  True],\n"
              "        [False, False]])");
    EXPECT_EQ(print_tensor(F32Tensor({2}, {1, 1}), {.as_boolean = true}), "tensor([True, True])");
}

TEST(PrintTensor, long_rows_go_on_in_the_next_line) {
    F32Tensor row(Shape{20});
    std::fill(row.values.begin(), row.values.end(), 0.5f);
    // 80 - 7 columns, 8 for each element: 9 a line.
    EXPECT_EQ(print_tensor(row),
              "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000,\n"
              "        0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000,\n"
              "        0.5000, 0.5000])");
}

TEST(PrintTensor, large_tensors_show_their_edges) {
    F32Tensor row(Shape{1001});
    std::iota(row.values.begin(), row.values.end(), 0.0f);
    EXPECT_EQ(print_tensor(row), "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])");
    F32Tensor matrix({40, 30});
    std::fill(matrix.values.begin(), matrix.values.end(), 2.0f);
    matrix.values[20 * 30 + 15] = 0.5f;  // inside: not shown, and no say in the notation
    const std::string edge = "[2., 2., 2.,  ..., 2., 2., 2.]";
    EXPECT_EQ(print_tensor(matrix), "tensor([" + edge + ",\n        " + edge + ",\n        " + edge +
                                        ",\n        ...,\n        " + edge + ",\n        " + edge +
                                        ",\n        " + edge + "])");
}

TEST(NotationOf, each_reason_for_scientific) {
    const auto notation = [](std::vector<float> values) { return notation_of(values); };
    EXPECT_EQ(notation({}), Notation::integer);
    EXPECT_EQ(notation({0, kMinusInfinity}), Notation::integer);
    EXPECT_EQ(notation({1, 1000}), Notation::integer);
    EXPECT_EQ(notation({1, 1001}), Notation::scientific);
    EXPECT_EQ(notation({1e8f}), Notation::integer);
    EXPECT_EQ(notation({2e8f}), Notation::scientific);
    EXPECT_EQ(notation({0.5f, 1.5f}), Notation::fixed);
    EXPECT_EQ(notation({1.01e-4f}), Notation::fixed);
    EXPECT_EQ(notation({0.99e-4f}), Notation::scientific);
    EXPECT_EQ(notation({1.0000001f}), Notation::fixed);
}

TEST(ElementText, is_exactly_rounded) {
    EXPECT_EQ(element_text(2.9979496f, Notation::fixed), "2.9979");
    EXPECT_EQ(element_text(0.03125f, Notation::fixed), "0.0312");  // an exact half goes to the even digit
    EXPECT_EQ(element_text(-0.0f, Notation::fixed), "-0.0000");
    EXPECT_EQ(element_text(std::numeric_limits<float>::quiet_NaN(), Notation::fixed), "nan");
}

TEST(FormatNumber, keeps_significant_digits_only) {
    EXPECT_EQ(format_number(0.23327), "0.2333");
    EXPECT_EQ(format_number(1.5), "1.5");
    EXPECT_EQ(format_number(0.0), "0");
    EXPECT_EQ(format_number(-0.0), "0");
    EXPECT_EQ(format_number(100.0, 3), "100");
    EXPECT_EQ(format_number(3.2e-7), "3.2e-07");
    EXPECT_EQ(format_number(kMinusInfinity), "-inf");
}

TEST(FormatValue, is_fixed_where_that_can_be_read) {
    EXPECT_EQ(format_value(0.21987), "0.2199");
    EXPECT_EQ(format_value(-12.5), "-12.5000");
    EXPECT_EQ(format_value(0.01), "0.0100");
    EXPECT_EQ(format_value(0.0099), "9.900e-03");
    EXPECT_EQ(format_value(4e5), "4.000e+05");
    EXPECT_EQ(format_value(0.0), "0");
    EXPECT_EQ(format_value(kMinusInfinity), "-inf");
}

TEST(Format, fixed_counts_bytes_times_rates) {
    EXPECT_EQ(format_fixed(-0.00001, 4), "0.0000");
    EXPECT_EQ(format_fixed(-0.5, 2), "-0.50");
    EXPECT_EQ(format_count(0), "0");
    EXPECT_EQ(format_count(999), "999");
    EXPECT_EQ(format_count(1234567), "1,234,567");
    EXPECT_EQ(format_bytes(0), "0 B");
    EXPECT_EQ(format_bytes(1536), "1.5 KiB");
    EXPECT_EQ(format_bytes(uint64_t{64} << 20), "64 MiB");
    EXPECT_EQ(format_bytes(1023), "1023 B");
    EXPECT_EQ(format_seconds(0.00125), "1.25 ms");
    EXPECT_EQ(format_seconds(3.2), "3.2 s");
    EXPECT_EQ(format_seconds(85e-8), "850 ns");
    EXPECT_EQ(format_scaled(4.1e9, "FLOP/s"), "4.1 GFLOP/s");
    EXPECT_EQ(format_scaled(12, "B/s"), "12 B/s");
    EXPECT_EQ(format_shape(Shape{2, 6, 3}), "[2, 6, 3]");
    EXPECT_EQ(format_shape(Shape{}), "[]");
}

}  // namespace
}  // namespace fovea
