// `attend --shards`, `gradients --shards` and `map --shards`: the processes that mpirun started compute one
// call together. Without MPI in this build the option is refused.
#pragma once

#include "arguments.hpp"
#include "attention_tensors.hpp"

#include <memory>
#include <string>

namespace fovea::app {

class Ranks {
  public:
    // Starts MPI; once in a process. The destructor ends it.
    static Result<Ranks> start();
    Ranks(Ranks&&) noexcept;
    ~Ranks();

    bool first() const;     // rank 0, which writes and speaks
    uint32_t size() const;  // ranks in all

    // Collective: success on every rank or, on every rank, the error of one that has one.
    Result<void> agree(const Result<void>& own);
    // Collective. Without a number of threads, ranks of one machine share its CPU cores.
    Result<Engine> open_engine(EngineOptions options);
    // Collective. Every rank has the whole call; each takes its chunks of `chunk` rows, and rank 0's outputs
    // are filled.
    Result<RunReport> attention(Engine& engine, AttentionCall& call, uint64_t chunk,
                                const RunOptions& options);
    // The same of gradients; o and lse are computed first, and stay where they are.
    Result<RunReport> gradients(Engine& engine, AttentionCall& call,
                                const FoveaAttentionBackwardDesc& backward, uint64_t chunk,
                                const RunOptions& options);

    // A tile of the call's map, TILE_MASS and TILE_MAX of every rank; lse is computed first unless it is
    // bound.
    Result<RunReport> map_tile(Engine& engine, AttentionCall& call, const FoveaMapTileDesc& tile,
                               uint64_t chunk, const RunOptions& options);

  private:
    struct State;
    explicit Ranks(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// Runs a command with --shards: `run` on every rank of the job. The exit code is that of rank 0, which
// prints; the others end with 0.
Result<int> on_every_rank(const Arguments& a, Result<int> (*run)(Ranks&, const Arguments&));

}  // namespace fovea::app
