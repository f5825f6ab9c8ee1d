// How the Vulkan backend cuts its work: the choices that make_slice repeats for every slice.
#pragma once

#include "plan/vulkan/window.hpp"

#include <cstdint>

namespace fovea {

// Tile kernels come in two shapes, see shaders/interface.h.
struct TileChoice {
    bool shared;       // tiles in shared memory
    uint32_t threads;  // threads of a workgroup
    uint32_t rows, columns;
    uint32_t subgroups;  // on matrix units: of a workgroup, else 0
};

// Which keys a query may see, in the kernels' terms.
struct VulkanVisibility {
    uint32_t flags;  // kFlag* of shaders/interface.h
    int32_t offset;
    uint32_t window_left, window_right, key_limit;
};

// Attention as scores, softmax and weighted sum over blocks of query rows.
struct StagedPlan {
    TileChoice score_tile, sum_tile;
    bool score_quads, sum_quads;  // rows of q and k, of v: multiples of 4 elements
    bool has_softmax;             // anything but raw scores is wanted
    uint32_t softmax_threads, row_threads;
    uint64_t score_columns;  // keys that a slice's score rows hold
    uint32_t score_stride;
    uint64_t row_scale_offset, scores_offset, extra_offset;  // in the workspace
};

// The map of which blocks of mask and bias are hidden or clear; see shaders/mask_map.comp.
struct MaskMapPlan {
    const char* obstacle;  // null: there is a map
    bool for_all_heads;
    uint32_t words;   // words of a tile of rows
    uint64_t offset;  // in the workspace
};

// How the workgroups of flash share loads. Each form is a module of its own, see shaders/variants.def.
enum class FlashForm : uint32_t {
    loads,     // every thread loads for itself, row maxima through shared memory
    subgroup,  // the same where a workgroup is a subgroup, row maxima by its operations
    shuffle,   // a workgroup is a subgroup whose lanes exchange values, for software drivers
    coopmat,   // VK_KHR_cooperative_matrix
    coopmat2   // VK_NV_cooperative_matrix2
};

// Attention in one pass over blocks of keys; rows of the query heads that share a key/value head go together.
struct FlashPlan {
    FlashForm form;
    uint32_t threads, rows, column_quads;
    uint32_t parts;                // flash: the workgroup's parts share out its rows, see flash.comp
    uint32_t block_keys, columns;  // keys of a block; value columns of a workgroup
    uint32_t subgroups;            // coopmat: of a workgroup
    uint32_t depth;                // coopmat, coopmat2: dim_qk padded with zeros
    uint32_t subgroup_size;        // size that the pipeline must require; 0: any
    const char* no_subgroup;       // loads: why it does without subgroup operations
    bool quads;                    // rows of q, k and v: multiples of 4 elements
    bool general;    // more than causal, window and lengths decide what is visible and what weighs
    bool has_extra;  // parameters in the workspace
    bool measured;   // the tile is one of properties.flash_tiles
    uint32_t splits;
    uint32_t split_keys;
    MaskMapPlan mask_map;
    uint64_t extra_offset, partial_offset;  // in the workspace
};

// A map tile: workgroups of 2^rows_log2 x 2^columns_log2 pixels, slices of workgroups of one head.
struct MapTilePlan {
    uint32_t threads, rows_log2, columns_log2;
    uint32_t rows, pixels;  // cells that a workgroup takes at a time; pixels that it has room for
    bool quads;             // rows of q and k: multiples of 4 elements
    bool general;           // more than causal, window and lengths decide what is visible and what weighs
    bool has_extra;         // parameters in the workspace
    uint64_t extra_offset;  // in the workspace
    uint64_t slice_rows, slice_columns;  // pixels
};

// Gradients: slices are of the query heads of one key/value head.
struct BackwardPlan {
    uint32_t threads;
    bool general;           // more than causal, window and lengths decide what is visible and what weighs
    uint64_t extra_offset;  // in the workspace
    uint64_t slice_rows, slice_keys;  // rows in slices of dq; keys in slices of dk and dv
    uint64_t slice_bias;              // rows of dbias, or keys where all queries share one row
    uint64_t row_sums_offset;         // in the workspace: what each row adds to dalibi and dsinks
};

// The caller's tensor, and its packed float32 copy in the workspace, see rotation.hpp.
struct RotatedTensor {
    uint32_t dim;  // 0: there is no copy
    FoveaBinding binding;
    FoveaDtype type;
    FoveaStrides strides, packed;
    uint64_t bytes, offset;  // the size of the copy, its place in the workspace
};

struct VulkanPlan {
    BlockGrid
        grid;  // slices: [B, Hq, Lq]; flash: [B, Hkv, Lq]; linear: [1, column blocks of W as heads, rows]
    VulkanVisibility visible;               // attention
    uint32_t gathered;                      // kGather* of shaders/interface.h, see gather.hpp
    RotatedTensor rotated_in, rotated_out;  // q or append's X; o
    StagedPlan staged;
    FlashPlan flash;
    MapTilePlan map;
    BackwardPlan backward;
    TileChoice tile;  // linear
    bool quads;       // linear
    uint64_t column_block;
};

}  // namespace fovea
