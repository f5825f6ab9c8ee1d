#include "scratch.hpp"

namespace fovea {
namespace {

using namespace test;

std::vector<uint8_t> pattern(size_t count) {
    std::vector<uint8_t> bytes(count);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 37 ^ i >> 5);
    return bytes;
}

TEST(Png, EveryKindSurvivesARoundTrip) {
    const Scratch scratch;
    for (const uint64_t channels : {1, 2, 3, 4}) {
        const Tensor image = tensor_of("i", FOVEA_U8, {13, 29, channels}, pattern(13 * 29 * channels));
        const auto saved = save_png(scratch / "i.png", image);
        ASSERT_TRUE(saved) << saved.error().text;
        const auto loaded = load_png(scratch / "i.png");
        ASSERT_TRUE(loaded) << loaded.error().text;
        EXPECT_EQ(loaded->name, "i");
        expect_same(image, loaded.value());
    }
    const Tensor flat = tensor_of("flat", FOVEA_U8, {3, 5}, pattern(15));
    ASSERT_TRUE(save_png(scratch / "flat.png", flat));
    const auto loaded = load_png(scratch / "flat.png");
    EXPECT_EQ(loaded->shape, (std::vector<uint64_t>{3, 5, 1}));
    EXPECT_EQ(values_of<uint8_t>(loaded.value()), pattern(15));
}

TEST(Png, ReadsEveryFilterAndInterlacing) {
    const auto corpus = std::filesystem::path(FOVEA_CORPUS) / "png";
    // Two samples 9 7 in each row, under the filters none, sub, up, average, Paeth (PNG specification, 9.2).
    EXPECT_EQ(values_of<uint8_t>(load_png(corpus / "valid_filters.png").value()),
              (std::vector<uint8_t>{9, 7, 9, 16, 18, 23, 18, 27, 27, 34}));
    EXPECT_EQ(values_of<uint8_t>(load_png(corpus / "valid_interlaced.png").value()),
              (std::vector<uint8_t>{1, 2, 3, 4}));
    // A gamma chunk of 1.0 must not change a sample.
    EXPECT_EQ(values_of<uint8_t>(load_png(corpus / "valid_ancillary.png").value()),
              (std::vector<uint8_t>{0, 1, 2, 3}));
}

TEST(Png, LimitOfPixels) {
    const Scratch scratch;
    ASSERT_TRUE(save_png(scratch / "i.png", tensor_of("i", FOVEA_U8, {10, 10}, pattern(100))));
    EXPECT_TRUE(load_png(scratch / "i.png", {100}));
    const auto refused = load_png(scratch / "i.png", {99});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, FOVEA_LIMIT_EXCEEDED);
}

TEST(Png, WriterRefusesWhatIsNoImage) {
    const Scratch scratch;
    const auto refusal = [&](const Tensor& tensor) {
        const auto result = save_png(scratch / "i.png", tensor);
        EXPECT_FALSE(result);
        EXPECT_EQ(scratch.file_count(), 0u);
        return result ? std::string() : result.error().text;
    };
    EXPECT_NE(refusal(make_tensor("x", {2, 2}, {1, 2, 3, 4}).value())
                  .find("tensor 'x' is [2, 2] of f32; an image must be u8 [height, width]"),
              std::string::npos);
    EXPECT_NE(refusal(tensor_of("x", FOVEA_U8, {2, 2, 5}, pattern(20))).find("an image must be u8"),
              std::string::npos);
    EXPECT_NE(refusal(tensor_of("x", FOVEA_U8, {4}, pattern(4))).find("an image must be u8"),
              std::string::npos);
    EXPECT_NE(refusal(Tensor{"x", FOVEA_U8, {0, 4}, {}, {}}).find("image of 4 x 0 pixels"),
              std::string::npos);
}

}  // namespace
}  // namespace fovea
