// The types that tensors of numbers have in memory, as tests need them: single elements of buffers, and what
// storing a result in a type may cost it.
#pragma once

#include "problem/compressed.hpp"

#include <fovea/fovea.h>

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace fovea::test {

// The quantized types of KV caches, or with kUseLinear of weights.
inline std::vector<FoveaDtype> quantized_types(DtypeUse use = kUseCache) {
    std::vector<FoveaDtype> types;
    for (const DtypeInfo& info : kDtypes)
        if (is_quantized(info.type) && has_use(info.type, use)) types.push_back(info.type);
    return types;
}

// Element `index` of numbers that begin at `data`, which need not be aligned.
inline float load_number(const void* data, FoveaDtype type, int64_t index) {
    if (is_quantized(type)) return compressed_number(static_cast<const unsigned char*>(data), type, index);
    return with_type(type, [&](auto number) {
        memcpy(&number, static_cast<const unsigned char*>(data) + index * int64_t(sizeof number),
               sizeof number);
        return widened(number);
    });
}
inline void store_number(void* data, FoveaDtype type, int64_t index, float value) {
    with_type(type, [&](auto number) {
        narrow(value, number);
        memcpy(static_cast<unsigned char*>(data) + index * int64_t(sizeof number), &number, sizeof number);
    });
}

// `count` numbers of any type, whole blocks of them, from number `first` on.
inline void store_numbers(void* data, FoveaDtype type, int64_t first, const float* values, size_t count) {
    if (is_compressed(type))
        return compress_row(type, values, count, static_cast<unsigned char*>(data), first);
    for (size_t n = 0; n < count; ++n) store_number(data, type, first + int64_t(n), values[n]);
}

inline float largest_number(FoveaDtype type) {
    return type == FOVEA_F16 ? 65504.0f : type == FOVEA_BF16 ? 0x1.fep127f : FLT_MAX;
}

// The least number that float16 rounds to infinity.
inline constexpr float kHalfOverflow = 65520.0f;

// True if a result in `type` may be infinite although the exact one is not: it is within a unit of the
// largest finite value.
inline bool may_round_to_infinity(FoveaDtype type, double exact) {
    if (type == FOVEA_F16) return std::fabs(exact) > 65472;
    return type == FOVEA_BF16 && std::fabs(exact) > 0x1.fcp127;
}

}  // namespace fovea::test
