// Lists the ends of the fields of the C API's structs: a struct_size that ends inside a field does not belong
// to an older version. FOVEA_FIELDS names all fields in order; one too few or too many does not compile.
#pragma once

#include <fovea/fovea.h>

#include <cstddef>

namespace fovea {

template <class... Fields>
bool ends_inside(const void* from, size_t size, const Fields&... fields) {
    const auto is_cut = [&](const auto& field) {
        const auto begin = size_t(reinterpret_cast<const char*>(&field) - static_cast<const char*>(from));
        return size > begin && size < begin + sizeof field;
    };
    return (is_cut(fields) || ...);
}

template <class Struct>
struct FieldsOf;

#define FOVEA_FIELDS(Struct, ...)                              \
    template <>                                                \
    struct FieldsOf<Struct> {                                  \
        static bool end_inside(const Struct& s, size_t size) { \
            const auto& [__VA_ARGS__] = s;                     \
            return ends_inside(&s, size, __VA_ARGS__);         \
        }                                                      \
    }

FOVEA_FIELDS(FoveaAttentionDesc, struct_size, flags, q_type, k_type, v_type, o_type, batch, heads_q, heads_kv,
             dim_qk, dim_v, outputs, len_q, len_kv, q_strides, k_strides, v_strides, o_strides, scale,
             softcap, align, reserved0, q_offset, window_left, window_right, mask, bias, dropout_mask,
             dropout_p, reserved1, dropout_seed, dropout_offset, packed_rows_q, packed_rows_kv, page_size,
             page_count, block_table_pages, precision, kernel, max_slice_cost, workspace_limit, first_query,
             first_key, first_batch_head);
FOVEA_FIELDS(FoveaAttentionBackwardDesc, struct_size, gradients, accumulate, has_lse_gradient, do_type,
             dq_type, dk_type, dv_type, do_strides, dq_strides, dk_strides, dv_strides, kernel, reserved0);
FOVEA_FIELDS(FoveaRopeDesc, struct_size, x_type, y_type, batch, heads, dim, len, x_strides, y_strides,
             rotary_dim, interleaved, table_rows, kernel, reserved0);
FOVEA_FIELDS(FoveaLinearDesc, struct_size, x_type, w_type, y_type, n_in, n_out, has_bias, weight_is_in_out,
             rows, x_row_stride, y_row_stride, w_row_stride, kernel, precision);
FOVEA_FIELDS(FoveaAppendDesc, struct_size, x_type, y_type, batch, heads, dim, len, capacity, first_row,
             x_strides, y_strides, has_sequences, page_size, page_count, rotate, block_table_pages);
FOVEA_FIELDS(FoveaGatherDesc, struct_size, x_type, y_type, batch, heads, dim, len, capacity, x_strides,
             y_strides, position_heads, page_size, page_count, reserved0, block_table_pages);
FOVEA_FIELDS(FoveaMergeDesc, struct_size, x_type, y_type, kernel, parts, batch, heads, dim, len, x_strides,
             y_strides, x_part_stride);
FOVEA_FIELDS(FoveaMapTileDesc, struct_size, batch, first_head, head_count, first_row, row_count, first_key,
             key_count, width, height, outputs, sampled);
FOVEA_FIELDS(FoveaDeviceProperties, struct_size, backend, device_class, features, max_workgroup_invocations,
             max_shared_bytes, max_push_bytes, max_workgroup_count, subgroup_size, min_subgroup_size,
             max_subgroup_size, storage_offset_alignment, max_storage_range, core_count, coopmat_m, coopmat_n,
             coopmat_k, vendor_id, cpu_threads, cpu_target, l1_bytes, l2_bytes, coopmat2_m, coopmat2_n,
             coopmat2_k, coopmat2_threads, coopmat2_max_side, coopmat2_reserved_bytes, flash_tiles, mask_map,
             features_not_enabled, max_storage_buffers, max_workgroup_subgroups, forced_kernel, slice_cost,
             failed_shaders);
FOVEA_FIELDS(FoveaPlanInfo, struct_size, backend, kernel, dispatches_per_slice, binding_mask, output_mask,
             binding_bytes, workspace_bytes, workspace_alignment, slice_count, slices_share_workspace,
             reserved0, flops, max_slice_flops, visited_pairs, total_pairs, reason, tensor_bytes,
             ignored_mask);
FOVEA_FIELDS(FoveaCpuRun, struct_size, binding_count, bindings, workspace, parallel, first_slice,
             slice_count);

}  // namespace fovea
