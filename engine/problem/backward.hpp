// The gradients of one attention call after checking: which are requested, the place of each, and the work of
// every part. The forward call is a separate Problem.
#pragma once

#include "problem/problem.hpp"

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea {

struct Backward {
    uint32_t gradients;   // FOVEA_GRAD_*, never 0
    uint32_t accumulate;  // the gradients that are added to the buffer's contents
    bool lse_gradient;
    FoveaDtype do_type, dq_type, dk_type, dv_type;
    FoveaStrides d_o, dq, dk, dv;  // defaults filled in
    // The bias's own extents, 1 where it broadcasts. DBIAS is packed [batch, heads, rows, keys], float32.
    uint32_t bias_batch, bias_heads;
    int64_t bias_rows, bias_keys;

    bool wants(uint32_t gradient) const { return (gradients & gradient) != 0; }
    bool adds(uint32_t gradient) const { return (accumulate & gradient) != 0; }
};

// The independent parts of the gradients: a row of dq; a row of dk and dv; a row of the bias; the slope and
// the sink of one head. A part is empty if its gradients are not requested. They are numbered in sequence:
// query rows (b, h, i), key rows (b, h_kv, j), bias rows (batch, head, row), slopes, sinks.
struct BackwardParts {
    uint64_t query_rows, key_rows, bias_rows, slopes, sinks;

    uint64_t count() const { return query_rows + key_rows + bias_rows + slopes + sinks; }
};
BackwardParts parts_of(const Problem& problem, const Backward& backward);

// FLOPs of one pair of a query and a key in each part: the products that are computed again and those of the
// gradients. A sink costs one product of do and o for each of its
// rows, and no pairs.
struct PairFlops {
    double query_row, key_row, bias_row, slope, sink_row;
};
PairFlops pair_flops(const Problem& problem, const Backward& backward);

// All FLOPs, where `pairs` are visible in all heads of the batch together; and the most of any one part.
double backward_flops(const Problem& problem, const Backward& backward, double pairs);
double flops_of_largest_part(const Problem& problem, const Backward& backward);

// Checks `desc` against the attention call `problem`, and turns the problem's bindings into the gradients':
// q, k, v, o, lse, the gradient of o and what masks need in, the gradients out.
FoveaResult make_backward(const FoveaAttentionBackwardDesc* desc, Problem& problem, Backward& out,
                          FoveaDiag* diag);

}  // namespace fovea
