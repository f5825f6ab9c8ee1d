// Random weights as files store them, and the verdict on products with them.
#pragma once

#include "model/block_run.hpp"
#include "support/wall.hpp"

#include <fovea/model/trace.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace fovea {

// Any bits, but scales are half precision numbers of a size that weights have.
inline void fill_blocks(FoveaDtype type, std::span<std::byte> bytes, std::mt19937& random) {
    for (std::byte& b : bytes) b = std::byte(random() & 255u);
    const uint64_t size = dtype_bytes(type);
    const auto put = [&](size_t at, float value) {
        const uint16_t half = foveaFloatToHalf(value);
        std::memcpy(bytes.data() + at, &half, 2);
    };
    std::uniform_real_distribution<float> number(-0.05f, 0.05f);
    for (size_t at = 0; at < bytes.size(); at += size) {
        if (type == FOVEA_F32) {
            const float value = number(random);
            std::memcpy(bytes.data() + at, &value, 4);
        } else if (type == FOVEA_F64) {
            const double value = number(random);
            std::memcpy(bytes.data() + at, &value, 8);
        } else if (type == FOVEA_BF16) {
            const float value = number(random);
            std::memcpy(bytes.data() + at, reinterpret_cast<const char*>(&value) + 2, 2);
        } else if (type == FOVEA_Q6_K) {
            put(at + 208, number(random));
        } else {
            put(at, number(random));
            if (type == FOVEA_Q4_K || type == FOVEA_Q5_K || type == FOVEA_Q4_1 || type == FOVEA_Q5_1)
                put(at + 2, number(random));
        }
    }
}

// A weight whose last byte is just before a page without access.
struct Weight {
    test::WalledMemory memory;
    StoredWeight stored;
    std::vector<float> plain;

    Weight(FoveaDtype type, uint64_t rows, uint64_t columns, std::mt19937& random)
        : memory(rows * columns / dtype_info(type).block.numbers * dtype_bytes(type)) {
        const uint64_t size = rows * columns / dtype_info(type).block.numbers * dtype_bytes(type);
        const std::span<std::byte> bytes(memory.data() + memory.size() - size, size);
        fill_blocks(type, bytes, random);
        stored.name = "w", stored.type = type, stored.shape = {rows, columns}, stored.bytes = bytes;
        plain.resize(rows * columns);
        EXPECT_TRUE(read_rows(stored, 0, plain));
    }
};

inline F32Tensor random_rows(uint64_t rows, uint64_t columns, std::mt19937& random) {
    F32Tensor x({rows, columns});
    std::normal_distribution<float> number;
    for (float& value : x.values) value = number(random);
    return x;
}

// Runs a plan of linear with this weight. The rows of y past those of x stay as they are.
inline void run_linear(const Plan& plan, const Weight& w, const F32Tensor& bias, const F32Tensor& x,
                       F32Tensor& y, const FoveaParallel* parallel) {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_X] = {const_cast<float*>(x.values.data()), x.values.size() * 4};
    bindings[FOVEA_BIND_WEIGHT] = {const_cast<std::byte*>(w.stored.bytes.data()), w.stored.bytes.size()};
    if (!bias.values.empty())
        bindings[FOVEA_BIND_BIAS] = {const_cast<float*>(bias.values.data()), bias.values.size() * 4};
    bindings[FOVEA_BIND_Y] = {y.values.data(), y.values.size() * 4};
    Workspace workspace;
    const Result<void> run = run_on_host(plan, bindings, workspace, parallel);
    ASSERT_TRUE(run) << run.error().text;
}

// The engine's own error rule: in no row is the largest error more than twice that of a sum in plain float32,
// except for a tolerance of a few roundings of the row's largest term.
inline void expect_row_verdict(const Weight& w, const F32Tensor& bias, const F32Tensor& x,
                               const F32Tensor& y) {
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
            << dtype_name(w.stored.type) << " [" << rows << ", " << columns << "], row " << i;
    }
}

}  // namespace fovea
