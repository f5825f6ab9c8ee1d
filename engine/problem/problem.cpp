#include "problem/problem.hpp"

#include "problem/abi_struct.hpp"
#include "problem/checked.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace fovea {
namespace {

using Desc = FoveaAttentionDesc;

constexpr uint32_t kKnownFlags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_WINDOW | FOVEA_FLAG_ALIBI | FOVEA_FLAG_SINKS |
                                 FOVEA_FLAG_VARLEN | FOVEA_FLAG_FIXED_SPLITS | FOVEA_FLAG_ROTATED_CACHE;
constexpr uint32_t kKnownOutputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_SCORES |
                                   FOVEA_OUTPUT_CAPPED | FOVEA_OUTPUT_MASKED | FOVEA_OUTPUT_WEIGHTS |
                                   FOVEA_OUTPUT_ROW_STATS;
constexpr uint32_t kMaxDim = 1u << 16;
constexpr float kMaxScale = 2.3e38f;               // times log2(e) below FLT_MAX
constexpr float kMinSoftcap = 1.17549435e-38f;     // FLT_MIN
constexpr uint64_t kMaxHeads = uint64_t{1} << 30;  // batch * heads, an index in kernels

FoveaResult check_types(const Desc& d, FoveaDiag* diag) {
    FoveaResult r;
    if ((r = check_type(d.q_type, false, "q_type", diag))) return r;
    if ((r = check_type(d.k_type, true, "k_type", diag))) return r;
    if ((r = check_type(d.v_type, true, "v_type", diag))) return r;
    return check_type(d.o_type, false, "o_type", diag);
}

FoveaResult check_shape(const Desc& d, FoveaDiag* diag) {
    const std::pair<const char*, uint32_t> counts[] = {{"batch", d.batch},
                                                       {"heads_q", d.heads_q},
                                                       {"heads_kv", d.heads_kv},
                                                       {"dim_qk", d.dim_qk},
                                                       {"dim_v", d.dim_v}};
    for (const auto& [name, count] : counts) {
        if (count == 0)
            return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is 0; it must be at least 1", name);
    }
    if (d.heads_q % d.heads_kv != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "heads_q",
                    "heads_q is %u; it must be a multiple of heads_kv, %u", d.heads_q, d.heads_kv);
    if (d.dim_qk > kMaxDim)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "dim_qk", "dim_qk is %u; the limit is %u", d.dim_qk, kMaxDim);
    if (d.dim_v > kMaxDim)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "dim_v", "dim_v is %u; the limit is %u", d.dim_v, kMaxDim);
    if (uint64_t{d.batch} * d.heads_q > kMaxHeads)
        return fail(diag, FOVEA_SIZE_OVERFLOW, "batch", "batch * heads_q is %llu; the limit is 2^30",
                    static_cast<unsigned long long>(uint64_t{d.batch} * d.heads_q));
    const std::pair<const char*, uint64_t> lengths[] = {{"len_q", d.len_q},
                                                        {"len_kv", d.len_kv},
                                                        {"packed_rows_q", d.packed_rows_q},
                                                        {"packed_rows_kv", d.packed_rows_kv}};
    for (const auto& [name, length] : lengths) {
        if (length > uint64_t(kMaxLength))
            return fail(diag, FOVEA_SIZE_OVERFLOW, name, "%s is %llu; the limit is 2^30", name,
                        static_cast<unsigned long long>(length));
    }
    return FOVEA_OK;
}

FoveaResult check_scalars(const Desc& d, FoveaDiag* diag) {
    if (!std::isfinite(d.scale))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "scale", "scale is %g; it must be finite", d.scale);
    // Exponents of 2 are scale * log2(e) times a product.
    if (std::fabs(d.scale) > kMaxScale)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "scale", "scale is %g; its absolute value must be at most %g",
                    d.scale, kMaxScale);
    if (!std::isfinite(d.softcap) || d.softcap < 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "softcap",
                    "softcap is %g; it must be 0 (none) or a finite number above 0", d.softcap);
    if (d.softcap > 0 && d.softcap < kMinSoftcap)  // a device may take it for 0, and 0 / 0 is NaN
        return fail(diag, FOVEA_INVALID_ARGUMENT, "softcap",
                    "softcap is %g; it must be 0 (none) or at least %g", d.softcap, kMinSoftcap);
    if (!(d.dropout_p >= 0 && d.dropout_p < 1))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "dropout_p",
                    "dropout_p is %g; it must be at least 0 and below 1", d.dropout_p);
    if (!(d.max_slice_cost >= 0) || !std::isfinite(d.max_slice_cost))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "max_slice_cost",
                    "max_slice_cost is %g; it must be 0 (the default) or a finite number above 0",
                    d.max_slice_cost);
    if (d.flags & ~kKnownFlags)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "flags", "flags has unknown bits 0x%x",
                    d.flags & ~kKnownFlags);
    if (d.outputs & ~kKnownOutputs)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "outputs", "outputs has unknown bits 0x%x",
                    d.outputs & ~kKnownOutputs);
    const int align = enum_number(d.align), precision = enum_number(d.precision),
              kernel = enum_number(d.kernel);
    if (align < FOVEA_ALIGN_DEFAULT || align > FOVEA_ALIGN_TOP_LEFT)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "align", "align is %d; it must be a FoveaAlign", align);
    if (precision == FOVEA_PRECISION_INT8_INPUTS)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "precision",
                    "precision is FOVEA_PRECISION_INT8_INPUTS, which is only for linear");
    if (precision < FOVEA_PRECISION_F32 || precision > FOVEA_PRECISION_BF16_INPUTS)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "precision", "precision is %d; it must be a FoveaPrecision",
                    precision);
    if (kernel < FOVEA_KERNEL_AUTO || kernel >= FOVEA_KERNEL_COUNT)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "kernel", "kernel is %d; it must be a FoveaKernel", kernel);
    if (d.reserved0 != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "reserved0", "reserved0 is %d; it must be 0", d.reserved0);
    if (d.reserved1 != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "reserved1", "reserved1 is %u; it must be 0", d.reserved1);
    return FOVEA_OK;
}

// Where dropout's counters begin.
FoveaResult check_firsts(const Desc& d, FoveaDiag* diag) {
    const struct {
        const char *name, *extent;
        uint64_t first, length;
    } axes[] = {{"first_query", "len_q", d.first_query, d.len_q},
                {"first_key", "len_kv", d.first_key, d.len_kv},
                {"first_batch_head", "batch * heads_q", d.first_batch_head, uint64_t{d.batch} * d.heads_q}};
    const bool counts = d.dropout_p > 0 && !d.dropout_mask.present;
    for (const auto& axis : axes) {
        const auto first = static_cast<unsigned long long>(axis.first);
        if (first != 0 && !counts)
            return fail(diag, FOVEA_INVALID_ARGUMENT, axis.name, "%s is %llu; it must be 0, as %s", axis.name,
                        first, d.dropout_mask.present ? "the dropout mask is given" : "dropout_p is 0");
        if (first > uint64_t(kMaxLength) - axis.length)
            return fail(diag, FOVEA_SIZE_OVERFLOW, axis.name,
                        "%s is %llu; its sum with %s, %llu, must be at most 2^30", axis.name, first,
                        axis.extent, static_cast<unsigned long long>(axis.length));
    }
    if (d.first_key % 4 != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "first_key",
                    "first_key is %llu; it must be a multiple of 4",
                    static_cast<unsigned long long>(d.first_key));
    return FOVEA_OK;
}

// A single query after a cache would see the first key only, in silence. A table can give any entry such
// lengths.
FoveaResult check_alignment(const Desc& d, FoveaDiag* diag) {
    const uint32_t users = d.flags & (FOVEA_FLAG_CAUSAL | FOVEA_FLAG_WINDOW | FOVEA_FLAG_ALIBI);
    const bool has_table = d.flags & FOVEA_FLAG_VARLEN;
    if (d.align != FOVEA_ALIGN_DEFAULT || !users || (d.len_q == d.len_kv && !has_table)) return FOVEA_OK;
    return fail(diag, FOVEA_INVALID_ARGUMENT, "align",
                "align is not stated, and %s with len_q %llu, len_kv %llu%s needs it: BOTTOM_RIGHT (the last "
                "query at the last key, as after a KV cache), TOP_LEFT (query 0 at key 0) or OFFSET",
                users & FOVEA_FLAG_CAUSAL   ? "causal"
                : users & FOVEA_FLAG_WINDOW ? "window"
                                            : "ALiBi",
                static_cast<unsigned long long>(d.len_q), static_cast<unsigned long long>(d.len_kv),
                has_table ? " and lengths from a table" : "");
}

FoveaResult check_positions(const Desc& d, FoveaDiag* diag) {
    if (FoveaResult r = check_alignment(d, diag)) return r;
    if (d.align == FOVEA_ALIGN_OFFSET && (d.q_offset > kMaxLength || d.q_offset < -kMaxLength))
        return fail(diag, FOVEA_SIZE_OVERFLOW, "q_offset", "q_offset is %lld; the limit is +-2^30",
                    static_cast<long long>(d.q_offset));
    if (d.align != FOVEA_ALIGN_OFFSET && d.q_offset != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "q_offset",
                    "q_offset is %lld but align is not FOVEA_ALIGN_OFFSET",
                    static_cast<long long>(d.q_offset));
    if (!(d.flags & FOVEA_FLAG_WINDOW)) {
        if (d.window_left != 0 || d.window_right != 0)
            return fail(diag, FOVEA_INVALID_ARGUMENT, d.window_left ? "window_left" : "window_right",
                        "%s is %lld but FOVEA_FLAG_WINDOW is not set",
                        d.window_left ? "window_left" : "window_right",
                        static_cast<long long>(d.window_left ? d.window_left : d.window_right));
        return FOVEA_OK;
    }
    if (d.window_left < -1)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "window_left",
                    "window_left is %lld; it must be -1 (unbounded) or more",
                    static_cast<long long>(d.window_left));
    if (d.window_right < -1)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "window_right",
                    "window_right is %lld; it must be -1 (unbounded) or more",
                    static_cast<long long>(d.window_right));
    return FOVEA_OK;
}

FoveaResult check_packing(const Desc& d, FoveaDiag* diag) {
    const bool table = d.flags & FOVEA_FLAG_VARLEN;
    if ((d.packed_rows_q || d.packed_rows_kv) && !table)
        return fail(diag, FOVEA_INVALID_ARGUMENT, d.packed_rows_q ? "packed_rows_q" : "packed_rows_kv",
                    "%s needs FOVEA_FLAG_VARLEN", d.packed_rows_q ? "packed_rows_q" : "packed_rows_kv");
    const struct {
        const char* name;
        uint64_t packed_rows;
        int64_t stride;
    } batch_strides[] = {{"q_strides.batch", d.packed_rows_q, d.q_strides.batch},
                         {"o_strides.batch", d.packed_rows_q, d.o_strides.batch},
                         {"k_strides.batch", d.packed_rows_kv, d.k_strides.batch},
                         {"v_strides.batch", d.packed_rows_kv, d.v_strides.batch}};
    for (const auto& [name, packed_rows, stride] : batch_strides) {
        if (packed_rows && stride != 0)
            return fail(diag, FOVEA_INVALID_ARGUMENT, name,
                        "%s is %lld; it must be 0, as the rows are packed", name,
                        static_cast<long long>(stride));
    }
    if (!d.page_size) {
        if (d.page_count || d.block_table_pages)
            return fail(diag, FOVEA_INVALID_ARGUMENT, "page_size",
                        "page_size is 0, but page_count or block_table_pages is set; set all three or none");
        return FOVEA_OK;
    }
    if (d.packed_rows_kv)
        return fail(
            diag, FOVEA_INVALID_ARGUMENT, "packed_rows_kv",
            "packed_rows_kv is %llu and page_size %u; keys are packed or paged, so one of them must be 0",
            static_cast<unsigned long long>(d.packed_rows_kv), d.page_size);
    if (d.page_size > uint64_t(kMaxLength))
        return fail(diag, FOVEA_SIZE_OVERFLOW, "page_size", "page_size is %u; the limit is 2^30",
                    d.page_size);
    if (!d.page_count || d.page_count > uint64_t(kMaxLength))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "page_count", "page_count is %u; it must be from 1 to 2^30",
                    d.page_count);
    if (d.block_table_pages > uint64_t(kMaxLength) || d.block_table_pages * d.page_size < d.len_kv)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "block_table_pages",
                    "block_table_pages is %llu; times page_size, %u, it must be at least len_kv, %llu",
                    static_cast<unsigned long long>(d.block_table_pages), d.page_size,
                    static_cast<unsigned long long>(d.len_kv));
    return FOVEA_OK;
}

// Fields of one matrix for messages: "mask.rows".
struct MatrixNames {
    const char *present, *type, *batch, *heads, *rows, *keys, *strides;
};
constexpr MatrixNames kMaskNames{"mask.present", "mask.type", "mask.batch",  "mask.heads",
                                 "mask.rows",    "mask.keys", "mask.strides"};
constexpr MatrixNames kBiasNames{"bias.present", "bias.type", "bias.batch",  "bias.heads",
                                 "bias.rows",    "bias.keys", "bias.strides"};
constexpr MatrixNames kDropoutMaskNames{"dropout_mask.present", "dropout_mask.type", "dropout_mask.batch",
                                        "dropout_mask.heads",   "dropout_mask.rows", "dropout_mask.keys",
                                        "dropout_mask.strides"};

// A matrix that is described but not switched on would be left out in silence.
FoveaResult check_absent(const FoveaMatrixDesc& m, const MatrixNames& names, FoveaDiag* diag) {
    const FoveaStrides& s = m.strides;
    const std::pair<const char*, long long> fields[] = {
        {names.type, enum_number(m.type)},
        {names.batch, m.batch},
        {names.heads, m.heads},
        {names.rows, static_cast<long long>(m.rows)},
        {names.keys, static_cast<long long>(m.keys)},
        {names.strides, static_cast<long long>(s.batch  ? s.batch
                                               : s.head ? s.head
                                                        : s.row)}};
    for (const auto& [name, value] : fields) {
        if (value != 0)
            return fail(diag, FOVEA_INVALID_ARGUMENT, names.present,
                        "%s is 0, but %s is %lld; set it to 1, or leave the whole matrix zero", names.present,
                        name, value);
    }
    return FOVEA_OK;
}

FoveaResult broadcast_extent(uint64_t& extent, uint64_t fallback, uint64_t full, const char* name,
                             FoveaDiag* diag) {
    if (extent == 0) extent = fallback;
    if (extent != 1 && extent != full)
        return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is %llu; it must be 1 or %llu", name,
                    static_cast<unsigned long long>(extent), static_cast<unsigned long long>(full));
    return FOVEA_OK;
}

FoveaResult make_matrix(const FoveaMatrixDesc& m, const Desc& d, bool boolean, const MatrixNames& names,
                        MatrixView& view, uint64_t& bytes, FoveaDiag* diag) {
    view = MatrixView{};
    bytes = 0;
    if (m.present > 1)
        return fail(diag, FOVEA_INVALID_ARGUMENT, names.present, "%s is %u; it must be 0 or 1", names.present,
                    m.present);
    if (!m.present) return check_absent(m, names, diag);
    const int type = enum_number(m.type);
    if (boolean ? type != FOVEA_U8 : !is_float(type))
        return fail(diag, FOVEA_INVALID_ARGUMENT, names.type, "%s is %d; it must be %s", names.type, type,
                    boolean ? "FOVEA_U8" : "FOVEA_F32, FOVEA_F16 or FOVEA_BF16");
    uint64_t batch = m.batch, heads = m.heads, rows = m.rows, keys = m.keys ? m.keys : d.len_kv;
    FoveaResult r;
    if ((r = broadcast_extent(batch, 1, d.batch, names.batch, diag))) return r;
    if ((r = broadcast_extent(heads, 1, d.heads_q, names.heads, diag))) return r;
    if ((r = broadcast_extent(rows, d.len_q, d.len_q, names.rows, diag))) return r;
    if (keys > d.len_kv)
        return fail(diag, FOVEA_INVALID_ARGUMENT, names.keys, "%s is %llu; it must be at most len_kv, %llu",
                    names.keys, static_cast<unsigned long long>(keys),
                    static_cast<unsigned long long>(d.len_kv));
    FoveaStrides s = m.strides;
    if ((r = fill_strides(s, {batch, heads, rows, keys}, names.strides, diag))) return r;
    if (!spanned_bytes(s, batch, heads, rows, keys, m.type, bytes))
        return fail(diag, FOVEA_SIZE_OVERFLOW, names.strides, "the size of %s does not fit 64 bits",
                    names.strides);
    bytes = align_up(bytes, 4);  // kernels read booleans and halves in 32-bit words
    if (batch == 1) s.batch = 0;
    if (heads == 1) s.head = 0;
    if (rows == 1) s.row = 0;
    view = MatrixView{true, m.type, int64_t(keys), s, uint32_t(batch), uint32_t(heads), int64_t(rows)};
    return FOVEA_OK;
}

void set_binding(Problem& p, FoveaBinding binding, uint64_t bytes, bool output = false) {
    p.binding_mask |= binding_bit(binding);
    if (output) p.output_mask |= binding_bit(binding);
    p.binding_bytes[binding] = bytes;
}

FoveaResult bind_tensor(Problem& p, FoveaBinding binding, const FoveaStrides& s, uint64_t b, uint64_t h,
                        uint64_t l, uint64_t d, FoveaDtype type, const char* name, FoveaDiag* diag) {
    uint64_t bytes = 0;
    if (!spanned_bytes(s, b, h, l, d, type, bytes))
        return fail(diag, FOVEA_SIZE_OVERFLOW, name,
                    "the size of the tensor that %s describes does not fit 64 bits", name);
    set_binding(p, binding, bytes, binding == FOVEA_BIND_O);
    return FOVEA_OK;
}

// Rows of several batch entries end to end are token by token unless strides say otherwise.
void fill_packed_strides(FoveaStrides& s, uint64_t h, uint64_t d) {
    if (s.head == 0 && s.row == 0) s = FoveaStrides{0, int64_t(d), int64_t(h * d)};
}

// Rows of o that belong to no entry must keep their values, and what rotates o back does not know them.
FoveaResult check_rotation(const Problem& p, const Desc& d, FoveaDiag* diag) {
    if (!(d.flags & FOVEA_FLAG_ROTATED_CACHE)) return FOVEA_OK;
    if (!p.rotated_k && !p.rotated_v)
        return fail(
            diag, FOVEA_INVALID_ARGUMENT, "flags",
            "flags has FOVEA_FLAG_ROTATED_CACHE, and k_type is %s and v_type %s; it needs one that is "
            "FOVEA_Q8_0 or FOVEA_Q4_0",
            dtype_name(d.k_type), dtype_name(d.v_type));
    if (d.packed_rows_q)
        return fail(diag, FOVEA_UNSUPPORTED, "packed_rows_q",
                    "packed_rows_q is %llu; it must be 0 with FOVEA_FLAG_ROTATED_CACHE",
                    static_cast<unsigned long long>(d.packed_rows_q));
    return FOVEA_OK;
}

FoveaResult bind_qkvo(Problem& p, const Desc& d, bool o_is_input, FoveaDiag* diag) {
    const uint64_t rows_q = d.packed_rows_q ? d.packed_rows_q : d.len_q;
    const uint64_t rows_kv = d.page_size ? d.page_size : d.packed_rows_kv ? d.packed_rows_kv : d.len_kv;
    const uint64_t batch_q = d.packed_rows_q ? 1 : d.batch;
    const uint64_t batch_kv = d.page_size ? d.page_count : d.packed_rows_kv ? 1 : d.batch;
    FoveaResult r;
    if (d.packed_rows_q) {
        fill_packed_strides(p.q, d.heads_q, d.dim_qk);
        fill_packed_strides(p.o, d.heads_q, d.dim_v);
    }
    if (d.packed_rows_kv) {
        fill_packed_strides(p.k, d.heads_kv, d.dim_qk);
        fill_packed_strides(p.v, d.heads_kv, d.dim_v);
    }
    if ((r = fill_strides(p.q, {batch_q, d.heads_q, rows_q, d.dim_qk}, "q_strides", diag))) return r;
    if ((r = fill_strides(p.k, {batch_kv, d.heads_kv, rows_kv, d.dim_qk}, "k_strides", diag))) return r;
    if ((r = fill_strides(p.v, {batch_kv, d.heads_kv, rows_kv, d.dim_v}, "v_strides", diag))) return r;
    if ((r = fill_strides(p.o, {batch_q, d.heads_q, rows_q, d.dim_v}, "o_strides", diag))) return r;
    if ((r = check_blocks(d.k_type, p.k, d.dim_qk, "dim_qk", "k_strides", diag))) return r;
    if ((r = check_blocks(d.v_type, p.v, d.dim_v, "dim_v", "v_strides", diag))) return r;
    if ((r = bind_tensor(p, FOVEA_BIND_Q, p.q, batch_q, d.heads_q, rows_q, d.dim_qk, d.q_type, "q_strides",
                         diag)))
        return r;
    if ((r = bind_tensor(p, FOVEA_BIND_K, p.k, batch_kv, d.heads_kv, rows_kv, d.dim_qk, d.k_type, "k_strides",
                         diag)))
        return r;
    if ((r = bind_tensor(p, FOVEA_BIND_V, p.v, batch_kv, d.heads_kv, rows_kv, d.dim_v, d.v_type, "v_strides",
                         diag)))
        return r;
    if (!wants(p, FOVEA_OUTPUT_O)) return FOVEA_OK;
    if (!o_is_input && !rows_are_disjoint(p.o, batch_q, d.heads_q, rows_q, d.dim_v))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "o_strides",
                    "o_strides is %lld, %lld, %lld: rows of %u overlap", static_cast<long long>(p.o.batch),
                    static_cast<long long>(p.o.head), static_cast<long long>(p.o.row), d.dim_v);
    return bind_tensor(p, FOVEA_BIND_O, p.o, batch_q, d.heads_q, rows_q, d.dim_v, d.o_type, "o_strides",
                       diag);
}

FoveaResult bind_outputs(Problem& p, const Desc& d, FoveaDiag* diag) {
    const Checked rows = Checked(d.batch) * d.heads_q * d.len_q;
    const Checked matrix = rows * d.len_kv * 4;
    if (rows.overflow || (rows * 16).overflow)
        return fail(diag, FOVEA_SIZE_OVERFLOW, "len_q", "batch * heads_q * len_q does not fit 64 bits");
    if (wants_matrix(p) && matrix.overflow)
        return fail(
            diag, FOVEA_SIZE_OVERFLOW, "outputs",
            "outputs asks for a matrix of batch * heads_q * len_q * len_kv, which does not fit 64 bits");
    const std::pair<uint32_t, FoveaBinding> matrices[] = {{FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES},
                                                          {FOVEA_OUTPUT_CAPPED, FOVEA_BIND_CAPPED},
                                                          {FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED},
                                                          {FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS}};
    for (const auto& [output, binding] : matrices)
        if (wants(p, output)) set_binding(p, binding, matrix.value, true);
    if (wants(p, FOVEA_OUTPUT_LSE)) set_binding(p, FOVEA_BIND_LSE, rows.value * 4, true);
    if (wants(p, FOVEA_OUTPUT_ROW_STATS))
        set_binding(p, FOVEA_BIND_ROW_STATS, rows.value * sizeof(FoveaRowStats), true);
    return FOVEA_OK;
}

FoveaResult bind_masks(Problem& p, const Desc& d, FoveaDiag* diag) {
    uint64_t bytes = 0;
    FoveaResult r;
    if ((r = make_matrix(d.mask, d, true, kMaskNames, p.mask, bytes, diag))) return r;
    if (p.mask.present) set_binding(p, FOVEA_BIND_MASK, bytes);
    if ((r = make_matrix(d.bias, d, false, kBiasNames, p.bias, bytes, diag))) return r;
    if (p.bias.present) set_binding(p, FOVEA_BIND_BIAS, bytes);
    if ((r = make_matrix(d.dropout_mask, d, true, kDropoutMaskNames, p.dropout_mask, bytes, diag))) return r;
    if (p.dropout_mask.present) set_binding(p, FOVEA_BIND_DROPOUT_MASK, bytes);
    if (p.alibi) set_binding(p, FOVEA_BIND_ALIBI, uint64_t{d.heads_q} * 4);
    if (p.sinks) set_binding(p, FOVEA_BIND_SINKS, uint64_t{d.heads_q} * 4);
    if (p.sequences) set_binding(p, FOVEA_BIND_SEQUENCES, uint64_t{d.batch} * sizeof(FoveaSequence));
    if (p.page_size) {
        const Checked table = Checked(d.batch) * d.block_table_pages * 4;
        if (table.overflow)
            return fail(diag, FOVEA_SIZE_OVERFLOW, "block_table_pages",
                        "the block table's size does not fit 64 bits");
        set_binding(p, FOVEA_BIND_BLOCK_TABLE, table.value);
    }
    return FOVEA_OK;
}

void fill_meaning(Problem& p, const Desc& d) {
    p.q_type = d.q_type, p.k_type = d.k_type, p.v_type = d.v_type, p.o_type = d.o_type;
    p.batch = d.batch, p.heads_q = d.heads_q, p.heads_kv = d.heads_kv;
    p.group = d.heads_q / d.heads_kv;
    p.dim_qk = d.dim_qk, p.dim_v = d.dim_v;
    p.len_q = int64_t(d.len_q), p.len_kv = int64_t(d.len_kv);
    p.q = d.q_strides, p.k = d.k_strides, p.v = d.v_strides, p.o = d.o_strides;
    p.scale = d.scale != 0 ? d.scale : float(1.0 / std::sqrt(double(d.dim_qk)));
    p.logit = {d.softcap};
    p.causal = d.flags & FOVEA_FLAG_CAUSAL;
    p.alibi = d.flags & FOVEA_FLAG_ALIBI;
    p.sinks = d.flags & FOVEA_FLAG_SINKS;
    p.sequences = d.flags & FOVEA_FLAG_VARLEN;
    p.fixed_splits = d.flags & FOVEA_FLAG_FIXED_SPLITS;
    const bool rotated = d.flags & FOVEA_FLAG_ROTATED_CACHE;
    p.rotated_k = rotated && has_scaled_blocks(d.k_type),
    p.rotated_v = rotated && has_scaled_blocks(d.v_type);
    p.align = d.align == FOVEA_ALIGN_DEFAULT ? FOVEA_ALIGN_TOP_LEFT : d.align;
    p.q_offset = d.q_offset;
    const bool window = d.flags & FOVEA_FLAG_WINDOW;
    p.window_left = window && d.window_left >= 0 ? std::min(d.window_left, kUnbounded) : kUnbounded;
    p.window_right = window && d.window_right >= 0 ? std::min(d.window_right, kUnbounded) : kUnbounded;
    p.dropout = d.dropout_mask.present || d.dropout_p > 0;
    p.drop_threshold = uint32_t(double(d.dropout_p) * 4294967296.0);
    p.keep_scale = 1.0f / (1.0f - d.dropout_p);
    p.dropout_seed = d.dropout_seed, p.dropout_offset = d.dropout_offset;
    p.first_query = uint32_t(d.first_query), p.first_key = uint32_t(d.first_key);
    p.first_batch_head = uint32_t(d.first_batch_head);
    p.packed_rows_q = int64_t(d.packed_rows_q), p.packed_rows_kv = int64_t(d.packed_rows_kv);
    p.page_size = d.page_size, p.page_count = d.page_count;
    p.block_table_pages = int64_t(d.block_table_pages);
    p.outputs = d.outputs ? d.outputs : uint32_t(FOVEA_OUTPUT_O);
    p.precision = d.precision;
    p.kernel = d.kernel;
    p.max_slice_cost = d.max_slice_cost;
    p.workspace_limit = d.workspace_limit ? d.workspace_limit : uint64_t{64} << 20;
}

}  // namespace

bool spanned_bytes(const FoveaStrides& s, uint64_t b, uint64_t h, uint64_t l, uint64_t d, FoveaDtype type,
                   uint64_t& bytes) {
    bytes = 0;
    if (b == 0 || h == 0 || l == 0 || d == 0) return true;
    const StorageBlock block = storage_block(type);
    const Checked numbers = Checked(b - 1) * uint64_t(s.batch) + Checked(h - 1) * uint64_t(s.head) +
                            Checked(l - 1) * uint64_t(s.row) + d;
    const Checked span = Checked(numbers.value / block.numbers) * block.bytes;
    bytes = span.value;
    // One bit is kept free so that sums of an offset and a size, and signed index arithmetic, stay exact.
    return !numbers.overflow && !span.overflow && numbers.value <= uint64_t(INT64_MAX) / 2 &&
           span.value <= uint64_t(INT64_MAX) / 2;
}

FoveaResult check_blocks(FoveaDtype type, const FoveaStrides& strides, uint64_t columns,
                         const char* columns_name, const char* strides_name, FoveaDiag* diag) {
    const uint32_t block = storage_block(type).numbers;
    if (columns % block != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, columns_name,
                    "%s is %llu; it must be a multiple of %u, as the type has blocks of %u elements",
                    columns_name, static_cast<unsigned long long>(columns), block, block);
    for (const int64_t stride : {strides.batch, strides.head, strides.row}) {
        if (stride % block != 0)
            return fail(diag, FOVEA_INVALID_ARGUMENT, strides_name,
                        "%s has %lld; each must be a multiple of %u, as the type has blocks of %u elements",
                        strides_name, static_cast<long long>(stride), block, block);
    }
    return FOVEA_OK;
}

FoveaResult check_type(const FoveaDtype& field, bool cached, const char* name, FoveaDiag* diag) {
    const int type = enum_number(field);
    if (is_float(type) || (cached && is_compressed(type))) return FOVEA_OK;
    cached = cached && is_compressed(FOVEA_Q8_0);
    return fail(
        diag, FOVEA_INVALID_ARGUMENT, name, "%s is %d; it must be FOVEA_F32, FOVEA_F16%s", name, type,
        cached ? ", FOVEA_BF16 or, for a KV cache, FOVEA_F8_E4M3, FOVEA_F8_E5M2, FOVEA_Q8_0 or FOVEA_Q4_0"
               : " or FOVEA_BF16");
}

bool rows_are_disjoint(const FoveaStrides& s, uint64_t b, uint64_t h, uint64_t l, uint64_t d) {
    if (b == 0 || h == 0 || l == 0 || d == 0) return true;
    struct Axis {
        uint64_t stride, extent;
    } axes[3] = {{uint64_t(s.batch), b}, {uint64_t(s.head), h}, {uint64_t(s.row), l}};
    std::sort(axes, axes + 3, [](const Axis& x, const Axis& y) { return x.stride < y.stride; });
    Checked span = d;
    for (const Axis& axis : axes) {
        if (axis.extent <= 1) continue;
        if (span.overflow || axis.stride < span.value) return false;
        span = Checked(axis.stride) * (axis.extent - 1) + span;
    }
    return true;
}

FoveaResult fill_strides(FoveaStrides& s, const Extents& extents, const char* name, FoveaDiag* diag) {
    struct Axis {
        const char* name;
        int64_t& stride;
        uint64_t extent;
    } axes[] = {
        {"batch", s.batch, extents.batch}, {"head", s.head, extents.heads}, {"row", s.row, extents.rows}};
    const bool packed = s.batch == 0 && s.head == 0 && s.row == 0;
    const bool empty = !extents.batch || !extents.heads || !extents.rows || !extents.columns;
    char field[48];
    for (const Axis& axis : axes) {
        snprintf(field, sizeof field, "%s.%s", name, axis.name);
        if (axis.stride < 0 && axis.stride != FOVEA_BROADCAST)
            return fail(diag, FOVEA_INVALID_ARGUMENT, field,
                        "%s is %lld; it must be at least 0, or FOVEA_BROADCAST (%d)", field,
                        static_cast<long long>(axis.stride), FOVEA_BROADCAST);
    }
    for (const Axis& axis : axes) {
        snprintf(field, sizeof field, "%s.%s", name, axis.name);
        if (axis.stride == 0 && axis.extent > 1 && !packed && !empty)
            return fail(
                diag, FOVEA_INVALID_ARGUMENT, field,
                "%s is 0 along an axis of %llu; it must be the distance in elements, or FOVEA_BROADCAST "
                "if all of them are the same (packed: all three strides 0)",
                field, static_cast<unsigned long long>(axis.extent));
        if (axis.stride == FOVEA_BROADCAST) axis.stride = 0;
    }
    if (!packed) {
        // No row follows a single one: the distance to it, of any size, must not reach an address.
        if (extents.rows <= 1) s.row = int64_t(extents.columns);
        return FOVEA_OK;
    }
    const Checked head = Checked(extents.rows) * extents.columns, batch = head * extents.heads;
    if (batch.overflow || batch.value > uint64_t(INT64_MAX))
        return fail(diag, FOVEA_SIZE_OVERFLOW, name, "packed strides of %s do not fit 64 bits", name);
    s = FoveaStrides{int64_t(batch.value), int64_t(head.value), int64_t(extents.columns)};
    return FOVEA_OK;
}

FoveaResult make_problem(const FoveaAttentionDesc* desc, Problem& p, FoveaDiag* diag, bool o_is_input) {
    Desc d;
    FoveaResult r;
    if ((r = read_struct(desc, d, "desc", diag))) return r;
    if ((r = check_types(d, diag))) return r;
    if ((r = check_shape(d, diag))) return r;
    if ((r = check_scalars(d, diag))) return r;
    if ((r = check_firsts(d, diag))) return r;
    if ((r = check_positions(d, diag))) return r;
    if ((r = check_packing(d, diag))) return r;
    p = Problem{};
    fill_meaning(p, d);
    if ((r = check_rotation(p, d, diag))) return r;
    if ((r = bind_qkvo(p, d, o_is_input, diag))) return r;
    if ((r = bind_masks(p, d, diag))) return r;
    return bind_outputs(p, d, diag);
}

}  // namespace fovea
