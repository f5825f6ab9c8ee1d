// Elementwise kernels read and write single elements. What has 16 bits is read in 16-bit words where there
// are any: Y may be X, and another thread may own the other half of a 32-bit word. (Without them that half is
// only ever replaced by atomics, which leave this thread's half as it is.)
#ifndef FOVEA_ELEMENT_GLSL
#define FOVEA_ELEMENT_GLSL

#include "math.glsl"
#include "store.glsl"

FOVEA_OUTPUT_TENSOR(y, FOVEA_SLOT_Y)
layout(set = 0, binding = FOVEA_SLOT_X, std430) readonly buffer XWords { uint x_words[]; };
uint x_half_of_word(uint e) { return x_words[e >> 1] >> ((e & 1u) << 4) & 0xffffu; }
#ifdef FOVEA_WGSL
uint x_half(uint e) { return x_half_of_word(e); }
#else
layout(set = 0, binding = FOVEA_SLOT_X, std430) readonly buffer XHalves { uint16_t x_halves[]; };
uint x_half(uint e) {
    if (kStoresHalves) return uint(x_halves[e]);
    return x_half_of_word(e);
}
#endif

uint x_bits(uint e) { return kXType == FOVEA_F32 ? x_words[e] : x_half(e); }
float x_value(uint e) {
    return kXType == FOVEA_F32 ? uintBitsToFloat(x_words[e]) : value_of_half(x_half(e), kXType == FOVEA_BF16);
}

// A copy of equal types moves the bits, NaN payloads included.
uint copied_bits(uint from) { return kXType == kStoredType ? x_bits(from) : stored_bits(x_value(from)); }
void copy_element(uint from, uint to) { y_store_bits(to, copied_bits(from)); }

// Start of row `row` of the slice's entry z.
uint row_of(TensorView t, uint z, uint row) {
    return t.base + z / push.slice.heads * t.batch + z % push.slice.heads * t.head + row * t.row;
}

#endif
