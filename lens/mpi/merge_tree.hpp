// Partial results of one chunk of queries, merged as soon as neighbours are there. Of a run of neighbouring
// chunks of keys, done from either end, at most two for each level of foveaPlanMerge's tree wait.
#pragma once

#include <fovea/fovea.hpp>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace fovea::mpi {

struct Partial {
    std::vector<float> o, lse;  // [H, rows, Dv] and [H, rows]; both empty: no query saw a key

    uint64_t bytes() const { return (o.size() + lse.size()) * sizeof(float); }
};

class MergeTree {
  public:
    MergeTree(uint32_t heads, uint64_t rows, uint32_t dim, uint64_t parts)
        : heads_(heads), rows_(rows), dim_(dim), parts_(parts) {}

    // Each part once, in any order.
    Result<void> add(uint64_t part, Partial partial);
    // When all parts were added: of no part o is 0 and lse -inf.
    Result<Partial> finish();
    // Returns the bytes of results that wait for a neighbor.
    uint64_t bytes_waiting() const { return bytes_waiting_; }

  private:
    Result<Partial> merged(Partial a, Partial b);

    uint32_t heads_;
    uint64_t rows_;
    uint32_t dim_;
    uint64_t parts_;
    std::map<std::pair<uint32_t, uint64_t>, Partial> waiting_;  // by level and index of 2^level parts
    uint64_t bytes_waiting_ = 0;
    Workspace workspace_;
};

}  // namespace fovea::mpi
