// What is asked for, after its checks: one operation and its description. The backends read it, nobody
// changes it.
#pragma once

#include "problem/backward.hpp"
#include "problem/map_tile.hpp"
#include "problem/operations.hpp"
#include "problem/problem.hpp"
#include "problem/row_parts.hpp"

#include <fovea/fovea.h>

namespace fovea {

// The backends' tables of operations are in this order.
enum class Operation : uint32_t {
    attention,
    rope,
    linear,
    append,
    map_tile,
    backward,
    merge,
    gather,
    norm,
    pointwise
};

// Whose Y may be exactly X.
constexpr bool works_in_place(Operation operation) {
    return operation == Operation::rope || operation == Operation::norm || operation == Operation::pointwise;
}

struct Call {
    Operation operation;
    Problem problem;    // attention; the call whose weights a map tile shows, or whose gradients are wanted
    MapTile tile;       // map_tile
    Backward backward;  // backward
    FoveaRopeDesc rope;
    FoveaLinearDesc linear;
    FoveaAppendDesc append;
    FoveaMergeDesc merge;
    FoveaGatherDesc gather;
    NormDesc norm;
    PointwiseDesc pointwise;
};

}  // namespace fovea
