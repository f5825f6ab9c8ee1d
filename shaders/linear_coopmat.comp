// Y = X * W + bias on cooperative matrices: factors in float16, sums in float32. A workgroup of whole
// subgroups takes the tile that linear.comp has in shared memory; its subgroups share it out in two columns
// of subgroups, or one. Blocks of X and W go through shared memory, the sums stay in the matrices.
//   macros of store.glsl
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef FOVEA_STORE_F16
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "interface.h"

layout(local_size_x_id = FOVEA_SPEC_THREADS) in;
layout(constant_id = FOVEA_SPEC_A_TYPE) const uint kXType = 0;
layout(constant_id = FOVEA_SPEC_B_TYPE) const uint kWType = 0;
layout(constant_id = FOVEA_SPEC_ALIGNED) const bool kAligned = false;
layout(constant_id = FOVEA_SPEC_IN_OUT) const bool kInOut = false;
layout(constant_id = FOVEA_SPEC_MATRIX_M) const uint kM = 8;
layout(constant_id = FOVEA_SPEC_MATRIX_N) const uint kN = 8;
layout(constant_id = FOVEA_SPEC_MATRIX_K) const uint kK = 8;
layout(constant_id = FOVEA_SPEC_SUBGROUPS) const uint kSubgroups = 4;
layout(push_constant, std430) uniform Push { LinearPush push; };

#include "linear.glsl"
#include "factors.glsl"

const uint kThreads = gl_WorkGroupSize.x;
const uint kStride = kMatrixDepth + kMatrixPad;
// Of a subgroup: its part of the tile, in matrices.
const uint kPartColumns = kSharedColumns / (kSubgroups > 1u ? 2u : 1u);
const uint kPartRows = kSharedRows / (kSubgroups > 2u ? kSubgroups / 2u : 1u);
const uint kRowTiles = kPartRows / kM, kColumnTiles = kPartColumns / kN;

// [row][depth] and [column][depth].
shared float16_t x_tile[FOVEA_LINEAR_FACTOR_HALVES(kSharedRows)];
shared float16_t w_tile[FOVEA_LINEAR_FACTOR_HALVES(kSharedColumns)];
// A matrix of sums of each subgroup on its way out.
shared float sum_tile[FOVEA_LINEAR_SUM_WORDS(kSubgroups, kM, kN)];

void load_factors(uint first_row, uint first_column, uint n0) {
    for (uint f = gl_LocalInvocationIndex; f < kSharedRows * kMatrixDepth / 4u; f += kThreads) {
        const uint depth = f % (kMatrixDepth / 4u) * 4u, row = f / (kMatrixDepth / 4u);
        const f16vec4 x = factors_of(x_depth4(x_row(first_row + row), n0 + depth, push.n_in));
        for (uint c = 0u; c < 4u; ++c) x_tile[row * kStride + depth + c] = x[c];
    }
    for (uint f = gl_LocalInvocationIndex; !kInOut && f < kSharedColumns * kMatrixDepth / 4u; f += kThreads) {
        const uint depth = f % (kMatrixDepth / 4u) * 4u, column = f / (kMatrixDepth / 4u);
        const f16vec4 w =
            factors_of(w_depth4(w_row(first_column + column, push.n_out), n0 + depth, push.n_in));
        for (uint c = 0u; c < 4u; ++c) w_tile[column * kStride + depth + c] = w[c];
    }
    for (uint f = gl_LocalInvocationIndex; kInOut && f < kSharedColumns * kMatrixDepth / 4u; f += kThreads) {
        const uint depth = f / (kSharedColumns / 4u), column = f % (kSharedColumns / 4u) * 4u;
        const vec4 w = w_columns4(w_row(n0 + depth, push.n_in), first_column + column, push.n_out);
        const f16vec4 factors = n0 + depth < push.n_in ? factors_of(w) : f16vec4(0.0);
        for (uint c = 0u; c < 4u; ++c) w_tile[(column + c) * kStride + depth] = factors[c];
    }
}

void main() {
    const uint first_row = gl_WorkGroupID.y * kSharedRows, first_column = gl_WorkGroupID.x * kSharedColumns;
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
            [[unroll]] for (uint r = 0u; r < kRowTiles; ++r) coopMatLoad(
                a[r], x_tile, (part_row + r * kM) * kStride + d, kStride, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint c = 0u; c < kColumnTiles; ++c) {
                coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB> b;
                coopMatLoad(b, w_tile, (part_column + c * kN) * kStride + d, kStride,
                            gl_CooperativeMatrixLayoutColumnMajor);
                [[unroll]] for (uint r = 0u; r < kRowTiles; ++r)
                    sums[r * kColumnTiles + c] = coopMatMulAdd(a[r], b, sums[r * kColumnTiles + c]);
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
