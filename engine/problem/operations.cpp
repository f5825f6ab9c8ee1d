#include "problem/operations.hpp"

#include "problem/abi_struct.hpp"
#include "problem/checked.hpp"
#include "problem/problem.hpp"

#include <utility>

namespace fovea {
namespace {

FoveaResult check_counts(std::initializer_list<std::pair<const char*, uint64_t>> counts, FoveaDiag* diag) {
    for (const auto& [name, count] : counts) {
        if (count == 0)
            return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is 0; it must be at least 1", name);
        if (count > uint64_t(kMaxLength))
            return fail(diag, FOVEA_SIZE_OVERFLOW, name, "%s is %llu; the limit is 2^30", name,
                        static_cast<unsigned long long>(count));
    }
    return FOVEA_OK;
}

FoveaResult check_length(uint64_t len, const char* name, FoveaDiag* diag) {
    if (len > uint64_t(kMaxLength))
        return fail(diag, FOVEA_SIZE_OVERFLOW, name, "%s is %llu; the limit is 2^30", name,
                    static_cast<unsigned long long>(len));
    return FOVEA_OK;
}

FoveaResult check_float(const FoveaDtype& field, const char* name, FoveaDiag* diag) {
    return check_type(field, false, name, diag);
}

FoveaResult check_switch(uint32_t field, const char* name, FoveaDiag* diag) {
    if (field > 1)
        return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is %u; it must be 0 or 1", name, field);
    return FOVEA_OK;
}

FoveaResult check_reserved(uint32_t reserved, FoveaDiag* diag) {
    if (reserved != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "reserved0", "reserved0 is %u; it must be 0", reserved);
    return FOVEA_OK;
}

FoveaResult check_kernel(const FoveaKernel& field, FoveaDiag* diag, bool may_be_decode = false) {
    const int kernel = enum_number(field);
    const bool decode = kernel == FOVEA_KERNEL_DECODE && may_be_decode;
    if (kernel != FOVEA_KERNEL_AUTO && kernel != FOVEA_KERNEL_PLAIN && kernel != FOVEA_KERNEL_REFERENCE &&
        !decode)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "kernel",
                    "kernel is %d; it must be AUTO, %sPLAIN or REFERENCE", kernel,
                    may_be_decode ? "DECODE, " : "");
    return FOVEA_OK;
}

struct Tensor {
    FoveaBinding binding;
    const FoveaStrides& strides;
    uint64_t b, h, l, d;
    FoveaDtype type;
    const char* name;
    bool output;
};

FoveaResult bind(const Tensor& t, OperationBindings& out, FoveaDiag* diag) {
    uint64_t bytes = 0;
    if (!spanned_bytes(t.strides, t.b, t.h, t.l, t.d, t.type, bytes))
        return fail(diag, FOVEA_SIZE_OVERFLOW, t.name,
                    "the size of the tensor that %s describes does not fit 64 bits", t.name);
    if (t.output && !rows_are_disjoint(t.strides, t.b, t.h, t.l, t.d))
        return fail(diag, FOVEA_INVALID_ARGUMENT, t.name,
                    "rows of the output overlap: %s is %lld, %lld, %lld", t.name,
                    static_cast<long long>(t.strides.batch), static_cast<long long>(t.strides.head),
                    static_cast<long long>(t.strides.row));
    out.binding_mask |= binding_bit(t.binding);
    if (t.output) out.output_mask |= binding_bit(t.binding);
    note_narrow(out.narrow, t.type, t.binding);
    out.bytes[t.binding] = bytes;
    return FOVEA_OK;
}

// X and Y, both [B, H, L, D] of a description that has them so.
template <class Desc>
FoveaResult bind_rows_of_x_and_y(Desc& d, OperationBindings& out, FoveaDiag* diag) {
    const Extents extents{d.batch, d.heads, d.len, d.dim};
    FoveaResult r;
    if ((r = fill_strides(d.x_strides, extents, "x_strides", diag))) return r;
    if ((r = fill_strides(d.y_strides, extents, "y_strides", diag))) return r;
    out = OperationBindings{};
    if ((r = bind({FOVEA_BIND_X, d.x_strides, d.batch, d.heads, d.len, d.dim, d.x_type, "x_strides", false},
                  out, diag)))
        return r;
    return bind({FOVEA_BIND_Y, d.y_strides, d.batch, d.heads, d.len, d.dim, d.y_type, "y_strides", true}, out,
                diag);
}

void bind_plain(FoveaBinding binding, uint64_t bytes, OperationBindings& out) {
    out.binding_mask |= binding_bit(binding);
    out.bytes[binding] = bytes;
}

FoveaResult fill_row_stride(int64_t& stride, uint64_t rows, uint64_t columns, const char* name,
                            FoveaDiag* diag) {
    if (stride == 0) stride = int64_t(columns);
    if (stride < int64_t(columns))
        return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is %lld; it must be 0 (packed) or at least %llu",
                    name, static_cast<long long>(stride), static_cast<unsigned long long>(columns));
    // No row follows a single one: the distance to it, of any size, must not reach an address.
    if (rows <= 1) stride = int64_t(columns);
    return FOVEA_OK;
}

// Checks a KV cache, paged or not, for append and gather.
template <class Desc>
FoveaResult check_cache(const Desc& d, FoveaDiag* diag) {
    FoveaResult r;
    if ((r = check_type(d.x_type, true, "x_type", diag))) return r;
    if ((r = check_type(d.y_type, true, "y_type", diag))) return r;
    if ((r = check_counts({{"batch", d.batch}, {"heads", d.heads}, {"dim", d.dim}, {"capacity", d.capacity}},
                          diag)))
        return r;
    if ((r = check_length(d.len, "len", diag))) return r;
    if ((r = check_length(d.block_table_pages, "block_table_pages", diag))) return r;
    if ((r = check_length(d.page_size, "page_size", diag))) return r;
    return check_length(d.page_count, "page_count", diag);
}
template <class Desc>
FoveaResult check_pages(const Desc& d, FoveaDiag* diag) {
    if (d.page_size && (!d.page_count || d.block_table_pages * d.page_size < d.capacity))
        return fail(diag, FOVEA_INVALID_ARGUMENT, d.page_count ? "block_table_pages" : "page_count",
                    "page_size %u with page_count %u and block_table_pages %llu does not hold capacity, %llu",
                    d.page_size, d.page_count, static_cast<unsigned long long>(d.block_table_pages),
                    static_cast<unsigned long long>(d.capacity));
    if (!d.page_size && (d.page_count || d.block_table_pages))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "page_size",
                    "page_size is 0, but page_count or block_table_pages is set; set all three or none");
    return FOVEA_OK;
}
template <class Desc>
Extents cache_extents(const Desc& d) {
    if (d.page_size) return {d.page_count, d.heads, d.page_size, d.dim};
    return {d.batch, d.heads, d.capacity, d.dim};
}
template <class Desc>
FoveaResult bind_pages(const Desc& d, OperationBindings& bindings, FoveaDiag* diag) {
    if (!d.page_size) return FOVEA_OK;
    const Checked table = Checked(d.batch) * d.block_table_pages * 4;
    if (table.overflow)
        return fail(diag, FOVEA_SIZE_OVERFLOW, "block_table_pages",
                    "the block table's size does not fit 64 bits");
    bind_plain(FOVEA_BIND_BLOCK_TABLE, table.value, bindings);
    return FOVEA_OK;
}

}  // namespace

FoveaResult make_rope(const FoveaRopeDesc* desc, FoveaRopeDesc& d, OperationBindings& bindings,
                      FoveaDiag* diag) {
    FoveaResult r;
    if ((r = read_struct(desc, d, "desc", diag))) return r;
    if ((r = check_float(d.x_type, "x_type", diag))) return r;
    if ((r = check_float(d.y_type, "y_type", diag))) return r;
    if ((r = check_counts({{"batch", d.batch}, {"heads", d.heads}, {"dim", d.dim}}, diag))) return r;
    if ((r = check_length(d.len, "len", diag))) return r;
    if ((r = check_length(d.table_rows, "table_rows", diag))) return r;
    if ((r = check_kernel(d.kernel, diag))) return r;
    if ((r = check_reserved(d.reserved0, diag))) return r;
    if (d.rotary_dim == 0) d.rotary_dim = d.dim;
    if (d.rotary_dim > d.dim || d.rotary_dim % 2 != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "rotary_dim",
                    "rotary_dim is %u; it must be even and at most dim, %u", d.rotary_dim, d.dim);
    if ((r = check_switch(d.interleaved, "interleaved", diag))) return r;
    if ((r = bind_rows_of_x_and_y(d, bindings, diag))) return r;
    const Checked rows = d.table_rows ? Checked(d.table_rows) : Checked(d.batch) * d.len;
    const Checked table = rows * (d.rotary_dim / 2) * 4, positions = Checked(d.batch) * d.len * 4;
    if (table.overflow || positions.overflow)
        return fail(diag, FOVEA_SIZE_OVERFLOW, "len", "the cosine table's size does not fit 64 bits");
    bind_plain(FOVEA_BIND_COS, table.value, bindings);
    bind_plain(FOVEA_BIND_SIN, table.value, bindings);
    if (d.table_rows) bind_plain(FOVEA_BIND_POSITIONS, positions.value, bindings);
    return FOVEA_OK;
}

// Blocks are of a row of W; so a row must consist of whole ones.
static FoveaResult check_weight_type(const FoveaLinearDesc& d, FoveaDiag* diag) {
    const int type = enum_number(d.w_type);
    if (is_float(type)) return FOVEA_OK;
    // By its number, which may be no type at all.
    if (!has_use(type, kUseLinear))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "w_type",
                    "w_type is %d; it must be FOVEA_F32, FOVEA_F16, FOVEA_BF16, FOVEA_Q4_0, FOVEA_Q4_1, "
                    "FOVEA_Q5_0, FOVEA_Q5_1, FOVEA_Q8_0 or a k-quant",
                    type);
    if (d.weight_is_in_out)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "weight_is_in_out",
                    "weight_is_in_out is %u; a weight of blocks must be [n_out, n_in]", d.weight_is_in_out);
    return check_blocks(d.w_type, {0, 0, d.w_row_stride}, d.n_in, "n_in", "w_row_stride", diag);
}

FoveaResult make_linear(const FoveaLinearDesc* desc, FoveaLinearDesc& d, OperationBindings& bindings,
                        FoveaDiag* diag) {
    FoveaResult r;
    if ((r = read_struct(desc, d, "desc", diag))) return r;
    if ((r = check_float(d.x_type, "x_type", diag))) return r;
    if ((r = check_weight_type(d, diag))) return r;
    if ((r = check_float(d.y_type, "y_type", diag))) return r;
    if ((r = check_counts({{"n_in", d.n_in}, {"n_out", d.n_out}}, diag))) return r;
    if ((r = check_length(d.rows, "rows", diag))) return r;
    if ((r = check_kernel(d.kernel, diag, true))) return r;
    if (const int precision = enum_number(d.precision);
        precision < FOVEA_PRECISION_F32 || precision > FOVEA_PRECISION_INT8_INPUTS)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "precision", "precision is %d; it must be a FoveaPrecision",
                    precision);
    if (d.precision == FOVEA_PRECISION_INT8_INPUTS && is_float(d.w_type))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "precision",
                    "precision is FOVEA_PRECISION_INT8_INPUTS and w_type is %s; it needs a quantized w_type",
                    dtype_name(d.w_type));
    if ((r = check_switch(d.has_bias, "has_bias", diag))) return r;
    if ((r = check_switch(d.weight_is_in_out, "weight_is_in_out", diag))) return r;
    const uint64_t w_rows = d.weight_is_in_out ? d.n_in : d.n_out,
                   w_columns = d.weight_is_in_out ? d.n_out : d.n_in;
    if ((r = fill_row_stride(d.x_row_stride, d.rows, d.n_in, "x_row_stride", diag))) return r;
    if ((r = fill_row_stride(d.y_row_stride, d.rows, d.n_out, "y_row_stride", diag))) return r;
    if ((r = fill_row_stride(d.w_row_stride, w_rows, w_columns, "w_row_stride", diag))) return r;
    bindings = OperationBindings{};
    const FoveaStrides x{0, 0, d.x_row_stride}, y{0, 0, d.y_row_stride}, w{0, 0, d.w_row_stride};
    if ((r = bind({FOVEA_BIND_X, x, 1, 1, d.rows, d.n_in, d.x_type, "x_row_stride", false}, bindings, diag)))
        return r;
    if ((r = bind({FOVEA_BIND_Y, y, 1, 1, d.rows, d.n_out, d.y_type, "y_row_stride", true}, bindings, diag)))
        return r;
    if ((r = bind({FOVEA_BIND_WEIGHT, w, 1, 1, w_rows, w_columns, d.w_type, "w_row_stride", false}, bindings,
                  diag)))
        return r;
    if (d.has_bias) bind_plain(FOVEA_BIND_BIAS, uint64_t{d.n_out} * 4, bindings);
    return FOVEA_OK;
}

// Rows that cannot fit would be left out in silence. With a table only the run knows how many there are.
static FoveaResult check_room(const FoveaAppendDesc& d, FoveaDiag* diag) {
    const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    if (d.has_sequences && d.first_row)
        return fail(
            diag, FOVEA_INVALID_ARGUMENT, "first_row",
            "first_row is %llu; it must be 0 with has_sequences, whose kv_length counts the rows held",
            number(d.first_row));
    if (d.first_row + d.len > d.capacity)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, d.first_row ? "first_row" : "len",
                    "first_row %llu and len %llu end at row %llu; capacity is %llu", number(d.first_row),
                    number(d.len), number(d.first_row + d.len), number(d.capacity));
    return FOVEA_OK;
}

FoveaResult make_append(const FoveaAppendDesc* desc, FoveaAppendDesc& d, OperationBindings& bindings,
                        FoveaDiag* diag) {
    FoveaResult r;
    if ((r = read_struct(desc, d, "desc", diag))) return r;
    if ((r = check_cache(d, diag))) return r;
    if ((r = check_length(d.first_row, "first_row", diag))) return r;
    if ((r = check_switch(d.has_sequences, "has_sequences", diag))) return r;
    if ((r = check_room(d, diag))) return r;
    if ((r = check_pages(d, diag))) return r;
    if ((r = check_switch(d.rotate, "rotate", diag))) return r;
    if (d.rotate && !(is_float(d.x_type) && has_scaled_blocks(d.y_type)))
        return fail(
            diag, FOVEA_INVALID_ARGUMENT, "rotate",
            "rotate is 1, and x_type is %s and y_type %s; it needs FOVEA_F32, FOVEA_F16 or FOVEA_BF16 "
            "to FOVEA_Q8_0 or FOVEA_Q4_0",
            dtype_name(d.x_type), dtype_name(d.y_type));
    const Extents cache = cache_extents(d);
    if ((r = fill_strides(d.x_strides, {d.batch, d.heads, d.len, d.dim}, "x_strides", diag))) return r;
    if ((r = fill_strides(d.y_strides, cache, "y_strides", diag))) return r;
    if ((r = check_blocks(d.x_type, d.x_strides, d.dim, "dim", "x_strides", diag))) return r;
    if ((r = check_blocks(d.y_type, d.y_strides, d.dim, "dim", "y_strides", diag))) return r;
    bindings = OperationBindings{};
    if ((r = bind({FOVEA_BIND_X, d.x_strides, d.batch, d.heads, d.len, d.dim, d.x_type, "x_strides", false},
                  bindings, diag)))
        return r;
    if ((r = bind({FOVEA_BIND_Y, d.y_strides, cache.batch, cache.heads, cache.rows, d.dim, d.y_type,
                   "y_strides", true},
                  bindings, diag)))
        return r;
    if (d.has_sequences)
        bind_plain(FOVEA_BIND_SEQUENCES, uint64_t{d.batch} * sizeof(FoveaSequence), bindings);
    return bind_pages(d, bindings, diag);
}

FoveaResult make_gather(const FoveaGatherDesc* desc, FoveaGatherDesc& d, OperationBindings& bindings,
                        FoveaDiag* diag) {
    FoveaResult r;
    if ((r = read_struct(desc, d, "desc", diag))) return r;
    if ((r = check_cache(d, diag))) return r;
    if ((r = check_reserved(d.reserved0, diag))) return r;
    if (d.position_heads == 0) d.position_heads = 1;
    if (d.position_heads != 1 && d.position_heads != d.heads)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "position_heads",
                    "position_heads is %u; it must be 0, 1 or heads, %u", d.position_heads, d.heads);
    if ((r = check_pages(d, diag))) return r;
    const Extents cache = cache_extents(d);
    if ((r = fill_strides(d.x_strides, cache, "x_strides", diag))) return r;
    if ((r = fill_strides(d.y_strides, {d.batch, d.heads, d.len, d.dim}, "y_strides", diag))) return r;
    if ((r = check_blocks(d.x_type, d.x_strides, d.dim, "dim", "x_strides", diag))) return r;
    if ((r = check_blocks(d.y_type, d.y_strides, d.dim, "dim", "y_strides", diag))) return r;
    const Checked positions = Checked(d.batch) * d.position_heads * d.len * 4;
    if (positions.overflow)
        return fail(diag, FOVEA_SIZE_OVERFLOW, "len", "the size of the lists does not fit 64 bits");
    bindings = OperationBindings{};
    if ((r = bind({FOVEA_BIND_X, d.x_strides, cache.batch, cache.heads, cache.rows, d.dim, d.x_type,
                   "x_strides", false},
                  bindings, diag)))
        return r;
    if ((r = bind({FOVEA_BIND_Y, d.y_strides, d.batch, d.heads, d.len, d.dim, d.y_type, "y_strides", true},
                  bindings, diag)))
        return r;
    bind_plain(FOVEA_BIND_POSITIONS, positions.value, bindings);
    return bind_pages(d, bindings, diag);
}

FoveaResult make_merge(const FoveaMergeDesc* desc, FoveaMergeDesc& d, OperationBindings& bindings,
                       FoveaDiag* diag) {
    FoveaResult r;
    if ((r = read_struct(desc, d, "desc", diag))) return r;
    if ((r = check_float(d.x_type, "x_type", diag))) return r;
    if ((r = check_float(d.y_type, "y_type", diag))) return r;
    if ((r = check_counts({{"parts", d.parts}, {"batch", d.batch}, {"heads", d.heads}, {"dim", d.dim}},
                          diag)))
        return r;
    if (d.parts > FOVEA_MERGE_MAX_PARTS)
        return fail(diag, FOVEA_LIMIT_EXCEEDED, "parts", "parts is %u; the limit is %d", d.parts,
                    int(FOVEA_MERGE_MAX_PARTS));
    if ((r = check_length(d.len, "len", diag))) return r;
    if ((r = check_kernel(d.kernel, diag))) return r;
    if ((r = bind_rows_of_x_and_y(d, bindings, diag))) return r;
    const uint64_t part_bytes = bindings.bytes[FOVEA_BIND_X];
    if (d.x_part_stride < 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "x_part_stride",
                    "x_part_stride is %lld; it must not be negative",
                    static_cast<long long>(d.x_part_stride));
    if (d.x_part_stride == 0) d.x_part_stride = int64_t(part_bytes / dtype_bytes(d.x_type));
    const Checked rows = Checked(d.batch) * d.heads * d.len * 4, part_rows = rows * d.parts;
    const Checked x_bytes =
        Checked(d.parts - 1) * uint64_t(d.x_part_stride) * dtype_bytes(d.x_type) + Checked(part_bytes);
    if (x_bytes.overflow || part_rows.overflow)
        return fail(diag, FOVEA_SIZE_OVERFLOW, "parts", "the size of all parts does not fit 64 bits");
    if (part_bytes) bindings.bytes[FOVEA_BIND_X] = x_bytes.value;
    bind_plain(FOVEA_BIND_PART_LSE, part_rows.value, bindings);
    bind_plain(FOVEA_BIND_LSE, rows.value, bindings);
    bindings.output_mask |= binding_bit(FOVEA_BIND_LSE);
    return FOVEA_OK;
}

}  // namespace fovea
