#include "cpu/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/compressed_row.cpp"
#include <hwy/foreach_target.h>

#include "cpu/compressed_row_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// An 8-bit float's exponent and fraction where float32 has them, and the exponent moved. Subnormal numbers
// get a leading one on top, which is taken away again: no product with a subnormal float32, which costs a
// hundred cycles.
template <int kFraction, int kBias>
HWY_INLINE V widen_float8(VI codes, int special, int bits_of_special) {
    const F f;
    const I i;
    constexpr int kShift = 23 - kFraction;
    const VI code = hn::And(codes, hn::Set(i, 0x7f));
    const auto subnormal = hn::Lt(code, hn::Set(i, 1 << kFraction));
    const VI moved = hn::Add(hn::ShiftLeft<kShift>(code), hn::Set(i, (127 - kBias) << 23));
    const VI one = hn::IfThenElseZero(subnormal, hn::Set(i, 1 << 23));
    const VI least = hn::IfThenElseZero(subnormal, hn::Set(i, (128 - kBias) << 23));
    const VI finite = hn::BitCast(i, hn::Sub(hn::BitCast(f, hn::Add(moved, one)), hn::BitCast(f, least)));
    const VI beyond = hn::IfThenElseZero(hn::Gt(code, hn::Set(i, special - 1)), hn::Set(i, bits_of_special));
    const VI sign = hn::ShiftLeft<24>(hn::And(codes, hn::Set(i, 0x80)));
    return hn::BitCast(f, hn::Or(hn::Or(finite, beyond), sign));
}
HWY_INLINE V load_e4m3(const unsigned char* at) { return widen_float8<3, 7>(bytes_of(at), 0x7f, 0x7fc00000); }
HWY_INLINE V load_e5m2(const unsigned char* at) {
    return widen_float8<2, 15>(bytes_of(at), 0x7c, 0x7f800000);
}

template <class Load>
HWY_INLINE void widen_float8_row(const unsigned char* from, FoveaDtype type, size_t count, float* to,
                                 const Load& load) {
    size_t e = 0;
    for (; e + kLanes <= count; e += kLanes) hn::StoreU(load(from + e), F(), to + e);
    for (; e < count; ++e) to[e] = compressed_number(from, type, int64_t(e));
}

HWY_INLINE void widen_q8_0(const unsigned char* block, float* to) {
    const V scale = hn::Set(F(), half_of(block));
    for (size_t j = 0; j < 32; j += kLanes)
        hn::StoreU(hn::Mul(scale, hn::ConvertTo(F(), signed_bytes_of(block + 2 + j))), F(), to + j);
}
HWY_INLINE void widen_q4_0(const unsigned char* block, float* to) {
    const V scale = hn::Set(F(), half_of(block));
    const VI eight = hn::Set(I(), 8);
    for (size_t j = 0; j < 16; j += kLanes) {
        const VI bytes = bytes_of(block + 2 + j);
        hn::StoreU(hn::Mul(scale, hn::ConvertTo(F(), hn::Sub(low_of(bytes), eight))), F(), to + j);
        hn::StoreU(hn::Mul(scale, hn::ConvertTo(F(), hn::Sub(high_of(bytes), eight))), F(), to + 16 + j);
    }
}

void widen_row(FoveaDtype type, const unsigned char* from, size_t count, float* to) {
    const StorageBlock block = storage_block(type);
    switch (type) {
        case FOVEA_F8_E4M3:
            return widen_float8_row(from, type, count, to,
                                    [](const unsigned char* at) HWY_ATTR { return load_e4m3(at); });
        case FOVEA_F8_E5M2:
            return widen_float8_row(from, type, count, to,
                                    [](const unsigned char* at) HWY_ATTR { return load_e5m2(at); });
        case FOVEA_Q8_0:
            for (size_t e = 0; e < count; e += block.numbers, from += block.bytes) widen_q8_0(from, to + e);
            return;
        default:
            for (size_t e = 0; e < count; e += block.numbers, from += block.bytes) widen_q4_0(from, to + e);
    }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
