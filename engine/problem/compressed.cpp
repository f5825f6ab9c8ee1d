#include "problem/compressed.hpp"

#include "problem/weight_blocks.hpp"

#include <cmath>
#include <cstring>

namespace fovea {
namespace {

// Quantizes 32 values as one block. A block becomes NaN as a whole if float16 cannot hold its scale or if a
// value is not finite: its values would be lost.
void compress_block(FoveaDtype type, const float* from, unsigned char* to) {
    constexpr int kNumbers = 32;
    float most = 0;  // the element with the largest magnitude
    bool finite = true;
    for (int n = 0; n < kNumbers; ++n) {
        finite = finite && std::isfinite(from[n]);
        if (std::fabs(from[n]) > std::fabs(most)) most = from[n];
    }
    const bool bytes = type == FOVEA_Q8_0;
    const float scale = bytes ? std::fabs(most) / 127 : most / -8;
    // Where the inverse overflows, the scale is stored as zero.
    const float inverse = std::isfinite(1 / scale) ? 1 / scale : 0;
    uint16_t stored = float_to_half(scale);
    finite = finite && (stored & 0x7c00u) != 0x7c00u;
    if (!finite) stored = 0x7e00u;
    memset(to, 0, storage_block(type).bytes);
    memcpy(to, &stored, sizeof stored);
    if (!finite) return;
    to += sizeof stored;
    for (int n = 0; n < kNumbers; ++n) {
        const float x = from[n] * inverse;
        if (bytes) {
            const int whole = int(x);
            const float rest = x - float(whole);  // halves go away from zero
            to[n] = std::bit_cast<unsigned char>(int8_t(whole + (rest >= 0.5f) - (rest <= -0.5f)));
        } else {
            const int number = int(x + 8.5f);
            to[n % 16] = uint8_t(to[n % 16] | (number < 15 ? number : 15) << n / 16 * 4);
        }
    }
}

}  // namespace

float compressed_number(const unsigned char* data, FoveaDtype type, int64_t index) {
    if (type == FOVEA_F8_E4M3) return e4m3_to_float(data[index]);
    if (type == FOVEA_F8_E5M2) return e5m2_to_float(data[index]);
    const StorageBlock block = storage_block(type);
    const unsigned char* at = data + index / block.numbers * block.bytes;
    const auto n = uint32_t(index % block.numbers);
    if (is_quantized(type) && type != FOVEA_Q8_0 && type != FOVEA_Q4_0)
        return with_weight_block(type, [&](auto kind) {
            using Block = decltype(kind);
            const uint32_t g = n / Block::kGroup;
            return block_number<Block>(at, Block::group(at, g), g, n % Block::kGroup);
        });
    uint16_t scale = 0;
    memcpy(&scale, at, sizeof scale);
    at += sizeof scale;
    // q4_0: byte n holds values n (low half) and n + 16 (high half), each 8 too large.
    const int number =
        type == FOVEA_Q8_0 ? std::bit_cast<int8_t>(at[n]) : int(at[n % 16] >> n / 16 * 4 & 15) - 8;
    return float(number) * half_to_float(scale);
}

void compress_row(FoveaDtype type, const float* from, size_t count, unsigned char* data, int64_t index) {
    const StorageBlock block = storage_block(type);
    unsigned char* to = data + stored_bytes(type, index);
    for (size_t n = 0; n < count; n += block.numbers, to += block.bytes) {
        if (type == FOVEA_F8_E4M3)
            *to = E4m3::from_float(from[n]);
        else if (type == FOVEA_F8_E5M2)
            *to = E5m2::from_float(from[n]);
        else
            compress_block(type, from + n, to);
    }
}

}  // namespace fovea
