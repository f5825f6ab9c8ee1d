#include "mpi/agreement.hpp"

#include <cstring>
#include <string>

namespace fovea::mpi {

std::optional<Error> mpi_error(int code, const char* what) {
    if (code == MPI_SUCCESS) return std::nullopt;
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
    return Error{FOVEA_IO_ERROR, "comm", std::string(what) + ": " + std::string(text, size_t(length))};
}

Result<void> agree(MPI_Comm comm, const std::optional<Error>& own) {
    int rank = 0, size = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int mine = own ? rank : size;
    int first = size;
    if (auto error = mpi_error(MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce"))
        return *error;
    if (first == size) return {};
    struct Words {
        int code;
        char field[64], text[512];
    } words{};
    if (first == rank) {
        words.code = own->code;
        snprintf(words.field, sizeof words.field, "%s", own->field.c_str());
        snprintf(words.text, sizeof words.text, "%s", own->text.c_str());
    }
    if (auto error = mpi_error(MPI_Bcast(&words, sizeof words, MPI_BYTE, first, comm), "MPI_Bcast"))
        return *error;
    return Error{FoveaResult(words.code), words.field,
                 size > 1 ? "rank " + std::to_string(first) + ": " + words.text : words.text};
}

Result<void> agree_on(MPI_Comm comm, const void* bytes, size_t size, const char* field) {
    std::vector<unsigned char> first(size);
    memcpy(first.data(), bytes, size);
    if (auto error = mpi_error(MPI_Bcast(first.data(), int(size), MPI_BYTE, 0, comm), "MPI_Bcast"))
        return *error;
    std::optional<Error> own;
    if (memcmp(first.data(), bytes, size) != 0)
        own = Error{FOVEA_INVALID_ARGUMENT, field,
                    std::string(field) + " differs from that of rank 0; it must be the same on all ranks"};
    return agree(comm, own);
}

Result<OwnComm> OwnComm::of(MPI_Comm comm) {
    int initialized = 0, finalized = 0, level = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    if (!initialized || finalized)
        return Error{FOVEA_INVALID_ARGUMENT, "comm", "MPI is not initialised; call MPI_Init_thread first"};
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_FUNNELED)
        return Error{FOVEA_INVALID_ARGUMENT, "comm",
                     "MPI was initialised without threads; initialise it with MPI_THREAD_FUNNELED"};
    if (comm == MPI_COMM_NULL) return Error{FOVEA_INVALID_ARGUMENT, "comm", "comm is MPI_COMM_NULL"};
    MPI_Comm copy = MPI_COMM_NULL;
    if (auto error = mpi_error(MPI_Comm_dup(comm, &copy), "MPI_Comm_dup")) return *error;
    OwnComm own(copy);
    MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
    MPI_Comm_rank(copy, &own.rank_);
    MPI_Comm_size(copy, &own.size_);
    return own;
}

}  // namespace fovea::mpi
