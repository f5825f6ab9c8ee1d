#include "plan/vulkan/kernels.hpp"

#include "plan/text_sink.hpp"
#include "plan/vulkan/checked.hpp"
#include "plan/vulkan/costs.hpp"
#include "plan/vulkan/dispatch.hpp"
#include "plan/vulkan/limits.hpp"
#include "plan/vulkan/rotation.hpp"
#include "problem/checked.hpp"
#include "problem/status.hpp"
#include "shaders/interface.h"

#include <algorithm>
#include <cstdio>

namespace fovea {
namespace {

using shader::kElementThreads;
constexpr uint64_t kMaxRow = shader::kMaxKernelLength;

FoveaResult check_length(const char* field, uint64_t value, FoveaDiag* diag) {
    if (value < kMaxRow) return FOVEA_OK;
    return fail(diag, FOVEA_SIZE_OVERFLOW, field, "%s is %llu; the Vulkan kernels' limit is 2^29", field,
                static_cast<unsigned long long>(value));
}

FoveaResult check_kernel(FoveaKernel kernel, FoveaDiag* diag) {
    if (kernel == FOVEA_KERNEL_AUTO) return FOVEA_OK;
    return fail(diag, FOVEA_UNSUPPORTED, "kernel",
                "kernel %s is not available on Vulkan for this operation; use auto", foveaKernelName(kernel));
}

void begin_operation(FoveaPlan_T& plan, const char* reason) {
    plan.info.dispatches_per_slice = 1;
    plan.info.workspace_alignment = kWorkspaceAlignment;
    plan.info.kernel = FOVEA_KERNEL_AUTO;
    snprintf(plan.info.reason, sizeof plan.info.reason, "%s", reason);
}

// `flops_of(grid)`: cost of one block. `apart(grid)`: no window shows what another block writes; else slices
// have a barrier between them, although no number is written twice: descriptors meet, and so may words.
template <class Check, class Flops, class Apart>
FoveaResult cut(FoveaPlan_T& plan, uint64_t row_step, FoveaDiag* diag, Check check, Flops flops_of,
                Apart apart) {
    BlockGrid& grid = plan.vulkan.grid;
    if (grid.len == 0) return FOVEA_OK;
    const double max_cost = slice_cost(plan);
    const auto whole = [&](const BlockGrid& g, FoveaDiag* d, double cost_limit) {
        const VulkanLimits limits(plan.properties, d);
        if (FoveaResult r = check(g, limits)) return r;
        return limits.cost(flops_of(g), cost_limit);
    };
    if (!shrink_to_fit(grid, row_step,
                       [&](const BlockGrid& g) { return whole(g, nullptr, max_cost) == FOVEA_OK; }))
        if (FoveaResult r = whole(grid, diag, refusing_slice_cost(plan))) return r;
    plan.info.slice_count = grid.count();
    plan.info.slices_share_workspace = plan.info.slice_count > 1 && !apart(grid);
    plan.info.max_slice_flops = flops_of(grid);
    return FOVEA_OK;
}

uint64_t alignment_of(const FoveaPlan_T& plan) { return window_alignment(plan.properties); }

bool rows_are_apart(const FoveaPlan_T& plan, const BlockGrid& g, const FoveaStrides& strides, uint64_t dim,
                    FoveaDtype type) {
    return !is_compressed(type) && windows_are_apart(strides, g, dim, dtype_bytes(type), alignment_of(plan));
}

shader::RowsView rows_view(const RowBlock& block, uint32_t dim) {
    return {block.heads, uint32_t(block.rows), dim, block.first_batch, uint32_t(block.first_row)};
}

double elements(const BlockGrid& g, uint32_t dim) {
    return double(g.block_batches) * g.block_heads * double(g.block_rows) * dim;
}

// ==== rope ====

uint64_t rope_units(const FoveaRopeDesc& d) { return d.dim - d.rotary_dim / 2; }

FoveaResult check_rope_block(const FoveaPlan_T& plan, const BlockGrid& g, const VulkanLimits& limits) {
    const FoveaRopeDesc& d = plan.rope;
    const uint64_t a = alignment_of(plan), tokens = uint64_t{g.block_batches - 1} * d.len + g.block_rows;
    const uint64_t angles = (d.table_rows ? d.table_rows : tokens) * (d.rotary_dim / 2) * 4 + a;
    FoveaResult r;
    if ((r = limits.window(FOVEA_BIND_X, largest_window(d.x_strides, g.block_batches, g.block_heads,
                                                        g.block_rows, d.dim, dtype_bytes(d.x_type), a))))
        return r;
    if ((r = limits.window(FOVEA_BIND_Y, largest_window(d.y_strides, g.block_batches, g.block_heads,
                                                        g.block_rows, d.dim, dtype_bytes(d.y_type), a))))
        return r;
    if ((r = limits.window(FOVEA_BIND_COS, angles))) return r;
    if (d.table_rows && (r = limits.window(FOVEA_BIND_POSITIONS, tokens * 4 + a))) return r;
    return limits.groups(ceil_div(g.block_rows * rope_units(d), kElementThreads), 1,
                         uint64_t{g.block_batches} * g.block_heads);
}

void fill_rope(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch& out) {
    const FoveaRopeDesc& d = plan.rope;
    const uint64_t a = alignment_of(plan), pairs = d.rotary_dim / 2;
    const Window x = block_window(d.x_strides, block, d.dim, dtype_bytes(d.x_type), a);
    const Window y = block_window(d.y_strides, block, d.dim, dtype_bytes(d.y_type), a);
    const uint64_t first = block.first_batch * d.len + block.first_row;
    const uint64_t last = (block.first_batch + block.batches - 1) * d.len + block.first_row + block.rows;
    const Window positions = element_window(first, last, 4, a);
    const Window angles = d.table_rows ? element_window(0, d.table_rows * pairs, 4, a)
                                       : element_window(first * pairs, last * pairs, 4, a);
    DispatchBuilder builder(out, Shader::rope);
    shader::RopePush push{};
    push.slice = rows_view(block, d.dim);
    push.x = view_of(d.x_strides, x);
    push.y = view_of(d.y_strides, y);
    push.rotary_dim = d.rotary_dim;
    push.interleaved = d.interleaved;
    push.len = uint32_t(d.len);
    push.token_base = d.table_rows ? positions.base : 0;
    push.table_rows = uint32_t(d.table_rows);
    push.angle_base = angles.base;
    builder.input(FOVEA_SLOT_X, FOVEA_BIND_X, x);
    builder.tensor(FOVEA_SLOT_Y, FOVEA_BIND_Y, y, d.y_type, plan.properties);
    // A slot that is not used shows X, and no thread looks at it.
    const auto angle_input = [&](uint32_t slot, uint32_t source) {
        builder.input(slot, pairs ? source : uint32_t{FOVEA_BIND_X}, pairs ? angles : x);
    };
    angle_input(FOVEA_SLOT_COS, FOVEA_BIND_COS);
    angle_input(FOVEA_SLOT_SIN, FOVEA_BIND_SIN);
    builder.input(FOVEA_SLOT_POSITIONS, d.table_rows ? FOVEA_BIND_POSITIONS : FOVEA_BIND_X,
                  d.table_rows ? positions : x);
    builder.spec(FOVEA_SPEC_THREADS, kElementThreads);
    builder.spec(FOVEA_SPEC_A_TYPE, d.x_type);
    builder.push(push);
    builder.groups(ceil_div(block.rows * rope_units(d), kElementThreads), 1,
                   uint64_t{block.batches} * block.heads);
}

// ==== append and gather ====

// The whole cache that a block of append's or gather's rows may reach.
template <class Desc>
RowBlock cache_block(const Desc& d, RowBlock block) {
    block.first_row = 0;
    block.rows = d.capacity;
    if (d.page_size) block.first_batch = 0, block.batches = d.page_count, block.rows = d.page_size;
    return block;
}

// Threads for each row, see shaders/cache_rows.comp.
template <class Desc>
uint64_t row_parts(const Desc& d) {
    const StorageBlock block = storage_block(d.y_type);
    if (!is_compressed(d.y_type)) return d.dim;
    if (block.numbers == 1) return (d.dim + 6) / 4;  // words that the bytes of a row may touch
    return d.dim / block.numbers * (d.x_type == d.y_type ? block.bytes / 2 : 1);
}

template <class Desc>
uint64_t row_groups(const Desc& d, uint64_t rows) {
    return ceil_div(rows * row_parts(d), kElementThreads);
}

// `x` and `y`: the rows of a block there.
template <class Desc>
FoveaResult check_cache_rows(const FoveaPlan_T& plan, const Desc& d, const RowBlock& x, const RowBlock& y,
                             const BlockGrid& g, const VulkanLimits& limits) {
    const uint64_t a = alignment_of(plan);
    const auto window = [&](uint32_t binding, const FoveaStrides& strides, const RowBlock& block,
                            FoveaDtype type) {
        return limits.window(binding, largest_window(strides, block.batches, block.heads, block.rows, d.dim,
                                                     storage_block(type), a));
    };
    FoveaResult r;
    if ((r = window(FOVEA_BIND_X, d.x_strides, x, d.x_type))) return r;
    if ((r = window(FOVEA_BIND_Y, d.y_strides, y, d.y_type))) return r;
    if ((r = limits.window(FOVEA_BIND_BLOCK_TABLE, plan.info.binding_bytes[FOVEA_BIND_BLOCK_TABLE])))
        return r;
    return limits.groups(row_groups(d, g.block_rows), 1, uint64_t{g.block_batches} * g.block_heads);
}

RowBlock whole_block(const BlockGrid& g) { return {0, g.block_batches, 0, g.block_heads, 0, g.block_rows}; }

// Fills the fields common to both; the caller completes the push constants.
template <class Desc>
shader::CacheRowsPush fill_cache_rows(const FoveaPlan_T& plan, const Desc& d, const RowBlock& block,
                                      const Window& x, const Window& y, DispatchBuilder& builder) {
    shader::CacheRowsPush push{};
    push.slice = rows_view(block, d.dim);
    push.parts = uint32_t(row_parts(d));
    push.x = view_of(d.x_strides, x);
    push.y = view_of(d.y_strides, y);
    push.pages = {d.page_size, d.page_count, uint32_t(d.block_table_pages)};
    push.capacity = uint32_t(d.capacity);
    const BoundTensor from = bound(plan.vulkan.rotated_in, FOVEA_BIND_X, x);
    builder.input(FOVEA_SLOT_X, from.source, from.window);
    builder.tensor(FOVEA_SLOT_Y, FOVEA_BIND_Y, y, d.y_type, plan.properties);
    // A slot that is not used shows X, and no thread looks at it.
    builder.input(FOVEA_SLOT_PAGES, d.page_size ? uint32_t{FOVEA_BIND_BLOCK_TABLE} : from.source,
                  d.page_size ? Window{0, plan.info.binding_bytes[FOVEA_BIND_BLOCK_TABLE], 0} : from.window);
    builder.spec(FOVEA_SPEC_THREADS, kElementThreads);
    builder.spec(FOVEA_SPEC_A_TYPE, d.x_type);
    builder.groups(row_groups(d, block.rows), 1, uint64_t{block.batches} * block.heads);
    return push;
}

FoveaResult check_append_block(const FoveaPlan_T& plan, const BlockGrid& g, const VulkanLimits& limits) {
    const FoveaAppendDesc& d = plan.append;
    if (FoveaResult r = limits.window(FOVEA_BIND_SEQUENCES, plan.info.binding_bytes[FOVEA_BIND_SEQUENCES]))
        return r;
    if (FoveaResult r = check_rotations(plan, whole_block(g), limits)) return r;
    return check_cache_rows(plan, d, whole_block(g), cache_block(d, whole_block(g)), g, limits);
}

void fill_append(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch& out) {
    const FoveaAppendDesc& d = plan.append;
    const uint64_t a = alignment_of(plan);
    const Window x = block_window(d.x_strides, block, d.dim, storage_block(d.x_type), a);
    const Window y = block_window(d.y_strides, cache_block(d, block), d.dim, storage_block(d.y_type), a);
    DispatchBuilder builder(out, Shader::cache_rows);
    shader::CacheRowsPush push = fill_cache_rows(plan, d, block, x, y, builder);
    push.held = uint32_t(std::min(d.first_row, d.capacity));
    push.has_sequences = d.has_sequences;
    const BoundTensor unused = bound(plan.vulkan.rotated_in, FOVEA_BIND_X, x);
    builder.input(
        FOVEA_SLOT_HELD, d.has_sequences ? uint32_t{FOVEA_BIND_SEQUENCES} : unused.source,
        d.has_sequences ? Window{0, plan.info.binding_bytes[FOVEA_BIND_SEQUENCES], 0} : unused.window);
    builder.spec(FOVEA_SPEC_LISTED, 0);
    if (d.rotate) builder.after_earlier_ones();
    builder.push(push);
}

FoveaStrides list_strides(const FoveaGatherDesc& d) {
    return {int64_t(d.position_heads * d.len), d.position_heads > 1 ? int64_t(d.len) : 0, 1};
}

FoveaResult check_gather_block(const FoveaPlan_T& plan, const BlockGrid& g, const VulkanLimits& limits) {
    const FoveaGatherDesc& d = plan.gather;
    if (FoveaResult r = limits.window(FOVEA_BIND_POSITIONS,
                                      largest_window(list_strides(d), g.block_batches, g.block_heads,
                                                     g.block_rows, 1, 4, alignment_of(plan))))
        return r;
    return check_cache_rows(plan, d, cache_block(d, whole_block(g)), whole_block(g), g, limits);
}

void fill_gather(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch& out) {
    const FoveaGatherDesc& d = plan.gather;
    const uint64_t a = alignment_of(plan);
    const Window x = block_window(d.x_strides, cache_block(d, block), d.dim, storage_block(d.x_type), a);
    const Window y = block_window(d.y_strides, block, d.dim, storage_block(d.y_type), a);
    const Window positions = block_window(list_strides(d), block, 1, 4, a);
    DispatchBuilder builder(out, Shader::cache_rows);
    shader::CacheRowsPush push = fill_cache_rows(plan, d, block, x, y, builder);
    push.positions = view_of(list_strides(d), positions);
    builder.input(FOVEA_SLOT_LISTED, FOVEA_BIND_POSITIONS, positions);
    builder.spec(FOVEA_SPEC_LISTED, 1);
    builder.push(push);
}

// ==== merge ====

FoveaStrides lse_strides(const FoveaMergeDesc& d) {
    return {int64_t(d.heads) * int64_t(d.len), int64_t(d.len), 1};
}

uint64_t lse_part_rows(const FoveaMergeDesc& d) { return uint64_t{d.batch} * d.heads * d.len; }

// The window of a block in every part, from part 0 on.
Window with_parts(Window window, const FoveaMergeDesc& d, uint64_t part_elements, uint32_t element_bytes) {
    window.size += (d.parts - 1) * part_elements * element_bytes;
    return window;
}

FoveaResult check_merge_block(const FoveaPlan_T& plan, const BlockGrid& g, const VulkanLimits& limits) {
    const FoveaMergeDesc& d = plan.merge;
    const uint64_t a = alignment_of(plan);
    const auto window = [&](const FoveaStrides& strides, uint64_t columns, uint32_t element_bytes) {
        return Window{
            0,
            largest_window(strides, g.block_batches, g.block_heads, g.block_rows, columns, element_bytes, a),
            0};
    };
    const uint32_t x_bytes = dtype_bytes(d.x_type);
    const Window lse = window(lse_strides(d), 1, 4);
    FoveaResult r;
    if ((r = limits.window(
             FOVEA_BIND_X,
             with_parts(window(d.x_strides, d.dim, x_bytes), d, uint64_t(d.x_part_stride), x_bytes).size)))
        return r;
    if ((r = limits.window(FOVEA_BIND_PART_LSE, with_parts(lse, d, lse_part_rows(d), 4).size))) return r;
    if ((r = limits.window(FOVEA_BIND_Y, window(d.y_strides, d.dim, dtype_bytes(d.y_type)).size))) return r;
    if ((r = limits.window(FOVEA_BIND_LSE, lse.size))) return r;
    return limits.groups(ceil_div(g.block_rows * d.dim, kElementThreads), 1,
                         uint64_t{g.block_batches} * g.block_heads);
}

void fill_merge(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch& out) {
    static_assert(1u << (shader::kMergeLevels - 1) == FOVEA_MERGE_MAX_PARTS);
    const FoveaMergeDesc& d = plan.merge;
    const uint64_t a = alignment_of(plan);
    const Window first_x = block_window(d.x_strides, block, d.dim, dtype_bytes(d.x_type), a);
    const Window x = with_parts(first_x, d, uint64_t(d.x_part_stride), dtype_bytes(d.x_type));
    const Window y = block_window(d.y_strides, block, d.dim, dtype_bytes(d.y_type), a);
    const Window merged_lse = block_window(lse_strides(d), block, 1, 4, a);
    const Window part_lse = with_parts(merged_lse, d, lse_part_rows(d), 4);
    DispatchBuilder builder(out, Shader::merge);
    shader::MergePush push{};
    push.slice = rows_view(block, d.dim);
    push.x = view_of(d.x_strides, x);
    push.y = view_of(d.y_strides, y);
    push.lse = view_of(lse_strides(d), part_lse);
    push.parts = d.parts;
    push.x_part = uint32_t(d.x_part_stride);
    push.lse_part = uint32_t(lse_part_rows(d));
    push.merged_lse_base = merged_lse.base;
    builder.input(FOVEA_SLOT_X, FOVEA_BIND_X, x);
    builder.tensor(FOVEA_SLOT_Y, FOVEA_BIND_Y, y, d.y_type, plan.properties);
    builder.input(FOVEA_SLOT_PART_LSE, FOVEA_BIND_PART_LSE, part_lse);
    builder.output(FOVEA_SLOT_MERGED_LSE, FOVEA_BIND_LSE, merged_lse);
    builder.spec(FOVEA_SPEC_THREADS, kElementThreads);
    builder.spec(FOVEA_SPEC_A_TYPE, d.x_type);
    builder.push(push);
    builder.groups(ceil_div(block.rows * d.dim, kElementThreads), 1, uint64_t{block.batches} * block.heads);
}

// ==== linear ====
// The grid's "heads" are blocks of column_block output columns.

FoveaStrides row_stride(int64_t stride) { return {0, 0, stride}; }

Window weight_window(const FoveaLinearDesc& d, uint64_t first, uint64_t columns, uint64_t alignment) {
    const uint64_t stride = uint64_t(d.w_row_stride);
    const StorageBlock block = storage_block(d.w_type);
    if (d.weight_is_in_out)
        return element_window(first, uint64_t{d.n_in - 1} * stride + first + columns, block, alignment);
    return element_window(first * stride, (first + columns - 1) * stride + d.n_in, block, alignment);
}

uint64_t linear_columns(const FoveaPlan_T& plan, const BlockGrid& g) {
    return std::min<uint64_t>(plan.linear.n_out, g.block_heads * plan.vulkan.column_block);
}

FoveaResult check_linear_block(const FoveaPlan_T& plan, const BlockGrid& g, const VulkanLimits& limits) {
    const FoveaLinearDesc& d = plan.linear;
    const uint64_t a = alignment_of(plan), columns = linear_columns(plan, g);
    FoveaResult r;
    const uint64_t rows = d.weight_is_in_out ? d.n_in : columns,
                   width = d.weight_is_in_out ? columns : d.n_in;
    if ((r = limits.window(FOVEA_BIND_WEIGHT, largest_window(row_stride(d.w_row_stride), 1, 1, rows, width,
                                                             storage_block(d.w_type), a))))
        return r;
    if ((r = limits.window(FOVEA_BIND_X, largest_window(row_stride(d.x_row_stride), 1, 1, g.block_rows,
                                                        d.n_in, dtype_bytes(d.x_type), a))))
        return r;
    if ((r = limits.window(FOVEA_BIND_Y, largest_window(row_stride(d.y_row_stride), 1, 1, g.block_rows,
                                                        columns, dtype_bytes(d.y_type), a))))
        return r;
    return limits.groups(ceil_div(columns, plan.vulkan.tile.columns),
                         ceil_div(g.block_rows, plan.vulkan.tile.rows), 1);
}

void fill_linear(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch& out) {
    const FoveaLinearDesc& d = plan.linear;
    const VulkanPlan& v = plan.vulkan;
    const uint64_t a = alignment_of(plan), first = block.first_head * v.column_block;
    const uint64_t columns = std::min(d.n_out - first, block.heads * v.column_block);
    const uint64_t y_first = block.first_row * uint64_t(d.y_row_stride) + first;
    const uint64_t y_last = (block.first_row + block.rows - 1) * uint64_t(d.y_row_stride) + first + columns;
    const RowBlock rows{0, 1, 0, 1, block.first_row, block.rows};
    const Window x = block_window(row_stride(d.x_row_stride), rows, d.n_in, dtype_bytes(d.x_type), a);
    const Window y = element_window(y_first, y_last, dtype_bytes(d.y_type), a);
    const Window w = weight_window(d, first, columns, a);
    const Window bias = element_window(first, first + columns, 4, a);
    DispatchBuilder builder(out, linear_shader(plan));
    shader::LinearPush push{};
    push.rows = uint32_t(block.rows);
    push.n_in = d.n_in;
    push.n_out = uint32_t(columns);
    push.x_base = x.base, push.x_row = uint32_t(d.x_row_stride);
    push.y_base = y.base, push.y_row = uint32_t(d.y_row_stride);
    push.w_base = w.base, push.w_row = uint32_t(d.w_row_stride);
    push.bias_base = d.has_bias ? bias.base : 0;
    push.has_bias = d.has_bias;
    builder.input(FOVEA_SLOT_X, FOVEA_BIND_X, x);
    builder.tensor(FOVEA_SLOT_Y, FOVEA_BIND_Y, y, d.y_type, plan.properties);
    builder.input(FOVEA_SLOT_W, FOVEA_BIND_WEIGHT, w);
    builder.input(FOVEA_SLOT_LINEAR_BIAS, d.has_bias ? FOVEA_BIND_BIAS : FOVEA_BIND_X, d.has_bias ? bias : x);
    builder.spec(FOVEA_SPEC_THREADS, v.tile.threads);
    builder.spec(FOVEA_SPEC_A_TYPE, d.x_type);
    builder.spec(FOVEA_SPEC_B_TYPE, d.w_type);
    builder.spec(FOVEA_SPEC_ALIGNED, v.quads);
    builder.spec(FOVEA_SPEC_ROWS, v.tile.rows);
    builder.spec(FOVEA_SPEC_IN_OUT, d.weight_is_in_out);
    if (v.tile.subgroups) {
        builder.spec(FOVEA_SPEC_MATRIX_M, plan.properties.coopmat_m);
        builder.spec(FOVEA_SPEC_MATRIX_N, plan.properties.coopmat_n);
        builder.spec(FOVEA_SPEC_MATRIX_K, plan.properties.coopmat_k);
        builder.bfloat16(d.precision);
        builder.spec(FOVEA_SPEC_COLUMNS, v.tile.columns);
        builder.spec(FOVEA_SPEC_SUBGROUPS, v.tile.subgroups);
        out.subgroup_size = v.tile.threads / v.tile.subgroups;
    }
    builder.push(push);
    builder.groups(ceil_div(columns, v.tile.columns), ceil_div(block.rows, v.tile.rows), 1);
}

// ==== norm and pointwise ====

static_assert(shader::kNormLayer == uint32_t(NormRule::layer) &&
              shader::kNormRms == uint32_t(NormRule::rms) &&
              shader::kPointwiseAdd == uint32_t(PointwiseRule::add) &&
              shader::kPointwiseGelu == uint32_t(PointwiseRule::gelu) &&
              shader::kPointwiseGeluTanh == uint32_t(PointwiseRule::gelu_tanh) &&
              shader::kPointwiseSilu == uint32_t(PointwiseRule::silu) &&
              shader::kPointwiseRelu == uint32_t(PointwiseRule::relu));

FoveaResult check_norm_block(const FoveaPlan_T& plan, const BlockGrid& g, const VulkanLimits& limits) {
    const NormDesc& d = plan.norm;
    const uint64_t rows =
        largest_window(row_stride(d.width), 1, 1, g.block_rows, d.width, 4, alignment_of(plan));
    for (const FoveaBinding binding : {FOVEA_BIND_X, FOVEA_BIND_Y})
        if (FoveaResult r = limits.window(binding, rows)) return r;
    if (FoveaResult r = limits.window(FOVEA_BIND_WEIGHT, plan.info.binding_bytes[FOVEA_BIND_WEIGHT]))
        return r;
    return limits.groups(g.block_rows, 1, 1);
}

void fill_norm(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch& out) {
    const NormDesc& d = plan.norm;
    const Window rows = block_window(row_stride(d.width), block, d.width, 4, alignment_of(plan));
    DispatchBuilder builder(out, Shader::norm);
    builder.input(FOVEA_SLOT_X, FOVEA_BIND_X, rows);
    builder.output(FOVEA_SLOT_Y, FOVEA_BIND_Y, rows);
    builder.input_if(d.has_weight, FOVEA_SLOT_W, FOVEA_BIND_WEIGHT,
                     {0, plan.info.binding_bytes[FOVEA_BIND_WEIGHT], 0});
    builder.output_if(d.adds, FOVEA_SLOT_OTHER, FOVEA_BIND_O, rows);
    builder.spec(FOVEA_SPEC_THREADS, shader::kNormThreads);
    builder.spec(FOVEA_SPEC_RULE, uint32_t(d.rule));
    builder.spec(FOVEA_SPEC_OTHER, d.adds);
    builder.spec(FOVEA_SPEC_WEIGHT, d.has_bias     ? shader::kWeightAndBias
                                    : d.has_weight ? shader::kWeightAlone
                                                   : shader::kNoWeight);
    builder.push(shader::NormPush{d.width, rows.base, rows.base, rows.base, d.epsilon});
    builder.groups(block.rows, 1, 1);
}

FoveaResult check_pointwise_block(const FoveaPlan_T& plan, const BlockGrid& g, const VulkanLimits& limits) {
    const uint64_t bytes = largest_window(row_stride(1), 1, 1, g.block_rows, 1, 4, alignment_of(plan));
    if (FoveaResult r = limits.window(FOVEA_BIND_X, bytes)) return r;
    return limits.groups(ceil_div(g.block_rows, kElementThreads), 1, 1);
}

void fill_pointwise(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch& out) {
    const PointwiseDesc& d = plan.pointwise;
    const Window numbers = block_window(row_stride(1), block, 1, 4, alignment_of(plan));
    DispatchBuilder builder(out, Shader::pointwise);
    builder.input(FOVEA_SLOT_X, FOVEA_BIND_X, numbers);
    builder.output(FOVEA_SLOT_Y, FOVEA_BIND_Y, numbers);
    builder.input_if(d.has_other(), FOVEA_SLOT_OTHER, FOVEA_BIND_O, numbers);
    builder.spec(FOVEA_SPEC_THREADS, kElementThreads);
    builder.spec(FOVEA_SPEC_RULE, uint32_t(d.rule));
    builder.spec(FOVEA_SPEC_OTHER, d.gated);
    builder.push(shader::PointwisePush{uint32_t(block.rows), numbers.base, numbers.base, numbers.base});
    builder.groups(ceil_div(block.rows, kElementThreads), 1, 1);
}

}  // namespace

Shader linear_shader(const FoveaPlan_T& plan) {
    const TileChoice& tile = plan.vulkan.tile;
    return tile.subgroups ? Shader::linear_coopmat
           : tile.shared  ? Shader::linear_shared
                          : Shader::linear_direct;
}

FoveaResult plan_vulkan_rope(FoveaPlan_T& plan, FoveaDiag* diag) {
    const FoveaRopeDesc& d = plan.rope;
    FoveaResult r;
    if ((r = check_kernel(d.kernel, diag))) return r;
    if ((r = check_stored_type("y_type", d.y_type, plan.properties, diag))) return r;
    if ((r = check_length("len", d.len, diag))) return r;
    if ((r = check_length("table_rows", d.table_rows, diag))) return r;
    if ((r = require_shader(Shader::rope, diag))) return r;
    begin_operation(plan, "rope: one thread for each pair of a row");
    plan.vulkan.grid = {d.batch, d.heads, d.len, d.batch, d.heads, d.len};
    plan.info.flops = 3.0 * d.rotary_dim * double(d.batch) * d.heads * double(d.len);
    return cut(
        plan, 1, diag,
        [&](const BlockGrid& g, const VulkanLimits& limits) { return check_rope_block(plan, g, limits); },
        [&](const BlockGrid& g) { return 3.0 * elements(g, d.dim); },
        [&](const BlockGrid& g) { return rows_are_apart(plan, g, d.y_strides, d.dim, d.y_type); });
}

// Append's and gather's rows.
template <class Desc, class Check, class Apart>
FoveaResult plan_cache_rows(FoveaPlan_T& plan, const Desc& d, const char* reason, Check check, Apart apart,
                            FoveaDiag* diag) {
    FoveaResult r;
    if ((r = check_stored_type("y_type", d.y_type, plan.properties, diag))) return r;
    if ((r = check_length("len", d.len, diag))) return r;
    if ((r = check_length("capacity", d.capacity, diag))) return r;
    if ((r = require_shader(Shader::cache_rows, diag))) return r;
    begin_operation(plan, reason);
    plan.info.dispatches_per_slice += rotation_count(plan.vulkan);
    plan.info.workspace_bytes = rotated_bytes(plan.vulkan);
    plan.vulkan.grid = {d.batch, d.heads, d.len, d.batch, d.heads, d.len};
    plan.info.flops = double(d.batch) * d.heads * double(d.len) * d.dim;
    return cut(
        plan, 1, diag, [&](const BlockGrid& g, const VulkanLimits& limits) { return check(plan, g, limits); },
        [&](const BlockGrid& g) { return elements(g, d.dim); }, apart);
}

FoveaResult plan_vulkan_append(FoveaPlan_T& plan, FoveaDiag* diag) {
    const bool blocks = storage_block(plan.append.y_type).numbers > 1;
    return plan_cache_rows(
        plan, plan.append,
        blocks ? "append: one thread for each block" : "append: one thread for each element",
        check_append_block, [](const BlockGrid&) { return false; },  // each shows whole caches
        diag);
}

FoveaResult plan_vulkan_gather(FoveaPlan_T& plan, FoveaDiag* diag) {
    const FoveaGatherDesc& d = plan.gather;
    return plan_cache_rows(
        plan, d, "gather: one thread for each element", check_gather_block,
        [&](const BlockGrid& g) { return rows_are_apart(plan, g, d.y_strides, d.dim, d.y_type); }, diag);
}

FoveaResult plan_vulkan_merge(FoveaPlan_T& plan, FoveaDiag* diag) {
    const FoveaMergeDesc& d = plan.merge;
    FoveaResult r;
    if ((r = check_kernel(d.kernel, diag))) return r;
    if ((r = check_stored_type("y_type", d.y_type, plan.properties, diag))) return r;
    if ((r = check_length("len", d.len, diag))) return r;
    // Elements are numbered by 32 bits, from the first part's on.
    if ((r = check_length("x_part_stride", uint64_t(d.x_part_stride), diag))) return r;
    if ((r = require_shader(Shader::merge, diag))) return r;
    begin_operation(plan, "merge: one thread for each element");
    plan.vulkan.grid = {d.batch, d.heads, d.len, d.batch, d.heads, d.len};
    plan.info.flops = 3.0 * d.parts * double(d.batch) * d.heads * double(d.len) * d.dim;
    return cut(
        plan, 1, diag,
        [&](const BlockGrid& g, const VulkanLimits& limits) { return check_merge_block(plan, g, limits); },
        [&](const BlockGrid& g) { return 3.0 * d.parts * elements(g, d.dim); },
        [&](const BlockGrid& g) {
            return rows_are_apart(plan, g, d.y_strides, d.dim, d.y_type) &&
                   rows_are_apart(plan, g, lse_strides(d), 1, FOVEA_F32);
        });
}

FoveaResult plan_vulkan_linear(FoveaPlan_T& plan, FoveaDiag* diag) {
    const FoveaLinearDesc& d = plan.linear;
    VulkanPlan& v = plan.vulkan;
    if (FoveaResult r = check_kernel(d.kernel, diag)) return r;
    if (FoveaResult r = check_stored_type("y_type", d.y_type, plan.properties, diag)) return r;
    if (d.precision == FOVEA_PRECISION_INT8_INPUTS)
        return fail(diag, FOVEA_UNSUPPORTED, "precision",
                    "precision is FOVEA_PRECISION_INT8_INPUTS, which is only for the CPU");
    // Only a software driver's tiles do without shared memory.
    const FoveaDeviceClass tiles_of =
        has_failed(plan, Shader::linear_shared) ? FOVEA_CLASS_CPU : plan.properties.device_class;
    v.tile = choose_tile({d.rows, d.n_out, tiles_of});
    const char* no_matrices = choose_linear_matrices(plan.properties, d, v.tile);
    const bool no_code = require_shader(Shader::linear_coopmat, nullptr) != FOVEA_OK;
    if (!no_matrices && (no_code || has_failed(plan, Shader::linear_coopmat))) {
        no_matrices = no_code ? "this build has no code for them" : kFailedCheck;
        v.tile = choose_tile({d.rows, d.n_out, tiles_of});
    }
    v.quads = d.n_in % 4 == 0 && d.x_row_stride % 4 == 0 && d.w_row_stride % 4 == 0 &&
              (!d.weight_is_in_out || d.n_out % 4 == 0);
    if (FoveaResult r = require_shader(linear_shader(plan), diag)) return r;
    char reason[sizeof plan.info.reason];
    snprintf(reason, sizeof reason, "linear on cooperative matrices, %s inputs, float32 accumulation",
             d.precision == FOVEA_PRECISION_BF16_INPUTS ? "bfloat16" : "float16");
    if (no_matrices)
        snprintf(reason, sizeof reason, "linear: tiles of rows x outputs; not on cooperative matrices: %s",
                 no_matrices);
    begin_operation(plan, reason);
    v.column_block = v.tile.columns;
    const uint32_t column_blocks = uint32_t(ceil_div(d.n_out, v.column_block));
    v.grid = {1, column_blocks, d.rows, 1, column_blocks, d.rows};
    plan.info.flops = 2.0 * d.n_in * d.n_out * double(d.rows);
    return cut(
        plan, v.tile.rows, diag,
        [&](const BlockGrid& g, const VulkanLimits& limits) { return check_linear_block(plan, g, limits); },
        [&](const BlockGrid& g) {
            return 2.0 * d.n_in * double(linear_columns(plan, g)) * double(g.block_rows);
        },
        [&](const BlockGrid& g) {
            return rows_are_apart(plan, g, {0, int64_t(v.column_block), d.y_row_stride},
                                  std::min<uint64_t>(d.n_out, v.column_block), d.y_type);
        });
}

FoveaResult plan_vulkan_norm(FoveaPlan_T& plan, FoveaDiag* diag) {
    const NormDesc& d = plan.norm;
    if (FoveaResult r = check_kernel(d.kernel, diag)) return r;
    if (FoveaResult r = check_length("rows", d.rows * d.width, diag)) return r;
    if (FoveaResult r = require_shader(Shader::norm, diag)) return r;
    begin_operation(plan, "norm: one workgroup for each row");
    plan.vulkan.grid = {1, 1, d.rows, 1, 1, d.rows};
    plan.info.flops = norm_flops(d) * double(d.rows);
    return cut(
        plan, 1, diag,
        [&](const BlockGrid& g, const VulkanLimits& limits) { return check_norm_block(plan, g, limits); },
        [&](const BlockGrid& g) { return norm_flops(d) * double(g.block_rows); },
        [&](const BlockGrid& g) { return rows_are_apart(plan, g, row_stride(d.width), d.width, FOVEA_F32); });
}

FoveaResult plan_vulkan_pointwise(FoveaPlan_T& plan, FoveaDiag* diag) {
    const PointwiseDesc& d = plan.pointwise;
    if (FoveaResult r = check_kernel(d.kernel, diag)) return r;
    if (FoveaResult r = check_length("count", d.count, diag)) return r;
    if (FoveaResult r = require_shader(Shader::pointwise, diag)) return r;
    begin_operation(plan, "pointwise: one thread for each number");
    plan.vulkan.grid = {1, 1, d.count, 1, 1, d.count};
    plan.info.flops = pointwise_flops(d) * double(d.count);
    return cut(
        plan, kElementThreads, diag,
        [&](const BlockGrid& g, const VulkanLimits& limits) {
            return check_pointwise_block(plan, g, limits);
        },
        [&](const BlockGrid& g) { return pointwise_flops(d) * double(g.block_rows); },
        [&](const BlockGrid& g) { return rows_are_apart(plan, g, row_stride(1), 1, FOVEA_F32); });
}

FoveaResult operation_slice(const FoveaPlan_T& plan, uint64_t slice, FoveaDispatch* out, uint32_t& count,
                            FoveaDiag*) {
    using Fill = void (*)(const FoveaPlan_T& plan, const RowBlock& block, FoveaDispatch& out);
    constexpr Fill kFills[] = {
        // indexed by Operation; attention, its gradients and map tiles make slices by their own functions
        nullptr,   fill_rope,      fill_linear, fill_append, nullptr, nullptr, fill_merge, fill_gather,
#ifndef FOVEA_NO_ROW_PARTS
        fill_norm, fill_pointwise,
#endif
    };
    const RowBlock block = plan.vulkan.grid.block(slice);
    count = 0;
    fill_rotation_in(plan, block, out, count);
    kFills[size_t(plan.operation)](plan, block, out[count++]);
    return FOVEA_OK;
}

void explain_linear(const FoveaPlan_T& plan, TextSink& text) {
    const BlockGrid& g = plan.vulkan.grid;
    const TileChoice& t = plan.vulkan.tile;
    text.line("tiles of %u x %u, %u threads, %s; a slice: %llu rows x %llu columns", t.rows, t.columns,
              t.threads,
              t.subgroups ? "matrices in shared memory"
              : t.shared  ? "in shared memory"
                          : "straight from the buffers",
              static_cast<unsigned long long>(g.block_rows),
              static_cast<unsigned long long>(linear_columns(plan, g)));
}

void explain_rows(const FoveaPlan_T& plan, TextSink& text) {
    const BlockGrid& g = plan.vulkan.grid;
    text.line("a slice: %u batch entries x %u heads x %llu rows", g.block_batches, g.block_heads,
              static_cast<unsigned long long>(g.block_rows));
}

}  // namespace fovea
