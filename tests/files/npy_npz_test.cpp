#include "scratch.hpp"

namespace fovea {
namespace {

using namespace test;

std::string npy(std::string_view dictionary, std::string_view data) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(dictionary.size() & 0xff);
    file += static_cast<char>(dictionary.size() >> 8);
    return file.append(dictionary).append(data);
}

TensorSet every_npy_type() {
    TensorSet set = every_type();
    std::erase_if(set.tensors, [](const Tensor& tensor) { return tensor.type == FOVEA_BF16; });
    return set;
}

TEST(Npy, EveryTypeSurvivesARoundTrip) {
    const Scratch scratch;
    for (const Tensor& tensor : every_npy_type().tensors) {
        const auto path = scratch / (tensor.name + ".npy");
        const auto saved = save_npy(path, tensor);
        ASSERT_TRUE(saved) << saved.error().text;
        EXPECT_EQ((saved.value() - tensor.bytes.size()) % 64, 0u) << "numpy aligns the data to 64 bytes";
        const auto loaded = load_npy(path);
        ASSERT_TRUE(loaded) << loaded.error().text;
        EXPECT_EQ(loaded->name, tensor.name);
        expect_same(tensor, loaded.value());
    }
}

TEST(Npy, WritesTheBytesThatNumpyWrites) {
    const Scratch scratch;
    ASSERT_TRUE(save_npy(scratch / "a.npy", make_tensor("a", {2, 3}, {0, 1, 2, 3, 4, 5}).value()));
    // numpy 1.24: np.save("a.npy", np.arange(6, dtype="<f4").reshape(2, 3))
    std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    dictionary.append(117 - dictionary.size(), ' ').append("\n");
    const float values[] = {0, 1, 2, 3, 4, 5};
    EXPECT_EQ(read_file(scratch / "a.npy"),
              npy(dictionary, {reinterpret_cast<const char*>(values), sizeof(values)}));
}

TEST(Npy, FortranOrderComesOutInCOrder) {
    // Column by column: element [i][j][k] of shape (2, 3, 2) is 100 i + 10 j + k.
    std::string data;
    for (int k = 0; k < 2; ++k)
        for (int j = 0; j < 3; ++j)
            for (int i = 0; i < 2; ++i) data += static_cast<char>(100 * i + 10 * j + k);
    const std::string file = npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }", data);
    const auto tensor = parse_npy(as_bytes(file));
    ASSERT_TRUE(tensor) << tensor.error().text;
    std::vector<uint8_t> expected;
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j)
            for (int k = 0; k < 2; ++k) expected.push_back(static_cast<uint8_t>(100 * i + 10 * j + k));
    EXPECT_EQ(values_of<uint8_t>(tensor.value()), expected);
}

TEST(Npy, BigEndianIsTurnedAround) {
    const std::string ints = npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }",
                                 std::string_view("\x01\x02\xff\xfe", 4));
    EXPECT_EQ(values_of<int16_t>(parse_npy(as_bytes(ints)).value()), (std::vector<int16_t>{0x0102, -2}));
    const std::string halves = npy("{'descr': '>f2', 'fortran_order': True, 'shape': (1, 2), }",
                                   std::string_view("\x3c\x00\xc0\x00", 4));
    EXPECT_EQ(to_f32(parse_npy(as_bytes(halves)).value()).value(), (std::vector<float>{1, -2}));
    const std::string doubles = npy("{'shape': (), 'fortran_order': False, 'descr': \">f8\"}",
                                    std::string_view("\x3f\xf8\0\0\0\0\0\0", 8));
    EXPECT_EQ(values_of<double>(parse_npy(as_bytes(doubles)).value()), std::vector<double>{1.5});
}

TEST(Npy, CopiesOnlyWhenItMust) {
    const std::string plain = npy("{'descr': '<i2', 'fortran_order': True, 'shape': (2,), }", "abcd");
    const auto tensor = parse_npy(as_bytes(plain));
    ASSERT_TRUE(tensor);
    EXPECT_EQ(reinterpret_cast<const char*>(tensor->bytes.data()), plain.data() + plain.size() - 4);
}

TEST(Npy, RefusesToWriteBf16) {
    const Scratch scratch;
    const auto result = save_npy(scratch / "a.npy", *every_type().find("bf16"));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, FOVEA_UNSUPPORTED);
    EXPECT_NE(result.error().text.find("tensor 'bf16': npy has no bf16; save it as safetensors"),
              std::string::npos);
    EXPECT_EQ(scratch.file_count(), 0u);
}

class NpzRoundTrip : public testing::TestWithParam<NpzOptions> {};

TEST_P(NpzRoundTrip, KeepsEveryType) {
    const Scratch scratch;
    TensorSet set = every_npy_type();
    set.tensors.push_back(make_tensor("caf\xc3\xa9/h.0.attn", {3}, {1, 2, 3}).value());
    set.tensors.push_back(make_tensor("zeros", {500, 500}, std::vector<float>(250'000)).value());
    const auto saved = save_npz(scratch / "all.npz", set, GetParam());
    ASSERT_TRUE(saved) << saved.error().text;
    EXPECT_EQ(saved.value() < 20'000u, GetParam().compress);
    const auto loaded = load_npz(scratch / "all.npz");
    ASSERT_TRUE(loaded) << loaded.error().text;
    ASSERT_EQ(loaded->tensors.size(), set.tensors.size());
    for (size_t i = 0; i < set.tensors.size(); ++i) {
        EXPECT_EQ(loaded->tensors[i].name, set.tensors[i].name);
        expect_same(set.tensors[i], loaded->tensors[i]);
    }
    EXPECT_EQ(scratch.file_count(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Options, NpzRoundTrip,
                         testing::Values(NpzOptions{true, false}, NpzOptions{false, false},
                                         NpzOptions{true, true}, NpzOptions{false, true}));

TEST(Npz, TheLimitCountsAllEntriesTogether) {
    const Scratch scratch;
    TensorSet set;
    set.tensors.push_back(make_tensor("a", {1000}, std::vector<float>(1000)).value());
    set.tensors.push_back(make_tensor("b", {1000}, std::vector<float>(1000)).value());
    ASSERT_TRUE(save_npz(scratch / "a.npz", set));
    EXPECT_TRUE(load_npz(scratch / "a.npz", {8256}));
    const auto refused = load_npz(scratch / "a.npz", {8255});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, FOVEA_LIMIT_EXCEEDED);
    EXPECT_NE(refused.error().text.find(
                  "entry 'b.npy': 4128 bytes after 4128 exceed the limit for one archive, 8255"),
              std::string::npos)
        << refused.error().text;
}

TEST(Npz, MoreEntriesThanTheShortCounterHolds) {
    const Scratch scratch;
    TensorSet set;
    for (int i = 0; i < 66'000; ++i) set.tensors.push_back(Tensor{std::to_string(i), FOVEA_U8, {0}, {}, {}});
    ASSERT_TRUE(save_npz(scratch / "many.npz", set, {false, false}));
    const auto loaded = load_npz(scratch / "many.npz");
    ASSERT_TRUE(loaded) << loaded.error().text;
    EXPECT_EQ(loaded->tensors.size(), 66'000u);
    EXPECT_EQ(loaded->tensors.back().name, "65999");
}

TEST(Npz, WriterRefusesTwinsAndBf16) {
    const Scratch scratch;
    const Tensor a = make_tensor("a", {1}, {1.0f}).value();
    EXPECT_NE(save_npz(scratch / "a.npz", {{a, a}, {}}).error().text.find("two tensors are named 'a'"),
              std::string::npos);
    EXPECT_FALSE(save_npz(scratch / "a.npz", every_type()));
    EXPECT_EQ(scratch.file_count(), 0u);
}

}  // namespace
}  // namespace fovea
