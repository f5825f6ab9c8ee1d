// The blocks of flash for software drivers, in a workgroup that is one whole subgroup. What all lanes need,
// elements of q and weights, is loaded eight at a time, a lane each, and handed round by shuffles: to these
// drivers a load at one address for all lanes is a branch and a bounds check for each number, a shuffle from
// a lane that is known one instruction. For the same reason a tile has more rows than the workgroup threads.
#ifndef FOVEA_FLASH_BY_SHUFFLE_GLSL
#define FOVEA_FLASH_BY_SHUFFLE_GLSL

const uint kStep = 8u;  // values that are exchanged at a time; there must be as many lanes
const uint kLaneRows = (kRows + kThreads - 1u) / kThreads;

// This thread's four keys: scores, logits, weights of each row. And the sum of its weights so far.
vec4 logit[kRows];
float totals[kRows];
uint q_row[kRows];  // places of the tile's rows in q
// For rows t, t + kThreads, ...: the largest logit so far, and what the sums must be multiplied by.
float maximum[kLaneRows], rescales[kLaneRows];
// Weights of the block's keys. Two buffers, used alternately: a block writes one while slower threads still
// read the other.
const uint kTurns = 2u;
shared float weights[kTurns][kRows][4u * kThreads];
shared float of_lane[kRows][kThreads];  // each lane's largest logits; in the end its sums
shared float row_maximum[kRows], rescale[kRows];

uint step_lane() { return gl_LocalInvocationIndex % kStep; }

vec4 shared_weights(uint turn, uint i) {
    const uint at = 4u * gl_LocalInvocationIndex;
    return vec4(weights[turn][i][at], weights[turn][i][at + 1u], weights[turn][i][at + 2u],
                weights[turn][i][at + 3u]);
}

void share_row(uint turn, uint i, vec4 values) {
    for (uint c = 0u; c < 4u; ++c) weights[turn][i][4u * gl_LocalInvocationIndex + c] = values[c];
}

void begin_rows() {
    [[unroll]] for (uint i = 0u; i < kRows; ++i) totals[i] = 0.0;
    [[unroll]] for (uint g = 0u; g < kLaneRows; ++g) maximum[g] = FOVEA_MINUS_INFINITY;
}

void share_weights() {
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}

void find_query_rows(Entry e, uint first_row) {
    uint of_thread[kLaneRows];
    [[unroll]] for (uint g = 0u; g < kLaneRows; ++g)
        of_thread[g] = query_row_at(e, first_row, g * kThreads + gl_LocalInvocationIndex);
    [[unroll]] for (uint i = 0u; i < kRows; ++i)
        q_row[i] = subgroupShuffle(of_thread[i / kThreads], i % kThreads);
}

// Scores of this thread's keys j .. j+3, clamped into `keys`, against every row.
void score_block(Entry e, Keys keys, int j, uint turn) {
    uint k_at0[4];
    for (int c = 0; c < 4; ++c) {
        const uint row = k_row(e, clamp(j + c, keys.begin, keys.end - 1));
        k_at0[c] = row == kNoRow ? push.k.base : row;
    }
    [[unroll]] for (uint i = 0u; i < kRows; ++i) logit[i] = vec4(0.0);
    const uint dim = push.dims & 0xffffu, quads_end = kAligned ? dim : 0u;
    [[dont_unroll]] for (uint d = 0u; d < quads_end; d += kStep) {
        const bool both = d + 4u < dim;
        vec4 key[4][2];
        [[unroll]] for (int c = 0; c < 4; ++c) {
            key[c][0] = k_at4(k_at0[c] + d);
            key[c][1] = mix(vec4(0.0), k_at4(k_at0[c] + min(d + 4u, dim - 4u)), bvec4(both));
        }
        // All loads before the first sum: a driver's code waits for each where they alternate.
        const uint at = d + step_lane();
        float query[kRows];
        [[unroll]] for (uint i = 0u; i < kRows; ++i)
            query[i] = at < dim ? q_at(q_row[i] + min(at, dim - 1u)) : 0.0;
        [[unroll]] for (uint i = 0u; i < kRows; ++i) {
            [[unroll]] for (uint n = 0u; n < kStep; ++n) {
                const float x = subgroupShuffle(query[i], n);
                [[unroll]] for (int c = 0; c < 4; ++c)
                    logit[i][c] = fma(x, key[c][n / 4u][n % 4u], logit[i][c]);
            }
        }
    }
    [[dont_unroll]] for (uint d = quads_end; !kAligned && d < dim; ++d) {
        vec4 key;
        for (int c = 0; c < 4; ++c) key[c] = k_at(k_at0[c] + d);
        [[unroll]] for (uint i = 0u; i < kRows; ++i)
            logit[i] = fma(vec4(q_at(q_row[i] + d)), key, logit[i]);
    }
    [[unroll]] for (uint i = 0u; i < kRows; ++i) logit[i] *= push.scale;
}

// Bias and masks; this thread's largest logit of each row. `inside`: every row sees every key of the block,
// as far as bounds go.
void mask_block(Entry e, uint first_row, int j, uint turn, bool inside) {
    if (!inside || changes_logits()) {
        [[unroll]] for (uint i = 0u; i < kRows; ++i) share_row(turn, i, logit[i]);
        [[dont_unroll]] for (uint i = 0u; i < kRows; ++i)
            share_row(turn, i, masked_logits(e, row_at(e, first_row + i), j, shared_weights(turn, i)));
        [[unroll]] for (uint i = 0u; i < kRows; ++i) logit[i] = shared_weights(turn, i);
    }
    [[unroll]] for (uint i = 0u; i < kRows; ++i) of_lane[i][gl_LocalInvocationIndex] =
        max(max(logit[i].x, logit[i].y), max(logit[i].z, logit[i].w));
}

void raise_maxima() {
    share_weights();
    [[unroll]] for (uint g = 0u; g < kLaneRows; ++g) {
        const uint row = min(g * kThreads + gl_LocalInvocationIndex, kRows - 1u);
        float raised = maximum[g];
        [[unroll]] for (uint n = 0u; n < kThreads; ++n) raised = max(raised, of_lane[row][n]);
        const bool none = floatBitsToUint(raised) == kMinusInfinity;
        rescales[g] = none ? 1.0 : exp_of_negative(maximum[g] - raised);
        maximum[g] = raised;
    }
}

float rescale_of_part(uint i) { return subgroupShuffle(rescales[i / kThreads], i % kThreads); }

// Logits become weights relative to the maximum; hidden and dropped ones kHiddenWeight.
void weigh_block(Entry e, uint first_row, int j, uint turn) {
    [[unroll]] for (uint i = 0u; i < kRows; ++i) {
        const float largest = subgroupShuffle(maximum[i / kThreads], i % kThreads);
        const uvec4 bits = floatBitsToUint(logit[i]);
        const bvec4 hidden = equal(bits, uvec4(kMinusInfinity));
        const vec4 below = mix(uintBitsToFloat(bits) - largest, vec4(0.0), hidden);
        const vec4 weight = mix(exp_of_negative(below), vec4(0.0), hidden);
        if (kStats)
            add_stats(i, j, hidden, below, weight, largest, totals[i], rescale_of_part(i));
        totals[i] = fma(totals[i], rescale_of_part(i), weight.x + weight.y + (weight.z + weight.w));
        share_row(turn, i, uintBitsToFloat(mix(floatBitsToUint(weight), uvec4(kHiddenWeight), hidden)));
    }
    if (!kGeneral || !has_dropout()) return;
    [[dont_unroll]] for (uint i = 0u; i < kRows; ++i) {
        const Row row = row_at(e, first_row + i);
        if (!row.exists) continue;
        const uvec4 bits = floatBitsToUint(shared_weights(turn, i));
        share_row(turn, i, uintBitsToFloat(mix(uvec4(kHiddenWeight), bits, kept_keys(row, j))));
    }
}

// Adds the block's weights times values to the sums of this thread's columns.
void add_block(Entry e, Keys keys, int j0, uint turn, bool full,
               inout vec4 acc[kPartRows][kColumnQuads]) {
    const uint dim_v = push.dims >> 16, column0 = first_column();
    const int end = min(keys.end - j0, int(4u * kThreads));
    [[dont_unroll]] for (int n = 0; kAligned && full && n < end; n += int(kStep)) {
        vec4 value[kStep][kColumnQuads];
        [[unroll]] for (uint u = 0u; u < kStep; ++u) {
            const uint row = v_row(e, j0 + n + int(u));
            [[unroll]] for (uint c = 0u; c < kColumnQuads; ++c)
                value[u][c] = v_columns4(row, column0 + c * kThreads * 4u, dim_v);
        }
        float weight[kRows];
        [[unroll]] for (uint i = 0u; i < kRows; ++i) weight[i] = weights[turn][i][uint(n) + step_lane()];
        [[unroll]] for (uint i = 0u; i < kRows; ++i) {
            [[unroll]] for (uint u = 0u; u < kStep; ++u) {
                const vec4 w = vec4(subgroupShuffle(weight[i], u));
                [[unroll]] for (uint c = 0u; c < kColumnQuads; ++c)
                    acc[i][c] = fma(w, value[u][c], acc[i][c]);
            }
        }
    }
    // A hidden key's value must not touch the sum, whatever it is: it is left out by selection.
    [[dont_unroll]] for (int n = kAligned && full ? end : max(keys.begin - j0, 0); n < end; ++n) {
        const uint found = v_row(e, j0 + n), row = found == kNoRow ? push.v.base : found;
        vec4 value[kColumnQuads];
        for (uint c = 0u; c < kColumnQuads; ++c)
            value[c] = v_columns4(row, column0 + c * kThreads * 4u, dim_v);
        [[unroll]] for (uint i = 0u; i < kRows; ++i) {
            const float w = weights[turn][i][n];
            const bool hidden = floatBitsToUint(w) == kHiddenWeight;
            [[unroll]] for (uint c = 0u; c < kColumnQuads; ++c)
                acc[i][c] = fma(vec4(hidden ? 0.0 : w), mix(value[c], vec4(0.0), bvec4(hidden)), acc[i][c]);
        }
    }
}

void share_sums() {
    const uint t = gl_LocalInvocationIndex;
    [[unroll]] for (uint i = 0u; i < kRows; ++i) of_lane[i][t] = totals[i];
    [[unroll]] for (uint g = 0u; g < kLaneRows; ++g)
        if (g * kThreads + t < kRows) row_maximum[g * kThreads + t] = maximum[g];
    share_weights();
}

// Row r as a whole, after a call of share_sums.
RowSum sum_of_row(uint r) {
    RowSum sum = RowSum(row_maximum[r], 0.0);
    [[dont_unroll]] for (uint n = 0u; n < kThreads; ++n) sum.total += of_lane[r][n];
    return sum;
}

#endif
