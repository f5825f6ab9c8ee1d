// Reads weights in ggml's blocks whose layout engine/problem/weight_blocks.hpp defines: four values, from one
// word or two, at a time. The products are those of ggml, so that every value has its bits.
#ifndef FOVEA_WEIGHT_BLOCKS_GLSL
#define FOVEA_WEIGHT_BLOCKS_GLSL

const bool kIsQ51 = kWType == FOVEA_Q5_1, kHasFifth = kIsQ51 || kWType == FOVEA_Q5_0,
           kHasLeast = kIsQ51 || kWType == FOVEA_Q4_1;
const bool kIsQ5K = kWType == FOVEA_Q5_K, kIsQ6K = kWType == FOVEA_Q6_K;
const bool kIsSmall = kHasFifth || kHasLeast,
           kIsWeightBlock = kIsSmall || kIsQ5K || kIsQ6K || kWType == FOVEA_Q4_K;

// Bytes at .. at+3 of W.
uint four_bytes(uint at) {
    const uint shift = (at & 3u) << 3;
    return w_plain_words[at >> 2] >> shift | w_plain_words[at + 3u >> 2] << 1 << (31u - shift);
}
vec4 bytes_of(uint word) { return vec4(uvec4(word) >> uvec4(0u, 8u, 16u, 24u) & 0xffu); }

vec4 w_of_small_block(uint block, uint n) {
    const uint fifths = block + (kHasLeast ? 4u : 2u);
    const vec2 units = unpackHalf2x16(four_bytes(block));
    uint codes = four_bytes(fifths + (kHasFifth ? 4u : 0u) + n % 16u) >> n / 16u * 4u & 0x0f0f0f0fu;
    if (kHasFifth) codes |= ((four_bytes(fifths) >> n & 15u) * 0x00204081u & 0x01010101u) << 4;
    if (!kHasLeast) return (bytes_of(codes) - 16.0) * units.x;
    precise const vec4 products = bytes_of(codes) * units.x;
    precise const vec4 numbers = products + units.y;
    return numbers;
}

// Blocks of q4_k and q5_k are whole words.
vec4 w_of_q45_k(uint word, uint n) {
    const uint g = n >> 5, l = n >> 2 & 7u, shift = (g & 3u) << 3;
    const uint a = w_plain_words[word + 1u] >> shift, b = w_plain_words[word + 2u] >> shift,
               c = w_plain_words[word + 3u] >> shift;
    const bool low = g < 4u;
    const uint scale = low ? a & 63u : c & 15u | a >> 2 & 48u;
    const uint least = low ? b & 63u : c >> 4 & 15u | b >> 2 & 48u;
    uint codes = w_plain_words[word + (kIsQ5K ? 12u : 4u) + (g >> 1) * 8u + l] >> (g & 1u) * 4u & 0x0f0f0f0fu;
    if (kIsQ5K) codes |= (w_plain_words[word + 4u + l] >> g & 0x01010101u) << 4;
    const vec2 units = unpackHalf2x16(w_plain_words[word]);
    precise const vec2 of_group = units * vec2(scale, least);
    precise const vec4 products = of_group.x * bytes_of(codes);
    precise const vec4 numbers = products - of_group.y;
    return numbers;
}

vec4 w_of_q6_k(uint block, uint n) {
    const uint half_block = n >> 7, quarter = n >> 5 & 3u, l = n & 31u;
    const uint low = four_bytes(block + 64u * half_block + (quarter & 1u) * 32u + l) >> (quarter >> 1) * 4u;
    const uint high = four_bytes(block + 128u + 32u * half_block + l) >> quarter * 2u;
    const uint tail = block + 192u + (n >> 4), unit = block + 208u;
    const int scale = int(w_plain_words[tail >> 2] << (24u - ((tail & 3u) << 3))) >> 24;
    precise const float of_group =
        unpackHalf2x16(w_plain_words[unit >> 2] >> ((unit & 2u) << 3)).x * float(scale);
    precise const vec4 numbers =
        of_group * (bytes_of(low & 0x0f0f0f0fu | (high & 0x03030303u) << 4) - 32.0);
    return numbers;
}

// Returns elements e .. e+3 of W; e is a multiple of 4.
vec4 w_of_weight_blocks(uint e) {
    if (kIsSmall) return w_of_small_block((e >> 5) * (kIsQ51 ? 24u : kHasLeast ? 20u : 22u), e & 31u);
    const uint block = e >> 8, n = e & 255u;
    if (kIsQ6K) return w_of_q6_k(block * 210u, n);
    return w_of_q45_k(block * (kIsQ5K ? 44u : 36u), n);
}

#endif
