#include "mpi/chunk_call.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

namespace fovea::mpi {
namespace {

uint64_t bytes_of(FoveaDtype type) { return type == FOVEA_U8 ? 1 : type == FOVEA_F32 ? 4 : 2; }

const std::byte* entry_of(const void* chunk, uint32_t b, uint64_t heads, uint64_t held, uint64_t dim,
                          FoveaDtype type) {
    return static_cast<const std::byte*>(chunk) + b * heads * held * dim * bytes_of(type);
}

// A matrix over queries and keys, cut to a chunk of each.
struct MatrixPart {
    FoveaMatrixDesc desc{};
    std::vector<std::byte> bytes;
};

MatrixPart cut(const FoveaMatrixDesc& whole, const FoveaHostBuffer& buffer, uint64_t len_q, uint64_t len_kv,
               uint32_t b, const ChunkRows& queries, const ChunkRows& keys) {
    const uint64_t heads = std::max(whole.heads, 1u), rows = whole.rows ? whole.rows : len_q,
                   columns = whole.keys ? whole.keys : len_kv;
    FoveaStrides s = whole.strides;
    if (s.batch == 0 && s.head == 0 && s.row == 0)
        s = {int64_t(heads * rows * columns), int64_t(rows * columns), int64_t(columns)};
    const bool one_row = rows == 1;
    MatrixPart part;
    part.desc.present = 1;
    part.desc.type = whole.type;
    part.desc.batch = 1;
    part.desc.heads = uint32_t(heads);
    part.desc.rows = one_row ? 1 : queries.rows;
    part.desc.keys = std::min(keys.rows, columns - keys.first);
    const uint64_t size = bytes_of(whole.type), row_bytes = part.desc.keys * size;
    part.bytes.resize((heads * part.desc.rows * row_bytes + 3) / 4 * 4);
    const auto* data = static_cast<const std::byte*>(buffer.data);
    std::byte* to = part.bytes.data();
    for (uint64_t h = 0; h < heads; ++h)
        for (uint64_t n = 0; n < part.desc.rows; ++n, to += row_bytes) {
            const int64_t row = one_row ? 0 : int64_t(queries.first + n);
            const int64_t at = (whole.batch > 1 ? int64_t(b) * s.batch : 0) +
                               (heads > 1 ? int64_t(h) * s.head : 0) + row * s.row + int64_t(keys.first);
            memcpy(to, data + at * int64_t(size), row_bytes);
        }
    return part;
}

}  // namespace

ChunkCalls::ChunkCalls(const ShardedCall& call) : call_(call), desc_(call.desc) {}

ChunkCalls::Entry ChunkCalls::entry(uint32_t b) const {
    Entry e{desc_.len_q, desc_.len_kv, 0};
    if (desc_.flags & FOVEA_FLAG_BATCH_TABLE) {
        const auto& lengths =
            static_cast<const FoveaBatchEntry*>(call_.whole[FOVEA_BIND_BATCH_TABLE].data)[b];
        e.len_q = uint64_t(std::clamp<int64_t>(lengths.q_length, 0, int64_t(desc_.len_q)));
        e.len_kv = uint64_t(std::clamp<int64_t>(lengths.kv_length, 0, int64_t(desc_.len_kv)));
    }
    if (desc_.align == FOVEA_ALIGN_BOTTOM_RIGHT) e.offset = int64_t(e.len_kv) - int64_t(e.len_q);
    if (desc_.align == FOVEA_ALIGN_OFFSET) e.offset = desc_.q_offset;
    return e;
}

// Both cut to their entry's lengths.
bool ChunkCalls::visible(const Entry& e, const ChunkRows& queries, const ChunkRows& keys) const {
    if (queries.rows == 0 || keys.rows == 0) return false;
    for (const FoveaMatrixDesc* m : {&desc_.mask, &desc_.bias})
        if (m->present && m->keys && keys.first >= m->keys) return false;
    const int64_t first = int64_t(queries.first) + e.offset, last = first + int64_t(queries.rows) - 1;
    const auto first_key = int64_t(keys.first), last_key = first_key + int64_t(keys.rows) - 1;
    if ((desc_.flags & FOVEA_FLAG_CAUSAL) && first_key > last) return false;
    if (desc_.flags & FOVEA_FLAG_WINDOW) {
        // Compared without a sum that might wrap: both sides are below 2^31.
        if (desc_.window_left >= 0 && first - last_key > desc_.window_left) return false;
        if (desc_.window_right >= 0 && first_key - last > desc_.window_right) return false;
    }
    return true;
}

static ChunkRows cut_to(ChunkRows rows, uint64_t length) {
    rows.rows = rows.first >= length ? 0 : std::min(rows.rows, length - rows.first);
    return rows;
}

bool ChunkCalls::sees(const Shards& queries, uint64_t query_chunk, const Shards& keys,
                      uint64_t key_chunk) const {
    const ChunkRows q{queries.first_row(query_chunk), queries.rows_of(query_chunk), 0},
        k{keys.first_row(key_chunk), keys.rows_of(key_chunk), 0};
    for (uint32_t b = 0; b < desc_.batch; ++b) {
        const Entry e = entry(b);
        if (visible(e, cut_to(q, e.len_q), cut_to(k, e.len_kv))) return true;
    }
    return false;
}

Result<Partial> ChunkCalls::run(Engine& engine, uint32_t b, const ChunkRows& all_queries, const void* q,
                                const ChunkRows& all_keys, const void* k, const void* v, bool with_sinks,
                                const RunOptions& options, ShardReport& report) const {
    const Entry e = entry(b);
    const ChunkRows queries = cut_to(all_queries, e.len_q);
    ChunkRows keys = cut_to(all_keys, e.len_kv);
    if (!visible(e, queries, keys)) keys.rows = 0;
    if (!with_sinks && (queries.rows == 0 || keys.rows == 0)) return Partial{};
    if (queries.rows == 0) return rows_past_the_end(all_queries.rows, {}, 0, true);

    FoveaAttentionDesc d = desc_;
    d.batch = 1;
    d.len_q = queries.rows, d.len_kv = keys.rows;
    d.o_type = FOVEA_F32;
    d.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    d.flags &= ~uint32_t(FOVEA_FLAG_BATCH_TABLE | FOVEA_FLAG_SINKS);
    if (with_sinks) d.flags |= FOVEA_FLAG_SINKS;
    d.flags |= FOVEA_FLAG_FIXED_SPLITS;  // ranks may have different numbers of threads
    d.align = FOVEA_ALIGN_OFFSET;
    d.q_offset = e.offset + int64_t(queries.first) - int64_t(keys.first);
    const auto strides = [](uint64_t heads, uint64_t held, uint64_t dim) {
        return FoveaStrides{int64_t(heads * held * dim), int64_t(held * dim), int64_t(dim)};
    };
    d.q_strides = strides(d.heads_q, queries.held, d.dim_qk);
    d.k_strides = strides(d.heads_kv, keys.held, d.dim_qk);
    d.v_strides = strides(d.heads_kv, keys.held, d.dim_v);
    d.o_strides = {};
    d.mask = d.bias = d.keep = FoveaMatrixDesc{};

    HostBindings bindings{};
    const auto input = [&](FoveaBinding binding, const void* data, uint64_t size) {
        bindings[binding] = {const_cast<void*>(data), size};
    };
    const auto chunk = [&](FoveaBinding binding, const void* data, const ChunkRows& rows, uint64_t heads,
                           uint64_t dim, FoveaDtype type) {
        if (rows.rows == 0) return;
        input(binding, entry_of(data, b, heads, rows.held, dim, type),
              ((heads - 1) * rows.held + rows.rows) * dim * bytes_of(type));
    };
    chunk(FOVEA_BIND_Q, q, queries, d.heads_q, d.dim_qk, d.q_type);
    chunk(FOVEA_BIND_K, k, keys, d.heads_kv, d.dim_qk, d.k_type);
    chunk(FOVEA_BIND_V, v, keys, d.heads_kv, d.dim_v, d.v_type);
    MatrixPart mask, bias, keep;
    const auto matrix = [&](const FoveaMatrixDesc& whole, FoveaBinding binding, MatrixPart& part,
                            FoveaMatrixDesc& to) {
        if (!whole.present || keys.rows == 0) return;
        // Dropout's tail past its columns is dropped: a column of zeros says so.
        if (whole.keys && keys.first >= whole.keys) {
            part.desc = {1, whole.type, 1, 1, 1, 1, {}};
            part.bytes.resize(4);
        } else {
            part = cut(whole, call_.whole[binding], desc_.len_q, desc_.len_kv, b, queries, keys);
        }
        to = part.desc;
        input(binding, part.bytes.data(), part.bytes.size());
    };
    matrix(desc_.mask, FOVEA_BIND_MASK, mask, d.mask);
    matrix(desc_.bias, FOVEA_BIND_BIAS, bias, d.bias);
    matrix(desc_.keep, FOVEA_BIND_KEEP, keep, d.keep);
    if (keys.rows == 0) {
        d.dropout_p = 0;
        d.first_query = d.first_key = d.first_batch_head = 0;
    } else if (draws_by_counters(d)) {  // which count through the whole call
        d.first_query += queries.first;
        d.first_key += keys.first;
        d.first_batch_head += uint64_t{b} * d.heads_q;
    }
    if (d.flags & FOVEA_FLAG_ALIBI) bindings[FOVEA_BIND_ALIBI] = call_.whole[FOVEA_BIND_ALIBI];
    if (with_sinks) bindings[FOVEA_BIND_SINKS] = call_.whole[FOVEA_BIND_SINKS];

    Partial small{std::vector<float>(d.heads_q * queries.rows * d.dim_v),
                  std::vector<float>(d.heads_q * queries.rows)};
    bindings[FOVEA_BIND_O] = {small.o.data(), small.o.size() * sizeof(float)};
    bindings[FOVEA_BIND_LSE] = {small.lse.data(), small.lse.size() * sizeof(float)};
    const Result<Plan> plan = engine.plan_attention(d);
    if (!plan) return plan.error();
    report.visited_pairs += plan->info().visited_pairs;
    const Result<RunReport> done = engine.run_on_host(*plan, bindings, options);
    if (!done) return done.error();
    ++report.calls;
    report.kernel = done->kernel;
    report.device = done->device;
    report.reason = done->reason;
    if (queries.rows == all_queries.rows) return small;
    return rows_past_the_end(all_queries.rows, small, queries.rows, with_sinks);
}

Partial ChunkCalls::rows_past_the_end(uint64_t all_rows, const Partial& first, uint64_t rows,
                                      bool with_sinks) const {
    const auto* sinks = with_sinks ? static_cast<const float*>(call_.whole[FOVEA_BIND_SINKS].data) : nullptr;
    const uint64_t dim = desc_.dim_v;
    Partial partial{std::vector<float>(desc_.heads_q * all_rows * dim),
                    std::vector<float>(desc_.heads_q * all_rows)};
    for (uint64_t h = 0; h < desc_.heads_q; ++h) {
        std::copy_n(first.o.data() + h * rows * dim, rows * dim, partial.o.data() + h * all_rows * dim);
        std::copy_n(first.lse.data() + h * rows, rows, partial.lse.data() + h * all_rows);
        std::fill_n(partial.lse.data() + h * all_rows + rows, all_rows - rows,
                    sinks ? sinks[h] : -std::numeric_limits<float>::infinity());
    }
    return partial;
}

}  // namespace fovea::mpi
