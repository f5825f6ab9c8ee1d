#include "mpi/chunk_call.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

namespace fovea::mpi {
namespace {

const std::byte* entry_of(const void* chunk, uint32_t b, uint64_t heads, uint64_t held, uint64_t dim,
                          FoveaDtype type) {
    return static_cast<const std::byte*>(chunk) + b * heads * held * dim * element_bytes(type);
}

FoveaStrides chunk_strides(uint64_t heads, uint64_t held, uint64_t dim) {
    return {int64_t(heads * held * dim), int64_t(held * dim), int64_t(dim)};
}

// Runs what was planned and adds it to the report.
std::optional<Error> run_plan(Engine& engine, const Result<Plan>& plan, const HostBindings& bindings,
                              const RunOptions& options, ShardReport& report) {
    if (!plan) return plan.error();
    report.visited_pairs += plan->info().visited_pairs;
    const Result<RunReport> done = engine.run_on_host(*plan, bindings, options);
    if (!done) return done.error();
    ++report.calls;
    report.kernel = done->kernel;
    report.device = done->device;
    report.reason = done->reason;
    return std::nullopt;
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
    const uint64_t size = element_bytes(whole.type), row_bytes = part.desc.keys * size;
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

std::optional<Error> refusal_of_shards(const FoveaAttentionDesc& d, uint64_t chunk,
                                       const FoveaHostBuffer* whole) {
    if (chunk == 0 || chunk > 1u << 20)
        return Error{FOVEA_INVALID_ARGUMENT, "chunk",
                     "chunk is " + std::to_string(chunk) + "; it must be from 1 to 2^20 rows"};
    if (draws_by_counters(d) && chunk % 4 != 0)
        return Error{
            FOVEA_INVALID_ARGUMENT, "chunk",
            "chunk is " + std::to_string(chunk) + "; it must be a multiple of 4, as there is dropout"};
    if (d.packed_rows_q || d.packed_rows_kv)
        return bad("packed_rows_q", "packed rows are not supported in a sharded call");
    if (d.k_type > FOVEA_BF16 || d.v_type > FOVEA_BF16)
        return bad(d.k_type > FOVEA_BF16 ? "k_type" : "v_type",
                   "a quantized KV cache is not supported in a sharded call");
    if (d.page_size) return bad("page_size", "a paged KV cache is not supported in a sharded call");
    if (d.outputs & ~uint32_t(FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE))
        return bad("outputs", "outputs must be O and LSE at most in a sharded call");
    FoveaAttentionDesc checked = d;
    checked.q_strides = checked.k_strides = checked.v_strides = checked.o_strides = {};
    Diag diag;
    if (foveaCheckAttention(nullptr, &checked, &diag) != FOVEA_OK) return diag.error();
    // The sizes are those of any call: foveaRunCpu's, whatever kernel and device will compute it.
    checked.kernel = FOVEA_KERNEL_AUTO;
    checked.max_slice_cost = 0, checked.workspace_limit = 0;
    const Result<Plan> plan = plan_cpu(checked);
    if (!plan) return plan.error();
    const FoveaPlanInfo info = plan->info();
    constexpr std::pair<FoveaBinding, const char*> kWhole[] = {
        {FOVEA_BIND_MASK, "whole[MASK]"},
        {FOVEA_BIND_BIAS, "whole[BIAS]"},
        {FOVEA_BIND_DROPOUT_MASK, "whole[DROPOUT_MASK]"},
        {FOVEA_BIND_ALIBI, "whole[ALIBI]"},
        {FOVEA_BIND_SINKS, "whole[SINKS]"},
        {FOVEA_BIND_SEQUENCES, "whole[SEQUENCES]"}};
    for (const auto& [binding, name] : kWhole) {
        const uint64_t bytes = info.binding_bytes[binding];
        if (!(info.binding_mask >> binding & 1) || bytes == 0) continue;
        if (!whole || !whole[binding].data)
            return Error{FOVEA_INVALID_ARGUMENT, name, std::string(name) + " is null"};
        if (whole[binding].size_bytes < bytes)
            return Error{FOVEA_INVALID_ARGUMENT, name,
                         std::string(name) + ".size_bytes is " + std::to_string(whole[binding].size_bytes) +
                             "; the call needs " + std::to_string(bytes) + " bytes there"};
    }
    return std::nullopt;
}

BiasExtents bias_extents(const FoveaAttentionDesc& d) {
    return {std::max(d.bias.batch, 1u), std::max(d.bias.heads, 1u), d.bias.rows ? d.bias.rows : d.len_q};
}

uint64_t bias_columns(const FoveaAttentionDesc& d, const Shards& keys, uint64_t chunk) {
    const uint64_t all = d.bias.keys ? d.bias.keys : d.len_kv, first = keys.first_row(chunk);
    return first >= all ? 0 : std::min(keys.rows_of(chunk), all - first);
}

void store_numbers(const float* from, uint64_t count, FoveaDtype type, void* to) {
    if (type == FOVEA_F32) {
        memcpy(to, from, count * sizeof(float));
        return;
    }
    auto* halves = static_cast<uint16_t*>(to);
    for (uint64_t n = 0; n < count; ++n)
        halves[n] = type == FOVEA_F16 ? foveaFloatToHalf(from[n]) : foveaFloatToBfloat(from[n]);
}

struct ChunkCalls::Described {
    FoveaAttentionDesc desc;
    HostBindings bindings{};
    MatrixPart mask, bias, keep;
};

ChunkCalls::Entry ChunkCalls::entry(uint32_t b) const {
    Entry e{desc_.len_q, desc_.len_kv, 0};
    if (desc_.flags & FOVEA_FLAG_VARLEN) {
        const auto& lengths = static_cast<const FoveaSequence*>(whole_[FOVEA_BIND_SEQUENCES].data)[b];
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

void ChunkCalls::describe(uint32_t b, const Entry& e, const ChunkRows& queries, const void* q,
                          const ChunkRows& keys, const void* k, const void* v, bool with_sinks,
                          Described& to) const {
    FoveaAttentionDesc& d = to.desc;
    d = desc_;
    d.batch = 1;
    d.len_q = queries.rows, d.len_kv = keys.rows;
    d.o_type = FOVEA_F32;
    d.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    d.flags &= ~uint32_t(FOVEA_FLAG_VARLEN | FOVEA_FLAG_SINKS);
    if (with_sinks) d.flags |= FOVEA_FLAG_SINKS;
    d.flags |= FOVEA_FLAG_FIXED_SPLITS;  // ranks may have different numbers of threads
    d.align = FOVEA_ALIGN_OFFSET;
    d.q_offset = e.offset + int64_t(queries.first) - int64_t(keys.first);
    d.q_strides = chunk_strides(d.heads_q, queries.held, d.dim_qk);
    d.k_strides = chunk_strides(d.heads_kv, keys.held, d.dim_qk);
    d.v_strides = chunk_strides(d.heads_kv, keys.held, d.dim_v);
    d.o_strides = {};
    d.mask = d.bias = d.dropout_mask = FoveaMatrixDesc{};

    HostBindings& bindings = to.bindings;
    const auto input = [&](FoveaBinding binding, const void* data, uint64_t size) {
        bindings[binding] = {const_cast<void*>(data), size};
    };
    const auto chunk = [&](FoveaBinding binding, const void* data, const ChunkRows& rows, uint64_t heads,
                           uint64_t dim, FoveaDtype type) {
        if (rows.rows == 0 || !data) return;
        input(binding, entry_of(data, b, heads, rows.held, dim, type),
              ((heads - 1) * rows.held + rows.rows) * dim * element_bytes(type));
    };
    chunk(FOVEA_BIND_Q, q, queries, d.heads_q, d.dim_qk, d.q_type);
    chunk(FOVEA_BIND_K, k, keys, d.heads_kv, d.dim_qk, d.k_type);
    chunk(FOVEA_BIND_V, v, keys, d.heads_kv, d.dim_v, d.v_type);
    const auto matrix = [&](const FoveaMatrixDesc& whole, FoveaBinding binding, MatrixPart& part,
                            FoveaMatrixDesc& into) {
        if (!whole.present || keys.rows == 0) return;
        // Dropout's tail past its columns is dropped: a column of zeros says so.
        if (whole.keys && keys.first >= whole.keys) {
            part.desc = {1, whole.type, 1, 1, 1, 1, {}};
            part.bytes.resize(4);
        } else {
            part = cut(whole, whole_[binding], desc_.len_q, desc_.len_kv, b, queries, keys);
        }
        into = part.desc;
        input(binding, part.bytes.data(), part.bytes.size());
    };
    matrix(desc_.mask, FOVEA_BIND_MASK, to.mask, d.mask);
    matrix(desc_.bias, FOVEA_BIND_BIAS, to.bias, d.bias);
    matrix(desc_.dropout_mask, FOVEA_BIND_DROPOUT_MASK, to.keep, d.dropout_mask);
    if (keys.rows == 0) {
        d.dropout_p = 0;
        d.first_query = d.first_key = d.first_batch_head = 0;
    } else if (draws_by_counters(d)) {  // which count through the whole call
        d.first_query += queries.first;
        d.first_key += keys.first;
        d.first_batch_head += uint64_t{b} * d.heads_q;
    }
    if (d.flags & FOVEA_FLAG_ALIBI) bindings[FOVEA_BIND_ALIBI] = whole_[FOVEA_BIND_ALIBI];
    if (with_sinks) bindings[FOVEA_BIND_SINKS] = whole_[FOVEA_BIND_SINKS];
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

    Described call;
    describe(b, e, queries, q, keys, k, v, with_sinks, call);
    FoveaAttentionDesc& d = call.desc;
    HostBindings& bindings = call.bindings;
    Partial small{std::vector<float>(d.heads_q * queries.rows * d.dim_v),
                  std::vector<float>(d.heads_q * queries.rows)};
    bindings[FOVEA_BIND_O] = {small.o.data(), small.o.size() * sizeof(float)};
    bindings[FOVEA_BIND_LSE] = {small.lse.data(), small.lse.size() * sizeof(float)};
    if (auto error = run_plan(engine, plan_attention(engine.properties(), d), bindings, options, report))
        return *error;
    if (queries.rows == all_queries.rows) return small;
    return rows_past_the_end(all_queries.rows, small, queries.rows, with_sinks);
}

std::optional<Error> ChunkCalls::run_backward(Engine& engine, uint32_t b, const BackwardQueries& all_queries,
                                              const BackwardKeys& all_keys,
                                              const FoveaAttentionBackwardDesc& whole,
                                              const RunOptions& options, ShardReport& report) const {
    const Entry e = entry(b);
    const ChunkRows queries = cut_to(all_queries.rows, e.len_q), keys = cut_to(all_keys.rows, e.len_kv);
    if (!visible(e, queries, keys)) return std::nullopt;
    Described call;
    describe(b, e, queries, all_queries.q, keys, all_keys.k, all_keys.v, false, call);
    FoveaAttentionDesc& d = call.desc;
    d.o_type = desc_.o_type;
    d.kernel = FOVEA_KERNEL_AUTO;
    d.o_strides = chunk_strides(d.heads_q, queries.held, d.dim_v);

    FoveaAttentionBackwardDesc g = whole;
    g.dq_type = g.dk_type = g.dv_type = FOVEA_F32;
    g.do_strides = d.o_strides;
    g.dq_strides = d.q_strides, g.dk_strides = d.k_strides, g.dv_strides = d.v_strides;
    g.gradients = 0;
    // `bytes` of a number, the chunk's memory at its first one of entry b.
    const auto bind = [&](FoveaBinding binding, const void* chunk, const ChunkRows& rows, uint64_t heads,
                          uint64_t dim, FoveaDtype type) {
        call.bindings[binding] = {const_cast<std::byte*>(entry_of(chunk, b, heads, rows.held, dim, type)),
                                  ((heads - 1) * rows.held + rows.rows) * dim * element_bytes(type)};
    };
    const auto add = [&](uint32_t gradient, FoveaBinding binding, float* chunk, const ChunkRows& rows,
                         uint64_t heads, uint64_t dim) {
        if (!chunk) return;
        g.gradients |= gradient;
        bind(binding, chunk, rows, heads, dim, FOVEA_F32);
    };
    bind(FOVEA_BIND_O, all_queries.o, queries, d.heads_q, d.dim_v, d.o_type);
    bind(FOVEA_BIND_DO, all_queries.d_o, queries, d.heads_q, d.dim_v, g.do_type);
    add(FOVEA_GRAD_Q, FOVEA_BIND_DQ, all_queries.dq, queries, d.heads_q, d.dim_qk);
    add(FOVEA_GRAD_K, FOVEA_BIND_DK, all_keys.dk, keys, d.heads_kv, d.dim_qk);
    add(FOVEA_GRAD_V, FOVEA_BIND_DV, all_keys.dv, keys, d.heads_kv, d.dim_v);
    g.accumulate = g.gradients;
    // Packed rows, without their own strides, even if an entry ends within the chunk.
    std::vector<float> lse, dlse;
    const auto rows_of = [&](FoveaBinding binding, const float* chunk, std::vector<float>& packed) {
        for (uint64_t h = 0; h < d.heads_q; ++h) {
            const float* from = chunk + (uint64_t{b} * d.heads_q + h) * queries.held;
            packed.insert(packed.end(), from, from + queries.rows);
        }
        call.bindings[binding] = {packed.data(), packed.size() * sizeof(float)};
    };
    if (all_keys.dalibi) {
        g.gradients |= FOVEA_GRAD_ALIBI, g.accumulate |= FOVEA_GRAD_ALIBI;
        call.bindings[FOVEA_BIND_DALIBI] = {all_keys.dalibi, d.heads_q * sizeof(float)};
    }
    std::vector<float> dbias;
    if (all_keys.dbias) {
        g.gradients |= FOVEA_GRAD_BIAS;
        dbias.resize(uint64_t{d.bias.heads} * d.bias.rows * d.bias.keys);
        call.bindings[FOVEA_BIND_DBIAS] = {dbias.data(), dbias.size() * sizeof(float)};
    }
    rows_of(FOVEA_BIND_LSE, all_queries.lse, lse);
    g.has_lse_gradient = all_queries.dlse != nullptr;
    if (g.has_lse_gradient) rows_of(FOVEA_BIND_DLSE, all_queries.dlse, dlse);

    if (auto error = run_plan(engine, plan_attention_backward(engine.properties(), d, g), call.bindings,
                              options, report))
        return error;
    if (all_keys.dbias) add_bias(b, queries, all_keys, d.bias, dbias);
    return std::nullopt;
}

// Adds the result of one call to its part of the rows of the whole bias.
void ChunkCalls::add_bias(uint32_t b, const ChunkRows& queries, const BackwardKeys& keys,
                          const FoveaMatrixDesc& part, const std::vector<float>& given) const {
    const BiasExtents whole = bias_extents(desc_);
    const uint64_t all_keys = desc_.bias.keys ? desc_.bias.keys : desc_.len_kv;
    const uint64_t columns = std::min(keys.rows.rows, all_keys - keys.rows.first);
    const uint64_t entry = whole.batch > 1 ? b : 0, first = whole.rows > 1 ? queries.first : 0;
    for (uint64_t h = 0; h < part.heads; ++h)
        for (uint64_t n = 0; n < part.rows; ++n) {
            const float* from = given.data() + (h * part.rows + n) * part.keys;
            float* to = keys.dbias + ((entry * whole.heads + h) * whole.rows + first + n) * columns;
            for (uint64_t c = 0; c < part.keys; ++c) to[c] += from[c];
        }
}

std::optional<Error> ChunkCalls::run_tile(Engine& engine, uint32_t b, const ChunkRows& all_queries,
                                          const void* q, const float* all_lse, const ChunkRows& all_keys,
                                          const void* k, TileCells cells, TilePixels& pixels,
                                          const RunOptions& options, ShardReport& report) const {
    const Entry e = entry(b);
    const ChunkRows queries = cut_to(all_queries, e.len_q), keys = cut_to(all_keys, e.len_kv);
    pixels = {};
    if (!visible(e, queries, keys) || cells.first_row >= queries.rows || cells.first_key >= keys.rows)
        return std::nullopt;
    Described call;
    describe(b, e, queries, q, keys, k, nullptr, false, call);
    FoveaAttentionDesc& d = call.desc;
    d.kernel = FOVEA_KERNEL_AUTO;
    std::vector<float> lse(uint64_t{d.heads_q} * queries.rows);
    for (uint64_t h = 0; h < d.heads_q; ++h)
        std::copy_n(all_lse + (uint64_t{b} * d.heads_q + h) * queries.held, queries.rows,
                    lse.data() + h * queries.rows);
    call.bindings[FOVEA_BIND_LSE] = {lse.data(), lse.size() * sizeof(float)};
    FoveaMapTileDesc tile = foveaMapTileDesc();
    tile.first_head = cells.head, tile.head_count = 1;
    tile.first_row = cells.first_row, tile.row_count = cells.row_count;
    tile.first_key = cells.first_key, tile.key_count = cells.key_count;
    tile.height = uint32_t(cells.one_row ? 1 : cells.row_count), tile.width = uint32_t(cells.key_count);
    tile.outputs = cells.outputs;
    const uint64_t count = uint64_t{tile.height} * tile.width;
    if (cells.outputs & FOVEA_TILE_MASS) {
        pixels.mass.resize(count);
        call.bindings[FOVEA_BIND_TILE_MASS] = {pixels.mass.data(), count * sizeof(uint64_t)};
    }
    if (cells.outputs & FOVEA_TILE_MAX) {
        pixels.max.resize(count);
        call.bindings[FOVEA_BIND_TILE_MAX] = {pixels.max.data(), count * sizeof(float)};
    }
    return run_plan(engine, plan_map_tile(engine.properties(), d, tile), call.bindings, options, report);
}

Partial ChunkCalls::rows_past_the_end(uint64_t all_rows, const Partial& first, uint64_t rows,
                                      bool with_sinks) const {
    const auto* sinks = with_sinks ? static_cast<const float*>(whole_[FOVEA_BIND_SINKS].data) : nullptr;
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
