// Draws cases over the whole meaning of fovea.h, kept small enough that thousands run in minutes.
#pragma once

#include "support/case.hpp"

namespace fovea::test {

struct CaseLimits {
    double flops = 1.5e6;  // 2*(D+Dv) for each pair of query and key; larger draws are shrunk
    // Every case allows these products, not only those that draw them.
    FoveaPrecision precision = FOVEA_PRECISION_F32;
    bool results_only = false;  // no matrices, which one-pass kernels never hold
    bool row_stats = true;      // with results_only: row statistics all the same
    bool compressed = false;    // a quarter of the cases have 8-bit floats or blocks for k and v
};

// The same seed and limits give the same case on every machine.
Case generate_case(uint64_t seed, const CaseLimits& limits = {});

// The seed of case number `index` of a sweep.
uint64_t case_seed(uint64_t sweep_seed, uint64_t index);

// A plain case to set up by hand: dense, f32, values normal. Change what is wanted, then call settle.
Case plain_case(uint64_t seed, uint32_t batch, uint32_t heads_q, uint32_t heads_kv, uint64_t len_q,
                uint64_t len_kv, uint32_t dim_qk, uint32_t dim_v);

}  // namespace fovea::test
