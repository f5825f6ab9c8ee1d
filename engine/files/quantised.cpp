// Stored weights as float32. The blocks are those of ggml (its file ggml-common.h defines them): written from
// that definition, and the products in the order in which ggml forms them, so that every value has its bits.
#include <array>
#include <cmath>
#include <cstring>

#include <fovea/files/checkpoint.hpp>

#include "files/buffer.hpp"
#include "files/refusal.hpp"
#include "problem/half.hpp"

namespace fovea {
namespace {

struct TypeFacts {
    std::string_view name;
    uint64_t elements, bytes;
};
constexpr std::array<TypeFacts, 13> kTypes = {{{"f32", 1, 4},
                                               {"f16", 1, 2},
                                               {"bf16", 1, 2},
                                               {"f64", 1, 8},
                                               {"q4_0", 32, 18},
                                               {"q4_1", 32, 20},
                                               {"q5_0", 32, 22},
                                               {"q5_1", 32, 24},
                                               {"q8_0", 32, 34},
                                               {"q4_k", 256, 144},
                                               {"q5_k", 256, 176},
                                               {"q6_k", 256, 210},
                                               {"other", 0, 0}}};

uint32_t byte_at(const std::byte* at) { return std::to_integer<uint32_t>(*at); }
uint32_t low_nibble(const std::byte* at) { return byte_at(at) & 15u; }
uint32_t high_nibble(const std::byte* at) { return byte_at(at) >> 4; }

template <class Number>
Number read_as(const std::byte* at) {
    Number value;
    std::memcpy(&value, at, sizeof value);
    return value;
}
float half_at(const std::byte* at) { return half_to_float(read_as<uint16_t>(at)); }

// q4_0: f16 scale, 16 bytes of which byte j holds numbers j (low) and j + 16 (high), each 8 too large.
void q4_0(const std::byte* b, float* y) {
    const float d = half_at(b);
    for (uint32_t j = 0; j < 16; ++j) {
        y[j] = float(int(low_nibble(b + 2 + j)) - 8) * d;
        y[j + 16] = float(int(high_nibble(b + 2 + j)) - 8) * d;
    }
}

// q4_1: f16 scale and least value, then as q4_0 without the 8.
void q4_1(const std::byte* b, float* y) {
    const float d = half_at(b), m = half_at(b + 2);
    for (uint32_t j = 0; j < 16; ++j) {
        const float low = float(low_nibble(b + 4 + j)) * d, high = float(high_nibble(b + 4 + j)) * d;
        y[j] = low + m;
        y[j + 16] = high + m;
    }
}

// The fifth bit of number j of q5_0 and q5_1 is bit j of a word.
uint32_t fifth_bit(uint32_t word, uint32_t j) { return (word >> j & 1u) << 4; }

void q5_0(const std::byte* b, float* y) {
    const float d = half_at(b);
    const auto high = read_as<uint32_t>(b + 2);
    for (uint32_t j = 0; j < 16; ++j) {
        y[j] = float(int(low_nibble(b + 6 + j) | fifth_bit(high, j)) - 16) * d;
        y[j + 16] = float(int(high_nibble(b + 6 + j) | fifth_bit(high, j + 16)) - 16) * d;
    }
}

void q5_1(const std::byte* b, float* y) {
    const float d = half_at(b), m = half_at(b + 2);
    const auto high = read_as<uint32_t>(b + 4);
    for (uint32_t j = 0; j < 16; ++j) {
        const float first = float(low_nibble(b + 8 + j) | fifth_bit(high, j)) * d;
        const float second = float(high_nibble(b + 8 + j) | fifth_bit(high, j + 16)) * d;
        y[j] = first + m;
        y[j + 16] = second + m;
    }
}

void q8_0(const std::byte* b, float* y) {
    const float d = half_at(b);
    for (uint32_t j = 0; j < 32; ++j) y[j] = float(read_as<int8_t>(b + 2 + j)) * d;
}

// Scale and least value of one of the eight groups of a k-quant: 6 bits each, packed into 12 bytes.
struct GroupScale {
    uint32_t scale, least;
};
GroupScale group_scale(const std::byte* s, uint32_t group) {
    if (group < 4) return {byte_at(s + group) & 63u, byte_at(s + group + 4) & 63u};
    return {low_nibble(s + group + 4) | byte_at(s + group - 4) >> 6 << 4,
            high_nibble(s + group + 4) | byte_at(s + group) >> 6 << 4};
}

// q4_k and q5_k: f16 scale of the scales and of the least values, the groups' scales, (q5_k: 32 bytes of
// fifth bits,) and 128 bytes, of which 32 hold two groups of 32 numbers, low and high halves.
void q45_k(const std::byte* b, float* y, bool fifth) {
    const float d = half_at(b), least = half_at(b + 2);
    const std::byte* const high = b + 16;
    const std::byte* q = b + (fifth ? 48 : 16);
    for (uint32_t group = 0; group < 8; ++group) {
        const GroupScale s = group_scale(b + 4, group);
        const float scale = d * float(s.scale), offset = least * float(s.least);
        for (uint32_t l = 0; l < 32; ++l) {
            uint32_t value = group % 2 == 0 ? low_nibble(q + l) : high_nibble(q + l);
            if (fifth) value += (byte_at(high + l) >> group & 1u) << 4;
            const float product = scale * float(value);
            *y++ = product - offset;
        }
        if (group % 2 == 1) q += 32;
    }
}

// q6_k: 128 bytes of low halves, 64 bytes of two high bits each, 16 scales of 8 bits, f16 scale of those. Two
// halves of 128 numbers; each number is 32 too large.
void q6_k(const std::byte* b, float* y) {
    const float d = half_at(b + 208);
    for (uint32_t half = 0; half < 2; ++half) {
        const std::byte *low = b + 64 * half, *high = b + 128 + 32 * half, *scales = b + 192 + 8 * half;
        for (uint32_t l = 0; l < 32; ++l) {
            for (uint32_t quarter = 0; quarter < 4; ++quarter) {
                const std::byte* const from = low + l + 32 * (quarter % 2);
                const uint32_t bits = quarter < 2 ? low_nibble(from) : high_nibble(from);
                const int value = int(bits | (byte_at(high + l) >> 2 * quarter & 3u) << 4) - 32;
                const float scale = d * float(read_as<int8_t>(scales + l / 16 + 2 * quarter));
                y[128 * half + 32 * quarter + l] = scale * float(value);
            }
        }
    }
}

}  // namespace

std::string_view weight_type_name(WeightType type) noexcept { return kTypes[size_t(type)].name; }
uint64_t weight_block_elements(WeightType type) noexcept { return kTypes[size_t(type)].elements; }
uint64_t weight_block_bytes(WeightType type) noexcept { return kTypes[size_t(type)].bytes; }

uint64_t StoredWeight::rows() const {
    uint64_t rows = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
    return rows;
}

void dequantise(WeightType type, std::span<const std::byte> blocks, std::span<float> out) {
    const uint64_t step = weight_block_elements(type), size = weight_block_bytes(type);
    const std::byte* b = blocks.data();
    float* const end = out.data() + out.size();
    for (float* y = out.data(); y != end; y += step, b += size) {
        switch (type) {
            case WeightType::f32:
                *y = read_as<float>(b);
                break;
            case WeightType::f16:
                *y = half_at(b);
                break;
            case WeightType::bf16:
                *y = bfloat_to_float(read_as<uint16_t>(b));
                break;
            case WeightType::f64:
                *y = float(read_as<double>(b));
                break;
            case WeightType::q4_0:
                q4_0(b, y);
                break;
            case WeightType::q4_1:
                q4_1(b, y);
                break;
            case WeightType::q5_0:
                q5_0(b, y);
                break;
            case WeightType::q5_1:
                q5_1(b, y);
                break;
            case WeightType::q8_0:
                q8_0(b, y);
                break;
            case WeightType::q4_k:
            case WeightType::q5_k:
                q45_k(b, y, type == WeightType::q5_k);
                break;
            case WeightType::q6_k:
                q6_k(b, y);
                break;
            case WeightType::other:
                return;
        }
    }
}

Result<void> read_rows(const StoredWeight& weight, uint64_t first, std::span<float> out) {
    const auto refuse = [&](std::string_view why) {
        return files::unsupported("dtype", files::cat("tensor '", printable_name(weight.name), "' ", why));
    };
    if (weight.type == WeightType::other)
        return refuse(files::cat("is stored as ", printable_name(weight.type_text, 24),
                                 ", which is not read; f32, f16, bf16, f64, q4_0, q4_1, q5_0, q5_1, q8_0, "
                                 "q4_k, q5_k and q6_k are"));
    const uint64_t columns = weight.columns(), count = columns == 0 ? 0 : out.size() / columns;
    if (count > weight.rows() || first > weight.rows() - count)
        return refuse(files::cat("has ", weight.rows(), " rows; row ", first + count, " was asked for"));
    const uint64_t row_bytes = columns / weight_block_elements(weight.type) * weight_block_bytes(weight.type);
    if (!weight.file) {
        dequantise(weight.type, weight.bytes.subspan(first * row_bytes, count * row_bytes), out);
        return {};
    }
    constexpr uint64_t kStretchBytes = uint64_t{1} << 20;
    const uint64_t step = std::max<uint64_t>(1, kStretchBytes / std::max<uint64_t>(1, row_bytes));
    files::Buffer stretch;
    if (!stretch.allocate(std::min(step, count) * row_bytes))
        return files::out_of_memory("tensor", std::min(step, count) * row_bytes);
    for (uint64_t done = 0; done < count; done += step) {
        const uint64_t rows = std::min(step, count - done);
        const auto bytes = stretch.bytes().first(size_t(rows * row_bytes));
        if (Result<void> r = weight.file->read(weight.place + (first + done) * row_bytes, bytes); !r)
            return r;
        dequantise(weight.type, bytes, out.subspan(size_t(done * columns), size_t(rows * columns)));
    }
    return {};
}

}  // namespace fovea
