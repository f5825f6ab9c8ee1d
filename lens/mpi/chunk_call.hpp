// One engine call of a sharded one: a chunk of queries against a chunk of keys of one batch entry.
#pragma once

#include "mpi/merge_tree.hpp"

#include <fovea/mpi.hpp>

#include <cstdint>
#include <new>
#include <optional>

namespace fovea::mpi {

inline bool draws_by_counters(const FoveaAttentionDesc& desc) {
    return desc.dropout_p > 0 && !desc.dropout_mask.present;
}

inline Error bad(const char* field, const char* text) { return Error{FOVEA_INVALID_ARGUMENT, field, text}; }

constexpr uint64_t element_bytes(FoveaDtype type) { return type == FOVEA_U8 ? 1 : type == FOVEA_F32 ? 4 : 2; }

// Returns why a call cannot run over shards, or why the library rejects it. `whole` as in ShardedCall.
std::optional<Error> refusal_of_shards(const FoveaAttentionDesc& desc, uint64_t chunk,
                                       const FoveaHostBuffer* whole);

// Memory that the system does not give is an error like any other, and so is what a host's progress() throws:
// it must not pass the messages of other ranks by.
template <class Body>
std::optional<Error> guarded(Body body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return Error{FOVEA_OUT_OF_HOST_MEMORY, "chunk", "no host memory for this rank's part of the call"};
    } catch (...) {
        return Error{FOVEA_CANCELLED, "progress", "the progress function threw an exception"};
    }
}

// Columns of the bias in chunk `chunk` of the keys.
uint64_t bias_columns(const FoveaAttentionDesc& desc, const Shards& keys, uint64_t chunk);
// Extents of the bias, except its columns.
struct BiasExtents {
    uint64_t batch, heads, rows;
    uint64_t all() const { return batch * heads * rows; }
};
BiasExtents bias_extents(const FoveaAttentionDesc& desc);

// Stores `count` values as elements of the float type `type`.
void store_numbers(const float* from, uint64_t count, FoveaDtype type, void* to);

// Rows [first, first + rows) of a batch entry; `data` is the chunk, [B, H, held, D].
struct ChunkRows {
    uint64_t first = 0, rows = 0, held = 0;
};

// The inputs and outputs of a backward call on each side; null if nothing is added.
struct BackwardQueries {
    ChunkRows rows;
    const void *q, *o, *d_o;
    const float *lse, *dlse;  // [B, Hq, held]; dlse null: zero
    float* dq;
};
struct BackwardKeys {
    ChunkRows rows;
    const void *k, *v;
    float *dk, *dv;
    float* dalibi = nullptr;  // [Hq]
    float* dbias = nullptr;   // the bias's own extents, its keys those of the chunk: see bias_columns
};

// Cells of a map tile of one head, from the first row and key of two chunks on; `lse` as in BackwardQueries.
struct TileCells {
    uint32_t head;
    uint64_t first_row, row_count, first_key, key_count;  // ranges of the chunks
    bool one_row;                                         // a pixel holds all rows of a key, not one
    uint32_t outputs;                                     // FOVEA_TILE_*
};
struct TilePixels {
    std::vector<uint64_t> mass;
    std::vector<float> max;
};

// The whole call as its chunks need it. Lives as long as its description and `whole`.
class ChunkCalls {
  public:
    ChunkCalls(const FoveaAttentionDesc& desc, const FoveaHostBuffer* whole) : desc_(desc), whole_(whole) {}

    // Does some query of [first, first + rows) see some key of the other chunk, in any batch entry?
    bool sees(const Shards& queries, uint64_t query_chunk, const Shards& keys, uint64_t key_chunk) const;

    // Queries of entry `b`.
    uint64_t rows_of_entry(uint32_t b) const { return entry(b).len_q; }

    // The partial result of entry `b`, empty where no query sees a key. Sinks count with key chunk 0.
    Result<Partial> run(Engine& engine, uint32_t b, const ChunkRows& queries, const void* q,
                        const ChunkRows& keys, const void* k, const void* v, bool with_sinks,
                        const RunOptions& options, ShardReport& report) const;

    // Adds the gradients of entry `b` that have room; nothing where no query sees a key.
    std::optional<Error> run_backward(Engine& engine, uint32_t b, const BackwardQueries& queries,
                                      const BackwardKeys& keys, const FoveaAttentionBackwardDesc& whole,
                                      const RunOptions& options, ShardReport& report) const;

    // Pixels of entry `b`, empty where no query sees a key.
    std::optional<Error> run_tile(Engine& engine, uint32_t b, const ChunkRows& queries, const void* q,
                                  const float* lse, const ChunkRows& keys, const void* k, TileCells cells,
                                  TilePixels& pixels, const RunOptions& options, ShardReport& report) const;

  private:
    struct Described;
    struct Entry {
        uint64_t len_q, len_kv;
        int64_t offset;  // query i has key position i + offset
    };
    Entry entry(uint32_t b) const;
    bool visible(const Entry& entry, const ChunkRows& queries, const ChunkRows& keys) const;
    // The call of entry `b`, both sides cut to its lengths; no results are bound yet.
    void describe(uint32_t b, const Entry& entry, const ChunkRows& queries, const void* q,
                  const ChunkRows& keys, const void* k, const void* v, bool with_sinks, Described& to) const;

    void add_bias(uint32_t b, const ChunkRows& queries, const BackwardKeys& keys, const FoveaMatrixDesc& part,
                  const std::vector<float>& given) const;

    // Returns `first`, which has the first `rows` rows of each head, extended by the fully masked rows past
    // an entry's length.
    Partial rows_past_the_end(uint64_t all_rows, const Partial& first, uint64_t rows, bool with_sinks) const;

    const FoveaAttentionDesc& desc_;
    const FoveaHostBuffer* whole_;
};

}  // namespace fovea::mpi
