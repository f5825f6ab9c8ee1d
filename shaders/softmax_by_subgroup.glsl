// The online softmax of flash in a workgroup that is one whole subgroup: maxima by a subgroup operation, and
// all but the weights in registers. Sums are added in the order of softmax_by_memory.glsl.
#ifndef FOVEA_SOFTMAX_BY_SUBGROUP_GLSL
#define FOVEA_SOFTMAX_BY_SUBGROUP_GLSL

// For each row: this thread's largest logit of the block and sum of weights so far; the largest logit so far,
// and what the row's sums must be multiplied by.
float largest[kRows], totals[kRows], maximum[kRows], rescales[kRows];
// The sums of all threads; what each row's columns are multiplied by in the end.
shared float shared_totals[kRows][kThreads], rescale[kRows];

void begin_rows() {
    for (uint i = 0u; i < kRows; ++i) totals[i] = 0.0, maximum[i] = FOVEA_MINUS_INFINITY;
}

void set_largest(uint i, float logit) { largest[i] = logit; }

void raise_maxima() {
    for (uint i = 0u; i < kRows; ++i) {
        const float raised = max(maximum[i], subgroupMax(largest[i]));
        const bool none = floatBitsToUint(raised) == kMinusInfinity;
        rescales[i] = none ? 1.0 : exp_of_negative(maximum[i] - raised);
        maximum[i] = raised;
    }
}

float maximum_of(uint i) { return maximum[i]; }
// Picks row i of this thread's part. The rows are registers, so that one is selected and not indexed.
float rescale_of_part(uint i) {
    float found = rescales[i];
    for (uint p = 1u; p < kParts; ++p) found = part() == p ? rescales[p * kPartRows + i] : found;
    return found;
}
float rescale_of(uint i) { return rescales[i]; }
float total_of(uint i) { return totals[i]; }
void add_total(uint i, float sum) { totals[i] = fma(totals[i], rescales[i], sum); }

void share_weights() {
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}

float row_largest;  // maximum of row t, in the threads t that have one

void share_sums() {
    const uint t = gl_LocalInvocationIndex;
    for (uint i = 0u; i < kRows; ++i) {
        shared_totals[i][t] = totals[i];
        if (i == t) row_largest = maximum[i];
    }
    share_weights();
}

// Row r as a whole, by thread r; after a call of share_sums.
RowSum sum_of_row(uint r) {
    RowSum sum = RowSum(row_largest, 0.0);
    [[dont_unroll]] for (uint n = 0u; n < kThreads; ++n) sum.total += shared_totals[r][n];
    return sum;
}

#endif
