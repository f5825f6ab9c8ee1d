// Shared by the flash kernels: rows of k and v, masks and dropout.
//   FOVEA_WITHOUT_VALUES  the push constants know nothing of v
#ifndef FOVEA_FLASH_GLSL
#define FOVEA_FLASH_GLSL

#include "flash_rows.glsl"
#include "logit.glsl"

FOVEA_WORDS(page_bits, FOVEA_SLOT_BLOCK_TABLE, kGatherBlockTable, extra.at.block_table)

const uint kNoRow = 0xffffffffu;

// Start of row j of k or v; kNoRow if its page is not in the pool.
uint key_row(HeadView t, uint page_stride, Entry e, int j) {
    const uint base = t.base + key_head(e) * t.head;
    if (!kGeneral || !has_flag(kFlagPaged)) return base + uint(e.kv_start + j) * t.row;
    const uint entry = (push.slice.first_batch + e.batch) * extra.table_pages;
    const int page = int(page_bits(entry + uint(j) / extra.page_size));
    if (page < 0 || page >= int(extra.page_count)) return kNoRow;
    return base + uint(page) * page_stride + uint(j) % extra.page_size * t.row;
}
uint k_row(Entry e, int j) {
    return key_row(push.k, kGeneral && has_flag(kFlagPaged) ? extra.k_page : 0u, e, j);
}
#ifndef FOVEA_WITHOUT_VALUES
uint v_row(Entry e, int j) {
    return key_row(push.v, kGeneral && has_flag(kFlagPaged) ? extra.v_page : 0u, e, j);
}
#endif

uint matrix_at(HeadView t, Row row, int j) {
    return t.base + row.head * t.head + row.query * t.row + uint(j);
}

// Mask and bias leave every logit of the current block unchanged, so they need not be read.
bool matrices_are_clear = false;

// Asks the map of mask and bias about this workgroup's rows and a block of keys; false if it hides every key.
bool enter_block(Entry e, uint block) {
    if (!kGeneral || !has_flag(kFlagMaskMap)) return true;
    const uint head = extra.map_heads == 1u ? 0u : e.head;
    const uint word =
        (head * gl_NumWorkGroups.x + gl_WorkGroupID.x) * extra.map_words + block / kBlocksPerWord;
    const uint code = behind_extra[kMaskMapWord - kExtraWords + word] >> (block % kBlocksPerWord * 2u) & 3u;
    matrices_are_clear = code == kBlockClear;
    return code != kBlockHidden;
}

bool reads_mask() { return has_flag(kFlagMask) && !matrices_are_clear; }
bool reads_bias() { return has_flag(kBiasMask) && !matrices_are_clear; }

// More than bounds decides about a logit.
bool changes_logits() {
    return kGeneral &&
           (changes_scores(push.logit) || has_flag(kFlagAlibi | kFlagPaged) || reads_mask() || reads_bias());
}

// Logits of keys j .. j+3 from their scores; -inf where hidden.
vec4 masked_logits(Entry e, Row row, int j, vec4 score) {
    const Keys keys = row.exists ? visible_keys(e, row.i, row.i + 1) : Keys(0, 0);
    const ivec4 key = ivec4(j, j + 1, j + 2, j + 3);
    vec4 logit = score;
    bvec4 hidden = equal(
        uvec4(greaterThanEqual(key, ivec4(keys.begin))) * uvec4(lessThan(key, ivec4(keys.end))), uvec4(0u));
    if (kGeneral) {
        logit = capped_score(push.logit, score);
        if (has_flag(kFlagAlibi)) logit += alibi_slope(global_head(row)) * vec4(key - (row.i + e.offset));
        [[dont_unroll]] for (int c = 0; c < 4; ++c) {
            if (!hidden[c] && has_flag(kFlagPaged)) hidden[c] = k_row(e, key[c]) == kNoRow;
            if (!hidden[c] && reads_mask()) hidden[c] = !mask_shows(matrix_at(extra.mask, row, key[c]));
            if (!hidden[c] && reads_bias()) {
                const float bias = bias_at(matrix_at(extra.bias, row, key[c]));
                hidden[c] = floatBitsToUint(bias) == kMinusInfinity;
                logit[c] += bias;
            }
        }
    }
    return mix(logit, vec4(FOVEA_MINUS_INFINITY), hidden);
}

// Which of keys j .. j+3 (j a multiple of 4) dropout keeps.
bvec4 kept_keys(Row row, int j) {
    if (has_flag(kFlagPhilox)) {
        const uint first = push.slice.first_head * group_size() + push.slice.first_batch * extra.heads_q;
        return philox_keeps(extra.keep.row + first + row.place, extra.keep.base + uint(row.i),
                            extra.keep.head + uint(j), extra.philox);
    }
    bvec4 kept;
    for (int c = 0; c < 4; ++c)
        kept[c] =
            uint(j + c) < extra.keep_keys && keep_matrix_keeps(matrix_at(extra.keep, row, 0) + uint(j + c));
    return kept;
}

bool has_dropout() { return has_flag(kFlagPhilox | kFlagDropoutMask); }

// True if only the bounds decide whether a key of the current block counts.
bool every_key_counts() {
    return !has_flag(kFlagSparse) || (matrices_are_clear && !has_flag(kFlagPaged) && !has_dropout());
}

#endif
