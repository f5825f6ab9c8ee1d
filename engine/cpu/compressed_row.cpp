#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/compressed_row.cpp"
#include <hwy/foreach_target.h>

#include "cpu/compressed_row_inl.hpp"
#include "problem/k_quants.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

template <class Code>
HWY_INLINE void widen_float8_row(const unsigned char* from, FoveaDtype type, size_t count, float* to) {
    size_t e = 0;
    for (; e + kLanes <= count; e += kLanes) hn::StoreU(load_float8<Code>(from + e), F(), to + e);
    for (; e < count; ++e) to[e] = compressed_number(from, type, int64_t(e));
}

template <class Block>
HWY_INLINE void widen_blocks(const unsigned char* block, size_t count, float* to) {
    for (size_t e = 0; e < count; e += 32, block += Block::kBytes, to += 32) {
        const V scale = Block::scale(block);
        for (size_t n = 0; n < 32; n += kLanes) hn::StoreU(Block::load(block, n, scale), F(), to + n);
    }
}

template <class Type>
void widen_k_blocks(const unsigned char* block, size_t count, float* to) {
    for (size_t e = 0; e < count; e += 256, block += Type::kBytes) widen_k_block<Type>(block, to + e);
}

void widen_row(FoveaDtype type, const unsigned char* from, size_t count, float* to) {
    switch (type) {
        case FOVEA_F8_E4M3:
            return widen_float8_row<E4m3>(from, type, count, to);
        case FOVEA_F8_E5M2:
            return widen_float8_row<E5m2>(from, type, count, to);
        case FOVEA_Q4_K:
            return widen_k_blocks<Q4K>(from, count, to);
        case FOVEA_Q5_K:
            return widen_k_blocks<Q5K>(from, count, to);
        case FOVEA_Q6_K:
            return widen_k_blocks<Q6K>(from, count, to);
        case FOVEA_Q8_0:
            return widen_blocks<StoredQ8>(from, count, to);
        default:
            return widen_blocks<StoredQ4>(from, count, to);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
