// One attention call over the memory of many machines: keys and values are cut into chunks whose size does
// not depend on the number of ranks, each pair of a chunk of queries and a chunk of keys is one call of the
// engine, and their results are merged by log-sum-exp in one fixed tree (fovea.h, FoveaMergeDesc). So every
// number of ranks gives the same bits, where all ranks compute on like devices. C++20; needs MPI 3 and links
// fovea::mpi.
//
// The chunks are cut into 2R runs of neighbours, dealt in zigzag (0, 1, .., R-1, R-1, .., 1, 0): each rank
// gets a like share of a causal call (the zigzag order of context-parallel training), and results of
// neighbours merge while they are there. Keys and values come straight from their owner, one pass for each
// other rank, while slices of the present pass run; chunks that no query of the receiver sees are not sent.
#pragma once

#include <fovea/runtime.hpp>

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace fovea::mpi {

// Rows [0, rows) in chunks of `chunk` rows, the last one shorter, and who holds which. No rows: no chunks.
class Shards {
  public:
    Shards(uint64_t rows, uint64_t chunk, uint32_t ranks)
        : rows_(rows), chunk_(std::max<uint64_t>(chunk, 1)), ranks_(std::max(ranks, 1u)) {}

    uint64_t count() const { return rows_ / chunk_ + (rows_ % chunk_ != 0); }
    uint64_t first_row(uint64_t index) const { return index * chunk_; }
    uint64_t rows_of(uint64_t index) const { return std::min(chunk_, rows_ - first_row(index)); }
    // Returns the owner of chunk `index`, which must be less than count().
    uint32_t owner(uint64_t index) const {
        uint32_t rank = 0;
        while (rank + 1 < ranks_ && !is_of(rank, index)) ++rank;
        return rank;
    }
    // In ascending order.
    std::vector<uint64_t> chunks_of(uint32_t rank) const {
        std::vector<uint64_t> chunks;
        for (const uint64_t run : runs_of(rank))
            for (uint64_t n = run_begin(run); n < run_begin(run + 1); ++n) chunks.push_back(n);
        return chunks;
    }
    uint64_t rows_of_rank(uint32_t rank) const {
        uint64_t rows = 0;
        for (const uint64_t n : chunks_of(rank)) rows += rows_of(n);
        return rows;
    }

  private:
    std::array<uint64_t, 2> runs_of(uint32_t rank) const { return {rank, 2 * uint64_t{ranks_} - 1 - rank}; }
    // Runs 0 .. 2R-1. What does not divide goes to the upper R runs first, one chunk each and evenly spread,
    // then to the lower ones: no rank has more than one chunk beyond another.
    uint64_t run_begin(uint64_t run) const {
        const uint64_t half = ranks_, each = count() / (2 * half), rest = count() % (2 * half);
        const uint64_t above = std::min(rest, half), below = rest - above;
        const uint64_t more = run <= half ? run * below / half : below + (run - half) * above / half;
        return run * each + more;
    }
    bool is_of(uint32_t rank, uint64_t index) const {
        for (const uint64_t run : runs_of(rank))
            if (index >= run_begin(run) && index < run_begin(run + 1)) return true;
        return false;
    }

    uint64_t rows_, chunk_;
    uint32_t ranks_;
};

// Returns MPI's error, named by what was tried; nothing where `code` is MPI_SUCCESS.
std::optional<Error> mpi_error(int code, const char* what);
// Collective. Returns the error of the lowest rank that has one, with that rank's number; the same on every
// rank.
Result<void> agree(MPI_Comm comm, const std::optional<Error>& own);

// The inputs of one rank. The caller owns all pointers and must keep them valid until the call returns.
struct ShardedCall {
    // Describes the whole context and is the same on every rank: lengths, masks, dropout and types as for one
    // device. Strides of q, k, v and o do not count; outputs may be O and LSE. No packed rows, no pages.
    FoveaAttentionDesc desc = foveaAttentionDesc();
    uint64_t chunk = 512;  // rows of queries, and of keys, that one call of the engine takes; the same on
                           // every rank; with dropout by counters a multiple of 4
    // This rank's chunks one after the other in ascending order, each [B, H, rows, D] packed: of q and o by
    // Shards(len_q, chunk, ranks), of k and v by Shards(len_kv, chunk, ranks). Null where the rank has none.
    const void *q = nullptr, *k = nullptr, *v = nullptr;
    void* o = nullptr;
    float* lse = nullptr;  // [B, Hq, rows] of each chunk; null: not wanted
    // A few queries against a long cache: every rank holds all of q, which are one chunk, and receives all of
    // o and lse; keys stay where they are, and only results travel.
    bool queries_everywhere = false;
    // MASK, BIAS, DROPOUT_MASK, ALIBI, SINKS and SEQUENCES of the whole call, as its description says; the
    // rest is not read.
    const FoveaHostBuffer* whole = nullptr;
};

struct ShardReport {                         // The report of one rank.
    FoveaKernel kernel = FOVEA_KERNEL_AUTO;  // kernel of the last engine call
    std::string device, reason;
    uint32_t passes = 0;                          // in which keys and values were received
    uint64_t calls = 0;                           // engine calls
    double visited_pairs = 0;                     // query-key pairs in those calls
    uint64_t bytes_sent = 0, bytes_received = 0;  // of keys and values, or of results if queries_everywhere
                                                  // is set
    uint64_t bytes_in_flight = 0;                 // most that was under way while a slice ran
    uint64_t bytes_held = 0;  // most that results without their neighbours and the keys of others took
    double seconds = 0;
};

// Collective: every rank of `comm` calls it with the same description. MPI must be initialised with
// MPI_THREAD_FUNNELED or more, and the calling thread is the one that talks to it. An error of any rank is
// returned on every rank, with that rank's number in front of the text, once the passes are through: no rank
// waits for ever, and outputs are then undefined. Errors of MPI itself are FOVEA_IO_ERROR. Nothing here
// aborts the job.
Result<ShardReport> attention(MPI_Comm comm, Engine& engine, const ShardedCall& call,
                              const RunOptions& options = {});

// The inputs and outputs of one rank for the gradients of such a call. Chunks are distributed as in
// ShardedCall.
struct ShardedGradients {
    FoveaAttentionDesc desc = foveaAttentionDesc();  // as ShardedCall has it; o_type is that of `o` here
    // The same on every rank: any gradients (0: of Q, K and V), none accumulated; strides do not count.
    FoveaAttentionBackwardDesc backward = foveaAttentionBackwardDesc();
    uint64_t chunk = 512;
    const void *q = nullptr, *k = nullptr, *v = nullptr;
    const void *o = nullptr, *d_o = nullptr;      // output of the whole call, and its gradient
    const float *lse = nullptr, *dlse = nullptr;  // [B, Hq, rows] of each chunk; dlse by has_lse_gradient
    void *dq = nullptr, *dk = nullptr, *dv = nullptr;  // null for gradients that are not wanted
    // The gradient of the bias has this rank's chunks of keys one after the other, packed: each has the
    // bias's own extents, with only the chunk's columns. The gradients of slopes and sinks, [Hq], are
    // complete on every rank.
    float *dbias = nullptr, *dalibi = nullptr, *dsinks = nullptr;
    const FoveaHostBuffer* whole = nullptr;  // as in ShardedCall; SINKS only for dsinks, since lse includes
                                             // them
};

// Collective, as attention(). Keys come to the queries for dq, then queries to the keys for dk and dv, each
// chunk in the order of its number to those ranks that it concerns, while they compute with the one before:
// each sum has one order, so that every number of ranks gives the same bits on like devices.
Result<ShardReport> attention_backward(MPI_Comm comm, Engine& engine, const ShardedGradients& call,
                                       const RunOptions& options = {});

// The inputs of one rank for a tile of the map of all weights. Chunks are distributed as in ShardedCall.
struct ShardedMapTile {
    FoveaAttentionDesc desc =
        foveaAttentionDesc();  // as ShardedCall has it; v, o, outputs and sinks do not count
    FoveaMapTileDesc tile = foveaMapTileDesc();  // the tile of the whole call, the same on every rank
    uint64_t chunk = 512;
    const void *q = nullptr, *k = nullptr;
    const float* lse = nullptr;  // [B, Hq, rows] of each chunk, from attention()
    // [heads, height, width], the whole tile on every rank; null: not wanted by tile.outputs.
    uint64_t* mass = nullptr;
    float* max = nullptr;
    const FoveaHostBuffer* whole = nullptr;  // as in ShardedCall, without SINKS
};

// Collective, as attention(). Queries and their lse are sent to the ranks that own the tile's keys: each rank
// computes its own cells, and the pixels of all ranks are combined. Mass is an integer number of units, so
// any number of ranks gives the same pixels as one device of that kind. A tile of height 1 over the last
// queries gives the mass of each key, which decides the keys that cache compaction keeps.
Result<ShardReport> map_tile(MPI_Comm comm, Engine& engine, const ShardedMapTile& call,
                             const RunOptions& options = {});

}  // namespace fovea::mpi
