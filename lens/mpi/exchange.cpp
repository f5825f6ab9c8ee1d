#include "mpi/exchange.hpp"

#include "mpi/agreement.hpp"

namespace fovea::mpi {

// Messages between two ranks arrive in the order in which they were sent, so that one tag does.
constexpr int kTag = 1;

Result<void> Exchange::receive(MPI_Comm comm, int from, const std::vector<uint64_t>& sizes) {
    first_.clear();
    uint64_t at = 0;
    for (const uint64_t size : sizes) {
        MPI_Request request;
        if (auto error =
                mpi_error(MPI_Irecv(received_.data() + at, int(size), MPI_BYTE, from, kTag, comm, &request),
                          "MPI_Irecv"))
            return *error;
        first_.push_back(at);
        requests_.push_back(request);
        sizes_.push_back(size);
        at += (size + kAlignment - 1) / kAlignment * kAlignment;
    }
    return {};
}

Result<void> Exchange::send(MPI_Comm comm, int to, const std::vector<Span>& sent) {
    for (const Span& block : sent) {
        MPI_Request request;
        if (auto error = mpi_error(MPI_Isend(block.data, int(block.size), MPI_BYTE, to, kTag, comm, &request),
                                   "MPI_Isend"))
            return *error;
        requests_.push_back(request);
        sizes_.push_back(block.size);
    }
    return {};
}

uint64_t Exchange::in_flight() {
    uint64_t bytes = 0;
    for (size_t n = 0; n < requests_.size(); ++n) {
        int done = 1;
        if (requests_[n] != MPI_REQUEST_NULL &&
            MPI_Test(&requests_[n], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            break;  // wait() says why
        if (!done) bytes += sizes_[n];
    }
    return bytes;
}

Result<void> Exchange::wait() {
    if (auto error = mpi_error(MPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
                               "MPI_Waitall"))
        return *error;
    requests_.clear();
    sizes_.clear();
    return {};
}

}  // namespace fovea::mpi
