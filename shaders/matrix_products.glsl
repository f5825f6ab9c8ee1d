// The two products of flash_coopmat, from tiles in shared memory: queries with keys, weights with values.
#ifndef FOVEA_MATRIX_PRODUCTS_GLSL
#define FOVEA_MATRIX_PRODUCTS_GLSL

#define FOVEA_SUM_MATRIX coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>
#define FOVEA_A_MATRIX coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define FOVEA_B_MATRIX coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>

// Scores: the subgroups share out the columns of matrices first, so that each loads its keys once for all
// rows.
const uint kKeyTiles = kKeys / kN;
const uint kKeyGroups = kKeyTiles < kSubgroups ? kKeyTiles : kSubgroups, kRowGroups = kSubgroups / kKeyGroups;
const uint kOwnKeyTiles = (kKeyTiles + kKeyGroups - 1u) / kKeyGroups;
const uint kOwnRowTiles = (kRowTiles + kRowGroups - 1u) / kRowGroups;

void multiply_scores() {
    const uint first_row = gl_SubgroupID / kKeyGroups;
    [[unroll]] for (uint i = 0u; i < kOwnKeyTiles; ++i) {
        const uint n = (i * kKeyGroups + gl_SubgroupID % kKeyGroups) * kN;
        if (kKeyTiles % kKeyGroups != 0u && n >= kKeys) break;
        FOVEA_SUM_MATRIX sum[kOwnRowTiles];
        [[unroll]] for (uint r = 0u; r < kOwnRowTiles; ++r) sum[r] = FOVEA_SUM_MATRIX(0.0);
        for (uint d = 0u; d < kDepth; d += kK) {
            FOVEA_B_MATRIX b;
            coopMatLoad(b, kv_tile, n * kDepthQuads + d / 4u, kDepthQuads,
                        gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint r = 0u; r < kOwnRowTiles; ++r) {
                // A tile too many is computed from the last one's rows and left.
                const uint row = min(r * kRowGroups + first_row, kRowTiles - 1u) * kM;
                FOVEA_A_MATRIX a;
                coopMatLoad(a, q_tile, row * kDepthQuads + d / 4u, kDepthQuads,
                            gl_CooperativeMatrixLayoutRowMajor);
                sum[r] = coopMatMulAdd(a, b, sum[r]);
            }
        }
        [[unroll]] for (uint r = 0u; r < kOwnRowTiles; ++r) {
            const uint tile = r * kRowGroups + first_row;
            if (kRowTiles % kRowGroups == 0u || tile < kRowTiles)
                coopMatStore(sum[r], score_tile, tile * kM * kScoreQuads + n / 4u, kScoreQuads,
                             gl_CooperativeMatrixLayoutRowMajor);
        }
    }
}

// Sums of this subgroup: all rows of the tile, its columns.
FOVEA_SUM_MATRIX sums[kRowTiles * kColumnTiles];

// Adds the block's weights times values to `sums`, `scale_tile` times what they were.
void multiply_values(uint first_column) {
    [[unroll]] for (uint r = 0u; r < kRowTiles; ++r) {
        FOVEA_SUM_MATRIX scale;
        coopMatLoad(scale, scale_tile, r * kM * kN, kN, gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint c = 0u; c < kColumnTiles; ++c) sums[r * kColumnTiles + c] =
            sums[r * kColumnTiles + c] * scale;
    }
    for (uint j = 0u; j < kKeys; j += kK) {
        FOVEA_A_MATRIX a[kRowTiles];
        [[unroll]] for (uint r = 0u; r < kRowTiles; ++r) coopMatLoad(
            a[r], weight_tile, r * kM * kKeyQuads + j / 4u, kKeyQuads, gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (uint c = 0u; c < kColumnTiles; ++c) {
            FOVEA_B_MATRIX b;
            coopMatLoad(b, kv_tile, (first_column + c * kN) * kKeyQuads + j / 4u, kKeyQuads,
                        gl_CooperativeMatrixLayoutColumnMajor);
            [[unroll]] for (uint r = 0u; r < kRowTiles; ++r) sums[r * kColumnTiles + c] =
                coopMatMulAdd(a[r], b, sums[r * kColumnTiles + c]);
        }
    }
}

#endif
