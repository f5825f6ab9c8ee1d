#include <sys/stat.h>

#include <cstdint>

#include "scratch.hpp"

namespace fovea {
namespace {

using namespace test;

std::string safetensors(std::string_view header, size_t data_bytes = 0) {
    std::string file;
    for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
    return file.append(header).append(data_bytes, '\0');
}

TEST(Safetensors, EveryTypeSurvivesARoundTrip) {
    const Scratch scratch;
    TensorSet set = every_type();
    set.metadata = {{"format", "pt"}, {"text", "quote \" slash \\ line\n \x01 caf\xc3\xa9"}, {"", ""}};
    const auto size_bytes = save_safetensors(scratch / "all.safetensors", set);
    ASSERT_TRUE(size_bytes) << size_bytes.error().text;
    EXPECT_EQ(size_bytes.value(), std::filesystem::file_size(scratch / "all.safetensors"));
    EXPECT_EQ(scratch.file_count(), 1u);
    const auto loaded = load_safetensors(scratch / "all.safetensors");
    ASSERT_TRUE(loaded) << loaded.error().text;
    ASSERT_EQ(loaded->tensors.size(), set.tensors.size());
    for (const Tensor& tensor : set.tensors) {
        const Tensor* twin = loaded->find(tensor.name);
        ASSERT_NE(twin, nullptr) << tensor.name;
        expect_same(tensor, *twin);
    }
    EXPECT_EQ(loaded->metadata, set.metadata);
    EXPECT_EQ(*loaded->find_metadata("format"), "pt");
    EXPECT_EQ(loaded->find_metadata("none"), nullptr);
    EXPECT_EQ(loaded->find("none"), nullptr);
}

TEST(Safetensors, TensorsAreAlignedViewsOfTheMapping) {
    const Scratch scratch;
    ASSERT_TRUE(save_safetensors(scratch / "all.safetensors", every_type()));
    auto loaded = load_safetensors(scratch / "all.safetensors");
    ASSERT_TRUE(loaded);
    const auto* first = loaded->tensors[0].bytes.data();
    for (const Tensor& tensor : loaded->tensors) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.bytes.data()) % dtype_bytes(tensor.type), 0u)
            << tensor.name;
        EXPECT_LT(tensor.bytes.data() - first, 4096) << "one mapping, no copies";
        EXPECT_EQ(tensor.owner, loaded->tensors[0].owner);
    }
    // The mapping lives as long as any tensor does, and as the file's name does not.
    const Tensor kept = *loaded->find("f64");
    loaded = TensorSet{};
    std::filesystem::remove(scratch / "all.safetensors");
    EXPECT_EQ(values_of<double>(kept)[4], 7.0);
}

TEST(Safetensors, EmptySetAndLargeTensor) {
    const Scratch scratch;
    ASSERT_TRUE(save_safetensors(scratch / "none.safetensors", {}));
    EXPECT_TRUE(load_safetensors(scratch / "none.safetensors")->tensors.empty());
    std::vector<float> values(1 << 20);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    TensorSet set;
    set.tensors.push_back(make_tensor("big", {1024, 1024}, values).value());
    ASSERT_TRUE(save_safetensors(scratch / "big.safetensors", set));
    EXPECT_EQ(to_f32(*load_safetensors(scratch / "big.safetensors")->find("big")).value(), values);
}

TEST(Safetensors, WriterRefusesWhatTheReaderWould) {
    const Scratch scratch;
    const Tensor good = make_tensor("a", {1}, {1.0f}).value();
    const auto refusal = [&](TensorSet set) {
        const auto result = save_safetensors(scratch / "out.safetensors", set);
        EXPECT_FALSE(result);
        EXPECT_EQ(scratch.file_count(), 0u);
        return result ? std::string() : result.error().text;
    };
    const auto ends_with = [](const std::string& text, std::string_view end) { return text.ends_with(end); };
    const auto named = [&](std::string name) {
        Tensor tensor = good;
        tensor.name = std::move(name);
        return tensor;
    };
    EXPECT_PRED2(ends_with, refusal({{good, good}, {}}), "two tensors are named 'a'");
    EXPECT_PRED2(ends_with, refusal({{named("__metadata__")}, {}}), "a tensor cannot be named __metadata__");
    EXPECT_PRED2(ends_with, refusal({{named("\xff")}, {}}), "tensor name '\\xff' is not valid UTF-8");
    EXPECT_PRED2(ends_with, refusal({{good}, {{"k", "1"}, {"k", "2"}}}), "metadata has 'k' twice");
    EXPECT_PRED2(ends_with, refusal({{good}, {{"k", "\xc3"}}}), "metadata value '\\xc3' is not valid UTF-8");
    EXPECT_PRED2(ends_with, refusal({{good}, {{"k", std::string(1'000'000, 'x')}}}),
                 "metadata of 1000008 bytes, the limit is 1000000");
    Tensor cut = good;
    cut.shape = {2};
    EXPECT_PRED2(ends_with, refusal({{cut}, {}}), "tensor 'a': 4 bytes given, shape [2] of f32 needs 8");
}

TEST(Safetensors, AFailedWriteLeavesTheOldFileAndNothingElse) {
    const Scratch scratch;
    TensorSet set;
    set.tensors.push_back(make_tensor("a", {1}, {1.0f}).value());
    ASSERT_TRUE(save_safetensors(scratch / "out.safetensors", set));
    const std::string before = read_file(scratch / "out.safetensors");
    TensorSet twins = set;
    twins.tensors.push_back(set.tensors[0]);
    EXPECT_FALSE(save_safetensors(scratch / "out.safetensors", twins));
    EXPECT_EQ(read_file(scratch / "out.safetensors"), before);
    EXPECT_EQ(scratch.file_count(), 1u);
    // A write over the old file replaces it whole.
    set.tensors[0] = make_tensor("b", {1}, {2.0f}).value();
    ASSERT_TRUE(save_safetensors(scratch / "out.safetensors", set));
    EXPECT_NE(load_safetensors(scratch / "out.safetensors")->find("b"), nullptr);
    EXPECT_EQ(scratch.file_count(), 1u);
}

TEST(Safetensors, WriterNamesTheFileItCannotWrite) {
    const Scratch scratch;
    const auto missing = save_safetensors(scratch / "no/such/out.safetensors", {});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, FOVEA_IO_ERROR);
    EXPECT_NE(missing.error().text.find("out.safetensors: No such file"), std::string::npos)
        << missing.error().text;
    const auto folder = save_safetensors(scratch.folder(), {});
    ASSERT_FALSE(folder);
    EXPECT_NE(folder.error().text.find("exists and is not a regular file"), std::string::npos);
#if defined(__unix__)
    // As root, renaming over a device would replace the device.
    const auto device = save_safetensors("/dev/null", {});
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().text, "/dev/null: this exists and is not a regular file; give another name");
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
    ASSERT_TRUE(save_safetensors(scratch / "target.safetensors", {}));
    std::filesystem::create_symlink("target.safetensors", scratch / "link.safetensors");
    ASSERT_TRUE(save_safetensors(scratch / "link.safetensors", {}));
    EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link.safetensors"));
    EXPECT_EQ(scratch.file_count(), 2u);
    // A pipe must neither block nor be read.
    ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
    EXPECT_NE(load_safetensors(scratch / "pipe").error().text.find("not a regular file"), std::string::npos);
    // A full disk.
    if (std::filesystem::exists("/dev/full")) {
        EXPECT_FALSE(save_safetensors("/dev/full", {}));
    }
#endif
}

TEST(Safetensors, ReaderNamesTheFileItCannotRead) {
    const Scratch scratch;
    const auto missing = load_safetensors(scratch / "none.safetensors");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, FOVEA_IO_ERROR);
    EXPECT_NE(missing.error().text.find("none.safetensors: No such file"), std::string::npos);
    EXPECT_NE(load_safetensors(scratch.folder()).error().text.find("this is a folder; give a file"),
              std::string::npos);
}

TEST(Safetensors, LimitsOfCount) {
    std::string header = "{";
    for (int i = 0; i <= 1'000'000; ++i) {
        if (i != 0) header += ',';
        header += '"';
        header += std::to_string(i);
        header += "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    }
    const auto too_many = parse_safetensors(as_bytes(safetensors(header + "}")));
    ASSERT_FALSE(too_many);
    EXPECT_NE(too_many.error().text.find("more tensors than the limit, 1000000"), std::string::npos);
    header.resize(header.rfind(",\"1000000\""));
    const auto most = parse_safetensors(as_bytes(safetensors(header + "}")));
    ASSERT_TRUE(most) << most.error().text;
    EXPECT_EQ(most->tensors.size(), 1'000'000u);
}

TEST(Safetensors, EmptyTensorsMayStandBeforeAndBehindTheirNeighbours) {
    // They have the same offsets as their neighbor; neither the order in the header nor that of a sort may
    // matter.
    std::string header = "{\"full\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}";
    for (int i = 0; i < 40; ++i) {
        const std::string at = i % 2 ? "[0,0]" : "[4,4]";
        header += ",\"empty" + std::to_string(i) +
                  "\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":" + at + "}";
    }
    header += ",\"last\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]}}";
    const auto set = parse_safetensors(as_bytes(safetensors(header, 6)));
    ASSERT_TRUE(set) << set.error().text;
    EXPECT_EQ(set->tensors.size(), 42u);
    for (const size_t data_bytes : {5u, 7u})
        EXPECT_FALSE(parse_safetensors(as_bytes(safetensors(header, data_bytes))));
}

TEST(Safetensors, DimensionsReachTheirLimit) {
    const auto with_dimension = [](const char* dimension) {
        return safetensors("{\"t\":{\"dtype\":\"F32\",\"shape\":[0," + std::string(dimension) +
                           "],\"data_offsets\":[0,0]}}");
    };
    const auto most = parse_safetensors(as_bytes(with_dimension("281474976710656")));  // 2^48
    ASSERT_TRUE(most) << most.error().text;
    const auto above = parse_safetensors(as_bytes(with_dimension("281474976710657")));
    ASSERT_FALSE(above);
    EXPECT_NE(above.error().text.find("dimension 1 of shape"), std::string::npos) << above.error().text;
}

TEST(Safetensors, ATensorHasTheBytesOfItsShapeNeitherMoreNorLess) {
    for (const size_t bytes : {4u, 7u, 8u, 9u, 12u}) {
        const std::string header =
            "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0," + std::to_string(bytes) + "]}}";
        const auto set = parse_safetensors(as_bytes(safetensors(header, bytes)));
        EXPECT_EQ(set.has_value(), bytes == 8) << bytes;
        if (!set) {
            EXPECT_EQ(set.error().field, "data_offsets") << set.error().text;
        }
    }
    // One byte more than the file holds, named as such.
    const auto past = parse_safetensors(
        as_bytes(safetensors("{\"t\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[0,9]}}", 8)));
    ASSERT_FALSE(past);
    EXPECT_EQ(past.error().field, "data_offsets") << past.error().text;
}

TEST(Safetensors, LimitOfMetadata) {
    const auto with_metadata = [](size_t size_bytes) {
        return safetensors("{\"__metadata__\":{\"k\":\"" + std::string(size_bytes - 8, 'x') + "\"}}");
    };
    EXPECT_TRUE(parse_safetensors(as_bytes(with_metadata(1'000'000))));
    const auto above = parse_safetensors(as_bytes(with_metadata(1'000'002)));
    ASSERT_FALSE(above);
    EXPECT_EQ(above.error().text, "byte 24: header: __metadata__ is longer than the limit, 1000000 bytes");
}

TEST(Safetensors, ALongNameAmongManyCostsNoMoreThanItsLength) {
    // A sort that walks through a long name at each comparison would take minutes here.
    std::string header =
        "{\"n5" + std::string(20'000'000, 'x') + "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    for (int i = 0; i < 200'000; ++i)
        header += ",\"n" + std::to_string(i) + "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    EXPECT_TRUE(parse_safetensors(as_bytes(safetensors(header + "}"))));
    header += ",\"n77\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}";
    const auto twice = parse_safetensors(as_bytes(safetensors(header + "}")));
    ASSERT_FALSE(twice);
    EXPECT_NE(twice.error().text.find("tensor 'n77'"), std::string::npos) << twice.error().text;
}

}  // namespace
}  // namespace fovea
