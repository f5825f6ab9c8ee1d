// The gradients of one attention call after checking: what is asked for, where each stands, and how large the
// work of every part is. The forward call itself is a Problem beside it.
#pragma once

#include "problem/problem.hpp"

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea {

struct Backward {
    uint32_t gradients;   // FOVEA_GRAD_*, never 0
    uint32_t accumulate;  // of them: added to what the buffer holds
    bool lse_gradient;
    FoveaDtype do_type, dq_type, dk_type, dv_type;
    FoveaStrides d_o, dq, dk, dv;  // defaults filled in
    // The bias's own extents, 1 where it broadcasts. DBIAS is packed [batch, heads, rows, keys], float32.
    uint32_t bias_batch, bias_heads;
    int64_t bias_rows, bias_keys;

    bool wants(uint32_t gradient) const { return (gradients & gradient) != 0; }
    bool adds(uint32_t gradient) const { return (accumulate & gradient) != 0; }
};

// The parts that gradients are computed by, each independent of the others: a row of dq; a row of dk and dv;
// a row of the bias's own; the slope and the sink of one head. Empty where nothing of the kind is asked for.
// Numbered one behind the other, query rows (b, h, i) first, then key rows (b, h_kv, j), bias rows
// (batch, head, row), slopes and sinks.
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
