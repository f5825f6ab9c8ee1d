// One backward call for tests: a forward case of the sweep, the requested gradients, and the contents of the
// inputs, all from one seed.
#pragma once

#include "support/executor.hpp"
#include "support/run_case.hpp"

#include <cstdint>
#include <string>

namespace fovea::test {

struct GradientCase {
    Case c;  // never paged; outputs are o and lse
    FoveaAttentionBackwardDesc backward{};
    Oracle forward;           // result of the forward call
    Tensors clean, poisoned;  // inputs of the backward call, zeros or poison in what must not count
    Tensors exact,
        plain;  // its gradients in float64 (stored as float32 at the same places) and plain float32
};

// The same seed gives the same case on every machine. Draws again from the next seed where the sweep draws a
// paged cache.
Case forward_case(uint64_t seed, double flops);
FoveaAttentionBackwardDesc draw_backward(const Case& c);
Result<GradientCase> prepare_gradients(uint64_t seed, double flops = 4e5);
// The same for a forward call and a request made by hand.
Result<GradientCase> prepare_gradients(Case c, const FoveaAttentionBackwardDesc& backward);

// "B=1 ... gradients=dq,dk".
std::string describe_gradients(const GradientCase& g);
std::string gradient_replay(uint64_t seed, const std::string& executor);

// True if keys of two packed entries share a row: then they have no separate dk and dv.
bool keys_overlap(const Case& c);

// The rows of every gradient against the oracle, and every byte between them untouched.
struct GradientVerdict {
    bool ok = true;
    std::string text;
    double worst_share = 0;
};
GradientVerdict judge_gradients(const GradientCase& g, const Tensors& got);

// Runs the poisoned inputs on an executor, whole and in shuffled slices by several workers, and judges.
CaseReport run_gradients(Executor& executor, const GradientCase& g, const std::string& replay);

}  // namespace fovea::test
