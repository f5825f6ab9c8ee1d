// GGUF files and stored weights: values, types, shapes. What is rejected, and how: malformed_test.cpp.
#include <fovea/files/checkpoint.hpp>

#include <algorithm>
#include <cstring>

#include "problem/compressed.hpp"
#include "scratch.hpp"

namespace fovea {
namespace {

using namespace test;

FoveaDtype type_of(std::string_view name) {
    for (const DtypeInfo& row : kDtypes)
        if (row.name == name && has_use(row.type, kUseFile)) return row.type;
    return FOVEA_DTYPE_OTHER;
}

// data/quantised.safetensors holds blocks with the values that ggml itself gave for them, see
// scripts/make_quantised.py.
TEST(StoredWeights, every_quantised_type_has_ggmls_bits) {
    const Result<TensorSet> set =
        load_safetensors(std::filesystem::path(FOVEA_DATA) / "quantised.safetensors");
    ASSERT_TRUE(set) << set.error().text;
    int types = 0;
    for (const Tensor& blocks : set->tensors) {
        if (!blocks.name.ends_with(".blocks")) continue;
        const std::string name = blocks.name.substr(0, blocks.name.size() - 7);
        const FoveaDtype type = type_of(name);
        const Tensor& values = *set->find(name + ".values");
        ASSERT_NE(type, FOVEA_DTYPE_OTHER) << name;
        ASSERT_EQ(blocks.shape[1], dtype_bytes(type)) << name;
        std::vector<float> made(element_count(values));
        dequantise(type, blocks.bytes, made);
        EXPECT_EQ(0, std::memcmp(made.data(), values.bytes.data(), values.bytes.size())) << name;
        ++types;
    }
    EXPECT_EQ(types, 8);
}

// Tests the contents of a KV cache after an append, and reading from it and from weights.
TEST(StoredWeights, blocks_that_kernels_read_have_ggmls_bits) {
    const Result<TensorSet> set =
        load_safetensors(std::filesystem::path(FOVEA_DATA) / "quantised.safetensors");
    ASSERT_TRUE(set) << set.error().text;
    const Tensor& rows = *set->find("quantise.rows");
    for (const auto& [name, type] : {std::pair("q8_0", FOVEA_Q8_0), std::pair("q4_0", FOVEA_Q4_0)}) {
        const Tensor& theirs = *set->find(std::string("quantise.") + name);
        std::vector<unsigned char> made(theirs.bytes.size());
        compress_row(type, reinterpret_cast<const float*>(rows.bytes.data()), element_count(rows),
                     made.data(), 0);
        EXPECT_EQ(0, std::memcmp(made.data(), theirs.bytes.data(), made.size())) << name;
    }
    for (const auto& [name, type] : {std::pair("q8_0", FOVEA_Q8_0),
                                     {"q4_0", FOVEA_Q4_0},
                                     {"q4_1", FOVEA_Q4_1},
                                     {"q5_0", FOVEA_Q5_0},
                                     {"q5_1", FOVEA_Q5_1},
                                     {"q4_k", FOVEA_Q4_K},
                                     {"q5_k", FOVEA_Q5_K},
                                     {"q6_k", FOVEA_Q6_K}}) {
        const Tensor &blocks = *set->find(name + std::string(".blocks")),
                     &values = *set->find(name + std::string(".values"));
        for (uint64_t n = 0; n < element_count(values); ++n) {
            float value = 0;
            std::memcpy(&value, values.bytes.data() + 4 * n, sizeof value);
            EXPECT_EQ(compressed_number(reinterpret_cast<const unsigned char*>(blocks.bytes.data()), type,
                                        int64_t(n)),
                      value)
                << name << ", " << n;
        }
    }
}

TEST(StoredWeights, rows_are_those_of_the_last_dimension) {
    const std::vector<float> numbers = {1, 2, 3, 4, 5, 6};
    StoredWeight w;
    w.name = "w", w.type = FOVEA_F32, w.type_text = "F32", w.shape = {3, 2};
    w.bytes = std::as_bytes(std::span(numbers)), w.size_bytes = w.bytes.size();
    std::vector<float> rows(4);
    ASSERT_TRUE(read_rows(w, 1, rows));
    EXPECT_EQ(rows, (std::vector<float>{3, 4, 5, 6}));
    const Result<void> beyond = read_rows(w, 2, rows);
    ASSERT_FALSE(beyond);
    EXPECT_EQ(beyond.error().text, "tensor 'w' has 3 rows; row 4 was requested");
}

// More than is read at once, from the middle of a file.
TEST(StoredWeights, of_files_that_are_not_mapped_are_read_a_stretch_at_a_time) {
    struct Numbers final : StoredFile {
        uint64_t size_bytes() const noexcept override { return uint64_t{1} << 24; }
        Result<void> read(uint64_t first, std::span<std::byte> out) const override {
            largest = std::max(largest, out.size());
            for (size_t i = 0; i < out.size(); i += 4) {
                const float number = float((first + i) / 4);
                std::memcpy(&out[i], &number, 4);
            }
            return {};
        }
        mutable size_t largest = 0;
    };
    const auto file = std::make_shared<Numbers>();
    StoredWeight w;
    w.name = "w", w.type = FOVEA_F32, w.shape = {3000, 700};
    w.file = file, w.place = 4096, w.size_bytes = 3000 * 700 * 4;
    std::vector<float> rows(2990 * 700);
    ASSERT_TRUE(read_rows(w, 7, rows));
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], float(1024 + 7 * 700 + i)) << i;
    EXPECT_LE(file->largest, size_t{1} << 20);
}

TEST(StoredWeights, a_type_that_is_not_read_is_refused_by_tensor_and_type) {
    StoredWeight w;
    w.name = "blk.0.\x1b", w.type_text = "IQ2_XS", w.shape = {1, 256};
    std::vector<float> row(256);
    const Result<void> made = read_rows(w, 0, row);
    ASSERT_FALSE(made);
    EXPECT_TRUE(
        made.error().text.starts_with("tensor 'blk.0.\\x1b' is stored as IQ2_XS; the supported types are"))
        << made.error().text;
}

TEST(Gguf, keys_and_tensors_are_given_out_as_the_file_has_them) {
    const auto folder = std::filesystem::path(FOVEA_CORPUS) / "gguf";
    const Result<GgufFile> keys = load_gguf(folder / "valid_keys.gguf");
    ASSERT_TRUE(keys) << keys.error().text;
    EXPECT_EQ(keys->find("general.architecture")->text(), "llama");
    EXPECT_EQ(keys->find("flag")->truth(), true);
    EXPECT_EQ(keys->find("n")->whole(), 0u);
    EXPECT_EQ(keys->find("scores")->numbers(), (std::vector<double>{1, 2, 3}));
    EXPECT_EQ(keys->find("tokenizer.ggml.tokens")->texts(), (std::vector<std::string_view>{"a", "", "b"}));
    // A value of another type than was asked for is none.
    EXPECT_FALSE(keys->find("flag")->whole());
    EXPECT_FALSE(keys->find("scores")->number());
    EXPECT_FALSE(keys->find("general.architecture")->texts());
    EXPECT_EQ(keys->find("nothing"), nullptr);

    const Result<GgufFile> tensors = load_gguf(folder / "valid_tensors.gguf");
    ASSERT_TRUE(tensors) << tensors.error().text;
    ASSERT_EQ(tensors->weights.size(), 3u);
    const StoredWeight &a = tensors->weights[0], &b = tensors->weights[1];
    EXPECT_EQ(a.shape, (std::vector<uint64_t>{3, 2}));  // dimensions are stored fastest first
    EXPECT_EQ(b.type, FOVEA_Q8_0);
    EXPECT_EQ(b.type_text, "Q8_0");
    EXPECT_EQ(b.bytes.size(), 34u);
    EXPECT_EQ(tensors->weights[2].shape.size(), 0u);
    std::vector<float> row(32);
    ASSERT_TRUE(read_rows(b, 0, row));
    EXPECT_EQ(row[1], row[0] / 2 * 3);  // bytes 2 and 3 of the block
}

}  // namespace
}  // namespace fovea
