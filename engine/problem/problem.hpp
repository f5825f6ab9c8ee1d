// One attention call after checking: every default filled in, every size computed. Backends read this, never
// the caller's description.
#pragma once

#include "problem/bindings.hpp"

#include <fovea/dtype.hpp>

#include <cstdint>

namespace fovea {

// Lengths, offsets and rows stay below 2^30, so that positions, their differences and window sums fit int32
// in a kernel.
constexpr int64_t kMaxLength = int64_t{1} << 30;
constexpr int64_t kUnbounded = int64_t{1} << 31;  // a window this wide hides nothing

// mask, bias or dropout_mask with broadcasting spelt out: element (b, h, i, j) is at b*batch + h*head + i*row
// + j for j < keys. Broadcast axes have stride 0.
struct MatrixView {
    bool present = false;
    FoveaDtype type = FOVEA_U8;
    int64_t keys = 0;
    FoveaStrides strides{};
    // Extents of the matrix itself: 1 where it broadcasts.
    uint32_t batch = 1, heads = 1;
    int64_t rows = 1;
};

// The steps that change a scaled score before biases and masks are applied; 0: none. The fields are those of
// shader::LogitView.
struct LogitScalars {
    float softcap = 0;

    // `tanh` in the caller's arithmetic.
    template <class Real, class Tanh>
    Real capped(Real score, const Tanh& tanh) const {
        return softcap > 0 ? Real(softcap) * tanh(score / Real(softcap)) : score;
    }
    friend bool operator==(const LogitScalars&, const LogitScalars&) = default;
};

struct Problem {
    FoveaDtype q_type, k_type, v_type, o_type;
    uint32_t batch, heads_q, heads_kv;
    uint32_t group;  // query heads for each key/value head
    uint32_t dim_qk, dim_v;
    int64_t len_q, len_kv;
    FoveaStrides q, k, v, o;  // defaults filled in; for pools of pages `batch` is the stride of a page

    float scale;
    LogitScalars logit;
    bool causal, alibi, sinks, sequences, fixed_splits;
    bool rotated_k, rotated_v;  // rows of blocks that append has rotated, see rotation.hpp
    FoveaAlign align;
    int64_t q_offset;                   // 0 unless align is FOVEA_ALIGN_OFFSET
    int64_t window_left, window_right;  // kUnbounded without a bound
    MatrixView mask, bias, dropout_mask;

    bool dropout;             // there is a dropout mask, explicit or by Philox
    uint32_t drop_threshold;  // Philox words below it are dropped
    float keep_scale;         // 1 / (1 - p)
    uint64_t dropout_seed, dropout_offset;
    uint32_t first_query, first_key, first_batch_head;  // Philox counts from them; keys by fours

    int64_t packed_rows_q, packed_rows_kv;  // 0: not packed
    uint32_t page_size, page_count;         // page_size 0: not paged
    int64_t block_table_pages;

    uint32_t outputs;  // FOVEA_OUTPUT_*
    FoveaPrecision precision;
    FoveaKernel kernel;
    double max_slice_cost;     // 0: the planner decides
    uint64_t workspace_limit;  // bytes, never 0

    BindingMask binding_mask, output_mask;     // needed, written
    BindingMask ignored_mask;                  // may be given and are left aside
    uint64_t binding_bytes[FOVEA_BIND_COUNT];  // smallest size of each
};

constexpr bool is_16_bit(FoveaDtype type) { return type == FOVEA_F16 || type == FOVEA_BF16; }
// True for the types of tensors that hold floats; takes any value.
constexpr bool is_float(int type) { return has_use(type, kUseNumbers); }

// Types of a quantized KV cache: problem/compressed.hpp reads and makes them. Quantized types: these, and
// blocks of linear's W, which problem/weight_blocks.hpp reads.
#ifdef FOVEA_NO_COMPRESSED_CACHES  // the page's modules read blocks only in linear's W, a few rows at a time
constexpr bool is_compressed(int) { return false; }
constexpr bool is_quantized(int) { return false; }
#else
constexpr bool is_compressed(int type) { return has_use(type, kUseCache); }
constexpr bool is_quantized(int type) {
    return !is_float(type) && (has_use(type, kUseCache) || has_use(type, kUseLinear));
}
#endif
// True for the types of a cache whose elements share a scale with their block.
constexpr bool has_scaled_blocks(FoveaDtype type) {
    return is_compressed(type) && dtype_info(type).block.numbers > 1;
}
constexpr StorageBlock storage_block(FoveaDtype type) { return dtype_info(type).block; }
inline void note_narrow(NarrowBindings& narrow, FoveaDtype type, FoveaBinding binding) {
    if (is_16_bit(type)) narrow.two_bytes |= binding_bit(binding);
    if (is_compressed(type) || storage_block(type).numbers > 1) narrow.one_byte |= binding_bit(binding);
}
// Returns the bytes of `count` elements in whole blocks.
constexpr int64_t stored_bytes(FoveaDtype type, int64_t count) {
    const StorageBlock block = storage_block(type);
    return count / block.numbers * block.bytes;
}

inline bool wants(const Problem& p, uint32_t output) { return (p.outputs & output) != 0; }
inline bool wants_matrix(const Problem& p) {
    return wants(p, FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED | FOVEA_OUTPUT_MASKED | FOVEA_OUTPUT_WEIGHTS);
}

inline bool has_compressed(const Problem& p) { return is_compressed(p.k_type) || is_compressed(p.v_type); }

// True if a product of q and k needs more than the scale to become the logit to which masks and biases apply.
// Kernels have a faster form without these steps.
inline bool has_logit_steps(const Problem& p) { return p.logit != LogitScalars() || p.alibi; }

// Checks a description against the meaning of fovea.h; knows nothing of devices. Allocates nothing.
// `o_is_input`: of a call whose gradients are wanted, so that rows of o may be one and the same.
FoveaResult make_problem(const FoveaAttentionDesc* desc, Problem& out, FoveaDiag* diag,
                         bool o_is_input = false);

// Bytes that a strided tensor [b, h, l, d] spans, counted from its first element; 0 if it is empty. False on
// overflow.
bool spanned_bytes(const FoveaStrides& strides, uint64_t b, uint64_t h, uint64_t l, uint64_t d,
                   FoveaDtype type, uint64_t& bytes);

// Rows of `columns` elements at these distances must consist of whole blocks of the type. `columns_name` is
// the field that has the columns, "dim_qk".
FoveaResult check_blocks(FoveaDtype type, const FoveaStrides& strides, uint64_t columns,
                         const char* columns_name, const char* strides_name, FoveaDiag* diag);
// Rejects a type that is not a type of elements or, with `cached`, of cached elements.
FoveaResult check_type(const FoveaDtype& field, bool cached, const char* name, FoveaDiag* diag);

// True if no two rows of a tensor can overlap, judging only by the strides.
bool rows_are_disjoint(const FoveaStrides& strides, uint64_t b, uint64_t h, uint64_t l, uint64_t d);

// The axes of a strided tensor, the contiguous one last.
struct Extents {
    uint64_t batch, heads, rows, columns;
};

// {0,0,0} becomes packed, FOVEA_BROADCAST becomes a stride of 0. Rejects other negative strides, and a stride
// of 0 along an axis of more than one, which would be a broadcast that nobody asked for. `name` is the field,
// "q_strides".
FoveaResult fill_strides(FoveaStrides& strides, const Extents& extents, const char* name, FoveaDiag* diag);

}  // namespace fovea
