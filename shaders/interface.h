// Constants shared by host and shaders: binding slots, specialization constants, push constants, tile sizes.
// GLSL and C++ both read this file; none of its values is repeated elsewhere.
#ifndef FOVEA_SHADERS_INTERFACE_H
#define FOVEA_SHADERS_INTERFACE_H

#ifdef __cplusplus
#include <cstdint>
namespace fovea::shader {
using uint = uint32_t;
#define FOVEA_CONST constexpr uint
#else
#define FOVEA_CONST const uint
#endif

// ==== sizes ====

// The floor that every kernel keeps to.
FOVEA_CONST kFloorInvocations = 128;
FOVEA_CONST kFloorSharedBytes = 16384;
FOVEA_CONST kFloorPushBytes = 128;

// Lengths stay below this, so that positions and their differences fit int32.
FOVEA_CONST kMaxKernelLength = 1u << 29;
FOVEA_CONST kUnboundedWindow = 0x7fffffffu;

// Keys of a score row start at a multiple of this below the first visible key of its slice.
FOVEA_CONST kKeyBlock = 64;

// Each thread of a tile holds kThreadColumns columns.
FOVEA_CONST kThreadColumns = 4;
// Tiles without shared memory: all threads of a workgroup work on the same few rows.
FOVEA_CONST kDirectRows = 8;
// Tiles in shared memory: 128 threads as 16 x 8, each 8 rows x 4 columns.
FOVEA_CONST kSharedThreads = 128;
FOVEA_CONST kSharedThreadRows = 8;
FOVEA_CONST kSharedRows = 64;
FOVEA_CONST kSharedColumns = 64;
FOVEA_CONST kSharedDepth = 16;

// flash without shared tiles: threads of a workgroup (of subgroups that are wider, as many as one has) and
// rows of its tile, at most.
FOVEA_CONST kFlashMaxThreads = 32;
FOVEA_CONST kFlashWideThreads = 64;
FOVEA_CONST kFlashMaxRows = 8;
FOVEA_CONST kFlashMaxColumnQuads = 2;
// flash by shuffles: rows of its tile, and of the larger one for much work; lanes and value columns at most.
FOVEA_CONST kFlashShuffleRows = 16;
FOVEA_CONST kFlashShuffleMoreRows = 32;
FOVEA_CONST kFlashShuffleLanes = 16;
FOVEA_CONST kFlashShuffleColumnQuads = 4;
// Limit of the shared memory of flash without shuffles: two buffers of weights, each thread's maxima and
// totals, two values for each row.
#define FOVEA_FLASH_SHARED_BYTES(rows, threads) (4u * (rows) * (10u * (threads) + 2u))
#define FOVEA_SHUFFLE_SHARED_BYTES(rows, threads) (4u * (rows) * (9u * (threads) + 2u))
// And where row statistics are wanted, each thread's part of each row.
#define FOVEA_STATS_SHARED_BYTES(rows, threads) (16u * (rows) * (threads))
// A row's partial result of a key split: largest logit and total before the sums of the value columns, and
// the data of row statistics after them.
FOVEA_CONST kPartialWords = 2;
FOVEA_CONST kPartialStatsWords = 3;
// Gradients: query rows and keys that a workgroup holds.
FOVEA_CONST kBackwardRows = 8;
FOVEA_CONST kBackwardKeys = 8;
// Map tiles: rows that a workgroup takes at a time, and pixels that it may hold, at most.
FOVEA_CONST kMapRows = 8;
FOVEA_CONST kMapPixels = 512;

// flash_coopmat: what its workgroups keep in shared memory, as elements; see the kernel. kMatrixPad elements
// between rows spread them over the memory's banks and keep them aligned to 16 bytes.
FOVEA_CONST kMatrixPad = 8;
#define FOVEA_MATRIX_Q_HALVES(rows, depth) ((rows) * ((depth) + kMatrixPad))
#define FOVEA_MATRIX_K_HALVES(keys, depth) ((keys) * ((depth) + kMatrixPad))
#define FOVEA_MATRIX_V_HALVES(keys, columns) ((columns) * ((keys) + kMatrixPad))
#define FOVEA_MATRIX_KV_HALVES(keys, depth, columns)                           \
    (FOVEA_MATRIX_K_HALVES(keys, depth) > FOVEA_MATRIX_V_HALVES(keys, columns) \
         ? FOVEA_MATRIX_K_HALVES(keys, depth)                                  \
         : FOVEA_MATRIX_V_HALVES(keys, columns))
#define FOVEA_MATRIX_WEIGHT_HALVES(rows, keys) ((rows) * ((keys) + kMatrixPad))
#define FOVEA_MATRIX_SCORE_WORDS(rows, keys, columns) \
    ((rows) * (((keys) > (columns) ? (keys) : (columns)) + kMatrixPad))
#define FOVEA_MATRIX_SCALE_WORDS(rows, n) ((rows) * (n))
#define FOVEA_MATRIX_SHARED_BYTES(rows, keys, depth, columns, n)                               \
    (2u * (FOVEA_MATRIX_Q_HALVES(rows, depth) + FOVEA_MATRIX_KV_HALVES(keys, depth, columns) + \
           FOVEA_MATRIX_WEIGHT_HALVES(rows, keys)) +                                           \
     4u * (FOVEA_MATRIX_SCORE_WORDS(rows, keys, columns) + FOVEA_MATRIX_SCALE_WORDS(rows, n) + 1u))

#define FOVEA_FLEXIBLE_SHARED_BYTES(rows, keys, depth, columns)                                 \
    (2u * (FOVEA_MATRIX_Q_HALVES(rows, depth) + FOVEA_MATRIX_KV_HALVES(keys, depth, columns)) + \
     4u * (FOVEA_MATRIX_SCORE_WORDS(rows, keys, columns) + 2u * (rows) + 1u))

// linear_coopmat: depth of its blocks; what a workgroup keeps in shared memory, as elements.
FOVEA_CONST kMatrixDepth = 32;
// Sides of its tiles, the larger for much work.
FOVEA_CONST kMatrixSide = 64;
FOVEA_CONST kMatrixLargeSide = 128;
#define FOVEA_LINEAR_FACTOR_HALVES(side) ((side) * (kMatrixDepth + kMatrixPad))
#define FOVEA_LINEAR_SUM_WORDS(subgroups, m, n) ((subgroups) * (m) * (n))
#define FOVEA_LINEAR_SHARED_BYTES(rows, columns, subgroups, m, n)                    \
    (2u * (FOVEA_LINEAR_FACTOR_HALVES(rows) + FOVEA_LINEAR_FACTOR_HALVES(columns)) + \
     4u * FOVEA_LINEAR_SUM_WORDS(subgroups, m, n))

// With FOVEA_FLAG_FIXED_SPLITS a split has this many keys, whatever the device.
FOVEA_CONST kFixedSplitKeys = 1024;

// The map of a mask's blocks has a code of two bits for each tile of rows and block of keys, 16 to a word.
// The data after FlashExtra in the workspace start at this word.
FOVEA_CONST kMaskMapWord = 64;
FOVEA_CONST kBlocksPerWord = 16;
FOVEA_CONST kBlockMixed = 0;
FOVEA_CONST kBlockHidden = 1;
FOVEA_CONST kBlockClear = 2;
FOVEA_CONST kMaskMapThreads = 64;  // four for each block

FOVEA_CONST kSoftmaxMaxThreads = 128;
FOVEA_CONST kElementThreads = 64;  // rope, cache_rows, merge, pointwise, rotate
FOVEA_CONST kNormThreads = 64;     // a power of two
FOVEA_CONST kRotationBlock = 32;   // elements that are rotated together
FOVEA_CONST kMergeLevels = 13;     // places of a merge's tree: 2^(n-1) parts

// A visible key has a weight >= +0 in the workspace; a hidden or dropped one these bits, which is -0.
FOVEA_CONST kHiddenWeight = 0x80000000u;
FOVEA_CONST kMinusInfinity = 0xff800000u;
FOVEA_CONST kNotFinite = 0x7f800000u;  // bits that infinities and NaN have
FOVEA_CONST kNanBits = 0x7fc00000u;

// ==== specialization constants ====

#define FOVEA_SPEC_THREADS 0       // all kernels: workgroup size
#define FOVEA_SPEC_A_TYPE 1        // type of q, x: FoveaDtype
#define FOVEA_SPEC_B_TYPE 2        // type of k, v, weight
#define FOVEA_SPEC_LISTED 2        // cache_rows: 1: a list names rows of X, the cache; 0: Y is the cache
#define FOVEA_SPEC_ALIGNED 3       // 1: rows start at, and are as long as, a multiple of 4 elements
#define FOVEA_SPEC_ROWS 4          // direct tiles: rows of a workgroup
#define FOVEA_SPEC_IN_OUT 5        // linear: 1: the weight is [n_in, n_out]
#define FOVEA_SPEC_V_TYPE 5        // flash
#define FOVEA_SPEC_COLUMN_QUADS 6  // value columns of a thread, in fours
#define FOVEA_SPEC_PIXELS 6        // map tiles: pixels that a workgroup has room for, a multiple of 32
#define FOVEA_SPEC_CALL 7          // bits: kGeneralCall, kGather*, kEntriesCall, kStatsCall
#define FOVEA_SPEC_PARTS 8         // flash: parts of a workgroup, which share out its rows
#define FOVEA_SPEC_MATRIX_M 8      // cooperative matrices: shape of one
#define FOVEA_SPEC_SCOPE 8         // flash_coopmat2: whose matrices they are, kScope*
#define FOVEA_SPEC_MATRIX_N 9
#define FOVEA_SPEC_O_TYPE 8  // gradients
#define FOVEA_SPEC_DO_TYPE 9
#define FOVEA_SPEC_MATRIX_K 10
#define FOVEA_SPEC_KEYS 11         // keys of a block
#define FOVEA_SPEC_COLUMNS 11      // linear_coopmat: of a tile
#define FOVEA_SPEC_DEPTH 12        // dim_qk padded with zeros
#define FOVEA_SPEC_SUBGROUPS 13    // subgroups of a workgroup
#define FOVEA_SPEC_STORED_TYPE 14  // type of the output tensor, see store.glsl
#define FOVEA_SPEC_FLAGS 15        // only for WGSL: the flags that a pipeline's dispatches may have
#define FOVEA_SPEC_ROW_THREADS 1   // softmax: threads for each row
#define FOVEA_SPEC_RULE 1          // norm: kNorm*; pointwise: kPointwise*
#define FOVEA_SPEC_OTHER 2         // norm: the row is added to a sum; pointwise: the result is a product
#define FOVEA_SPEC_WEIGHT 3        // norm: kNoWeight, kWeightAlone or kWeightAndBias

// More than causal, window and lengths: softcap, ALiBi, matrices, pages, dropout.
FOVEA_CONST kGeneralCall = 1u << 0;
// The input is not bound: gather.comp has put it into the workspace, at its place of GatheredAt.
FOVEA_CONST kGatherSequences = 1u << 1;
FOVEA_CONST kGatherBlockTable = 1u << 2;
FOVEA_CONST kGatherAlibi = 1u << 3;
FOVEA_CONST kGatherSinks = 1u << 4;
FOVEA_CONST kGatherLse = 1u << 5;
FOVEA_CONST kGatherDLse = 1u << 6;
FOVEA_CONST kGatherDropoutMask = 1u << 7;
FOVEA_CONST kGatherMask = 1u << 8;
FOVEA_CONST kGatherBias = 1u << 9;

// Dispatches of the pipeline may have kFlagEntries. The others' do without the few instructions that it
// takes.
FOVEA_CONST kEntriesCall = 1u << 10;
// For flash and flash_combine: row statistics are requested.
FOVEA_CONST kStatsCall = 1u << 11;
// For flash_coopmat and linear_coopmat: operands are bfloat16.
FOVEA_CONST kBfloat16Call = 1u << 12;

FOVEA_CONST kScopeWorkgroup = 2;  // as SPIR-V numbers them
FOVEA_CONST kScopeSubgroup = 3;
FOVEA_CONST kNormLayer = 0;  // NormRule
FOVEA_CONST kNormRms = 1;
FOVEA_CONST kNoWeight = 0;
FOVEA_CONST kWeightAlone = 1;
FOVEA_CONST kWeightAndBias = 2;
FOVEA_CONST kPointwiseAdd = 0;  // PointwiseRule
FOVEA_CONST kPointwiseGelu = 1;
FOVEA_CONST kPointwiseGeluTanh = 2;
FOVEA_CONST kPointwiseSilu = 3;
FOVEA_CONST kPointwiseRelu = 4;
// FoveaDtype, of which kernels read and write these.
FOVEA_CONST FOVEA_F32 = 0;
FOVEA_CONST FOVEA_F16 = 1;
FOVEA_CONST FOVEA_BF16 = 4;
FOVEA_CONST FOVEA_F8_E4M3 = 5;
FOVEA_CONST FOVEA_F8_E5M2 = 6;
FOVEA_CONST FOVEA_Q8_0 = 7;
FOVEA_CONST FOVEA_Q4_0 = 8;
FOVEA_CONST FOVEA_Q4_K = 9;  // only for weights
FOVEA_CONST FOVEA_Q5_K = 10;
FOVEA_CONST FOVEA_Q6_K = 11;
FOVEA_CONST FOVEA_Q4_1 = 20;
FOVEA_CONST FOVEA_Q5_0 = 21;
FOVEA_CONST FOVEA_Q5_1 = 22;
FOVEA_CONST kStoredByWords = 16;  // added to the type if the device has no 16-bit storage

// ==== flags of one dispatch ====

FOVEA_CONST kFlagVarlen = 1u << 0;
FOVEA_CONST kFlagBottomRight = 1u << 1;
FOVEA_CONST kFlagPackedQ = 1u << 2;
FOVEA_CONST kFlagPackedKv = 1u << 3;
FOVEA_CONST kFlagAllKeys = 1u << 4;  // scores of hidden keys are wanted too
FOVEA_CONST kFlagPaged = 1u << 5;
FOVEA_CONST kFlagMask = 1u << 6;
FOVEA_CONST kBiasMask = 3u << 7;  // one of these, or 0: no bias
FOVEA_CONST kBiasF32 = 1u << 7;
FOVEA_CONST kBiasF16 = 2u << 7;
FOVEA_CONST kBiasBf16 = 3u << 7;
FOVEA_CONST kFlagAlibi = 1u << 9;
FOVEA_CONST kFlagSinks = 1u << 10;
FOVEA_CONST kFlagDropoutMask = 1u << 11;
FOVEA_CONST kFlagPhilox = 1u << 12;
FOVEA_CONST kFlagScores = 1u << 13;  // outputs
FOVEA_CONST kFlagCapped = 1u << 14;
FOVEA_CONST kFlagMasked = 1u << 15;
FOVEA_CONST kFlagWeights = 1u << 16;
FOVEA_CONST kFlagLse = 1u << 17;
FOVEA_CONST kFlagRowStats = 1u << 18;
FOVEA_CONST kFlagOutput = 1u << 20;  // o is wanted
FOVEA_CONST kFlagTileMass = 1u << 21;
FOVEA_CONST kFlagTileMax = 1u << 22;
FOVEA_CONST kFlagSampled = 1u << 23;  // one cell represents a pixel
FOVEA_CONST kFlagMaskMap = 1u << 24;  // flash: there is a map of the blocks of mask and bias
FOVEA_CONST kFlagEntries = 1u << 25;  // flash: a slice of several batch entries, all heads of each
FOVEA_CONST kFlagSparse = 1u << 19;   // a key between the bounds of a row may be hidden or dropped

// ==== push constants ====
// Offsets and strides count elements from the start of the binding's window.

// Element (b, h, i, 0) of the part that a slice binds is at base + b*batch + h*head + i*row.
struct TensorView {
    uint base, batch, head, row;
};

// Which part of the problem a dispatch computes and which keys its rows may see.
struct SliceView {
    uint heads, rows;  // of each of the slice's batch entries; workgroup z counts entries * heads
    uint first_batch, first_head, first_row;
    uint len_q, len_kv;
    uint flags;
    int offset;                      // query i has key position i + offset; unused with kFlagBottomRight
    uint window_left, window_right;  // kUnboundedWindow; causal is window_right 0
    uint key_limit;                  // no key at or past it is visible: the columns of mask and bias
    uint score_stride;               // elements between score rows in the workspace
    uint packed_rows_q, packed_rows_kv;
};

struct PageView {
    uint page_size, page_count, table_pages;
};

// The steps that change a scaled score before masks and biases are applied. The struct is the same in every
// attention kernel; one function fills it (plan/vulkan/rows.hpp) and one reads it (logit.glsl).
struct LogitView {
    float softcap;  // 0: none
};

// In the staged kernels' flags, from bit 20 on, which only other kernels use: the place of the slice's first
// (b, h, i) row in the windows of the results. 6 bits: row in lse and row statistics; 6 bits: element in the
// matrices.
FOVEA_CONST kResultRowShift = 20;
FOVEA_CONST kResultElementShift = 26;
FOVEA_CONST kResultMask = 63;

// How Philox draws: the key, the counter's last word, and below which word a weight is dropped.
struct PhiloxView {
    uint key_low, key_high, counter, threshold;
};

struct ScoresPush {
    SliceView slice;
    TensorView q, k;
    PageView pages;
    uint group;  // query heads for each key/value head
    uint dim;
    float scale;
};

// With Philox the words of `keep` are a PhiloxView, and `keep_keys` and `keep_scale` are the query and the
// key that it counts from. Else `keep_scale` is the bits of the float that multiplies kept weights.
struct SoftmaxPush {
    SliceView slice;
    LogitView logit;
    uint keep_scale;
    TensorView mask, bias, keep;
    uint keep_keys;
    uint first_batch_head;  // Philox's for the slice's first head
};

struct WeightedSumPush {
    SliceView slice;
    TensorView v, o;
    PageView pages;
    uint group;
    uint dim;
};

// Rows of one batch entry for flash, or of several (kFlagEntries). Row r of a key/value head is query r /
// group of its query head r % group.
struct FlashSlice {
    uint rows;                                // queries
    uint first_batch, first_head, first_row;  // first_head: key/value head
    uint len_q, len_kv;
    uint flags;
    int offset;
    uint window_left, window_right, key_limit;
    uint packed_rows_q, packed_rows_kv;
};

// Element (h, i, 0) of the first entry is at base + h*head + i*row. With kFlagEntries `h` goes on counting
// through the entries, unless their rows are packed or in pages.
struct HeadView {
    uint base, head, row;
};

struct FlashPush {
    FlashSlice slice;
    HeadView q, k, v, o;
    uint group_splits;  // low half: query heads for each key/value head; high half: key splits, or with
                        // kFlagEntries, which has none, key/value heads of an entry
    uint split_keys;    // keys of a split, a multiple of 64
    uint dims;          // low half: dim_qk, high half: dim_v
    uint result_base;   // row of the slice's first (b, h, i) in the windows of lse and row statistics
    float scale;
    LogitView logit;
};

// The places of the inputs that gather.comp copied after FlashExtra, in words from its end.
struct GatheredAt {
    uint sequences, block_table;
    uint heads;  // ALiBi slopes, then sinks, each in room for heads_q words that ends at a kGatherStep
    uint lse, d_lse, keep, mask, bias;
};
FOVEA_CONST kGatherStep = 64;
FOVEA_CONST kGatherThreads = 64;
struct GatherPush {
    uint words;
};

// Parameters of flash that only matrices, pages and dropout need; a dispatch of its own writes them into the
// workspace.
struct FlashExtra {
    HeadView mask, bias;
    HeadView keep;  // without dropout by matrix: the query, key and batch * head that Philox counts from
    uint keep_keys;
    float keep_scale;
    PhiloxView philox;
    uint page_size, page_count, table_pages;
    uint k_page, v_page;  // elements between pages
    uint map_words;       // words per tile of rows in the mask's map
    uint map_heads;       // 1: one map for all heads, else one for each key/value head
    uint heads_q;
    GatheredAt at;
};
FOVEA_CONST kExtraWords = 31;

// Gradients of the heads of one key/value head. The views that do not fit, of o, of its gradient, and of one
// or two results, are stored after FlashExtra from word kMaskMapWord on. Heads are query heads: group_splits
// is 1.
struct BackwardPush {
    FlashSlice slice;
    HeadView q, k, v;
    uint group_splits;
    uint dims;  // low half: dim_qk, high half: dim_v
    uint lse_base;
    float scale;
    LogitView logit;
    uint store;                 // kStore*
    uint heads;                 // heads of the slice
    uint first_key, key_count;  // keys of the slice, for dk and dv
};
FOVEA_CONST kViewO = 0;
FOVEA_CONST kViewDo = 1;
FOVEA_CONST kViewFirst = 2;
FOVEA_CONST kViewSecond = 3;
FOVEA_CONST kStoreF16 = 1u << 0;   // the first result; the second: the next bit
FOVEA_CONST kStoreAdds = 1u << 2;  // the same
FOVEA_CONST kStoreBf16 = 1u << 7;  // the same
FOVEA_CONST kStoreDk = 1u << 4;
FOVEA_CONST kStoreDv = 1u << 5;
FOVEA_CONST kStoreHasDLse = 1u << 6;
FOVEA_CONST kStoreSlope = 1u << 9;  // the sums that backward_row and backward_sum compute for a head
FOVEA_CONST kStoreSink = 1u << 10;
FOVEA_CONST kStoreEachRow = 1u << 11;   // the bias has a separate row for each query,
FOVEA_CONST kStoreEachHead = 1u << 12;  // for each head

// Sums over the rows of one head: backward_row writes those of slopes, then those of sinks.
struct RowSumPush {
    uint rows;
    uint head;   // where the results go
    uint store;  // kStore*
};

// The parameters of mask_map for a slice of flash.
struct MaskMapPush {
    HeadView mask, bias;
    uint flags;
    uint rows;       // queries of the slice
    uint tile_rows;  // rows of a tile, of all heads of a group
    uint group;      // query heads for each key/value head
    uint map_heads;  // as in FlashExtra
    uint block_keys, key_limit;
    uint map_words;
};

// Pixels of one query head. Packed words: low half for keys or columns, high half for rows.
struct MapPush {
    FlashSlice slice;  // rows of cells; first_head: query head
    HeadView q, k;
    uint group_splits;  // 1: rows are those of one head
    uint dims;          // low half: dim_qk. Then 6 bits: results before the slice's first in the windows of
                        // maxima (5 of them: of mass); 4 and 4: log2 of a workgroup's columns and rows
    uint lse_base;      // row of slice.first_row in the window of lse
    float scale;
    LogitView logit;
    uint first_row, row_count, first_key, key_count;  // the tile's cells
    uint pixels;                                      // pixels of the tile
    uint origin, extent;                              // pixels of the slice
};

// The fields of FlashPush that flash_combine needs.
struct CombinePush {
    FlashSlice slice;
    HeadView o;
    uint group_splits;
    uint dim;
    uint heads_q;
    uint result_base;
    float keep_scale;
};

struct LinearPush {
    uint rows, n_in, n_out;  // sizes of the bound part
    uint x_base, x_row, y_base, y_row, w_base, w_row, bias_base;
    uint has_bias;
};

// The rows [b, h, l] that a slice binds.
struct RowsView {
    uint heads, rows;  // workgroup z counts entries * heads
    uint dim;
    uint first_batch, first_row;
};

struct RopePush {
    RowsView slice;
    TensorView x, y;
    uint rotary_dim, interleaved;
    uint len;         // tokens of a batch entry
    uint token_base;  // element of POSITIONS, or row of COS and SIN, of the slice's first token
    uint table_rows;  // 0: no positions
    uint angle_base;
};

struct CacheRowsPush {
    RowsView slice;
    uint parts;            // threads for each row
    TensorView x, y;       // one of them the whole cache
    TensorView positions;  // for a gather; elements are rows
    PageView pages;
    uint capacity;
    uint held;  // append: rows held before the call; from the table with has_sequences
    uint has_sequences;
};

struct RotatePush {
    RowsView slice;
    TensorView x, y;
};

struct MergePush {
    RowsView slice;
    TensorView x, y, lse;  // for part 0; elements are rows in lse
    uint parts;
    uint x_part, lse_part;  // elements between parts
    uint merged_lse_base;
};

struct NormPush {
    uint width;
    uint x_base, y_base, other_base;
    float epsilon;
};

struct PointwisePush {
    uint count;
    uint x_base, y_base, other_base;
};

// ==== binding slots ====

#define FOVEA_SLOT_Q 0  // attention kernels
#define FOVEA_SLOT_K 1
#define FOVEA_SLOT_V 2
#define FOVEA_SLOT_O 3
#define FOVEA_SLOT_SEQUENCES 4
#define FOVEA_SLOT_BLOCK_TABLE 5
#define FOVEA_SLOT_MASK 6
#define FOVEA_SLOT_BIAS 7
#define FOVEA_SLOT_DROPOUT_MASK 8
#define FOVEA_SLOT_ALIBI 9
#define FOVEA_SLOT_SINKS 10
#define FOVEA_SLOT_LSE 11
#define FOVEA_SLOT_SCORES 12  // workspace: raw scores, then masked ones, then weights times their row's sum
#define FOVEA_SLOT_ROW_SCALE 13   // workspace: what each row's weighted sum is multiplied by
#define FOVEA_SLOT_OUT_SCORES 14  // results of the staged kernels
#define FOVEA_SLOT_CAPPED 15
#define FOVEA_SLOT_MASKED 16
#define FOVEA_SLOT_WEIGHTS 17
#define FOVEA_SLOT_ROW_STATS 18
#define FOVEA_SLOT_EXTRA 19    // workspace: FlashExtra
#define FOVEA_SLOT_PARTIAL 20  // workspace: partial results of key splits

#define FOVEA_SLOT_MASK_MAP 23  // workspace: the map that mask_map writes, after FlashExtra
#define FOVEA_SLOT_DO 24        // gradients
#define FOVEA_SLOT_DLSE 25
#define FOVEA_SLOT_DQ 26
#define FOVEA_SLOT_DK 26
#define FOVEA_SLOT_DV 27
#define FOVEA_SLOT_DBIAS 26
#define FOVEA_SLOT_DALIBI 26
#define FOVEA_SLOT_DSINKS 27

#define FOVEA_SLOT_TILE_MASS 21  // results of map tiles
#define FOVEA_SLOT_TILE_MAX 22

#define FOVEA_SLOT_UNGATHERED 0  // gather; what it writes is FOVEA_SLOT_EXTRA

#define FOVEA_SLOT_X 0  // linear, rope, cache_rows, merge, norm, pointwise, rotate
#define FOVEA_SLOT_Y 1
#define FOVEA_SLOT_W 2  // linear, norm
#define FOVEA_SLOT_LINEAR_BIAS 3
#define FOVEA_SLOT_OTHER 3  // norm, pointwise
#define FOVEA_SLOT_COS 2    // rope
#define FOVEA_SLOT_SIN 3
#define FOVEA_SLOT_POSITIONS 4
#define FOVEA_SLOT_HELD 2    // cache_rows: sequence table,
#define FOVEA_SLOT_LISTED 2  // or POSITIONS
#define FOVEA_SLOT_PAGES 3
#define FOVEA_SLOT_PART_LSE 2  // merge
#define FOVEA_SLOT_MERGED_LSE 3

#ifdef __cplusplus
static_assert(sizeof(FlashExtra) == 4 * kExtraWords);
static_assert(kExtraWords <= kMaskMapWord);
}  // namespace fovea::shader
#endif
#undef FOVEA_CONST
#endif
