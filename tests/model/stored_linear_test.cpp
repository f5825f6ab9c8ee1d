// Linear layers on weights as files store them, against the dequantised matrix in float64.
#include "model/stored_linear.hpp"

#include "cpu/block_rows.hpp"
#include "cpu/target.hpp"
#include "support/wall.hpp"

#include <fovea/thread_pool.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace fovea {
namespace {

using test::WalledMemory;

// Any bits, but scales are half precision numbers of a size that weights have.
void fill_blocks(WeightType type, std::span<std::byte> bytes, std::mt19937& random) {
    for (std::byte& b : bytes) b = std::byte(random() & 255u);
    const uint64_t size = weight_block_bytes(type);
    const auto put = [&](size_t at, float value) {
        const uint16_t half = foveaFloatToHalf(value);
        std::memcpy(bytes.data() + at, &half, 2);
    };
    std::uniform_real_distribution<float> number(-0.05f, 0.05f);
    for (size_t at = 0; at < bytes.size(); at += size) {
        if (type == WeightType::f32) {
            const float value = number(random);
            std::memcpy(bytes.data() + at, &value, 4);
        } else if (type == WeightType::bf16) {
            const float value = number(random);
            std::memcpy(bytes.data() + at, reinterpret_cast<const char*>(&value) + 2, 2);
        } else if (type == WeightType::q6_k) {
            put(at + 208, number(random));
        } else {
            put(at, number(random));
            if (type == WeightType::q4_k || type == WeightType::q5_k || type == WeightType::q4_1 ||
                type == WeightType::q5_1)
                put(at + 2, number(random));
        }
    }
}

// A weight whose last byte lies before a page without access.
struct Weight {
    WalledMemory memory;
    StoredWeight stored;
    std::vector<float> plain;

    Weight(WeightType type, uint64_t rows, uint64_t columns, std::mt19937& random)
        : memory(rows * columns / weight_block_elements(type) * weight_block_bytes(type)) {
        const uint64_t size = rows * columns / weight_block_elements(type) * weight_block_bytes(type);
        const std::span<std::byte> bytes(memory.data() + memory.size() - size, size);
        fill_blocks(type, bytes, random);
        stored.name = "w", stored.type = type, stored.shape = {rows, columns}, stored.bytes = bytes;
        plain.resize(rows * columns);
        EXPECT_TRUE(read_rows(stored, 0, plain));
    }
};

F32Tensor random_rows(uint64_t rows, uint64_t columns, std::mt19937& random) {
    F32Tensor x({rows, columns});
    std::normal_distribution<float> number;
    for (float& value : x.values) value = number(random);
    return x;
}

// The rule of the engine's own verdict: in no row is the largest error more than twice that of a sum in plain
// float32, but for a floor of a few roundings of the row's largest term.
void expect_row_verdict(const Weight& w, const F32Tensor& bias, const F32Tensor& x, const F32Tensor& y) {
    const uint64_t rows = w.stored.shape[0], columns = w.stored.shape[1];
    for (uint64_t i = 0; i < x.rows(); ++i) {
        double worst = 0, plain_worst = 0, largest = 0;
        for (uint64_t n = 0; n < rows; ++n) {
            double sum = bias.values.empty() ? 0 : double(bias.values[n]), size = std::abs(sum);
            float plain = 0;
            for (uint64_t e = 0; e < columns; ++e) {
                const float a = w.plain[n * columns + e], b = x.row(i)[e];
                sum += double(a) * double(b), size += std::abs(double(a) * double(b));
                plain += a * b;
            }
            if (!bias.values.empty()) plain += bias.values[n];
            worst = std::max(worst, std::abs(double(y.row(i)[n]) - sum));
            plain_worst = std::max(plain_worst, std::abs(double(plain) - sum));
            largest = std::max(largest, size);
        }
        ASSERT_LE(worst, 2 * plain_worst + 4 * 0x1p-24 * largest)
            << weight_type_name(w.stored.type) << " [" << rows << ", " << columns << "], row " << i;
    }
}

const WeightType kTypes[] = {WeightType::f32,  WeightType::f16,  WeightType::bf16, WeightType::q4_0,
                             WeightType::q8_0, WeightType::q4_k, WeightType::q5_k, WeightType::q6_k};

TEST(StoredLinear, gives_the_dequantised_product_on_every_instruction_set) {
    std::mt19937 random(20261122);
    ThreadPool pool(2);
    const FoveaParallel parallel = pool.parallel();
    size_t targets = 0;
    for (uint32_t target = 1; target < cpu::kTargetCount; ++target) {
        if (!(cpu::runnable_targets() >> target & 1u)) continue;
        ++targets;
        SCOPED_TRACE(cpu::target_name(target));
        for (const WeightType type : kTypes)
            for (const auto& [rows, blocks] : {std::pair{1u, 1u}, {5u, 3u}, {131u, 2u}, {700u, 7u}}) {
                // Numbers of their own may end in a part of a vector.
                const uint64_t elements = weight_block_elements(type);
                const uint64_t columns = elements == 1 ? 37 * blocks : elements * blocks;
                const Weight w(type, rows, columns, random);
                const F32Tensor x = random_rows(2, columns, random);
                const F32Tensor bias =
                    rows % 2 == 0 ? reshaped(random_rows(1, rows, random), {rows}) : F32Tensor(Shape{0});
                ASSERT_TRUE(has_stored_rows(w.stored));
                F32Tensor y({2, rows}), threaded({2, rows});
                std::fill(y.values.begin(), y.values.end(), NAN);
                const float* const b = bias.values.empty() ? nullptr : bias.values.data();
                stored_rows_on_cpu(target, w.stored, b, x, y, nullptr);
                expect_row_verdict(w, bias, x, y);
                stored_rows_on_cpu(target, w.stored, b, x, threaded, &parallel);
                EXPECT_EQ(threaded.values, y.values) << "threads change no bit";
            }
    }
    EXPECT_GE(targets, 2u);
}

// What the runner does with many rows, and with types that have no kernel of their own.
TEST(StoredLinear, many_rows_and_other_types_take_the_engines_linear_layer) {
    std::mt19937 random(7);
    const std::unique_ptr<EngineRunner> engine = make_cpu_runner();
    for (const WeightType type : {WeightType::q4_0, WeightType::bf16, WeightType::q4_1, WeightType::q5_0,
                                  WeightType::q5_1, WeightType::q6_k})
        for (const uint64_t rows : {1u, 4u, 9u}) {
            const Weight w(type, 67, 512, random);
            const F32Tensor x = random_rows(rows, 512, random),
                            bias = reshaped(random_rows(1, 67, random), {67});
            F32Tensor y({rows, 67});
            const Result<void> run = engine->stored_linear(w.stored, bias, x, y);
            ASSERT_TRUE(run) << run.error().text;
            expect_row_verdict(w, bias, x, y);
        }
}

}  // namespace
}  // namespace fovea
