#include <cmath>
#include <limits>

#include "scratch.hpp"

namespace fovea {
namespace {

using namespace test;

TEST(TensorValue, ConvertsEveryTypeToFloat) {
    const TensorSet set = every_type();
    const auto f32 = [&](std::string_view name) { return to_f32(*set.find(name)).value(); };
    EXPECT_EQ(f32("bool"), (std::vector<float>{0, 1, 1}));
    EXPECT_EQ(f32("u8"), (std::vector<float>{0, 1, 0, 255, 7, 100}));
    EXPECT_EQ(f32("i8"), (std::vector<float>{0, 1, -128, 127, 7, 100}));
    EXPECT_EQ(f32("i16"), (std::vector<float>{0, 1, -32768, 32767, 7, 100}));
    EXPECT_EQ(f32("u16"), (std::vector<float>{0, 1, 0, 65535, 7, 100}));
    EXPECT_EQ(f32("i32"), (std::vector<float>{0, 1, -0x1p31f, 0x1p31f, 7, 100}));
    EXPECT_EQ(f32("u32"), (std::vector<float>{0, 1, 0, 0x1p32f, 7, 100}));
    EXPECT_EQ(f32("i64"), (std::vector<float>{0, 1, -0x1p63f, 0x1p63f, 7, 100}));
    EXPECT_EQ(f32("u64"), (std::vector<float>{0, 1, 0, 0x1p64f, 7, 100}));
    EXPECT_EQ(f32("scalar"), std::vector<float>{2.5f});
    EXPECT_TRUE(f32("empty").empty());
    const auto half = f32("f16"), bfloat = f32("bf16");
    EXPECT_EQ(half[0], 1.0f);
    EXPECT_EQ(half[1], -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(half[2]));
    EXPECT_EQ(half[3], 0x1p-24f);
    EXPECT_EQ(bfloat[0], 1.0f);
    EXPECT_EQ(bfloat[3], 0x1p-133f);
}

TEST(TensorValue, RefusesBytesThatAreNotTheShape) {
    const std::vector<float> values(6);
    const auto wrong = make_tensor("q", {2, 4}, values);
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().field, "bytes");
    EXPECT_EQ(wrong.error().text, "tensor 'q': 24 bytes given, shape [2, 4] of f32 needs 32");
    EXPECT_EQ(make_tensor("q", std::vector<uint64_t>(9, 1), values).error().text,
              "tensor 'q': shape has 9 dimensions, the limit is 8");
    EXPECT_EQ(make_tensor("q", {uint64_t{1} << 40, uint64_t{1} << 40}, values).error().text,
              "tensor 'q': shape [1099511627776, 1099511627776] of f32 needs more than 2^64 - 1 bytes");
    Tensor cut = make_tensor("q", {6}, values).value();
    cut.bytes = cut.bytes.first(23);
    EXPECT_EQ(to_f32(cut).error().field, "bytes");
}

TEST(TensorValue, ACopySharesTheDataAndKeepsItAlive) {
    Tensor copy;
    {
        const Tensor original = make_tensor("q", {2}, {1.0f, 2.0f}).value();
        copy = original;
        EXPECT_EQ(copy.bytes.data(), original.bytes.data());
    }
    EXPECT_EQ(to_f32(copy).value(), (std::vector<float>{1, 2}));
}

TEST(PrintableName, EscapesWhatATerminalWouldObey) {
    EXPECT_EQ(printable_name("h.0.attn"), "h.0.attn");
    EXPECT_EQ(printable_name("caf\xc3\xa9 \xf0\x9f\x98\x80"), "caf\xc3\xa9 \xf0\x9f\x98\x80");
    EXPECT_EQ(printable_name("\x1b[31m\n\t\x7f"), "\\x1b[31m\\x0a\\x09\\x7f");
    EXPECT_EQ(printable_name("\xc2\x9b"
                             "2J"),
              "\\xc2\\x9b2J");  // a C1 control, valid UTF-8
    EXPECT_EQ(printable_name("a\xff\xc3"), "a\\xff\\xc3");
    EXPECT_EQ(printable_name("it's \\n"), "it\\x27s \\x5cn");
    EXPECT_EQ(printable_name(std::string_view("\0x", 2)), "\\x00x");
    EXPECT_EQ(printable_name("abcdef", 4), "abcd...");
    EXPECT_EQ(printable_name("\xc3\xa9\xc3\xa9", 3), "\xc3\xa9...");  // never half a character
}

}  // namespace
}  // namespace fovea
