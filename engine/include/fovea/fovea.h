/* SPDX-License-Identifier: Apache-2.0
 *
 * Fovea: an attention engine for Vulkan and the CPU, as a C library.
 *
 * An application describes one operation: an attention call, its gradients, a KV-cache update, ... It makes a plan of the
 * operation. Then it runs the plan on the CPU, or records it into its own Vulkan command buffers.
 * This header is the reference of the C API: descriptions, plans and the CPU backend. <fovea/fovea_vulkan.h> adds recording.
 * <fovea/fovea_runtime.h> adds devices, memory and threads for applications that have none, <fovea/fovea.hpp> is the C++20
 * wrapper. The header compiles as C99 and as C++.
 *
 * Order of calls
 *   CPU     foveaCpuProperties, foveaPlanAttention, foveaGetPlanInfo (the size of each buffer), foveaRunCpu,
 *           foveaDestroyPlan. Complete functions are in samples/calls.h, complete programs in samples/.
 *   Vulkan  foveaCreateContext, foveaContextProperties, foveaPlanAttention, foveaCompilePlan, foveaGetPlanInfo,
 *           foveaCmdRun, foveaDestroyPlan, foveaDestroyContext. A complete program is samples/first/main.c.
 *
 * Contents
 *   versions, results and memory        FoveaResult, FoveaDiag, FoveaHostAllocator
 *   attention                           the definition of a call; FoveaAttentionDesc and its parts
 *   gradients                           FoveaAttentionBackwardDesc
 *   other operations                    RoPE, linear layers, KV-cache update (append) and compaction (gather),
 *                                       combining partial results (merge), tiles of the attention map
 *   device properties                   FoveaDeviceProperties
 *   plans                               foveaPlan*, FoveaPlanInfo
 *   plans as data                       for applications that dispatch the shaders themselves
 *   the CPU backend                     foveaRunCpu
 *   initializers                        foveaDiag(), foveaAttentionDesc(), ...
 *
 * The library never submits, waits, starts a thread, allocates device memory, reads the environment, prints, keeps global
 * state, throws or exits. Its host memory comes from the application's allocator.
 *
 * Conventions
 * - Versions. Every struct that may grow starts with `struct_size`, which must be sizeof the struct. The library accepts a
 *   shorter (older) struct that ends between two fields and reads its missing fields as zero. It accepts a longer struct
 *   of up to 4096 bytes if the unknown part is zero.
 * - Defaults. Zero selects the default of every field. Reserved fields must be zero, and so must fields of a description
 *   that are not in use: a window without its flag, page_count without page_size, a mask whose `present` is 0. This finds
 *   forgotten flags. For the same reason a run rejects a buffer that its plan does not use (FoveaPlanInfo::binding_mask).
 * - Sizes. Byte sizes and element counts have 64 bits and are checked for overflow. Lengths, row counts and |q_offset| are
 *   at most 2^30, dim_qk and dim_v at most 2^16, batch * heads_q at most 2^30.
 * - Ranges. first_x and x_count name a half-open range that begins at first_x. Everything counts from 0.
 * - Errors. A call that fails changes nothing, except that it sets the handle it would have made to null. The optional
 *   FoveaDiag names the field, its value and the limit. Pointers must not be null unless this header permits it; a `diag`
 *   and an `allocator` may always be null.
 * - Enums. A value outside an enum is an error that names the field; it is never undefined behavior.
 * - Thread safety. A function marked "Thread-safe" may run on any number of threads at once, also with the same objects.
 *   "Externally synchronized" has Vulkan's meaning: no other call may use the object at the same time. A plan does not
 *   change after creation, on Vulkan not after foveaCompilePlan; while that runs, no other call may use the plan. Runs of a
 *   plan that overlap in time need different workspaces and outputs. Runs that follow each other may share both: on one
 *   Vulkan queue a barrier between them is enough.
 */
#ifndef FOVEA_FOVEA_H
#define FOVEA_FOVEA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(FOVEA_SHARED) && defined(_WIN32)
#ifdef FOVEA_BUILDING
#define FOVEA_API __declspec(dllexport)
#else
#define FOVEA_API __declspec(dllimport)
#endif
#elif defined(__GNUC__) && !defined(_WIN32)
#define FOVEA_API __attribute__((visibility("default")))
#else
#define FOVEA_API
#endif

/* ---- versions, results and memory -------------------------------------------------------------------------------- */

/* The version of this header (semver.org). */
#define FOVEA_VERSION_MAJOR 0
#define FOVEA_VERSION_MINOR 1
#define FOVEA_VERSION_PATCH 0
/* The version of the binary interface. It grows when programs built with older headers stop working. */
#define FOVEA_ABI_VERSION 5u

/* Returns the binary interface of the loaded library. Compare it with FOVEA_ABI_VERSION after loading the library at run
 * time. Thread-safe. */
FOVEA_API uint32_t foveaAbiVersion(void);

/* The result of a call. New values are added at the end. */
typedef enum FoveaResult {
    FOVEA_OK = 0,
    FOVEA_INVALID_ARGUMENT = 1,      /* a field has a value that no device accepts */
    FOVEA_UNSUPPORTED = 2,           /* a valid call that this device or kernel does not support; the diag says why */
    FOVEA_LIMIT_EXCEEDED = 3,        /* a limit of the device, or of the caller's budget, is too small */
    FOVEA_SIZE_OVERFLOW = 4,         /* a size exceeds 64 bits, or an index exceeds the kernels' index type */
    FOVEA_OUT_OF_HOST_MEMORY = 5,    /* an allocation of host memory failed */
    FOVEA_OUT_OF_DEVICE_MEMORY = 6,  /* an allocation of device memory failed */
    FOVEA_DEVICE_LOST = 7,           /* permanent: make device and context anew; see docs/guides/embedding.md */
    FOVEA_VULKAN_ERROR = 8,          /* FoveaDiag::vk_result holds the VkResult */
    FOVEA_ABI_MISMATCH = 9,          /* struct_size is 0, or the caller's struct is newer than this library */
    FOVEA_IO_ERROR = 10,             /* reading or writing a file failed (only fovea_runtime.h and fovea_inspect.h) */
    FOVEA_CANCELLED = 11,            /* the progress callback asked to stop (only fovea_runtime.h) */
    FOVEA_TIMEOUT = 12               /* a wait ended without a result (only fovea_runtime.h) */
} FoveaResult;

/* Returns a result as text, "invalid argument" for example. Never null, "unknown result" for other values; the text
 * lives as long as the library. Thread-safe. */
FOVEA_API const char* foveaResultText(FoveaResult code);

/* The reason for an error. A call that fails fills it; a call that succeeds does not touch it. The caller owns it and must
 * set struct_size (with 0, nothing is filled in). Texts are cut to fit and always end with 0. */
typedef struct FoveaDiag {
    uint32_t struct_size; /* sizeof(FoveaDiag) */
    FoveaResult code;     /* the result that the call returned */
    int32_t vk_result;    /* the VkResult of FOVEA_VULKAN_ERROR, else 0 */
    char field[48];       /* the argument or field: "dim_qk", "bindings[O].size", ... */
    char text[256];       /* the whole sentence: "dim_qk is 0; it must be at least 1" */
} FoveaDiag;

/* An allocator of host memory. Set both functions, or pass a null FoveaHostAllocator for malloc and free. The library calls
 * them only during a Fovea call, on the calling thread. */
typedef struct FoveaHostAllocator {
    void* user; /* passed to both functions; may be null */
    void* (*allocate)(void* user, size_t size_bytes, size_t alignment); /* alignment: a power of two. Null: out of memory */
    void (*release)(void* user, void* pointer, size_t size_bytes);      /* size_bytes as it was allocated */
} FoveaHostAllocator;

/* ---- attention -----------------------------------------------------------------------------------------------------
 *
 *   q [B, Hq, Lq, D]   k [B, Hkv, Lkv, D]   v [B, Hkv, Lkv, Dv]   o [B, Hq, Lq, Dv]
 *
 * B is the batch size, Hq and Hkv are the query and key/value head counts, Lq and Lkv the sequence lengths, D and Dv
 * the head sizes. Every backend computes in this order; softmax, scores and sums accumulate in float32:
 *
 *   score   = scale * dot(q_i, k_j)
 *   capped  = softcap > 0 ? softcap * tanh(score / softcap) : score
 *   masked  = capped + alibi_h * (j - p_i) + bias_ij, or -inf where the key is masked
 *   weight  = exp(masked - lse_i),  lse_i = log(sum_j exp(masked) [+ exp(sink_h)])
 *   weight  = kept_ij ? weight / (1 - dropout_p) : 0          (only with dropout)
 *   o_i     = sum_j weight_ij * v_j
 *
 * lse_i is the row's log-sum-exp, a natural logarithm. Query i is at key position p_i = i + offset, see FoveaAlign.
 * Key j is masked for query i if at least one of these holds:
 *   causal            j > p_i
 *   window            j < p_i - window_left   or   j > p_i + window_right
 *   sequence length   j >= kv_length of the batch entry (varlen)
 *   mask              mask_ij is zero, or j is past the mask's last column
 *   bias              bias_ij is -inf, or j is past the bias's last column
 *   block table       the page of j is negative or not below page_count
 * A masked key never influences a result, whatever its k and v hold (NaN and infinity included). A NaN in a visible key
 * reaches the rows that attend to it and no others.
 * A fully masked row gives o = 0, weights = 0 and lse = -inf (with an attention sink, lse = the sink). A query row
 * i >= q_length gives the same, but in a packed batch its row of o does not exist and is not written. Query head h reads
 * key/value head h / (Hq / Hkv): grouped-query attention (GQA).
 */

/* The type of a tensor's elements. */
typedef enum FoveaDtype {
    FOVEA_F32 = 0,
    FOVEA_F16 = 1,     /* IEEE 754 binary16 */
    FOVEA_U8 = 2,      /* boolean: zero is false */
    FOVEA_I32 = 3,
    FOVEA_BF16 = 4,    /* bfloat16: the upper half of a float32 */
    /* Types of a quantized KV cache, for k and v of attention and map tiles, and for the caches of append and gather. On
     * Vulkan, attention reads them with the kernels flash, flash_coopmat and flash_coopmat2. Append rounds to nearest. */
    FOVEA_F8_E4M3 = 5, /* FP8 of the OCP: up to 448, NaN, no infinity */
    FOVEA_F8_E5M2 = 6, /* FP8 of the OCP: up to 57344, the upper half of a float16 */
    FOVEA_Q8_0 = 7,    /* ggml's blocks of 32 elements of a row: a float16 scale and 32 int8, 34 bytes. Also W of linear */
    FOVEA_Q4_0 = 8,    /* the same with 4 bits, 18 bytes. Row sizes and strides are multiples of 32 elements. Also W of linear */
    /* ggml's blocks of 256 elements in 144, 176 and 210 bytes: only for W of linear. */
    FOVEA_Q4_K = 9, FOVEA_Q5_K = 10, FOVEA_Q6_K = 11,
    /* Types of tensors in files, which no operation accepts. */
    FOVEA_BOOL = 12, FOVEA_I8 = 13, FOVEA_I16 = 14, FOVEA_I64 = 15, FOVEA_U16 = 16, FOVEA_U32 = 17, FOVEA_U64 = 18,
    FOVEA_F64 = 19,
    /* ggml's blocks of 32 elements in 20, 22 and 24 bytes: only for W of linear. */
    FOVEA_Q4_1 = 20, FOVEA_Q5_0 = 21, FOVEA_Q5_1 = 22,
    FOVEA_DTYPE_OTHER = 23 /* an unknown type: files with such a tensor list it, its elements cannot be read */
} FoveaDtype;

/* The position of query 0 among the keys, for causal masks, windows and ALiBi. A call that uses one of these with
 * len_q != len_kv must set it: decoding with a KV cache needs BOTTOM_RIGHT. So must one with FOVEA_FLAG_VARLEN: lengths
 * in a table are data, which no check sees before the run. Two queries, five keys, causal (x: visible):
 *
 *   TOP_LEFT       BOTTOM_RIGHT   OFFSET, q_offset = 1
 *   x . . . .      x x x x .      x x . . .
 *   x x . . .      x x x x x      x x x . .
 */
typedef enum FoveaAlign {
    FOVEA_ALIGN_DEFAULT = 0,      /* not set: offset = 0. An error where the choice matters, see above */
    FOVEA_ALIGN_BOTTOM_RIGHT = 1, /* offset = kv_length - q_length of the batch entry: the last query attends to the last key */
    FOVEA_ALIGN_OFFSET = 2,       /* offset = FoveaAttentionDesc::q_offset, which may be negative */
    FOVEA_ALIGN_TOP_LEFT = 3      /* offset = 0: PyTorch's is_causal, and ONNX's without a past */
} FoveaAlign;

/* Features of an attention call: bits of FoveaAttentionDesc::flags. With FIXED_SPLITS, plans with the
 * same len_q and len_kv on one device give a batch entry the same bits whatever else is in the batch. Without it, splits of
 * the keys on Vulkan depend on the device and the batch. */
enum {
    FOVEA_FLAG_CAUSAL = 1u << 0,        /* mask the keys after the query's position */
    FOVEA_FLAG_WINDOW = 1u << 1,        /* sliding window: window_left and window_right are in use */
    FOVEA_FLAG_ALIBI = 1u << 2,         /* binding ALIBI: f32 [Hq], the slopes */
    FOVEA_FLAG_SINKS = 1u << 3,         /* binding SINKS: f32 [Hq], attention sinks: one more logit per row, without a value */
    FOVEA_FLAG_VARLEN = 1u << 4,        /* binding SEQUENCES: FoveaSequence [B], the sequence lengths of the batch */
    FOVEA_FLAG_FIXED_SPLITS = 1u << 5,  /* batch-invariant, see above */
    FOVEA_FLAG_ROTATED_CACHE = 1u << 6  /* rotated KV cache, see below */
};

/* A rotated KV cache (QuaRot: Ashkboos et al., 2024). With `rotate`, append multiplies each 32 neighboring elements of a row
 * by the Walsh-Hadamard matrix H / sqrt(32), H[i][j] = (-1)^popcount(i & j). This matrix is its own inverse. So an outlier
 * channel is spread over its Q8_0 or Q4_0 block. With FOVEA_FLAG_ROTATED_CACHE, attention and map tiles take k and v of these
 * types as rotated. They rotate q, so that q.k is unchanged. They rotate o back. Both are float32. v may be a view of k that
 * begins at a multiple of 32 elements. On Vulkan, q and o each need room in the workspace, 4 bytes for each element, and one
 * more dispatch. Errors: neither k nor v is Q8_0 or Q4_0 (FOVEA_INVALID_ARGUMENT). packed_rows_q, and gradients
 * (FOVEA_UNSUPPORTED). */

/* The results of an attention call: bits of FoveaAttentionDesc::outputs. Asking for an output may choose another kernel,
 * and so change other results within the tolerance. Matrices are packed f32 [B, Hq, Lq, Lkv], also for varlen and paged
 * calls. In `scores` and `capped` masked keys have values. Keys at or past kv_length or outside the pool, and rows at or
 * past q_length, hold 0. */
enum {
    FOVEA_OUTPUT_O = 1u << 0,
    FOVEA_OUTPUT_LSE = 1u << 1,       /* f32 [B, Hq, Lq]: lse_i above, before dropout */
    FOVEA_OUTPUT_SCORES = 1u << 2,    /* `score` above */
    FOVEA_OUTPUT_CAPPED = 1u << 3,    /* `capped` above */
    FOVEA_OUTPUT_MASKED = 1u << 4,    /* `masked` above: -inf for masked keys */
    FOVEA_OUTPUT_WEIGHTS = 1u << 5,   /* the attention weights, after dropout if there is any */
    FOVEA_OUTPUT_ROW_STATS = 1u << 6  /* FoveaRowStats [B, Hq, Lq] of the weights before dropout */
};

/* The tensors of an operation, and the index into a run's array of buffers. A buffer begins with the first element of its
 * tensor. It may be larger than FoveaPlanInfo::binding_bytes; the rest is not touched. An output must not overlap with
 * the part in use of another buffer, except in FoveaRopeDesc's in-place form. */
typedef enum FoveaBinding {
    FOVEA_BIND_Q = 0,
    FOVEA_BIND_K = 1,
    FOVEA_BIND_V = 2,
    FOVEA_BIND_O = 3,
    FOVEA_BIND_MASK = 4,
    FOVEA_BIND_BIAS = 5,
    FOVEA_BIND_DROPOUT_MASK = 6,
    FOVEA_BIND_ALIBI = 7,
    FOVEA_BIND_SINKS = 8,
    FOVEA_BIND_SEQUENCES = 9,    /* FoveaSequence [B], see FOVEA_FLAG_VARLEN */
    FOVEA_BIND_BLOCK_TABLE = 10, /* I32 [B, block_table_pages]: the pages of a paged KV cache */
    FOVEA_BIND_LSE = 11,
    FOVEA_BIND_SCORES = 12,
    FOVEA_BIND_CAPPED = 13,
    FOVEA_BIND_MASKED = 14,
    FOVEA_BIND_WEIGHTS = 15,
    FOVEA_BIND_ROW_STATS = 16,
    /* operations other than attention */
    FOVEA_BIND_X = 17,         /* rope, linear, append, merge: input; gather: the cache */
    FOVEA_BIND_Y = 18,         /* rope, linear, gather, merge: output; append: the cache */
    FOVEA_BIND_WEIGHT = 19,    /* linear: W */
    FOVEA_BIND_COS = 20,       /* rope */
    FOVEA_BIND_SIN = 21,       /* rope */
    FOVEA_BIND_POSITIONS = 22, /* rope: I32 [B, L]; gather: I32 [B, position_heads, L] */
    FOVEA_BIND_TILE_MASS = 23, /* map tile: U64 as two 32-bit words, low first, [head_count, height, width] */
    FOVEA_BIND_TILE_MAX = 24,  /* map tile: F32 [head_count, height, width] */
    /* gradients of attention */
    FOVEA_BIND_DO = 25,        /* input: the gradient of o */
    FOVEA_BIND_DQ = 26,
    FOVEA_BIND_DK = 27,
    FOVEA_BIND_DV = 28,
    FOVEA_BIND_DBIAS = 29,
    FOVEA_BIND_DALIBI = 30,
    FOVEA_BIND_DSINKS = 31,
    FOVEA_BIND_DLSE = 32,      /* input: the gradient of lse */
    FOVEA_BIND_PART_LSE = 33,  /* merge: F32 [parts, B, H, L], input */
    /* 34 to 46 are reserved, so that arrays of FOVEA_BIND_COUNT keep their length */
    FOVEA_BIND_WORKSPACE = 47, /* only in FoveaDispatchBinding::source: runs take the workspace in a separate field */
    FOVEA_BIND_COUNT = 48
} FoveaBinding;

/* The distances between neighbors along each axis, in elements; the last axis is contiguous. All three zero: packed
 * [B, H, L, D], or [rows, H, D] for a packed (varlen) batch. Other layouts set all three: [B, L, H, D] is
 * {L*H*D, D, H*D}.
 * The stride of an axis of length 1 (and the batch stride of packed rows) is not used and may be 0: one head of [L, D] is
 * {0, 0, D}. On any other axis 0 is an error if another stride is set. FOVEA_BROADCAST makes an input's entries, heads or
 * rows one and the same: one key head for a whole batch is {FOVEA_BROADCAST, FOVEA_BROADCAST, D}. Other negative strides
 * are errors. Rows of an output must not overlap. */
enum { FOVEA_BROADCAST = -1 };
/* Strides of a tensor [B, H, L, D]; see FOVEA_BROADCAST. */
typedef struct FoveaStrides {
    int64_t batch, head, row; /* elements; 0 or more, or FOVEA_BROADCAST */
} FoveaStrides;

/* A matrix over queries and keys: mask, bias or dropout mask. Zero extents select the defaults: batch 1, heads 1, rows Lq,
 * keys Lkv. Strides all zero: packed [batch, heads, rows, keys]. Row i belongs to query i of its batch entry, also in a
 * packed (varlen) batch. U8, F16 and BF16 matrices are read in 32-bit words: their buffers must be a multiple of 4 bytes
 * long. */
typedef struct FoveaMatrixDesc {
    uint32_t present;      /* 0 or 1. 0: no matrix; all other fields must be zero */
    FoveaDtype type;       /* mask, dropout_mask: FOVEA_U8. bias: FOVEA_F32, FOVEA_F16 or FOVEA_BF16 */
    uint32_t batch, heads; /* B and Hq, or 1 to broadcast */
    uint64_t rows, keys;   /* rows: Lq, or 1 to broadcast. keys: at most Lkv; the tail is masked (mask, bias) or dropped */
    FoveaStrides strides;
} FoveaMatrixDesc;

/* One sequence of a varlen batch, the element of binding SEQUENCES. It holds the information of FlashAttention's
 * cu_seqlens and seqlens: start and length of the queries and of the keys. Values outside [0, limit] are clamped; the
 * limits of the lengths are len_q and len_kv. Starts count rows and are used only with packed_rows_q and packed_rows_kv.
 * There, rows of o that belong to no sequence are not written, and the rows of two sequences must not overlap. */
typedef struct FoveaSequence {
    int32_t q_start, q_length, kv_start, kv_length;
} FoveaSequence;

/* Statistics of one row of attention weights, the element of binding ROW_STATS. A fully masked row has
 * {0, 0, 0xffffffff, 0}. */
typedef struct FoveaRowStats {
    float max_weight;      /* the largest weight before dropout, 0 to 1 */
    float entropy;         /* -sum w ln w over the keys, in nats, with 0 ln 0 = 0 */
    uint32_t argmax_key;   /* the first key with the largest weight */
    uint32_t visible_keys; /* the number of keys that are not masked */
} FoveaRowStats;

/* The implementations of an operation, see docs/concepts/kernels.md. */
typedef enum FoveaKernel {
    FOVEA_KERNEL_AUTO = 0,           /* the planner chooses and gives its reasons */
    FOVEA_KERNEL_STAGED = 1,         /* scores, softmax, weighted sum: supports every output */
    FOVEA_KERNEL_FLASH = 2,          /* one pass with online softmax; memory linear in the length */
    FOVEA_KERNEL_FLASH_COOPMAT = 3,  /* cooperative matrices (VK_KHR_cooperative_matrix) */
    FOVEA_KERNEL_FLASH_COOPMAT2 = 4, /* cooperative matrices of flexible dimensions (VK_NV_cooperative_matrix2) */
    FOVEA_KERNEL_DECODE = 5,         /* few queries over many keys: split-KV, groups share each load. linear: few rows */
    FOVEA_KERNEL_PLAIN = 6,          /* plain loops in float32: the reference of the fast CPU kernels */
    FOVEA_KERNEL_REFERENCE = 7       /* plain loops in float64: the reference of all kernels */
} FoveaKernel;
enum { FOVEA_KERNEL_COUNT = FOVEA_KERNEL_REFERENCE + 1 }; /* the number of kernels, which count from 0 */

/* Returns a kernel's name as in reasons, errors and the programs' --kernel option: "auto", "staged", "flash",
 * "flash_coopmat", ... Never null, "unknown" for other values; the text lives as long as the library. Thread-safe. */
FOVEA_API const char* foveaKernelName(FoveaKernel kernel);

typedef enum FoveaPrecision { /* The rounding that matrix products permit; a kernel may always compute more precisely. */
    FOVEA_PRECISION_F32 = 0,        /* float32 products and sums, whatever the types in memory */
    FOVEA_PRECISION_F16_INPUTS = 1, /* float16 inputs, float32 accumulation: both inputs of a product may be rounded */
    FOVEA_PRECISION_BF16_INPUTS = 2, /* the same with bfloat16; values above its largest finite value become that value */
    FOVEA_PRECISION_INT8_INPUTS = 3 /* linear with quantized W on the CPU: 32 elements of X share a scale, largest / 127 */
} FoveaPrecision;

/* One attention call. A zeroed description with struct_size, batch, heads, dims and lengths set is dense float32
 * attention with packed tensors. */
typedef struct FoveaAttentionDesc {
    uint32_t struct_size;              /* sizeof(FoveaAttentionDesc) */
    uint32_t flags;                    /* FOVEA_FLAG_* */
    FoveaDtype q_type, k_type, v_type, o_type; /* FOVEA_F32, FOVEA_F16 or FOVEA_BF16; k and v: also a quantized type */
    uint32_t batch;                    /* B, at least 1 */
    uint32_t heads_q, heads_kv;        /* Hq and Hkv, at least 1; Hq must be a multiple of Hkv */
    uint32_t dim_qk, dim_v;            /* D and Dv, the head sizes: 1 to 2^16, no multiple required */
    uint32_t outputs;                  /* FOVEA_OUTPUT_*; 0 means FOVEA_OUTPUT_O */
    uint64_t len_q, len_kv;            /* Lq and Lkv, the longest of the batch. 0: nothing to do, or fully masked rows */
    FoveaStrides q_strides, k_strides, v_strides, o_strides; /* elements; all zero: packed */
    float scale;                       /* multiplies the scores. 0: 1/sqrt(D). May be negative; |scale| at most 2.3e38 */
    float softcap;                     /* logit soft-capping. 0: none, else at least 2^-126 */
    FoveaAlign align;                  /* position of query 0 */
    int32_t reserved0;                 /* must be 0 */
    int64_t q_offset;                  /* keys; only with FOVEA_ALIGN_OFFSET */
    int64_t window_left, window_right; /* keys on each side, only with FOVEA_FLAG_WINDOW; -1: unbounded */
    FoveaMatrixDesc mask, bias, dropout_mask; /* dropout_mask: 1 keeps a weight, 0 drops it */
    float dropout_p;                   /* in [0, 1). Without dropout_mask: Philox4x32-10, see below; 0: no dropout */
    uint32_t reserved1;                /* must be 0 */
    uint64_t dropout_seed, dropout_offset; /* seed and offset of the random generator */
    uint64_t packed_rows_q;            /* > 0: q and o are a packed (varlen) batch of so many rows, [rows, H, D] or strided */
    uint64_t packed_rows_kv;           /* > 0: the same for k and v. Needs FOVEA_FLAG_VARLEN; strides.batch must be 0 */
    uint32_t page_size;                /* > 0: k and v are a paged KV cache, pools [page_count, Hkv, page_size, D] with */
    uint32_t page_count;               /*   strides.batch between pages. Key j of entry b is row j % page_size of page */
    uint64_t block_table_pages;        /*   block_table[b][j / page_size]; binding BLOCK_TABLE: I32 [B, block_table_pages] */
    FoveaPrecision precision;          /* permitted rounding of products */
    FoveaKernel kernel;                /* AUTO: the planner chooses. Others: that kernel, or an error with the reason */
    /* FLOP that one slice may cost, see below. 0: on Vulkan slice_cost, or 1e11 (discrete), 2e8 (software), 1e10 (others). */
    double max_slice_cost;
    uint64_t workspace_limit;          /* bytes. 0: 64 MiB */
    /* The first query, key and batch entry * Hq + head in the whole call, for random dropout of a part; see below. */
    uint64_t first_query, first_key, first_batch_head;
} FoveaAttentionDesc;

/* max_slice_cost bounds FoveaPlanInfo::max_slice_flops, which bounds the cost of each slice. On Vulkan, where a watchdog
 * may end long dispatches, a call whose smallest slice costs more is rejected (FOVEA_LIMIT_EXCEEDED). On the CPU slices are
 * then as small as the kernel can cut them: rows, or the queries of one key/value head.
 *
 * Random dropout (without dropout_mask) keeps the weight of key j of query i in head h of batch entry b if
 *   philox4x32_10(counter = {(first_key + j) / 4, first_query + i, first_batch_head + b * Hq + h, low32(offset)},
 *                 key = seed ^ (high32(offset) << 32))[j % 4] >= uint32(dropout_p * 2^32, rounded down)
 * The counter makes the mask independent of backend, tile and order. A call over a part of a larger call drops the same
 * weights if first_query, first_key and first_batch_head say where the part begins.
 * first_key must be a multiple of 4, each sum is at most 2^30, and all three must be 0 without random dropout. For causal
 * masks, windows and ALiBi of a part set FOVEA_ALIGN_OFFSET with q_offset = the whole's + first_query - first_key. */

/* Returns 1 if random dropout keeps the weight, 0 if it drops it: for applications that show the mask.
 *   dropout_p     0 or less keeps all; 1 or more, and NaN, drops all
 *   batch_head    b * Hq + h
 *   query, key    positions in the whole call
 * Thread-safe. */
FOVEA_API uint32_t foveaDropoutKeeps(float dropout_p, uint64_t seed, uint64_t offset, uint64_t batch_head, uint64_t query,
                                     uint64_t key);

/* Converts a float32 to float16 (IEEE 754 binary16) as the engine stores it: to nearest, ties to even, infinity beyond
 * 65519. Thread-safe. */
FOVEA_API uint16_t foveaFloatToHalf(float value);
/* Converts a float16 to float32 without rounding. Thread-safe. */
FOVEA_API float foveaHalfToFloat(uint16_t half);
/* Converts a float32 to bfloat16, to nearest, ties to even. Thread-safe. */
FOVEA_API uint16_t foveaFloatToBfloat(float value);
/* Converts a bfloat16 to float32 without rounding. Thread-safe. */
FOVEA_API float foveaBfloatToFloat(uint16_t bfloat);

/* ---- gradients ------------------------------------------------------------------------------------------------------
 *
 * Given the gradient of o (and optionally of lse), computes the gradients of a scalar loss with respect to q, k, v and, on
 * request, bias, ALiBi slopes and sinks. The weights are recomputed from q, k and lse (Dao et al., FlashAttention, 2022):
 * nothing of the size Lq x Lkv is stored. With o and lse of the forward call and do, the gradient of o:
 *
 *   weight_ij  = exp(masked_ij - lse_i), 0 where the key is masked             before dropout
 *   r_ij       = kept_ij ? 1 / (1 - dropout_p) : 0                             1 without dropout
 *   delta_i    = sum_d do_id o_id - dlse_i
 *   dv_j       = sum_i weight_ij r_ij do_i                                     over all heads that read head h_kv
 *   dmasked_ij = weight_ij (r_ij dot(do_i, v_j) - delta_i)                     dbias before its broadcast axes are summed
 *   dscore_ij  = dmasked_ij (softcap > 0 ? 1 - (capped_ij / softcap)^2 : 1)
 *   dq_i       = scale sum_j dscore_ij k_j           dk_j = scale sum_i dscore_ij q_i
 *   dalibi_h   = sum_ij dmasked_ij (j - p_i)         dsinks_h = - sum_i exp(sink_h - lse_i) delta_i
 *
 * A fully masked row contributes only dlse_i to dsinks_h; its o, do and dlse may hold anything. Query rows i >= q_length
 * are not read. Such rows of dq, and dk and dv of keys at or past kv_length, are written as zeros. In a packed (varlen)
 * batch, rows that belong to no sequence are not written, and the rows of two sequences must not overlap. A NaN in a
 * visible key reaches dq of the rows that attend to it, and dk and dv of the keys of those rows.
 * Every sum has one fixed order. The same plan gives the same bits for any number of threads and any order of slices. On
 * one device a batch entry has the same bits in every batch (except gradients that are summed over the batch).
 * To split the keys over several calls, give each part the merged o and lse: it returns its share of dq, and dk and dv of
 * its keys. */
enum {
    FOVEA_GRAD_Q = 1u << 0,     /* binding DQ: like q, with the type and strides below */
    FOVEA_GRAD_K = 1u << 1,     /* binding DK */
    FOVEA_GRAD_V = 1u << 2,     /* binding DV */
    FOVEA_GRAD_BIAS = 1u << 3,  /* binding DBIAS: f32, packed [batch, heads, rows, keys] with the bias's extents */
    FOVEA_GRAD_ALIBI = 1u << 4, /* binding DALIBI: f32 [Hq] */
    FOVEA_GRAD_SINKS = 1u << 5  /* binding DSINKS: f32 [Hq] */
};

/* The gradients of one attention call, given together with the description of the forward call. Outputs and kernel of the
 * forward description are ignored; its max_slice_cost and workspace_limit apply to this plan. Inputs are the bindings
 * Q, K, V, O, LSE and DO, and what the masks need. SINKS is needed only for FOVEA_GRAD_SINKS, because lse includes the
 * sinks. Errors: a paged or quantized KV cache (FOVEA_UNSUPPORTED); gradients of a bias, slopes or sinks that the
 * call does not have; rows of a gradient that overlap. */
typedef struct FoveaAttentionBackwardDesc {
    uint32_t struct_size;         /* sizeof(FoveaAttentionBackwardDesc) */
    uint32_t gradients;           /* FOVEA_GRAD_*; 0 means Q, K and V */
    uint32_t accumulate;          /* FOVEA_GRAD_*, a subset of `gradients`: added to the buffer's values, then rounded */
    uint32_t has_lse_gradient;    /* 0 or 1. 1: binding DLSE, f32 [B, Hq, Lq], is the gradient of lse; 0: it is zero */
    FoveaDtype do_type, dq_type, dk_type, dv_type; /* FOVEA_F32, FOVEA_F16 or FOVEA_BF16 */
    FoveaStrides do_strides, dq_strides, dk_strides, dv_strides; /* elements; all zero: packed. do may be broadcast, as o may */
    FoveaKernel kernel;           /* AUTO or FLASH; on the CPU also PLAIN and REFERENCE */
    uint32_t reserved0;           /* must be 0 */
} FoveaAttentionBackwardDesc;

/* ---- other operations ---------------------------------------------------------------------------------------------- */

/* Rotary position embedding, RoPE (Su et al., RoFormer, 2021), of X [B, H, L, D] into Y. For in-place use, Y must be
 * exactly the memory of X, with the same type and strides.
 * The first `rotary_dim` elements of a row are rotated in pairs, the rest is copied. Pair n is (n, n + rotary_dim/2), or
 * (2n, 2n + 1) if interleaved:  y1 = cos*x1 - sin*x2,  y2 = sin*x1 + cos*x2.  COS and SIN are f32: tables
 * [table_rows, rotary_dim/2] that POSITIONS indexes, or without positions [B, L, rotary_dim/2]. */
typedef struct FoveaRopeDesc {
    uint32_t struct_size;       /* sizeof(FoveaRopeDesc) */
    FoveaDtype x_type, y_type;  /* FOVEA_F32, FOVEA_F16 or FOVEA_BF16 */
    uint32_t batch, heads, dim; /* B, H and D, at least 1 */
    uint64_t len;               /* L, rows */
    FoveaStrides x_strides, y_strides; /* elements; all zero: packed */
    uint32_t rotary_dim;        /* elements, even, at most dim; 0: dim */
    uint32_t interleaved;       /* 0 or 1 */
    uint64_t table_rows;        /* rows of COS and SIN. 0: no positions. Positions outside [0, table_rows) are clamped */
    FoveaKernel kernel;         /* AUTO; on the CPU also PLAIN and REFERENCE */
    uint32_t reserved0;         /* must be 0 */
} FoveaRopeDesc;

/* A linear layer: Y [rows, n_out] = X [rows, n_in] * W + bias. W is [n_out, n_in] as in nn.Linear, or [n_in, n_out] as in
 * Conv1D. Binding WEIGHT is W (quantized blocks: [n_out, n_in]), binding BIAS is f32 [n_out].
 * The CPU kernel DECODE reads each weight once, as it is stored. AUTO takes it for at most 4 rows of float32 X and Y if W is
 * [n_out, n_in] and not float32. It sums in a different order, so the last bits may differ from those of other kernels. */
typedef struct FoveaLinearDesc {
    uint32_t struct_size;       /* sizeof(FoveaLinearDesc) */
    FoveaDtype x_type, w_type, y_type; /* FOVEA_F32, FOVEA_F16 or FOVEA_BF16; W: also every FOVEA_Q* */
    uint32_t n_in, n_out;       /* elements of a row of X and of Y, at least 1 */
    uint32_t has_bias;          /* 0 or 1 */
    uint32_t weight_is_in_out;  /* 0 or 1. 1: W is [n_in, n_out] */
    uint64_t rows;              /* rows of X and Y */
    int64_t x_row_stride, y_row_stride, w_row_stride; /* elements; 0: packed */
    FoveaKernel kernel;         /* AUTO; on the CPU also DECODE, PLAIN and REFERENCE */
    FoveaPrecision precision;   /* permitted rounding of products with kernel AUTO; INT8_INPUTS: also with DECODE */
} FoveaLinearDesc;

/* KV-cache update (vLLM's reshape_and_cache, FlashInfer's append_paged_kv_cache): copies the new rows X [B, H, L, D] to the
 * end of the rows that a cache Y holds. Row i of entry b goes to row kv_length(b) + i. kv_length is that of binding
 * SEQUENCES and counts the rows held *before* the call; without has_sequences it is first_row. Every entry gets all L rows,
 * as q_length is not read. The cache is [B, H, capacity, D] by strides, or paged as in FoveaAttentionDesc.
 * Rows past the capacity and rows of pages outside the pool are not written. Two entries must not write the same row of a
 * page. FP8 types saturate; infinities become NaN in E4M3. A Q8_0 (Q4_0) block reads as NaN if any element is not finite, or
 * beyond 127 * 65504 (8 * 65504). */
typedef struct FoveaAppendDesc {
    uint32_t struct_size;         /* sizeof(FoveaAppendDesc) */
    FoveaDtype x_type, y_type;    /* FOVEA_F32, FOVEA_F16, FOVEA_BF16 or a quantized type */
    uint32_t batch, heads, dim;   /* B, H and D, at least 1 */
    uint64_t len;                 /* L, new rows for each entry */
    uint64_t capacity;            /* rows of the cache for each entry; paged: block_table_pages * page_size */
    uint64_t first_row;           /* rows held; first_row + len at most the capacity. 0 with has_sequences */
    FoveaStrides x_strides, y_strides; /* elements; all zero: packed */
    uint32_t has_sequences;       /* 0 or 1. 1: binding SEQUENCES has the rows held */
    uint32_t page_size, page_count; /* rows of a page and pages of the pool; 0: not paged */
    uint32_t rotate;              /* 0 or 1. 1: rows are rotated first, see FOVEA_FLAG_ROTATED_CACHE; from X that is */
                                  /*   FOVEA_F32, FOVEA_F16 or FOVEA_BF16 to Y that is FOVEA_Q8_0 or FOVEA_Q4_0 */
    uint64_t block_table_pages;   /* pages for each entry */
} FoveaAppendDesc;

/* KV-cache compaction (torch.index_select; H2O, SnapKV): row i of Y [B, H, L, D] becomes row POSITIONS[b, h, i] of the
 * cache X. X is [B, H, capacity, D] by strides, or paged as in FoveaAppendDesc. A position outside the cache, or on a page
 * outside the pool, gives a row of zeros: fill shorter lists up with -1. Y must not overlap X. Equal types copy bits. */
typedef struct FoveaGatherDesc {
    uint32_t struct_size;         /* sizeof(FoveaGatherDesc) */
    FoveaDtype x_type, y_type;    /* FOVEA_F32, FOVEA_F16, FOVEA_BF16 or a quantized type */
    uint32_t batch, heads, dim;   /* B, H and D, at least 1 */
    uint64_t len;                 /* L, rows of Y for each entry and head */
    uint64_t capacity;            /* rows of X for each entry; paged: at most block_table_pages * page_size */
    FoveaStrides x_strides, y_strides; /* elements; all zero: packed */
    uint32_t position_heads;      /* `heads`: one list for each head. 0 or 1: one for all heads of an entry */
    uint32_t page_size, page_count; /* rows of a page and pages of the pool; 0: not paged */
    uint32_t reserved0;           /* must be 0 */
    uint64_t block_table_pages;   /* pages for each entry */
} FoveaGatherDesc;

/* Combining partial results (LSE merge of split-KV and ring attention): the results of the same queries over parts of the
 * keys become the result over all keys. Parts are shards of a context, a shared prefix (cascade attention), or the pieces
 * of a KV cache in several places. X [parts, B, H, L, D] holds each part's o and PART_LSE its log-sum-exp as binding LSE
 * gives it. Y [B, H, L, D] and LSE [B, H, L] receive the result of one call over all keys, up to rounding. Of parts a and b:
 *
 *   lse = log(exp(lse_a) + exp(lse_b))      y = exp(lse_a - lse) * o_a + exp(lse_b - lse) * o_b
 *
 * in float32, with the larger lse subtracted first. One fixed tree merges neighbors: 0 and 1, 2 and 3, then their results;
 * an odd one at the end is passed on. So the bits depend only on the parts, not on slices, threads or machines. A fully
 * masked row (lse -inf) leaves the other part's bits unchanged and its o is not read. If a row is fully masked in every
 * part, y is 0 and lse is -inf. NaN or +inf in lse makes its row of y and lse NaN.
 * Each key must be in one part only. An attention sink counts like a key: give it to one part only. */
enum { FOVEA_MERGE_MAX_PARTS = 4096 };
/* The description of a merge; see FOVEA_MERGE_MAX_PARTS. */
typedef struct FoveaMergeDesc {
    uint32_t struct_size;              /* sizeof(FoveaMergeDesc) */
    FoveaDtype x_type, y_type;         /* FOVEA_F32, FOVEA_F16 or FOVEA_BF16 */
    FoveaKernel kernel;                /* AUTO; on the CPU also PLAIN and REFERENCE */
    uint32_t parts, batch, heads, dim; /* at least 1; parts: at most FOVEA_MERGE_MAX_PARTS; dim: Dv */
    uint64_t len;                      /* L, query rows */
    FoveaStrides x_strides, y_strides; /* elements; all zero: packed */
    int64_t x_part_stride;             /* elements between parts; 0: each follows the last element of the one before */
} FoveaMergeDesc;

/* One tile of the attention map: a picture of a rectangle of the attention weights, computed from q, k and lse without the
 * matrix. It covers the rows [first_row, first_row + row_count) and keys [first_key, first_key + key_count) of head_count
 * query heads of one batch entry. It is reduced to height x width pixels. The description of the forward call gives the weights
 * (masks, positions, dropout, groups, lengths, packing, paging, types) and the budgets of slice and workspace. Binding LSE
 * is an input. v, o, outputs, sinks and their bindings do not affect the weights once lse is given; they are ignored, and
 * so is `kernel` unless it is PLAIN or REFERENCE.
 *
 * A cell's weight is exp(masked - lse_i), after dropout, and 0 for a masked key. Pixel (x, y) holds the cells of
 *   rows first_row + [y * row_count / height, (y + 1) * row_count / height)
 *   keys first_key + [x * key_count / width,  (x + 1) * key_count / width)        (integer division, never empty)
 * lse is float32, which gives every weight of its row a relative error of |lse| * 2^-24.
 * The rectangle may reach past Lq and Lkv, where cells have weight 0: so all tiles of a pyramid have one size.
 *
 * TILE_MASS is the sum of the pixel's weights in units of FOVEA_TILE_UNIT, an unsigned 64-bit integer. Each weight is
 * rounded down to whole units, so sums do not depend on the order. On one backend and device a cell has the same units in
 * every tile, slice and thread: a pixel is exactly the sum of the pixels of a finer tile. FOVEA_TILE_INVALID marks a NaN
 * weight, a weight above 2 (before the division by 1 - dropout_p), or a sum of 2^63 units or more. Such weights come from
 * the lse of another problem, or from an input that is not finite. TILE_MAX is the largest of the pixel's weights, NaN where
 * a weight is NaN or above 2.
 *
 * sampled = 1 is a preview at the cost of one cell per pixel, the cell at begin + (end - begin) / 2 of both ranges. It gives
 * the pixel's mass and maximum, with the weight that it has in the exact tile. */
enum {
    FOVEA_TILE_MASS = 1u << 0, /* binding TILE_MASS */
    FOVEA_TILE_MAX = 1u << 1   /* binding TILE_MAX */
};
#define FOVEA_TILE_UNIT (1.0 / 1099511627776.0) /* the weight of one unit of mass: 2^-40 */
#define FOVEA_TILE_INVALID 0xffffffffffffffffull /* the mass of a pixel without a valid sum */
enum { FOVEA_TILE_MAX_SIDE = 16384 };           /* pixels */

/* The description of a map tile; see FOVEA_TILE_MASS. */
typedef struct FoveaMapTileDesc {
    uint32_t struct_size;            /* sizeof(FoveaMapTileDesc) */
    uint32_t batch;                  /* the batch entry, below B */
    uint32_t first_head, head_count; /* query heads; head_count 0: all from first_head on */
    uint64_t first_row, row_count;   /* first_row below Lq; row_count 0: to Lq */
    uint64_t first_key, key_count;   /* first_key below Lkv; key_count 0: to Lkv */
    uint32_t width, height;          /* pixels, at most key_count, row_count and FOVEA_TILE_MAX_SIDE; 0: one cell per pixel */
    uint32_t outputs;                /* FOVEA_TILE_*; 0 means FOVEA_TILE_MASS */
    uint32_t sampled;                /* 0 or 1 */
} FoveaMapTileDesc;

/* ---- device properties --------------------------------------------------------------------------------------------- */

/* The backend that runs a plan. */
typedef enum FoveaBackend { FOVEA_BACKEND_CPU = 0, FOVEA_BACKEND_VULKAN = 1 } FoveaBackend;

/* The class of a device. It decides tile sizes, and the cost of a slice where no budget is given. */
typedef enum FoveaDeviceClass {
    FOVEA_CLASS_CPU = 0, /* a software Vulkan driver, or the CPU backend */
    FOVEA_CLASS_INTEGRATED = 1, FOVEA_CLASS_DISCRETE = 2, FOVEA_CLASS_VIRTUAL = 3
} FoveaDeviceClass;

/* Features that kernels use: bits of FoveaDeviceProperties::features. */
enum {
    FOVEA_FEATURE_F16_STORAGE = 1u << 0,     /* storageBuffer16BitAccess */
    FOVEA_FEATURE_F16_ARITHMETIC = 1u << 1,  /* shaderFloat16 */
    FOVEA_FEATURE_SUBGROUP_ARITHMETIC = 1u << 2, FOVEA_FEATURE_SUBGROUP_SHUFFLE = 1u << 3,
    FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL = 1u << 4, /* with computeFullSubgroups */
    FOVEA_FEATURE_COOPMAT = 1u << 5,         /* VK_KHR_cooperative_matrix with the shape coopmat_* */
    FOVEA_FEATURE_COOPMAT2 = 1u << 6, /* VK_NV_cooperative_matrix2: flexible dimensions, reductions, conversions, per-element */
    FOVEA_FEATURE_PUSH_DESCRIPTORS = 1u << 7, FOVEA_FEATURE_TIMESTAMPS = 1u << 8,
    FOVEA_FEATURE_DEVICE_ATOMICS = 1u << 9,  /* always, unless vulkanMemoryModel was enabled without its DeviceScope */
    FOVEA_FEATURE_BF16_INPUTS = 1u << 10     /* CPU: AVX512-BF16. Vulkan: COOPMAT's shape with bfloat16 inputs */
};

/* A measured tile of the Vulkan kernel `flash`. All zero: the planner's choice. */
typedef struct FoveaFlashTile {
    uint32_t rows;         /* query rows of a workgroup: 1 to 8 */
    uint32_t threads;      /* threads of a workgroup: 8, 16 or 32; each holds four keys of a block */
    uint32_t column_quads; /* value columns of a thread, in fours: 1 or 2 */
} FoveaFlashTile;

/* The classes of calls that have separate tiles. The class is 3 * rows + columns. rows: 0 for one query row of a key/value
 * head (queries times heads of the group), 1 for up to four, 2 for more. columns: 0 for dim_v up to 64, 1 up to 128, 2
 * above. */
enum { FOVEA_TILE_CLASS_COUNT = 9 };

/* The use of a block mask: a first pass that classifies the blocks of a mask or bias for `flash` as fully masked,
 * unaffected or mixed (FlexAttention's BlockMask). It never changes a result. */
typedef enum FoveaMaskMap {
    FOVEA_MASK_MAP_AUTO = 0,  /* where it is likely to be faster */
    FOVEA_MASK_MAP_NEVER = 1,
    FOVEA_MASK_MAP_ALWAYS = 2 /* for every call with a mask or bias */
} FoveaMaskMap;

/* The classes of calls that foveaCheckDevice checks, by the types of the tensors: all float32; float16 or bfloat16 among
 * them; a quantized type among them. */
enum { FOVEA_CHECK_F32 = 0, FOVEA_CHECK_F16 = 1, FOVEA_CHECK_QUANTIZED = 2, FOVEA_CHECK_CLASS_COUNT = 3 };

/* The properties of a device that the planner uses. foveaCpuProperties, foveaContextProperties and foveaEngineProperties
 * fill it. Applications that dispatch the shaders themselves (foveaGetDispatches) and tests may fill it by hand. */
typedef struct FoveaDeviceProperties {
    uint32_t struct_size;          /* sizeof(FoveaDeviceProperties) */
    FoveaBackend backend;
    FoveaDeviceClass device_class;
    uint32_t features;             /* FOVEA_FEATURE_* */
    /* Vulkan: limits of VkPhysicalDeviceLimits */
    uint32_t max_workgroup_invocations, max_shared_bytes, max_push_bytes;
    uint32_t max_workgroup_count[3];
    uint32_t subgroup_size, min_subgroup_size, max_subgroup_size; /* powers of two up to 128; 0: unknown */
    uint32_t storage_offset_alignment; /* bytes, a power of two up to 256 */
    uint64_t max_storage_range;        /* bytes, below 2^32 as in Vulkan */
    uint32_t core_count;              /* compute units; 0: unknown */
    uint32_t coopmat_m, coopmat_n, coopmat_k; /* the cooperative matrix shape to use, f16 x f16 -> f32; 0: none */
    uint32_t vendor_id;               /* VkPhysicalDeviceProperties::vendorID */
    /* CPU */
    uint32_t cpu_threads;             /* workers that the application provides, up to 2^16; 0 counts as 1 */
    uint32_t cpu_target;              /* the instruction set in use, see foveaCpuTargetName */
    uint64_t l1_bytes, l2_bytes;      /* data caches of one core; 0: unknown */
    /* Vulkan, with FOVEA_FEATURE_COOPMAT2: cooperative matrices of flexible dimensions, f16 x f16 -> f32 */
    uint32_t coopmat2_m, coopmat2_n, coopmat2_k; /* sides of a matrix are multiples of these; 0: none */
    uint32_t coopmat2_threads;        /* size of the workgroup that shares a matrix; 0: subgroup scope */
    uint32_t coopmat2_max_side;       /* largest side of a matrix, elements */
    uint32_t coopmat2_reserved_bytes; /* shared memory that the driver takes if a workgroup shares a matrix */
    /* Vulkan: measured by `./dev bench tune`, see fovea::Tuning. The tiles are not used with FOVEA_FLAG_FIXED_SPLITS, whose
     * splits must not depend on the device. */
    FoveaFlashTile flash_tiles[FOVEA_TILE_CLASS_COUNT];
    FoveaMaskMap mask_map;
    /* Vulkan */
    uint32_t features_not_enabled;    /* FOVEA_FEATURE_* that the device has and the application did not enable; for texts */
    /* Storage buffers that one shader may bind, by the smallest limit that applies (stage, resources, set, push). 0: unknown.
     * No plan binds more than 8. */
    uint32_t max_storage_buffers;
    uint32_t max_workgroup_subgroups; /* maxComputeWorkgroupSubgroups, for a required subgroup size; 0: unknown, not checked */
    FoveaKernel forced_kernel;        /* AUTO: the kernel of each call. PLAIN, REFERENCE: every operation that has a kernel */
    /* Vulkan: FLOP that the slowest measured kernel does in 50 ms; 0: not measured. The runtime measures its runs and
     * fills it in, as any application may. It sizes slices of attention, gradients and map tiles whose max_slice_cost is 0.
     * It never rejects a call or changes its kernel or result. */
    double slice_cost;
    /* Vulkan: what foveaCheckDevice found wrong with this driver. Bit i of element t: the kernel whose main shader is i, for
     * calls of class t. No plan uses it. */
    uint64_t failed_shaders[FOVEA_CHECK_CLASS_COUNT];
} FoveaDeviceProperties;

/* Returns the properties of the CPU that runs this call.
 *   threads   workers that the application provides; 0 counts as 1. Plans reject more than 2^16
 *   out       receives the properties; struct_size must be set
 * Errors: FOVEA_INVALID_ARGUMENT (out is null), FOVEA_ABI_MISMATCH. Thread-safe. */
FOVEA_API FoveaResult foveaCpuProperties(uint32_t threads, FoveaDeviceProperties* out, FoveaDiag* diag);
/* Returns the name of an instruction set: "AVX2", "SSE4", "WASM", ... Never null; the text lives as long as the library.
 * Thread-safe. */
FOVEA_API const char* foveaCpuTargetName(uint32_t cpu_target);

/* ---- plans --------------------------------------------------------------------------------------------------------- */

/* A plan: one operation prepared for one device, cut into slices of bounded cost. On Vulkan, foveaCompilePlan completes
 * it. */
typedef struct FoveaPlan_T* FoveaPlan;

/* Checks an attention call without making a plan.
 *   properties   the device to check for; null: check only the description
 * Errors: those of foveaPlanAttention. Allocates nothing. Thread-safe. */
FOVEA_API FoveaResult foveaCheckAttention(const FoveaDeviceProperties* properties, const FoveaAttentionDesc* desc,
                                          FoveaDiag* diag);

/* Makes the plan of an attention call. All foveaPlan* functions are pure: equal properties and descriptions give equal
 * plans. The arguments are copied.
 *   properties   the device that will run the plan
 *   allocator    provides the plan's memory and must outlive it; null: malloc
 *   out          receives the plan; release it with foveaDestroyPlan. Null after an error
 * Errors: FOVEA_INVALID_ARGUMENT and FOVEA_SIZE_OVERFLOW for the description, FOVEA_UNSUPPORTED and FOVEA_LIMIT_EXCEEDED for
 * the device, FOVEA_OUT_OF_HOST_MEMORY, FOVEA_ABI_MISMATCH. Thread-safe. */
FOVEA_API FoveaResult foveaPlanAttention(const FoveaDeviceProperties* properties, const FoveaAttentionDesc* desc,
                                         const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
/* Makes the plan of a rotary embedding, as foveaPlanAttention does. Thread-safe. */
FOVEA_API FoveaResult foveaPlanRope(const FoveaDeviceProperties* properties, const FoveaRopeDesc* desc,
                                    const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
/* Makes the plan of a linear layer, as foveaPlanAttention does. Thread-safe. */
FOVEA_API FoveaResult foveaPlanLinear(const FoveaDeviceProperties* properties, const FoveaLinearDesc* desc,
                                      const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
/* Makes the plan of a KV-cache update, as foveaPlanAttention does. Thread-safe. */
FOVEA_API FoveaResult foveaPlanAppend(const FoveaDeviceProperties* properties, const FoveaAppendDesc* desc,
                                      const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
/* Makes the plan of a KV-cache compaction, as foveaPlanAttention does. Thread-safe. */
FOVEA_API FoveaResult foveaPlanGather(const FoveaDeviceProperties* properties, const FoveaGatherDesc* desc,
                                      const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
/* Makes the plan that combines partial results, as foveaPlanAttention does. Thread-safe. */
FOVEA_API FoveaResult foveaPlanMerge(const FoveaDeviceProperties* properties, const FoveaMergeDesc* desc,
                                     const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
/* Makes the plan of the gradients of the attention call `forward`, as foveaPlanAttention does. Thread-safe. */
FOVEA_API FoveaResult foveaPlanAttentionBackward(const FoveaDeviceProperties* properties, const FoveaAttentionDesc* forward,
                                                 const FoveaAttentionBackwardDesc* backward,
                                                 const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
/* Makes the plan of a map tile of the call `attention`, as foveaPlanAttention does. Slices split the tile between pixels.
 * Thread-safe. */
FOVEA_API FoveaResult foveaPlanMapTile(const FoveaDeviceProperties* properties, const FoveaAttentionDesc* attention,
                                       const FoveaMapTileDesc* tile, const FoveaHostAllocator* allocator, FoveaPlan* out,
                                       FoveaDiag* diag);
/* Destroys a plan; null is ignored. Command buffers that recorded the plan must have finished. Externally synchronized. */
FOVEA_API void foveaDestroyPlan(FoveaPlan plan);

/* The requirements and costs of a plan. */
typedef struct FoveaPlanInfo {
    uint32_t struct_size;                /* sizeof(FoveaPlanInfo) */
    FoveaBackend backend;
    FoveaKernel kernel;                  /* the kernel that runs */
    uint32_t dispatches_per_slice;       /* the most dispatches of a slice; 0 on the CPU */
    uint64_t binding_mask;               /* bit i: binding i must be given. Others must be null or of size 0, see ignored_mask */
    uint64_t output_mask;                /* bit i: binding i is written */
    uint64_t binding_bytes[FOVEA_BIND_COUNT]; /* the smallest size of each buffer */
    uint64_t workspace_bytes, workspace_alignment; /* bytes of scratch memory for each run, and its alignment */
    uint64_t slice_count;                /* at least 1 unless there is nothing to do; running 0 slices is permitted */
    uint32_t slices_share_workspace;     /* 1: slices need a barrier (compute write -> compute read|write) between them */
    uint32_t reserved0;
    /* FLOP of the plan: 2*(D+Dv) for each computed (query, key) pair. Map tiles: 2*D. Gradients: 4*D+2*Dv for dq,
     * 4*(D+Dv) for dk and dv, 2*(D+Dv) each for dbias and dalibi, 2*Dv for each query row of dsinks. */
    double flops;
    double max_slice_flops;              /* FLOP of the most expensive slice, at most */
    double visited_pairs, total_pairs;   /* (query, key) pairs that are computed, and B*Hq*Lq*Lkv (of a tile: its cells) */
    char reason[256];                    /* which kernel, why, and why not a faster one */
    /* The bytes of each tensor, the same on every backend. binding_bytes is at least that: devices that access 32-bit words
     * need whole ones. Copies between host and device have this size. */
    uint64_t tensor_bytes[FOVEA_BIND_COUNT];
    /* bit i: binding i is not used, but may be given (a map tile accepts the bindings of its call) */
    uint64_t ignored_mask;
} FoveaPlanInfo;
/* Returns the requirements and costs of a plan in *info, whose struct_size must be set.
 * Errors: FOVEA_INVALID_ARGUMENT (null), FOVEA_ABI_MISMATCH. Thread-safe. */
FOVEA_API FoveaResult foveaGetPlanInfo(FoveaPlan plan, FoveaPlanInfo* info, FoveaDiag* diag);

/* Writes a description of the plan for people, lines ended by \n: kernel, reasons, tiles, slices, workspace, the call as it
 * was read, and the bindings.
 *   text       receives the text, cut to fit and ended by 0; may be null if capacity is 0
 *   capacity   bytes of `text`
 * Returns the bytes that the whole text needs, the final 0 included. Thread-safe. */
FOVEA_API size_t foveaExplainPlan(FoveaPlan plan, char* text, size_t capacity);

/* ---- plans as data: for applications that dispatch the shaders themselves ---------------------------------------------- */

enum { FOVEA_MAX_DISPATCH_BINDINGS = 16, FOVEA_MAX_SPEC_CONSTANTS = 16, FOVEA_MAX_PUSH_WORDS = 32 }; /* of FoveaDispatch */

/* A range of a buffer that a shader uses. */
typedef struct FoveaDispatchBinding {
    uint32_t slot;    /* binding number in descriptor set 0 of the shader, 0 to 31; once in each dispatch */
    uint32_t source;  /* FoveaBinding of the buffer; FOVEA_BIND_WORKSPACE for the workspace */
    uint32_t written; /* 0: read only; 1: written */
    uint32_t reserved0;
    uint64_t offset, size; /* bytes within the buffer; offset is a multiple of storage_offset_alignment */
} FoveaDispatchBinding;

/* One vkCmdDispatch and its state. */
typedef struct FoveaDispatch {
    uint32_t shader;           /* index for foveaShaderName and foveaShaderCode */
    uint32_t subgroup_size;    /* required size of full subgroups if min_ and max_subgroup_size differ; 0: any */
    uint32_t spec_count, push_words, binding_count; /* used elements of the arrays below */
    uint32_t barrier_before;   /* 1: needs the writes of the dispatches before it in this slice */
    uint32_t groups[3];        /* workgroups */
    uint32_t spec[FOVEA_MAX_SPEC_CONSTANTS]; /* specialization constants 0 to spec_count - 1 */
    uint32_t push[FOVEA_MAX_PUSH_WORDS];     /* push constants from byte 0 */
    FoveaDispatchBinding bindings[FOVEA_MAX_DISPATCH_BINDINGS];
} FoveaDispatch;

/* Returns the dispatches of one slice of a Vulkan plan, in order.
 *   slice   below FoveaPlanInfo::slice_count
 *   out     receives the dispatches
 *   count   in: the room of `out`; out: the number written
 * Errors: FOVEA_LIMIT_EXCEEDED if the room is too small (FoveaPlanInfo::dispatches_per_slice is enough),
 * FOVEA_INVALID_ARGUMENT. Thread-safe. */
FOVEA_API FoveaResult foveaGetDispatches(FoveaPlan plan, uint64_t slice, FoveaDispatch* out, uint32_t* count, FoveaDiag* diag);
/* Writes the SPIR-V of a dispatch, specialized to its constants and slots: entry point `main`, descriptor set 0, push
 * constants from byte 0. Only `shader`, `spec` and the slots of the dispatch are used.
 *   words        receives the module; null: only ask for the room
 *   word_count   in: the room of `words` in 32-bit words; out: the words written, or the room needed (which is more)
 * Errors: FOVEA_LIMIT_EXCEEDED if the room is too small, FOVEA_INVALID_ARGUMENT, FOVEA_UNSUPPORTED for a shader that this
 * build leaves out. Thread-safe. */
FOVEA_API FoveaResult foveaDispatchCode(const FoveaDispatch* dispatch, uint32_t* words, size_t* word_count, FoveaDiag* diag);
/* Returns a shader's module as it was compiled, with the buffers of all calls, and its length in 32-bit words; null past
 * the last shader. For tools; lives as long as the library. Thread-safe. */
FOVEA_API const uint32_t* foveaShaderCode(uint32_t shader, size_t* word_count);
/* Returns a shader's name for logs, "unknown" past the last shader. Never null; lives as long as the library.
 * Thread-safe. */
FOVEA_API const char* foveaShaderName(uint32_t shader);

/* ---- the CPU backend --------------------------------------------------------------------------------------------------- */

/* One task of a parallel loop. */
typedef void (*FoveaTask)(void* arg, uint32_t index, uint32_t worker);
/* The application's thread pool. Results do not depend on the number of workers, bit for bit. */
typedef struct FoveaParallel {
    void* user; /* passed to `run`; may be null */
    /* Calls task(arg, i, worker) once for each i < count, on any threads in any order, and returns when all are done.
     * worker < worker_count; calls that overlap in time must have different workers. */
    void (*run)(void* user, uint32_t count, FoveaTask task, void* arg);
    uint32_t worker_count; /* at least 1, at most FoveaDeviceProperties::cpu_threads of the plan */
} FoveaParallel;

/* A range of host memory. */
typedef struct FoveaHostBuffer {
    void* data;          /* aligned to 4 bytes (16-bit tensors, except a bias: 2). Inputs are only read */
    uint64_t size_bytes; /* bytes, at least FoveaPlanInfo::binding_bytes */
} FoveaHostBuffer;

/* The arguments of foveaRunCpu. */
typedef struct FoveaCpuRun {
    uint32_t struct_size;            /* sizeof(FoveaCpuRun) */
    uint32_t binding_count;          /* length of `bindings`, indexed by FoveaBinding; at most FOVEA_BIND_COUNT */
    const FoveaHostBuffer* bindings;
    FoveaHostBuffer workspace;       /* FoveaPlanInfo::workspace_bytes, aligned to workspace_alignment */
    const FoveaParallel* parallel;   /* null: everything runs on the calling thread */
    /* the slices to run; slice_count 0: all from first_slice on */
    uint64_t first_slice, slice_count;
} FoveaCpuRun;

/* Runs slices of a CPU plan and returns when they are done. Allocates nothing.
 * Errors: FOVEA_INVALID_ARGUMENT and FOVEA_LIMIT_EXCEEDED for the bindings, slices and workers, all checked before the
 * first write; FOVEA_UNSUPPORTED if this CPU or build lacks the plan's instruction set. Thread-safe, if runs at the same
 * time have different workspaces and outputs. */
FOVEA_API FoveaResult foveaRunCpu(FoveaPlan plan, const FoveaCpuRun* run, FoveaDiag* diag);

/* ---- initializers ----------------------------------------------------------------------------------------------------
 *
 * One for each struct above that begins with struct_size. It returns the struct with struct_size set and all other fields
 * zero, which is the default of every field.
 *
 *     FoveaDiag diag = foveaDiag();
 *     FoveaAttentionDesc call = foveaAttentionDesc();    (then set batch, heads, lengths and dims)
 *
 * Initializers are compiled into the caller, so that struct_size is the size that the caller's header declares. */
#define FOVEA_INITIALIZER(Struct, name) \
    static inline Struct name(void) {   \
        Struct zero;                    \
        memset(&zero, 0, sizeof zero);  \
        zero.struct_size = sizeof zero; \
        return zero;                    \
    }
FOVEA_INITIALIZER(FoveaDiag, foveaDiag)
FOVEA_INITIALIZER(FoveaAttentionDesc, foveaAttentionDesc)
FOVEA_INITIALIZER(FoveaAttentionBackwardDesc, foveaAttentionBackwardDesc)
FOVEA_INITIALIZER(FoveaRopeDesc, foveaRopeDesc)
FOVEA_INITIALIZER(FoveaLinearDesc, foveaLinearDesc)
FOVEA_INITIALIZER(FoveaAppendDesc, foveaAppendDesc)
FOVEA_INITIALIZER(FoveaGatherDesc, foveaGatherDesc)
FOVEA_INITIALIZER(FoveaMergeDesc, foveaMergeDesc)
FOVEA_INITIALIZER(FoveaMapTileDesc, foveaMapTileDesc)
FOVEA_INITIALIZER(FoveaDeviceProperties, foveaDeviceProperties)
FOVEA_INITIALIZER(FoveaPlanInfo, foveaPlanInfo)
FOVEA_INITIALIZER(FoveaCpuRun, foveaCpuRun)

/* Enums have 32 bits in every struct above: compilers that shorten them (-fshort-enums) are not supported. */
typedef char FoveaEnumWidthCheck[sizeof(FoveaDtype) == 4 ? 1 : -1];

#ifdef __cplusplus
}
#endif
#endif
