// The transfers in flight while the caller computes: blocks of this rank to others, and another rank's blocks
// to this one.
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
    // Receives blocks of these sizes from rank `from` into its own memory; sends `sent` in order to rank
    // `to`, to any number of ranks. reserve() allocates the memory, so that receive() cannot run out of it.
    void reserve(uint64_t bytes, uint64_t blocks) { received_.resize(bytes + blocks * kAlignment); }
    Result<void> receive(MPI_Comm comm, int from, const std::vector<uint64_t>& sizes);
    Result<void> send(MPI_Comm comm, int to, const std::vector<Span>& sent);
    // Bytes not yet through; lets MPI make progress.
    uint64_t in_flight();
    Result<void> wait();

    uint64_t bytes() const { return received_.size(); }

    // After wait(): block n, in the order in which its owner sent it.
    const std::byte* block(size_t n) const { return received_.data() + first_[n]; }

  private:
    static constexpr uint64_t kAlignment = 64;  // alignment of blocks: the engine reads them in place
    std::vector<std::byte> received_;
    std::vector<uint64_t> first_, sizes_;  // first_ of blocks; sizes_ of requests
    std::vector<MPI_Request> requests_;
};

}  // namespace fovea::mpi
