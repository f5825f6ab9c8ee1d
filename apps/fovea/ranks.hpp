// `attend --shards`: the processes that mpirun started compute one call together. Without MPI in this build
// the option is refused.
#pragma once

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

    bool first() const;       // rank 0, which writes and speaks
    uint32_t size() const;    // ranks in all
    uint32_t beside() const;  // of them on this machine, this one included

    // Collective: success on every rank or, on every rank, the error of one that has one.
    Result<void> agree(const Result<void>& own);
    // Collective. Every rank has the whole call; each takes its chunks of `chunk` rows, and rank 0's outputs
    // are filled.
    Result<RunReport> attention(Engine& engine, AttentionCall& call, uint64_t chunk,
                                const RunOptions& options);

  private:
    struct State;
    explicit Ranks(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace fovea::app
