// One engine call of a sharded one: a chunk of queries against a chunk of keys of one batch entry.
#pragma once

#include "mpi/merge_tree.hpp"

#include <fovea/mpi.hpp>

#include <cstdint>

namespace fovea::mpi {

inline bool draws_by_counters(const FoveaAttentionDesc& desc) {
    return desc.dropout_p > 0 && !desc.keep.present;
}

// Rows [first, first + rows) of a batch entry; `data` is the chunk, [B, H, held, D].
struct ChunkRows {
    uint64_t first = 0, rows = 0, held = 0;
};

// The whole call as its chunks need it. Lives as long as the ShardedCall.
class ChunkCalls {
  public:
    explicit ChunkCalls(const ShardedCall& call);

    // Does some query of [first, first + rows) see some key of the other chunk, in any batch entry?
    bool sees(const Shards& queries, uint64_t query_chunk, const Shards& keys, uint64_t key_chunk) const;

    // The partial result of entry `b`, empty where no query sees a key. Sinks count with key chunk 0.
    Result<Partial> run(Engine& engine, uint32_t b, const ChunkRows& queries, const void* q,
                        const ChunkRows& keys, const void* k, const void* v, bool with_sinks,
                        const RunOptions& options, ShardReport& report) const;

  private:
    struct Entry {
        uint64_t len_q, len_kv;
        int64_t offset;  // query i stands at key i + offset
    };
    Entry entry(uint32_t b) const;
    bool visible(const Entry& entry, const ChunkRows& queries, const ChunkRows& keys) const;

    // `first`, of the first `rows` rows of each head, with the rows behind an entry's length, which see no
    // key.
    Partial rows_past_the_end(uint64_t all_rows, const Partial& first, uint64_t rows, bool with_sinks) const;

    const ShardedCall& call_;
    const FoveaAttentionDesc& desc_;
};

}  // namespace fovea::mpi
