// The kernels of one target, as a plan holds them.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea {
struct MapTile;
struct NormDesc;
struct PointwiseDesc;
}  // namespace fovea

namespace fovea::cpu {

struct AttentionCall;
struct BackwardCall;
struct BlockRows;
struct DigitGroup;
struct LinearCall;

struct Kernels {
    // Task `task` of a plan's cut; `scratch` is the worker's, aligned to 64 bytes.
    void (*flash)(const AttentionCall& call, uint64_t task, unsigned char* scratch);
    // The same with products of pairs of bfloat16; null if the CPU has no such instruction.
    void (*flash_pairs)(const AttentionCall& call, uint64_t task, unsigned char* scratch);
    // Task `task`: one split of the keys of one group. `partial` is what it leaves for the merge.
    void (*decode)(const AttentionCall& call, uint64_t task, unsigned char* scratch, unsigned char* partial);
    // The results of group `group` from the partials of all its splits.
    void (*decode_merge)(const AttentionCall& call, uint64_t group, unsigned char* partials);
    void (*linear)(const LinearCall& call, uint64_t task, unsigned char* scratch);
    // The same with products of integers, by IntegerLayout.
    void (*integer_linear)(const LinearCall& call, uint64_t task, unsigned char* scratch);
    // Rows [first, end) of each part of the matrix, 0 <= first <= end <= part_rows.
    void (*few_rows)(const BlockRows& call, uint64_t first, uint64_t end);
    // The same by products of integers.
    void (*integer_rows)(const BlockRows& call, uint64_t first, uint64_t end);
    // Rounds a row of X to 8 bits; for each 32 values the scale, and scale * sum.
    void (*round_row)(const float* x, uint64_t columns, int8_t* q, float* scales, float* sums);
    // Sets digits, odd and odd_blocks for call.x; `groups` has room for digit_groups() of it, `odd` for each
    // of its blocks.
    void (*split_digits)(BlockRows& call, DigitGroup* groups, uint32_t* odd);
    bool byte_products;  // few_rows may use them: the same bits, sooner
    // Rows [begin, end), numbered b, h, l with l fastest.
    void (*rope)(const FoveaRopeDesc& desc, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end);
    void (*append)(const FoveaAppendDesc& desc, const FoveaHostBuffer* bindings, uint64_t begin,
                   uint64_t end);
    void (*merge)(const FoveaMergeDesc& desc, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end);
    void (*gather)(const FoveaGatherDesc& desc, const FoveaHostBuffer* bindings, uint64_t begin,
                   uint64_t end);
    void (*norm)(const NormDesc& desc, const FoveaHostBuffer* bindings, uint64_t begin, uint64_t end);
    // "Rows" are stretches of kPointwiseStretch elements.
    void (*pointwise)(const PointwiseDesc& desc, const FoveaHostBuffer* bindings, uint64_t begin,
                      uint64_t end);
    // Task `task` of BackwardCut.
    void (*backward)(const BackwardCall& call, uint64_t task, unsigned char* scratch);
    void (*map_tile)(const AttentionCall& call, const MapTile& tile, uint64_t task, unsigned char* scratch);
};

// All null if this build or this CPU cannot run the target. Queries the CPU each time: for planning, not for
// runs.
Kernels kernels_of(uint32_t target);

// Each is defined by the file of its kernel and returns null where the target is not compiled.
decltype(Kernels::flash) flash_kernel_of(uint32_t target);
decltype(Kernels::flash) flash_pairs_kernel_of(uint32_t target);
decltype(Kernels::decode) decode_kernel_of(uint32_t target);
decltype(Kernels::decode_merge) decode_merge_kernel_of(uint32_t target);
decltype(Kernels::linear) linear_kernel_of(uint32_t target);
decltype(Kernels::linear) integer_linear_kernel_of(uint32_t target);
decltype(Kernels::few_rows) few_rows_kernel_of(uint32_t target);
decltype(Kernels::few_rows) integer_rows_kernel_of(uint32_t target);
decltype(Kernels::round_row) round_row_kernel_of(uint32_t target);
decltype(Kernels::split_digits) split_digits_kernel_of(uint32_t target);
decltype(Kernels::rope) rope_kernel_of(uint32_t target);
decltype(Kernels::append) append_kernel_of(uint32_t target);
decltype(Kernels::merge) merge_kernel_of(uint32_t target);
decltype(Kernels::gather) gather_kernel_of(uint32_t target);
decltype(Kernels::norm) norm_kernel_of(uint32_t target);
decltype(Kernels::pointwise) pointwise_kernel_of(uint32_t target);
decltype(Kernels::map_tile) map_tile_kernel_of(uint32_t target);
decltype(Kernels::backward) backward_kernel_of(uint32_t target);

}  // namespace fovea::cpu
