// One run of a backward plan as its kernels see it.
#pragma once

#include "cpu/attention_call.hpp"
#include "cpu/backward_layout.hpp"
#include "problem/backward.hpp"

namespace fovea::cpu {

struct BackwardCall {
    AttentionCall attention;
    const Backward& w;
    const BackwardCut& cut;
};

}  // namespace fovea::cpu
