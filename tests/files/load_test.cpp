#include "scratch.hpp"

namespace fovea {
namespace {

using namespace test;

TEST(LoadTensors, ByExtension) {
    const Scratch scratch;
    TensorSet set;
    set.tensors.push_back(make_tensor("q", {2, 2}, {1, 2, 3, 4}).value());
    ASSERT_TRUE(save_safetensors(scratch / "a.safetensors", set));
    ASSERT_TRUE(save_npz(scratch / "a.npz", set));
    ASSERT_TRUE(save_npy(scratch / "q.npy", set.tensors[0]));
    ASSERT_TRUE(save_csv(scratch / "q.csv", set.tensors[0]));
    ASSERT_TRUE(save_png(scratch / "q.PNG", tensor_of<uint8_t>("q", FOVEA_U8, {2, 2}, {1, 2, 3, 4})));
    for (const std::string_view name : {"a.safetensors", "a.npz", "q.npy", "q.csv", "q.PNG"}) {
        const auto loaded = load_tensors(scratch / name);
        ASSERT_TRUE(loaded) << loaded.error().text;
        ASSERT_EQ(loaded->tensors.size(), 1u) << name;
        ASSERT_NE(loaded->find("q"), nullptr) << name;
        EXPECT_EQ(to_f32(*loaded->find("q")).value(), (std::vector<float>{1, 2, 3, 4})) << name;
    }
}

TEST(LoadTensors, ByContentWithoutAKnownExtension) {
    const Scratch scratch;
    TensorSet set;
    set.tensors.push_back(make_tensor("q", {1}, {5}).value());
    ASSERT_TRUE(save_safetensors(scratch / "one", set));
    ASSERT_TRUE(save_npz(scratch / "two.zip", set));
    ASSERT_TRUE(save_npy(scratch / "q.bin", set.tensors[0]));
    ASSERT_TRUE(save_png(scratch / "q", tensor_of<uint8_t>("q", FOVEA_U8, {1, 1}, {5})));
    for (const std::string_view name : {"one", "two.zip", "q.bin", "q"}) {
        const auto loaded = load_tensors(scratch / name);
        ASSERT_TRUE(loaded) << loaded.error().text;
        EXPECT_EQ(to_f32(*loaded->find("q")).value(), std::vector<float>{5}) << name;
    }
}

TEST(LoadTensors, SaysWhatItCannotTell) {
    const Scratch scratch;
    write_file(scratch / "notes.txt", "hello, this is text");
    const auto loaded = load_tensors(scratch / "notes.txt");
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, FOVEA_UNSUPPORTED);
    EXPECT_NE(loaded.error().text.find("notes.txt: this is not a safetensors, npy, npz, csv or png file"),
              std::string::npos);
    EXPECT_EQ(load_tensors(scratch / "none.npy").error().code, FOVEA_IO_ERROR);
}

}  // namespace
}  // namespace fovea
