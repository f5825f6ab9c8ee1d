// Agreement between ranks: all must know if one of them failed.
#pragma once

#include <fovea/mpi.hpp>

#include <optional>

namespace fovea::mpi {

// Collective: rejects, on every rank, bytes that differ from rank 0's.
Result<void> agree_on(MPI_Comm comm, const void* bytes, size_t size, const char* field);

// A private communicator: our messages never meet the application's, and failures are returned as codes.
class OwnComm {
  public:
    static Result<OwnComm> of(MPI_Comm comm);
    OwnComm(OwnComm&& other) noexcept : comm_(other.comm_), rank_(other.rank_), size_(other.size_) {
        other.comm_ = MPI_COMM_NULL;
    }
    OwnComm& operator=(OwnComm&&) = delete;
    ~OwnComm() {
        if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
    }
    MPI_Comm get() const { return comm_; }
    int rank() const { return rank_; }
    int size() const { return size_; }

  private:
    explicit OwnComm(MPI_Comm comm) : comm_(comm) {}
    MPI_Comm comm_;
    int rank_ = 0, size_ = 1;
};

}  // namespace fovea::mpi
