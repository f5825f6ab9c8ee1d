// The rotation of a KV cache's rows, see FOVEA_FLAG_ROTATED_CACHE: each 32 neighboring elements times the
// orthonormal Walsh-Hadamard matrix of that size. The matrix is its own inverse. Blocks of q8_0 and q4_0 are
// as long, so every row that they hold can be rotated. So can a part of a row that begins with a block. The
// sums have one order everywhere, so that a rotated cache has the same bits on every device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea {

constexpr uint32_t kRotationBlock = 32;
constexpr double kRotationScale = 0.17677669529663688110;  // 1 / sqrt(32)

// Rotates `count` elements, a multiple of 32, in place.
template <class Real>
inline void rotate_row(Real* row, size_t count) {
    for (size_t first = 0; first < count; first += kRotationBlock) {
        Real* const x = row + first;
        for (size_t step = 1; step < kRotationBlock; step *= 2) {
            for (size_t n = 0; n < kRotationBlock; n += 2 * step) {
                for (size_t e = n; e < n + step; ++e) {
                    const Real a = x[e], b = x[e + step];
                    x[e] = a + b;
                    x[e + step] = a - b;
                }
            }
        }
        for (size_t n = 0; n < kRotationBlock; ++n) x[n] *= Real(kRotationScale);
    }
}

}  // namespace fovea
