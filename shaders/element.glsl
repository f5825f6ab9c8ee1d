// Elementwise kernels read and write single elements, float16 as 16-bit words: two threads may own the halves
// of one 32-bit word. X is f16 only in modules that have 16-bit storage, or where it is not written as well.
#ifndef FOVEA_ELEMENT_GLSL
#define FOVEA_ELEMENT_GLSL

layout(set = 0, binding = FOVEA_SLOT_X, std430) readonly buffer XWords { uint x_words[]; };
#ifdef FOVEA_STORE_F16
layout(set = 0, binding = FOVEA_SLOT_X, std430) readonly buffer XHalves { uint16_t x_halves[]; };
layout(set = 0, binding = FOVEA_SLOT_Y, std430) writeonly buffer YHalves { uint16_t y_halves[]; };

uint x_half(uint e) { return uint(x_halves[e]); }
void y_store_bits(uint e, uint bits) { y_halves[e] = uint16_t(bits); }
uint y_bits(float value) { return float16_bits(value); }
const uint kYType = kTypeF16;
#else
layout(set = 0, binding = FOVEA_SLOT_Y, std430) writeonly buffer YWords { uint y_words[]; };

uint x_half(uint e) { return x_words[e >> 1] >> ((e & 1u) << 4) & 0xffffu; }
void y_store_bits(uint e, uint bits) { y_words[e] = bits; }
uint y_bits(float value) { return floatBitsToUint(value); }
const uint kYType = kTypeF32;
#endif

uint x_bits(uint e) { return kXType == kTypeF16 ? x_half(e) : x_words[e]; }
float x_value(uint e) {
    return kXType == kTypeF16 ? unpackHalf2x16(x_half(e)).x : uintBitsToFloat(x_words[e]);
}

// A copy of equal types moves the bits, NaN payloads included.
void copy_element(uint from, uint to) {
    y_store_bits(to, kXType == kYType ? x_bits(from) : y_bits(x_value(from)));
}

// Start of row `row` of the slice's entry z.
uint row_of(TensorView t, uint z, uint row) {
    return t.base + z / push.slice.heads * t.batch + z % push.slice.heads * t.head + row * t.row;
}

#endif
