#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/compressed_row.cpp"
#include <hwy/foreach_target.h>

#include "cpu/weight_blocks_inl.hpp"

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

template <class Block>
void widen_weight_blocks(const unsigned char* block, size_t count, float* to) {
    HWY_ALIGN uint8_t codes[kUnit<Block>];
    Groups<Block> groups;
    for (float* const end = to + count; to != end; block += Block::kBytes) {
        groups.read(block);
        for (size_t n = 0; n < Block::kNumbers; n += kLanes, to += kLanes) {
            const size_t first = n % kUnit<Block>, g = n / Block::kGroup;
            if (first == 0) unpack(Block(), block, n / kUnit<Block>, codes);
            const V code = hn::ConvertTo(F(), signed_bytes_of(codes + first)), scale = groups.scale(g);
            if constexpr (Block::kHasMin)
                hn::StoreU(mul_add(code, scale, groups.least(g)), F(), to);
            else
                hn::StoreU(hn::Mul(code, scale), F(), to);
        }
    }
}

void widen_row(FoveaDtype type, const unsigned char* from, size_t count, float* to) {
    switch (type) {
        case FOVEA_F8_E4M3:
            return widen_float8_row<E4m3>(from, type, count, to);
        case FOVEA_F8_E5M2:
            return widen_float8_row<E5m2>(from, type, count, to);
        case FOVEA_Q8_0:
            return widen_blocks<StoredQ8>(from, count, to);
        case FOVEA_Q4_0:
            return widen_blocks<StoredQ4>(from, count, to);
        default:
            return with_weight_block(
                type, [&](auto block) { widen_weight_blocks<decltype(block)>(from, count, to); });
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
