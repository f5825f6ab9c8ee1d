// One pass of keys and values: this rank's chunks to one other rank, another one's chunks to this rank, while
// the caller computes.
#pragma once

#include <fovea/mpi.hpp>

#include <cstddef>
#include <vector>

namespace fovea::mpi {

struct Span {
    const std::byte* data = nullptr;
    uint64_t size = 0;
};

class Exchange {
  public:
    // Sends `sent` in order to rank `to`, receives blocks of these sizes from rank `from` into memory of its
    // own. Memory is taken by reserve(), so that start() cannot fail for want of it.
    void reserve(uint64_t bytes, uint64_t blocks) { received_.resize(bytes + blocks * kAlignment); }
    Result<void> start(MPI_Comm comm, int to, const std::vector<Span>& sent, int from,
                       const std::vector<uint64_t>& sizes);
    // Bytes not yet through; lets MPI make progress.
    uint64_t in_flight();
    Result<void> wait();

    uint64_t bytes() const { return received_.size(); }

    // After wait(): block n, in the order in which its owner sent it.
    const std::byte* block(size_t n) const { return received_.data() + first_[n]; }

  private:
    static constexpr uint64_t kAlignment = 64;  // of blocks: the engine reads them where they arrive
    std::vector<std::byte> received_;
    std::vector<uint64_t> first_, sizes_;  // of blocks; sizes_ of requests
    std::vector<MPI_Request> requests_;
};

}  // namespace fovea::mpi
