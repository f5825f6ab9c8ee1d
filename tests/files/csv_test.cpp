#include <cmath>
#include <limits>
#include <random>

#include "scratch.hpp"

namespace fovea {
namespace {

using namespace test;

std::vector<double> parsed(std::string_view text) {
    const auto table = parse_csv(as_bytes(text));
    EXPECT_TRUE(table) << table.error().text;
    return table ? values_of<double>(table->values) : std::vector<double>();
}

TEST(Csv, ReadsNumbersAsTheyAreWritten) {
    EXPECT_EQ(parsed("1,2\n3,4\n"), (std::vector<double>{1, 2, 3, 4}));
    EXPECT_EQ(parsed("1.5, -2e-3 ,\t+7\r\n\"0.25\",.5,5.\r\n"),
              (std::vector<double>{1.5, -2e-3, 7, 0.25, 0.5, 5}));
    EXPECT_EQ(parsed("INF,-Infinity"), (std::vector<double>{INFINITY, -INFINITY}));
    EXPECT_TRUE(std::isnan(parsed("NaN")[0]));
    EXPECT_TRUE(std::signbit(parsed("-0")[0]));
    EXPECT_EQ(parsed("5e-324,1.7976931348623157e308,0.1"),
              (std::vector<double>{5e-324, 1.7976931348623157e308, 0.1}));
    // Halfway between two doubles except for one much later digit: still correctly rounded.
    EXPECT_EQ(parsed("9007199254740993.00000000000000000000000001"), std::vector<double>{9007199254740994.0});
}

TEST(Csv, TheFirstLineIsAHeaderWhenNoFieldIsANumber) {
    const std::string text = "\xef\xbb\xbfq,\"a \"\"b\"\", c\"\n1,2\n3,4\n5,6";
    const auto table = parse_csv(as_bytes(text));
    ASSERT_TRUE(table) << table.error().text;
    EXPECT_EQ(table->columns, (std::vector<std::string>{"q", "a \"b\", c"}));
    EXPECT_EQ(table->values.shape, (std::vector<uint64_t>{3, 2}));
    EXPECT_EQ(values_of<double>(table->values), (std::vector<double>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(parse_csv(as_bytes("a,b\n"))->values.shape, (std::vector<uint64_t>{0, 2}));
}

TEST(Csv, FloatsAndDoublesSurviveARoundTrip) {
    const Scratch scratch;
    std::mt19937_64 random(42);
    std::vector<float> floats;
    std::vector<double> doubles;
    while (floats.size() < 2000) {
        const auto bits = random();
        const float f = std::bit_cast<float>(static_cast<uint32_t>(bits));
        const double d = std::bit_cast<double>(bits);
        floats.push_back(std::isnan(f) ? 0.0f : f);
        doubles.push_back(std::isnan(d) ? 0.0 : d);
    }
    const Tensor f32 = make_tensor("f", {500, 4}, floats).value();
    ASSERT_TRUE(save_csv(scratch / "f.csv", f32));
    EXPECT_EQ(to_f32(load_csv(scratch / "f.csv")->values).value(), floats);
    const Tensor f64 = tensor_of("d", FOVEA_F64, {2000}, doubles);
    ASSERT_TRUE(save_csv(scratch / "d.csv", f64));
    const auto table = load_csv(scratch / "d.csv");
    ASSERT_TRUE(table) << table.error().text;
    EXPECT_EQ(table->values.shape, (std::vector<uint64_t>{2000, 1}));
    EXPECT_EQ(table->values.name, "d");
    EXPECT_EQ(values_of<double>(table->values), doubles);
}

TEST(Csv, WritesPlainText) {
    const Scratch scratch;
    const std::vector<std::string> columns = {"a \"b\"", "c"};
    ASSERT_TRUE(
        save_csv(scratch / "a.csv", make_tensor("a", {2, 2}, {0.1f, -2, INFINITY, NAN}).value(), columns));
    EXPECT_EQ(read_file(scratch / "a.csv"), "\"a \"\"b\"\"\",\"c\"\n0.1,-2\ninf,nan\n");
    EXPECT_EQ(load_csv(scratch / "a.csv")->columns, columns);
    const int64_t most = std::numeric_limits<int64_t>::max();
    ASSERT_TRUE(save_csv(scratch / "i.csv", tensor_of<int64_t>("i", FOVEA_I64, {1, 2}, {-most - 1, most})));
    EXPECT_EQ(read_file(scratch / "i.csv"), "-9223372036854775808,9223372036854775807\n");
    ASSERT_TRUE(save_csv(scratch / "s.csv", make_tensor("s", {}, {3.5f}).value()));
    EXPECT_EQ(read_file(scratch / "s.csv"), "3.5\n");
}

TEST(Csv, RowsHaveNames) {
    const Scratch scratch;
    const Tensor values = make_tensor("a", {2, 2}, {1, -2, 3, 4}).value();
    const std::vector<std::string> columns = {"0 a", "1 b, c"}, rows = {"0 \"x\"", "1 y"};
    ASSERT_TRUE(save_csv(scratch / "a.csv", values, columns, rows));
    EXPECT_EQ(read_file(scratch / "a.csv"), "\"\",\"0 a\",\"1 b, c\"\n\"0 \"\"x\"\"\",1,-2\n\"1 y\",3,4\n");
    const auto table = load_csv(scratch / "a.csv");
    ASSERT_TRUE(table) << table.error().text;
    EXPECT_EQ(table->columns, columns);
    EXPECT_EQ(table->rows, rows);
    EXPECT_EQ(table->values.shape, (std::vector<uint64_t>{2, 2}));
    EXPECT_EQ(values_of<double>(table->values), (std::vector<double>{1, -2, 3, 4}));
    for (const char* bad : {"\"\",\"a\"\nx,1\n2,3\n", "\"\",\"a\"\n1,2\nx,3\n", "x,1\ny,2\n", "a\nx\n"}) {
        const std::string text = bad;
        EXPECT_FALSE(parse_csv(std::as_bytes(std::span(text)))) << text;
    }
    EXPECT_FALSE(save_csv(scratch / "b.csv", values, {}, rows));
    EXPECT_FALSE(save_csv(scratch / "b.csv", values, columns, std::vector<std::string>{"one"}));
    EXPECT_FALSE(save_csv(scratch / "b.csv", values, columns, std::vector<std::string>{"x", "7"}));
}

TEST(Csv, WriterRefusesWhatAReaderCouldNotTell) {
    const Scratch scratch;
    const auto refusal = [&](const Tensor& tensor, std::vector<std::string> columns = {}) {
        const auto result = save_csv(scratch / "a.csv", tensor, columns);
        EXPECT_FALSE(result);
        EXPECT_EQ(scratch.file_count(), 0u);
        return result ? std::string() : result.error().text;
    };
    const Tensor row = make_tensor("a", {1, 2}, {1, 2}).value();
    EXPECT_NE(refusal(make_tensor("a", {1, 1, 2}, {1, 2}).value()).find("at most two dimensions"),
              std::string::npos);
    EXPECT_NE(refusal(make_tensor("a", {0, 2}, {}).value()).find("an empty tensor"), std::string::npos);
    EXPECT_NE(refusal(row, {"one"}).find("1 column names for 2 columns"), std::string::npos);
    EXPECT_NE(refusal(row, {"a", "2.5"}).find("column name '2.5' is a number"), std::string::npos);
}

}  // namespace
}  // namespace fovea
