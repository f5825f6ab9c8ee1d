// One side of a call comes to the other: its chunks in ascending order, each from its owner to the ranks of
// which some chunk meets it, the next one under way while the present one is computed. So what a chunk gives
// can be added at once, and every sum has one order, whoever holds its terms.
#pragma once

#include "mpi/agreement.hpp"
#include "mpi/chunk_call.hpp"
#include "mpi/exchange.hpp"

#include <array>
#include <chrono>
#include <functional>

namespace fovea::mpi {

// A tensor in a rank's chunks, one of several.
struct Part {
    const void* data;
    uint64_t row_bytes;  // one row of all heads and entries
};

// The tensors of one chunk.
using Pieces = std::array<const std::byte*, 5>;

// Queries with all that belongs to them, or keys.
struct Side {
    Shards shards;
    std::vector<Part> parts;
    std::vector<uint64_t> own;  // chunks of this rank

    uint64_t row_bytes() const;
    // Makes the checks that need no message; `field` and `text` describe a missing tensor.
    std::optional<Error> prepare(uint32_t rank, uint64_t chunk, const char* field, const char* text);
    // Returns the pieces of the chunk that begins at row `row` of the rank's tensors.
    Pieces pieces_at(uint64_t row) const;
    uint64_t rows_before(uint64_t chunk) const;
};

class OrderedPass {
  public:
    using Meets = std::function<bool(uint64_t sent, uint64_t there)>;
    // Chunk `sent` with its tensors against the rank's own chunk, whose rows begin at `row` of its tensors.
    using Body = std::function<std::optional<Error>(uint64_t sent, const Pieces& pieces, uint64_t own,
                                                    const Pieces& ours, uint64_t row)>;

    OrderedPass(const OwnComm& comm, ShardReport& report) : comm_(comm), report_(report) {}
    // Memory for chunks of either side, so that run() cannot fail for want of it.
    void reserve(uint64_t chunk, const Side& a, const Side& b);
    uint64_t bytes() const { return exchanges_[0].bytes() + exchanges_[1].bytes(); }

    // Ends with the first error of `body` in `own`, once all messages are through; an error that is returned
    // is MPI's.
    Result<void> run(const Side& sent, const Side& there, const Meets& meets, const Body& body,
                     std::optional<Error>& own);
    // Before each slice: notes what is not through then, which is under way while the slice runs. For `body`,
    // which is called after such a look, between its slices.
    void look_at_messages();

  private:
    bool needed_by(uint32_t rank, uint64_t chunk, const Side& there, const Meets& meets) const;
    Result<void> start(Exchange& exchange, uint64_t chunk, const Side& sent, const Side& there,
                       const Meets& meets);

    const OwnComm& comm_;
    ShardReport& report_;
    Exchange exchanges_[2];
    Exchange* flying_ = nullptr;
};

// Runs a call over all ranks: they agree on its description, on the data in `beside` and on the chunk, reject
// or fail together, and only then store.
template <class Run, class Call, class Beside, class Refusal>
Result<ShardReport> run_together(MPI_Comm host, Engine& engine, const Call& call, const Beside& beside,
                                 const char* beside_name, Refusal refusal, const RunOptions& options) {
    const auto began = std::chrono::steady_clock::now();
    const Result<OwnComm> comm = OwnComm::of(host);
    if (!comm) return comm.error();
    if (Result<void> r = agree_on(comm->get(), &call.desc, sizeof call.desc, "desc"); !r) return r.error();
    if (Result<void> r = agree_on(comm->get(), &beside, sizeof beside, beside_name); !r) return r.error();
    if (Result<void> r = agree_on(comm->get(), &call.chunk, sizeof call.chunk, "chunk"); !r) return r.error();
    std::optional<Error> own = refusal();
    if (Result<void> r = agree(comm->get(), own); !r) return r.error();

    Run run(*comm, engine, call, options);
    own = guarded([&] { return run.prepare(); });
    if (Result<void> r = agree(comm->get(), own); !r) return r.error();
    if (Result<void> r = run.run(own); !r) return r.error();
    if (Result<void> r = agree(comm->get(), own); !r) return r.error();
    run.store();
    run.report().seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return run.report();
}

}  // namespace fovea::mpi
