// A map of mask and bias for flash: of each tile of its rows and block of its keys whether every key is
// hidden, none changed, or neither. A workgroup takes 16 blocks of one tile, four threads each, and writes
// one word.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(push_constant, std430) uniform Push { MaskMapPush push; };
layout(set = 0, binding = FOVEA_SLOT_MASK, std430) readonly buffer Mask { uint mask_words[]; };
layout(set = 0, binding = FOVEA_SLOT_BIAS, std430) readonly buffer Bias { uint bias_words[]; };
layout(set = 0, binding = FOVEA_SLOT_MASK_MAP, std430) writeonly buffer Map { uint map[]; };

// The kinds of keys that a thread found in a matrix: masked, changed without being masked, unchanged.
const uint kSawHidden = 1u, kSawChanged = 2u, kSawClear = 4u;

const uint kLanes = kMaskMapThreads / kBlocksPerWord;

shared uvec2 seen[kMaskMapThreads];  // of the mask and of the bias

// Bytes [begin, end) of the mask, four at a time; every kLanes-th word is this lane's.
uint look_at_mask(uint begin, uint end, uint lane) {
    uint saw = 0u;
    for (uint w = begin / 4u + lane; w * 4u < end; w += kLanes) {
        const uint first = max(begin, w * 4u) - w * 4u, last = min(end, w * 4u + 4u) - w * 4u;
        const uint used =
            (last == 4u ? 0xffffffffu : (1u << (8u * last)) - 1u) & ~((1u << (8u * first)) - 1u);
        const uint bytes = mask_words[w], hidden = bytes | ~used;
        if ((bytes & used) != 0u) saw |= kSawClear;
        if (((hidden - 0x01010101u) & ~hidden & 0x80808080u) != 0u) saw |= kSawHidden;
    }
    return saw;
}

uint look_at_bias(uint begin, uint end, uint lane) {
    const uint type = push.flags & kBiasMask;
    const bool half_words = type != kBiasF32;
    uint saw = 0u;
    for (uint at = begin + lane; at < end; at += kLanes) {
        const uint bits = half_words ? bias_words[at >> 1] >> ((at & 1u) << 4) & 0xffffu : bias_words[at];
        const uint sign = half_words ? 0x8000u : 0x80000000u;
        const uint minus_infinity = type == kBiasF32   ? kMinusInfinity
                                    : type == kBiasF16 ? 0xfc00u
                                                       : kMinusInfinity >> 16;
        saw |= bits == minus_infinity ? kSawHidden : (bits & ~sign) != 0u ? kSawChanged : kSawClear;
    }
    return saw;
}

bool hides_all(uint saw) { return saw == kSawHidden; }
bool leaves_all(uint saw) { return (saw & (kSawHidden | kSawChanged)) == 0u; }

void main() {
    const uint t = gl_LocalInvocationIndex, lane = t % kLanes, tile = gl_WorkGroupID.x;
    const uint block = gl_WorkGroupID.y * kBlocksPerWord + t / kLanes;
    const uint j0 = min(block * push.block_keys, push.key_limit),
               j1 = min(j0 + push.block_keys, push.key_limit);
    const uint row0 = tile * push.tile_rows, i0 = row0 / push.group;
    uint i1 = min((row0 + push.tile_rows + push.group - 1u) / push.group, push.rows);
    // A row that is broadcast to all queries is read once.
    if (push.mask.row == 0u && push.bias.row == 0u) i1 = min(i1, i0 + 1u);
    const uint heads = push.map_heads == 1u ? 1u : push.group, head0 = gl_WorkGroupID.z * heads;
    uvec2 saw = uvec2(0u);
    for (uint n = 0u; j0 < j1 && n < heads * (i1 - i0); ++n) {
        const uint h = head0 + n % heads, i = i0 + n / heads;
        const uint mask_row = push.mask.base + h * push.mask.head + i * push.mask.row;
        const uint bias_row = push.bias.base + h * push.bias.head + i * push.bias.row;
        if ((push.flags & kFlagMask) != 0u) saw.x |= look_at_mask(mask_row + j0, mask_row + j1, lane);
        if ((push.flags & kBiasMask) != 0u) saw.y |= look_at_bias(bias_row + j0, bias_row + j1, lane);
    }
    seen[t] = saw;
    barrier();
    if (t != 0u) return;
    uint word = 0u;
    for (uint b = 0u; b < kBlocksPerWord; ++b) {
        uvec2 all = uvec2(0u);
        for (uint n = 0u; n < kLanes; ++n) all |= seen[b * kLanes + n];
        uint code = kBlockMixed;
        if (leaves_all(all.x) && leaves_all(all.y)) code = kBlockClear;
        if (hides_all(all.x) || hides_all(all.y)) code = kBlockHidden;
        word |= code << (2u * b);
    }
    map[(gl_WorkGroupID.z * gl_NumWorkGroups.x + tile) * push.map_words + gl_WorkGroupID.y] = word;
}
