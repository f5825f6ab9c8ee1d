// One operation and its description, after the checks. The backends read it; nothing changes it.
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

// True if Y may be exactly X. Then each row is read before it is written, and nothing else reads it.
inline bool works_in_place(const Call& call) {
    const FoveaRopeDesc& d = call.rope;
    const auto same = [](uint64_t extent, int64_t x, int64_t y) { return extent <= 1 || x == y; };
    if (call.operation == Operation::rope)
        return d.x_type == d.y_type && same(d.batch, d.x_strides.batch, d.y_strides.batch) &&
               same(d.heads, d.x_strides.head, d.y_strides.head) &&
               same(d.len, d.x_strides.row, d.y_strides.row);
    return call.operation == Operation::norm || call.operation == Operation::pointwise;
}

}  // namespace fovea
