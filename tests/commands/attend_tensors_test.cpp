// The tensors that `attend` takes in addition to q, k and v: the same call in other shapes, types and ways
// gives the same bytes; and each of them affects the result.
#include "commands/command_run.hpp"

#include <cmath>
#include <filesystem>
#include <functional>

namespace fovea::test {
namespace {

constexpr uint64_t kBatch = 2, kHeads = 3, kLength = 5, kDim = 4;

TensorSet qkv() {
    TensorSet set;
    for (const char* name : {"q", "k", "v"}) {
        std::vector<float> values(kBatch * kHeads * kLength * kDim);
        for (size_t n = 0; n < values.size(); ++n)
            values[n] = std::sin(float(n) * (name[0] == 'q' ? 0.7f : 0.3f));
        set.tensors.push_back(make_tensor(name, {kBatch, kHeads, kLength, kDim}, values).value());
    }
    return set;
}

// The bytes of o that the command line gives for q, k, v and `more`.
std::vector<std::byte> attend(const std::vector<Tensor>& more, const std::string& options = "") {
    const Scratch scratch;
    TensorSet set = qkv();
    set.tensors.insert(set.tensors.end(), more.begin(), more.end());
    EXPECT_TRUE(save_safetensors(scratch / "in.safetensors", set));
    const CommandRun run =
        run_command(scratch, "attend IN --out OUT --backend cpu --kernel plain " + options);
    EXPECT_EQ(run.exit_code, 0) << run.error;
    const Result<TensorSet> out = load_tensors(scratch / "out.safetensors");
    if (!out || !out->find("o")) {
        ADD_FAILURE() << (out ? "no o" : out.error().text);
        return {};
    }
    const auto bytes = out->find("o")->bytes;
    return {bytes.begin(), bytes.end()};
}

bool lower_triangle(uint64_t i, uint64_t j) { return j <= i; }

// Rows and keys of the lower triangle, repeated over the axes in front; `keys` columns of it.
Tensor boolean_mask(std::vector<uint64_t> shape, FoveaDtype type = FOVEA_BOOL,
                    bool (*visible)(uint64_t, uint64_t) = lower_triangle) {
    const uint64_t keys = shape.back(), rows = shape[shape.size() - 2];
    uint64_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    std::vector<uint8_t> values;
    for (uint64_t n = 0; n < count; ++n) values.push_back(visible(n / keys % rows, n % keys));
    return make_tensor("mask", type, std::move(shape), std::as_bytes(std::span(values))).value();
}

TEST(AttendTensors, masks_of_rank_2_3_and_4_broadcast_over_batch_head_and_query) {
    const std::vector<std::byte> causal = attend({}, "--causal top-left");
    const std::vector<std::vector<uint64_t>> shapes = {{kLength, kLength},
                                                       {1, kLength, kLength},
                                                       {kHeads, kLength, kLength},
                                                       {1, 1, kLength, kLength},
                                                       {1, kHeads, kLength, kLength},
                                                       {kBatch, 1, kLength, kLength},
                                                       {kBatch, kHeads, kLength, kLength}};
    for (const std::vector<uint64_t>& shape : shapes) {
        SCOPED_TRACE(testing::PrintToString(shape));
        EXPECT_EQ(attend({boolean_mask(shape)}), causal);
        EXPECT_EQ(attend({boolean_mask(shape, FOVEA_U8)}), causal);
    }
    const auto first_three = [](uint64_t, uint64_t j) { return j < 3; };
    const std::vector<std::byte> three = attend({boolean_mask({kLength, kLength}, FOVEA_BOOL, first_three)});
    EXPECT_NE(three, causal);
    // One row for all queries, and a last axis that is shorter than the keys: the tail is hidden.
    EXPECT_EQ(attend({boolean_mask({1, kLength}, FOVEA_BOOL, first_three)}), three);
    EXPECT_EQ(attend({boolean_mask({1, 3}, FOVEA_BOOL, first_three)}), three);
    EXPECT_EQ(attend({boolean_mask({kBatch, 1, 1, 3}, FOVEA_BOOL, first_three)}), three);
}

TEST(AttendTensors, float_masks_add_and_hide) {
    const float inf = INFINITY;
    std::vector<float> hide(kLength * kLength), small(kLength * kLength);
    for (uint64_t n = 0; n < hide.size(); ++n) {
        hide[n] = n % kLength <= n / kLength ? 0 : -inf;
        small[n] = 0.25f * float(n % 4);
    }
    const std::vector<std::byte> causal = attend({}, "--causal top-left");
    EXPECT_EQ(attend({make_tensor("mask", {kLength, kLength}, hide).value()}), causal);
    EXPECT_EQ(attend({make_tensor("bias", {1, kLength, kLength}, hide).value()}), causal);
    const std::vector<std::byte> added = attend({make_tensor("bias", {kLength, kLength}, small).value()});
    EXPECT_NE(added, attend({}));
    // Together with a boolean mask.
    EXPECT_EQ(
        attend({make_tensor("bias", {kLength, kLength}, small).value(), boolean_mask({kLength, kLength})}),
        attend({make_tensor("bias", {kLength, kLength}, small).value()}, "--causal top-left"));
}

TEST(AttendTensors, lengths_sinks_slopes_and_keep_bear_on_the_result) {
    const std::vector<std::byte> plain = attend({});
    const std::vector<int32_t> three{3, 3}, all{5, 5};
    const std::vector<int64_t> three_wide{3, 3};
    const auto lengths = [](const char* name, const auto& values, FoveaDtype type) {
        return make_tensor(name, type, {kBatch}, std::as_bytes(std::span(values))).value();
    };
    const auto first_three = [](uint64_t, uint64_t j) { return j < 3; };
    const std::vector<std::byte> short_keys = attend({boolean_mask({1, 3}, FOVEA_BOOL, first_three)});
    EXPECT_EQ(attend({lengths("kv_lengths", three, FOVEA_I32)}), short_keys);
    EXPECT_EQ(attend({lengths("kv_lengths", three_wide, FOVEA_I64)}), short_keys);
    EXPECT_EQ(attend({lengths("kv_lengths", all, FOVEA_I32)}), plain);
    EXPECT_NE(attend({lengths("q_lengths", three, FOVEA_I32)}), plain);
    const std::vector<float> per_head(kHeads, 0.5f);
    EXPECT_NE(attend({make_tensor("sinks", {kHeads}, per_head).value()}), plain);
    EXPECT_NE(attend({make_tensor("alibi", {kHeads}, per_head).value()}), plain);
    Tensor keep = boolean_mask({kLength, kLength});
    keep.name = "dropout_mask";
    EXPECT_NE(attend({keep}), plain);
    EXPECT_NE(attend({keep}), attend({}, "--causal top-left"));  // dropped, not hidden: the sum keeps them
}

TEST(AttendTensors, matrices_that_could_be_read_in_two_ways_are_refused) {
    const auto refused = [](std::vector<Tensor> more, const char* part) {
        const Scratch scratch;
        TensorSet set = qkv();
        set.tensors.insert(set.tensors.end(), more.begin(), more.end());
        ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", set));
        expect_refused(run_command(scratch, "attend IN --out OUT --backend cpu"), part);
    };
    const auto named = [](const char* name, Tensor tensor) {
        tensor.name = name;
        return tensor;
    };
    const Tensor square = boolean_mask({kLength, kLength}), column = boolean_mask({kLength, 1});
    refused({column}, "'mask' has shape [5, 1], one column for 5 keys");
    refused({named("dropout_mask", column)}, "'dropout_mask' has shape [5, 1], one column for 5 keys");
    refused({boolean_mask({kLength, 0})}, "'mask' has shape [5, 0]; each axis must be at least 1");
    refused({named("bias", square)}, "'bias' is bool; it must be a float type");
    const Tensor added = make_tensor("bias", {1, kLength}, std::vector<float>(kLength)).value();
    refused({named("mask", added), added}, "'bias' is given with a mask of a float type");
    refused({make_tensor("bias", {kLength, 1}, std::vector<float>(kLength)).value()},
            "'bias' has shape [5, 1]");
}

TEST(AttendTensors, row_statistics_are_four_numbers_a_row_as_help_says) {
    const Scratch scratch;
    TensorSet set = qkv();
    for (Tensor& t : set.tensors)
        if (t.name == "k") t = make_tensor("k", t.shape, std::vector<float>(element_count(t), 1.0f)).value();
    const std::vector<int32_t> lengths{0, 4};  // the rows of the first entry are fully masked
    set.tensors.push_back(
        make_tensor("kv_lengths", FOVEA_I32, {kBatch}, std::as_bytes(std::span(lengths))).value());
    ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", set));
    const CommandRun run =
        run_command(scratch, "attend IN --out OUT --backend cpu --layout bhld --outputs row_stats,lse");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const Result<TensorSet> out = load_tensors(scratch / "out.safetensors");
    ASSERT_TRUE(out) << out.error().text;
    const Tensor* stats = out->find("row_stats");
    ASSERT_NE(stats, nullptr);
    EXPECT_EQ(stats->shape, (std::vector<uint64_t>{kBatch, kHeads, kLength, 4}));
    const Result<std::vector<float>> values = to_f32(*stats);
    ASSERT_TRUE(values);
    for (size_t row = 0; row < kBatch * kHeads * kLength; ++row) {
        const float* at = values->data() + 4 * row;
        const bool sees = row >= kHeads * kLength;
        EXPECT_FLOAT_EQ(at[0], sees ? 0.25f : 0.0f) << row;
        EXPECT_FLOAT_EQ(at[1], sees ? std::log(4.0f) : 0.0f) << row;
        EXPECT_EQ(at[2], sees ? 0.0f : -1.0f) << row;
        EXPECT_EQ(at[3], sees ? 4.0f : 0.0f) << row;
    }
}

TEST(AttendTensors, numbers_that_float32_does_not_hold_are_told) {
    const Scratch scratch;
    TensorSet set = qkv();
    std::vector<double> hide(kLength, 0.0);
    hide[1] = hide[4] = -1.7e308;
    hide[2] = -INFINITY;
    set.tensors.push_back(
        make_tensor("mask", FOVEA_F64, {1, kLength}, std::as_bytes(std::span(hide))).value());
    ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", set));
    const CommandRun run = run_command(scratch, "attend IN --out OUT --backend cpu");
    EXPECT_NE(run.output.find(
                  "note: mask: converted from f64 to f32; 2 numbers beyond its range became infinite\n"),
              std::string::npos)
        << run.output;
}

TEST(AttendTensors, a_cache_may_hold_no_keys) {
    const Scratch scratch;
    TensorSet set;
    const std::vector<float> queries(kBatch * kHeads * kLength * 32, 0.5f);
    set.tensors.push_back(make_tensor("q", {kBatch, kHeads, kLength, 32}, queries).value());
    for (const char* name : {"k", "v"})
        set.tensors.push_back(make_tensor(name, {kBatch, kHeads, 0, 32}, std::vector<float>()).value());
    ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", set));
    for (const char* type : {"f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "q8_0", "q4_0"}) {
        const CommandRun run =
            run_command(scratch, "attend IN --out OUT --backend cpu --cache-type " + std::string(type));
        ASSERT_EQ(run.exit_code, 0) << run.error;
        const Result<TensorSet> out = load_tensors(scratch / "out.safetensors");
        ASSERT_TRUE(out) << out.error().text;
        const auto bytes = out->find("o")->bytes;
        EXPECT_EQ(bytes.size(), queries.size() * sizeof(float));
        EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; })) << type;
    }
}

// The cache's numbers are k and v as its type holds them: the same as if the file had held those.
TEST(AttendTensors, a_cache_type_rounds_keys_and_values_alone) {
    EXPECT_TRUE(attend({}) == attend({}, "--cache-type f32"));
    const auto rounded = [](const char* name) {
        const TensorSet set = qkv();
        const Tensor& t = *set.find(name);
        std::vector<uint16_t> halves(element_count(t));
        const auto* values = reinterpret_cast<const float*>(t.bytes.data());
        for (size_t n = 0; n < halves.size(); ++n) halves[n] = foveaFloatToHalf(values[n]);
        return halves;
    };
    const Scratch scratch;
    TensorSet set = qkv();
    for (const char* name : {"k", "v"}) {
        const std::vector<uint16_t> halves = rounded(name);
        for (Tensor& t : set.tensors)
            if (t.name == name)
                t = make_tensor(name, FOVEA_F16, {kBatch, kHeads, kLength, kDim},
                                std::as_bytes(std::span(halves)))
                        .value();
    }
    ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", set));
    const CommandRun run = run_command(scratch, "attend IN --out OUT --backend cpu --kernel plain");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const Result<TensorSet> out = load_tensors(scratch / "out.safetensors");
    ASSERT_TRUE(out) << out.error().text;
    const auto bytes = out->find("o")->bytes;
    const std::vector<std::byte> cached = attend({}, "--cache-type f16");
    ASSERT_EQ(cached.size(), bytes.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), cached.begin()));
    EXPECT_FALSE(attend({}, "--cache-type f8_e5m2") == cached);
    // Rows of four elements are not whole blocks.
    expect_refused(run_command(scratch, "attend IN --out OUT --backend cpu --cache-type q8_0"),
                   "--cache-type q8_0 needs a head size that is a multiple of 32; k has 4");
}

// An option that would do nothing is rejected.
TEST(AttendTensors, a_cache_of_blocks_can_be_rotated) {
    const Scratch scratch;
    TensorSet set;
    std::vector<float> values(2 * 3 * 32);
    for (size_t n = 0; n < values.size(); ++n) values[n] = float(n * n * 7919 % 101) / 50 - 1;
    for (const char* name : {"q", "k", "v"})
        set.tensors.push_back(make_tensor(name, {1, 2, 3, 32}, values).value());
    ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", set));
    const auto o_of = [&](const std::string& words) {
        const CommandRun run = run_command(scratch, "attend IN --out OUT --backend cpu " + words);
        EXPECT_EQ(run.exit_code, 0) << run.error;
        const Result<TensorSet> out = load_tensors(scratch / "out.safetensors");
        EXPECT_TRUE(out) << out.error().text;
        return to_f32(*out->find("o")).value();
    };
    const std::vector<float> exact = o_of(""), plain = o_of("--cache-type q8_0"),
                             rotated = o_of("--cache-type q8_0 --cache-rotation");
    EXPECT_NE(plain, rotated);
    for (size_t n = 0; n < exact.size(); ++n) EXPECT_NEAR(rotated[n], exact[n], 0.1) << n;
    expect_refused(run_command(scratch, "attend IN --out OUT --backend cpu --cache-rotation"),
                   "--cache-rotation needs --cache-type q8_0 or q4_0");
    expect_refused(run_command(scratch, "attend IN --out OUT --cache-type f8_e4m3 --cache-rotation"),
                   "--cache-rotation cannot be combined with --cache-type f8_e4m3; it needs q8_0 or q4_0");
}

// The device writes it and reads it.
TEST(AttendTensors, a_compressed_cache_serves_a_vulkan_device_too) {
    if (!std::filesystem::exists(FOVEA_DRIVER_SCRIPT))
        GTEST_SKIP() << FOVEA_DRIVER_SCRIPT << ": no such driver here";
    const std::vector<std::byte> wanted = attend({}, "--cache-type f8_e4m3");
    const Scratch scratch;
    ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", qkv()));
    const CommandRun run = run_shell(
        scratch, FOVEA_DRIVER_SCRIPT " FOVEA attend IN --out OUT --backend vulkan --cache-type f8_e4m3");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const Result<TensorSet> out = load_tensors(scratch / "out.safetensors");
    ASSERT_TRUE(out) << out.error().text;
    const auto bytes = out->find("o")->bytes;
    ASSERT_EQ(bytes.size(), wanted.size());
    const auto *a = reinterpret_cast<const float*>(bytes.data()),
               *b = reinterpret_cast<const float*>(wanted.data());
    for (size_t n = 0; n < bytes.size() / 4; ++n) EXPECT_NEAR(a[n], b[n], 1e-5) << n;
}

}  // namespace
}  // namespace fovea::test
