// Y = X * W + bias on cooperative matrices: operands in float16, sums in float32. A workgroup of whole
// subgroups takes a tile of kRows x kTileColumns results; its subgroups share it out in two columns of
// subgroups, or one. Blocks of X and W go through shared memory, the sums stay in the matrices.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_16bit_storage : require
#define FOVEA_NEEDS_16_BIT_STORAGE
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kXType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kWType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
layout(constant_id = FOVEA_SPEC_ROWS) const uint kRows = 64;
layout(constant_id = FOVEA_SPEC_IN_OUT) const bool kInOut = false;
layout(constant_id = FOVEA_SPEC_MATRIX_M) const uint kM = 8;
layout(constant_id = FOVEA_SPEC_MATRIX_N) const uint kN = 8;
layout(constant_id = FOVEA_SPEC_MATRIX_K) const uint kK = 8;
layout(constant_id = FOVEA_SPEC_CALL) const uint kCall = 0;
layout(constant_id = FOVEA_SPEC_COLUMNS) const uint kTileColumns = 64;
layout(constant_id = FOVEA_SPEC_SUBGROUPS) const uint kSubgroups = 4;
layout(push_constant, std430) uniform Push { LinearPush push; };

#include "linear.glsl"
#include "factors.glsl"

FOVEA_INPUT_FACTORS(x, kXType)
FOVEA_INPUT_FACTORS(w_plain, kWType)

const uint kThreads = gl_WorkGroupSize.x;
// Rows of the operands, in elements of four.
const uint kStride = (kMatrixDepth + kMatrixPad) / 4u;
// A subgroup's part of the tile, in matrices.
const uint kPartColumns = kTileColumns / (kSubgroups > 1u ? 2u : 1u);
const uint kPartRows = kRows / (kSubgroups > 2u ? kSubgroups / 2u : 1u);
const uint kRowTiles = kPartRows / kM, kColumnTiles = kPartColumns / kN;

// [row][depth] and [column][depth].
shared uvec2 x_tile[FOVEA_LINEAR_FACTOR_HALVES(kRows) / 4u];
shared uvec2 w_tile[FOVEA_LINEAR_FACTOR_HALVES(kTileColumns) / 4u];
// A matrix of sums of each subgroup on its way out.
shared float sum_tile[FOVEA_LINEAR_SUM_WORDS(kSubgroups, kM, kN)];

void load_factors(uint first_row, uint first_column, uint n0) {
    for (uint f = gl_LocalInvocationIndex; f < kRows * kMatrixDepth / 4u; f += kThreads) {
        const uint depth = f % (kMatrixDepth / 4u), row = f / (kMatrixDepth / 4u);
        x_tile[row * kStride + depth] = x_factors4(x_row(first_row + row), n0 + 4u * depth, push.n_in);
    }
    for (uint f = gl_LocalInvocationIndex; !kInOut && f < kTileColumns * kMatrixDepth / 4u; f += kThreads) {
        const uint depth = f % (kMatrixDepth / 4u), column = f / (kMatrixDepth / 4u);
        const uint row = w_row(first_column + column, push.n_out), n = n0 + 4u * depth;
        if (kBlocks)
            w_tile[column * kStride + depth] = factors_of(w_of_blocks(row, n));
        else
            w_tile[column * kStride + depth] = w_plain_factors4(row, n, push.n_in);
    }
    // Rows of W are depth here: four of them and four columns to a thread, which turns them round.
    for (uint f = gl_LocalInvocationIndex; kInOut && f < kTileColumns * kMatrixDepth / 16u; f += kThreads) {
        const uint depth = f / (kTileColumns / 4u), column = f % (kTileColumns / 4u) * 4u;
        uvec2 w[4];
        [[unroll]] for (uint u = 0u; u < 4u; ++u) {
            const uint n = n0 + 4u * depth + u;
            w[u] = n < push.n_in ? w_plain_factors4(w_row(n, push.n_in), first_column + column, push.n_out)
                                 : uvec2(0u);
        }
        [[unroll]] for (uint c = 0u; c < 4u; ++c)
            w_tile[(column + c) * kStride + depth] = column_of(w, c);
    }
}

void main() {
    const uint first_row = gl_WorkGroupID.y * kRows, first_column = gl_WorkGroupID.x * kTileColumns;
    const uint part_column = kSubgroups > 1u ? gl_SubgroupID % 2u * kPartColumns : 0u;
    const uint part_row = (kSubgroups > 1u ? gl_SubgroupID / 2u : 0u) * kPartRows;
    coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> sums[kRowTiles * kColumnTiles];
    [[unroll]] for (uint n = 0u; n < kRowTiles * kColumnTiles; ++n) sums[n] =
        coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>(0.0);
    for (uint n0 = 0u; n0 < push.n_in; n0 += kMatrixDepth) {
        load_factors(first_row, first_column, n0);
        barrier();
        for (uint d = 0u; d < kMatrixDepth; d += kK) {
            coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA> a[kRowTiles];
            [[unroll]] for (uint r = 0u; r < kRowTiles; ++r)
                coopMatLoad(a[r], x_tile, (part_row + r * kM) * kStride + d / 4u, kStride,
                            gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint c = 0u; c < kColumnTiles; ++c) {
                coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB> b;
                coopMatLoad(b, w_tile, (part_column + c * kN) * kStride + d / 4u, kStride,
                            gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint r = 0u; r < kRowTiles; ++r) sums[r * kColumnTiles + c] =
                    coopMatMulAdd(a[r], b, sums[r * kColumnTiles + c]);
            }
        }
        barrier();
    }
    [[unroll]] for (uint n = 0u; n < kRowTiles * kColumnTiles; ++n) {
        const uint at = gl_SubgroupID * kM * kN;
        coopMatStore(sums[n], sum_tile, at, kN, gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        for (uint f = gl_SubgroupInvocationID; f < kM * kN; f += gl_SubgroupSize)
            store_result(first_row + part_row + n / kColumnTiles * kM + f / kN,
                         first_column + part_column + n % kColumnTiles * kN + f % kN, sum_tile[at + f]);
        barrier();
    }
}
