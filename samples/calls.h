/* Complete functions to copy, one for each kind of call: attention, a packed (varlen) batch, decoding with a
 * KV cache, past and present as in ONNX, a paged KV cache, a sliding window, and combining partial results.
 * Tensors are f32 and packed. `properties` comes from foveaCpuProperties; on Vulkan the descriptions are the
 * same. Every function returns the first error, with its reason in `diag`. */
#ifndef FOVEA_SAMPLES_CALLS_H
#define FOVEA_SAMPLES_CALLS_H

#include <fovea/fovea.h>

#include <stdlib.h>

/* [run once] */
/* Runs a plan on the CPU and destroys it. The other functions use it. */
static inline FoveaResult run_once(FoveaPlan plan, const FoveaHostBuffer* bindings, FoveaDiag* diag) {
    FoveaPlanInfo info = {.struct_size = sizeof info};
    FoveaCpuRun run = {.struct_size = sizeof run, .binding_count = FOVEA_BIND_COUNT, .bindings = bindings};
    char* memory = NULL;
    FoveaResult result = foveaGetPlanInfo(plan, &info, diag);
    if (result == FOVEA_OK && info.workspace_bytes > 0) {
        memory = malloc(info.workspace_bytes + info.workspace_alignment);
        if (!memory)
            result = FOVEA_OUT_OF_HOST_MEMORY;
        else
            run.workspace.data =
                memory + (info.workspace_alignment - (uintptr_t)memory % info.workspace_alignment);
        run.workspace.size_bytes = info.workspace_bytes;
    }
    if (result == FOVEA_OK) result = foveaRunCpu(plan, &run, diag);
    free(memory);
    foveaDestroyPlan(plan);
    return result;
}
/* [end run once] */

/* [append rows] */
/* Updates the cache y with the rows x as `append` describes. The tables may be {0} unless it asks for them.
 */
static inline FoveaResult append_rows(const FoveaDeviceProperties* properties, const FoveaAppendDesc* append,
                                      FoveaHostBuffer x, FoveaHostBuffer y, FoveaHostBuffer sequences,
                                      FoveaHostBuffer block_table, FoveaDiag* diag) {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
    FoveaPlan plan = NULL;
    FoveaResult result = foveaPlanAppend(properties, append, NULL, &plan, diag);
    if (result != FOVEA_OK) return result;
    bindings[FOVEA_BIND_X] = x;
    bindings[FOVEA_BIND_Y] = y;
    bindings[FOVEA_BIND_SEQUENCES] = sequences;
    bindings[FOVEA_BIND_BLOCK_TABLE] = block_table;
    return run_once(plan, bindings, diag);
}
/* [end append rows] */

/* [attend once] */
/* One call. q and o are [heads, queries, dim], k and v [heads_kv, keys, dim]; heads must be a multiple of
 * heads_kv. `align` is FOVEA_ALIGN_BOTTOM_RIGHT if the queries are the last tokens, FOVEA_ALIGN_TOP_LEFT for
 * PyTorch's is_causal. `sinks` [heads] are attention sinks: one more logit per head that takes a share of the
 * weights and has no value; or null. */
static inline FoveaResult attend_once(const FoveaDeviceProperties* properties, uint32_t heads,
                                      uint32_t heads_kv, uint32_t dim, uint64_t queries, uint64_t keys,
                                      FoveaAlign align, float* sinks, float* q, float* k, float* v, float* o,
                                      FoveaDiag* diag) {
    const uint64_t row = dim * sizeof(float);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
    FoveaPlan plan = NULL;
    const FoveaAttentionDesc attend = {.struct_size = sizeof attend,
                                       .batch = 1,
                                       .heads_q = heads,
                                       .heads_kv = heads_kv,
                                       .dim_qk = dim,
                                       .dim_v = dim,
                                       .len_q = queries,
                                       .len_kv = keys,
                                       .align = align,
                                       .flags = FOVEA_FLAG_CAUSAL | (sinks ? FOVEA_FLAG_SINKS : 0)};
    const FoveaResult result = foveaPlanAttention(properties, &attend, NULL, &plan, diag);
    if (result != FOVEA_OK) return result;
    bindings[FOVEA_BIND_Q] = (FoveaHostBuffer){q, heads * queries * row};
    bindings[FOVEA_BIND_K] = (FoveaHostBuffer){k, heads_kv * keys * row};
    bindings[FOVEA_BIND_V] = (FoveaHostBuffer){v, heads_kv * keys * row};
    bindings[FOVEA_BIND_O] = (FoveaHostBuffer){o, heads * queries * row};
    if (sinks) bindings[FOVEA_BIND_SINKS] = (FoveaHostBuffer){sinks, heads * sizeof(float)};
    return run_once(plan, bindings, diag);
}
/* [end attend once] */

/* [attend packed] */
/* A packed (varlen) batch without padding. q, k, v and o are [starts[count], heads, dim]; `starts` is
 * cu_seqlens: sequence b has the rows [starts[b], starts[b + 1]) and attends only to these. `sequences` has
 * room for `count` elements. */
static inline FoveaResult attend_packed(const FoveaDeviceProperties* properties, uint32_t heads, uint32_t dim,
                                        uint32_t count, const int32_t* starts, FoveaSequence* sequences,
                                        float* q, float* k, float* v, float* o, FoveaDiag* diag) {
    const uint64_t rows = (uint64_t)starts[count], size = rows * heads * dim * sizeof(float);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
    FoveaPlan plan = NULL;
    FoveaResult result;
    FoveaAttentionDesc attend = foveaAttentionDesc();
    for (uint32_t b = 0; b < count; ++b) {
        const int32_t length = starts[b + 1] - starts[b];
        sequences[b] = (FoveaSequence){starts[b], length, starts[b], length};
        if ((uint64_t)length > attend.len_q)
            attend.len_q = attend.len_kv = (uint64_t)length; /* the longest */
    }
    attend.batch = count;
    attend.heads_q = attend.heads_kv = heads;
    attend.dim_qk = attend.dim_v = dim;
    attend.packed_rows_q = attend.packed_rows_kv = rows;
    attend.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_VARLEN;
    attend.align = FOVEA_ALIGN_BOTTOM_RIGHT; /* each sequence by its own lengths */
    result = foveaPlanAttention(properties, &attend, NULL, &plan, diag);
    if (result != FOVEA_OK) return result;
    bindings[FOVEA_BIND_Q] = (FoveaHostBuffer){q, size};
    bindings[FOVEA_BIND_K] = (FoveaHostBuffer){k, size};
    bindings[FOVEA_BIND_V] = (FoveaHostBuffer){v, size};
    bindings[FOVEA_BIND_O] = (FoveaHostBuffer){o, size};
    bindings[FOVEA_BIND_SEQUENCES] = (FoveaHostBuffer){sequences, count * sizeof *sequences};
    return run_once(plan, bindings, diag);
}
/* [end attend packed] */

/* [append and attend] */
/* Decoding of one sequence with a KV cache. The caches [heads, capacity, dim] hold `held` tokens. The `fresh`
 * new ones q, k, v [heads, fresh, dim] go after them and attend to all tokens up to themselves; o is like q.
 * Its plans are for one length: to decode many tokens one by one, plan once with the lengths in a table
 * (paged_step below, paged_decode.c). */
static inline FoveaResult append_and_attend(const FoveaDeviceProperties* properties, uint32_t heads,
                                            uint32_t dim, uint64_t held, uint64_t fresh, uint64_t capacity,
                                            float* q, float* k, float* v, float* k_cache, float* v_cache,
                                            float* o, FoveaDiag* diag) {
    const uint64_t column = heads * dim * sizeof(float); /* bytes of one token */
    const FoveaHostBuffer none = {0}, x[2] = {{k, fresh * column}, {v, fresh * column}};
    const FoveaHostBuffer caches[2] = {{k_cache, capacity * column}, {v_cache, capacity * column}};
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
    FoveaPlan plan = NULL;
    FoveaResult result = FOVEA_OK;
    FoveaAppendDesc append = {.struct_size = sizeof append,
                              .batch = 1,
                              .heads = heads,
                              .dim = dim,
                              .len = fresh,
                              .capacity = capacity,
                              .first_row = held};
    const FoveaStrides cache = {0, (int64_t)(capacity * dim), dim}; /* the caches are longer than len_kv */
    const FoveaAttentionDesc attend = {
        .struct_size = sizeof attend,
        .batch = 1,
        .heads_q = heads,
        .heads_kv = heads,
        .dim_qk = dim,
        .dim_v = dim,
        .len_q = fresh,
        .len_kv = held + fresh,
        .k_strides = cache,
        .v_strides = cache,
        .flags = FOVEA_FLAG_CAUSAL,
        .align = FOVEA_ALIGN_BOTTOM_RIGHT}; /* the last query attends to the last key */
    for (int n = 0; n < 2 && result == FOVEA_OK; ++n)
        result = append_rows(properties, &append, x[n], caches[n], none, none, diag);
    if (result == FOVEA_OK) result = foveaPlanAttention(properties, &attend, NULL, &plan, diag);
    if (result != FOVEA_OK) return result;
    bindings[FOVEA_BIND_Q] = (FoveaHostBuffer){q, fresh * column};
    bindings[FOVEA_BIND_K] = caches[0];
    bindings[FOVEA_BIND_V] = caches[1];
    bindings[FOVEA_BIND_O] = (FoveaHostBuffer){o, fresh * column};
    return run_once(plan, bindings, diag);
}
/* [end append and attend] */

/* [past to present] */
/* Past and present as in ONNX. past [batch, heads, past_len, dim] is kept; present [batch, heads, past_len +
 * fresh, dim] receives it and then x [batch, heads, fresh, dim]. Call it for keys and for values, then attend
 * with FOVEA_ALIGN_OFFSET and q_offset = past_len. */
static inline FoveaResult past_to_present(const FoveaDeviceProperties* properties, uint32_t batch,
                                          uint32_t heads, uint32_t dim, uint64_t past_len, uint64_t fresh,
                                          float* past, float* x, float* present, FoveaDiag* diag) {
    const uint64_t column = (uint64_t)batch * heads * dim * sizeof(float);
    const FoveaHostBuffer none = {0}, y = {present, (past_len + fresh) * column};
    FoveaAppendDesc append = {.struct_size = sizeof append,
                              .batch = batch,
                              .heads = heads,
                              .dim = dim,
                              .len = past_len,
                              .capacity = past_len + fresh};
    const FoveaHostBuffer held = {past, past_len * column}, added = {x, fresh * column};
    FoveaResult result = append_rows(properties, &append, held, y, none, none, diag);
    if (result != FOVEA_OK) return result;
    append.len = fresh;
    append.first_row = past_len;
    return append_rows(properties, &append, added, y, none, none, diag);
}
/* [end past to present] */

/* [paged step] */
/* One decode step of two sequences with a paged KV cache. The pools [page_count, heads, page_size, dim] are
 * shared. pages[2][table_pages] is the block table: the pages of each sequence (both may begin with the same
 * page, a shared prefix). held[2] are the tokens of each. q, k, v and o are [2, heads, 1, dim]. window 0:
 * every token is visible. */
static inline FoveaResult paged_step(const FoveaDeviceProperties* properties, uint32_t heads, uint32_t dim,
                                     uint32_t page_size, uint32_t page_count, uint64_t table_pages,
                                     int32_t* pages, const int32_t* held, uint64_t window, float* q, float* k,
                                     float* v, float* k_pool, float* v_pool, float* o, FoveaDiag* diag) {
    FoveaSequence before[2] = {{0, 1, 0, held[0]}, {0, 1, 0, held[1]}};
    FoveaSequence after[2] = {{0, 1, 0, held[0] + 1}, {0, 1, 0, held[1] + 1}};
    const uint64_t pool = (uint64_t)page_count * heads * page_size * dim * sizeof(float);
    const uint64_t token = 2 * heads * dim * sizeof(float);
    const FoveaHostBuffer x[2] = {{k, token}, {v, token}}, pools[2] = {{k_pool, pool}, {v_pool, pool}};
    const FoveaHostBuffer table = {pages, 2 * table_pages * sizeof(int32_t)};
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
    FoveaPlan plan = NULL;
    FoveaResult result = FOVEA_OK;
    FoveaAppendDesc append = {.struct_size = sizeof append,
                              .batch = 2,
                              .heads = heads,
                              .dim = dim,
                              .len = 1,
                              .capacity = table_pages * page_size,
                              .has_sequences = 1,
                              .page_size = page_size,
                              .page_count = page_count,
                              .block_table_pages = table_pages};
    /* len_kv is the longest possible length; the lengths are in the table. */
    FoveaAttentionDesc attend = {.struct_size = sizeof attend,
                                 .batch = 2,
                                 .heads_q = heads,
                                 .heads_kv = heads,
                                 .dim_qk = dim,
                                 .dim_v = dim,
                                 .len_q = 1,
                                 .len_kv = table_pages * page_size,
                                 .page_size = page_size,
                                 .page_count = page_count,
                                 .block_table_pages = table_pages,
                                 .flags = FOVEA_FLAG_VARLEN};
    for (int n = 0; n < 2 && result == FOVEA_OK; ++n)
        result = append_rows(properties, &append, x[n], pools[n], (FoveaHostBuffer){before, sizeof before},
                             table, diag);
    if (window > 0) {
        attend.flags |= FOVEA_FLAG_WINDOW;
        attend.align = FOVEA_ALIGN_BOTTOM_RIGHT; /* the query is the last key's token */
        attend.window_left = (int64_t)window - 1;
    }
    if (result == FOVEA_OK) result = foveaPlanAttention(properties, &attend, NULL, &plan, diag);
    if (result != FOVEA_OK) return result;
    bindings[FOVEA_BIND_Q] = (FoveaHostBuffer){q, token};
    bindings[FOVEA_BIND_K] = pools[0];
    bindings[FOVEA_BIND_V] = pools[1];
    bindings[FOVEA_BIND_O] = (FoveaHostBuffer){o, token};
    bindings[FOVEA_BIND_SEQUENCES] = (FoveaHostBuffer){after, sizeof after};
    bindings[FOVEA_BIND_BLOCK_TABLE] = table;
    return run_once(plan, bindings, diag);
}
/* [end paged step] */

/* [fill ring table] */
/* The block table of a sliding window. A sequence of any length keeps only ring_pages pages: page n of its
 * tokens is page n % ring_pages of the pool, and an overwritten page has no entry (-1). Fill each sequence's
 * row of the table before a step, then call paged_step with the window. `tokens` is the length with the new
 * token; ring_pages must be at least (window + page_size - 2) / page_size + 1. */
static inline void fill_ring_table(uint64_t tokens, uint32_t page_size, uint32_t ring_pages,
                                   uint64_t table_pages, int32_t* pages) {
    const uint64_t used = (tokens + page_size - 1) / page_size; /* the newest page is number used - 1 */
    for (uint64_t n = 0; n < table_pages; ++n)
        pages[n] = n < used && n + ring_pages >= used ? (int32_t)(n % ring_pages) : -1;
}
/* [end fill ring table] */

/* [merge two] */
/* A prefix shared by many sequences (cascade attention), attended to once for all of them. Part 0 is the
 * queries of all sequences over the prefix, part 1 each sequence's queries over its own tail. `parts` [2,
 * rows, dim] and `lse` [2, rows] hold both results. Attention sinks count once: give them to part 0 only. */
static inline FoveaResult merge_two(const FoveaDeviceProperties* properties, uint32_t rows, uint32_t dim,
                                    float* parts, float* lse, float* o, float* o_lse, FoveaDiag* diag) {
    const uint64_t column = rows * sizeof(float);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
    FoveaPlan plan = NULL;
    const FoveaMergeDesc merge = {
        .struct_size = sizeof merge, .parts = 2, .batch = 1, .heads = 1, .dim = dim, .len = rows};
    const FoveaResult result = foveaPlanMerge(properties, &merge, NULL, &plan, diag);
    if (result != FOVEA_OK) return result;
    bindings[FOVEA_BIND_X] = (FoveaHostBuffer){parts, 2 * column * dim};
    bindings[FOVEA_BIND_PART_LSE] = (FoveaHostBuffer){lse, 2 * column};
    bindings[FOVEA_BIND_Y] = (FoveaHostBuffer){o, column * dim};
    bindings[FOVEA_BIND_LSE] = (FoveaHostBuffer){o_lse, column};
    return run_once(plan, bindings, diag);
}
/* [end merge two] */

#endif
