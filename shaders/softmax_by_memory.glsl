// The online softmax of flash through shared memory: no subgroup operation is needed, a workgroup may have
// any number of threads.
#ifndef FOVEA_SOFTMAX_BY_MEMORY_GLSL
#define FOVEA_SOFTMAX_BY_MEMORY_GLSL

// For each thread's keys: the largest logit, and the sum of weights so far.
shared float largest[kRows][kThreads], totals[kRows][kThreads];
// For each row: the largest logit so far, and what its sums must be multiplied by.
shared float maximum[kRows], rescale[kRows];

float row_largest = FOVEA_MINUS_INFINITY;  // maximum of row t, in the threads t that have one

void begin_rows() {
    for (uint i = 0u; i < kRows; ++i) totals[i][gl_LocalInvocationIndex] = 0.0;
}

void set_largest(uint i, float logit) { largest[i][gl_LocalInvocationIndex] = logit; }

// One thread for each row: the row's new maximum, and what its sums so far must be multiplied by.
void raise_maxima() {
    const uint t = gl_LocalInvocationIndex;
    barrier();
    if (t < kRows) {
        float raised = row_largest;
        [[dont_unroll]] for (uint n = 0u; n < kThreads; ++n) raised = max(raised, largest[t][n]);
        const bool none = floatBitsToUint(raised) == kMinusInfinity;
        maximum[t] = raised;
        rescale[t] = none ? 1.0 : exp_of_negative(row_largest - raised);
        row_largest = raised;
    }
    barrier();
}

float maximum_of(uint i) { return maximum[i]; }
float rescale_of_part(uint i) { return rescale[first_part_row() + i]; }
float rescale_of(uint i) { return rescale[i]; }
float total_of(uint i) { return totals[i][gl_LocalInvocationIndex]; }
void add_total(uint i, float sum) {
    const uint t = gl_LocalInvocationIndex;
    totals[i][t] = fma(totals[i][t], rescale[i], sum);
}

void share_weights() { barrier(); }

void share_sums() { barrier(); }

// Row r as a whole, by thread r; after a call of share_sums.
RowSum sum_of_row(uint r) {
    RowSum sum = RowSum(row_largest, 0.0);
    [[dont_unroll]] for (uint n = 0u; n < kThreads; ++n) sum.total += totals[r][n];
    return sum;
}

#endif
