/* SPDX-License-Identifier: Apache-2.0
 *
 * Fovea: transformer attention that a host program can plan, record, run and look into.
 *
 * This header is the C boundary of the library `fovea` and its manual: the problem description, plans as data and the
 * CPU backend. <fovea/fovea_vulkan.h> adds the recorder for a host's own Vulkan device, <fovea/fovea.hpp> the C++20
 * wrapper. It compiles as C99 and as C++.
 *
 * A call from start to end
 *   CPU     foveaCpuFacts, foveaPlanAttention, foveaGetPlanInfo (how large each buffer must be), foveaRunCpu,
 *           foveaDestroyPlan. Whole at the end of this file: run_once and attend_once.
 *   Vulkan  foveaCreateContext, foveaContextFacts, foveaPlanAttention, foveaCompilePlan, foveaGetPlanInfo, foveaCmdRun,
 *           foveaDestroyPlan, foveaDestroyContext. Whole in docs/guides/embedding.md.
 *
 * Contents
 *   versions, results and host memory   FoveaResult, FoveaDiag, FoveaHostAllocator
 *   the problem: one attention call     what is computed; FoveaAttentionDesc and what it is made of
 *   gradients                           of attention: FoveaAttentionBackwardDesc
 *   other operations                    rotary embedding, linear layers, caches (append, gather), merging, map tiles
 *   devices as facts                    FoveaDeviceFacts
 *   plans                               making one, FoveaPlanInfo
 *   plans as data                       for hosts that dispatch by themselves
 *   the CPU backend                     foveaRunCpu
 *   initialisers                        foveaDiag(), foveaAttentionDesc(), ...: struct_size set, all else zero
 *   examples                            one call, packed sequences, caches: appended, past and present, paged, ring; parts
 *
 * What the library never does: submit, wait, start a thread, allocate device memory, read the environment, print, keep
 * global state, throw, exit. Host memory comes from the allocator that the host gives.
 *
 * Conventions
 * - Every struct that can grow starts with `struct_size`: set it to sizeof the struct. A smaller (older) struct is
 *   accepted and its missing tail counts as zero, unless it ends inside a field; a larger one (up to 4096 bytes) only while
 *   the unknown tail is zero.
 *   Zero means "the default" in every field. A field that does not count (a window without its flag, page_count without
 *   page_size, a mask whose `present` is 0) must be left zero: it is refused, so that a forgotten flag does not pass in
 *   silence. So must what is reserved. For the same reason a run refuses a binding that its plan does not have
 *   (FoveaPlanInfo::binding_mask): a batch table that is bound without its flag would be left out without a word.
 * - Sizes in bytes and element counts are 64 bits wide and checked; nothing wraps. Lengths, rows and |q_offset| are at
 *   most 2^30, dim_qk and dim_v at most 2^16, batch * heads_q at most 2^30.
 * - A refused call has changed nothing, except that the handle it should have made is null. The optional FoveaDiag says
 *   which field was wrong, what its value was and what the limit is. Pointers must not be null unless this header says
 *   so; a diag and an allocator always may.
 * - Enums are read as numbers and checked: a value that this library does not know is refused by name.
 * - Thread safety: a plan does not change after creation, and functions on it may run on any number of threads at once,
 *   each run with a workspace and outputs of its own. Creation and destruction of one object must not overlap with its
 *   use.
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

/* ---- versions, results and host memory --------------------------------------------------------------------------- */

/* Of this header, by semver.org. */
#define FOVEA_VERSION_MAJOR 0
#define FOVEA_VERSION_MINOR 1
#define FOVEA_VERSION_PATCH 0
/* Grows when programs built with older headers stop working. */
#define FOVEA_ABI_VERSION 4u
/* That of the library, as it was built: compare with FOVEA_ABI_VERSION where the library is loaded at run time. */
FOVEA_API uint32_t foveaAbiVersion(void);

/* Append only. */
typedef enum FoveaResult {
    FOVEA_OK = 0,
    FOVEA_INVALID_ARGUMENT = 1,      /* a field has a value that no device could serve */
    FOVEA_UNSUPPORTED = 2,           /* meaningful, but not on this device or with this kernel; the diag says why */
    FOVEA_LIMIT_EXCEEDED = 3,        /* a limit of the device or of the caller's budget is too small */
    FOVEA_SIZE_OVERFLOW = 4,         /* a size does not fit 64 bits, or an index the kernels' index type */
    FOVEA_OUT_OF_HOST_MEMORY = 5,
    FOVEA_OUT_OF_DEVICE_MEMORY = 6,
    FOVEA_DEVICE_LOST = 7,           /* sticky: every later call with the context says so again */
    FOVEA_VULKAN_ERROR = 8,          /* FoveaDiag::vk_result holds the VkResult */
    FOVEA_ABI_MISMATCH = 9,          /* struct_size is 0, or the caller's struct is newer than this library */
    FOVEA_IO_ERROR = 10,             /* a file could not be read or written (libraries above this one) */
    FOVEA_CANCELLED = 11,            /* the caller's progress callback asked to stop (libraries above this one) */
    FOVEA_TIMEOUT = 12               /* a finite wait ran out (libraries above this one) */
} FoveaResult;

/* "invalid argument", ...; never null. */
FOVEA_API const char* foveaResultText(FoveaResult code);

/* Filled by a call that fails, if given; a call that succeeds leaves it alone. Owned by the caller, who sets
 * struct_size (with 0 nothing is filled in). Strings are cut to fit, always terminated. */
typedef struct FoveaDiag {
    uint32_t struct_size;
    FoveaResult code;
    int32_t vk_result;  /* the VkResult behind FOVEA_VULKAN_ERROR, else 0 */
    char field[48];     /* "dim_qk", "bindings[O].size", ... */
    char text[256];     /* "dim_qk is 0; it must be at least 1" */
} FoveaDiag;

/* All three or none. `allocate` returns null on failure; `alignment` is a power of two. Called only inside a Fovea call,
 * on the calling thread. A null FoveaHostAllocator pointer means malloc and free. */
typedef struct FoveaHostAllocator {
    void* user;
    void* (*allocate)(void* user, size_t size_bytes, size_t alignment);
    void (*release)(void* user, void* pointer, size_t size_bytes);
} FoveaHostAllocator;

/* ---- the problem: one attention call -------------------------------------------------------------------------------
 *
 *   q [B, Hq, Lq, D]   k [B, Hkv, Lkv, D]   v [B, Hkv, Lkv, Dv]   o [B, Hq, Lq, Dv]
 *
 * Order of operations, the same in every backend (softmax, scores and sums accumulate in float32):
 *
 *   score   = scale * dot(q_i, k_j)
 *   capped  = softcap > 0 ? softcap * tanh(score / softcap) : score
 *   masked  = capped + alibi_h * (j - p_i) + bias_ij, or -inf where the key is hidden
 *   weight  = exp(masked - lse_i),  lse_i = log(sum_j exp(masked) [+ exp(sink_h)])
 *   weight  = keep_ij ? weight / (1 - dropout_p) : 0          (only with dropout)
 *   o_i     = sum_j weight_ij * v_j
 *
 * Query i stands at key position p_i = i + offset, see FoveaAlign. Key j is hidden from query i if any of these says so:
 *   causal            j > p_i
 *   window            j < p_i - window_left   or   j > p_i + window_right
 *   kv length         j >= kv_length of the batch entry
 *   mask              mask_ij is zero, or j lies past the mask's last column
 *   bias              bias_ij is -inf, or j lies past the bias's last column
 *   block table       j's page is negative or not below page_count
 * A hidden key never influences a result, whatever its k and v hold (NaN and Inf included). A NaN in a key that is seen
 * reaches the rows that see it and no others.
 * A row that sees no key gives o = 0, weights = 0, lse = -inf (with a sink: lse = the sink). So does a query row
 * i >= q_length. Query head h reads key/value head h / (Hq / Hkv).
 */

typedef enum FoveaDtype { /* of a tensor's elements */
    FOVEA_F32 = 0, FOVEA_F16 = 1,
    FOVEA_U8 = 2,  /* boolean: zero is false */
    FOVEA_I32 = 3,
    FOVEA_BF16 = 4, /* bfloat16: the upper half of a float32 */
    /* The types of a quantized KV cache: only k and v of attention (Vulkan: flash, flash_coopmat and flash_coopmat2) and of
     * map tiles, and the caches of append, which rounds to nearest, and gather. Q8_0 and Q4_0 also linear's W. */
    FOVEA_F8_E4M3 = 5, /* 8-bit float of the OCP: up to 448, NaN, no infinity */
    FOVEA_F8_E5M2 = 6, /* 8-bit float of the OCP: up to 57344, the upper half of a float16 */
    FOVEA_Q8_0 = 7,    /* ggml's blocks of 32 numbers of a row: a float16 scale, 32 int8: 34 bytes */
    FOVEA_Q4_0 = 8,    /* the same with 4 bits: 18 bytes. Rows and strides are whole blocks; strides count numbers */
    FOVEA_Q4_K = 9, FOVEA_Q5_K = 10, FOVEA_Q6_K = 11, /* ggml's of 256 numbers, in 144, 176 and 210 bytes: only linear's W */
    /* Types of tensors in files, which no operation takes. Q4_1, Q5_0 and Q5_1: ggml's, 32 numbers in 20, 22 and 24 bytes. */
    FOVEA_BOOL = 12, FOVEA_I8 = 13, FOVEA_I16 = 14, FOVEA_I64 = 15, FOVEA_U16 = 16, FOVEA_U32 = 17, FOVEA_U64 = 18,
    FOVEA_F64 = 19, FOVEA_Q4_1 = 20, FOVEA_Q5_0 = 21, FOVEA_Q5_1 = 22,
    FOVEA_DTYPE_OTHER = 23 /* not known here: such a tensor of a file is listed, and its values cannot be read */
} FoveaDtype;

/* The key that query 0 is at; used by causal, window and ALiBi. A call with one of these whose len_q is not len_kv must
 * state its alignment: for a token after a KV cache it is BOTTOM_RIGHT. Two queries over five keys, causal (x: visible):
 *
 *   TOP_LEFT       BOTTOM_RIGHT   OFFSET, q_offset = 1
 *   x . . . .      x x x x .      x x . . .
 *   x x . . .      x x x x x      x x x . .
 */
typedef enum FoveaAlign {
    FOVEA_ALIGN_DEFAULT = 0,      /* not stated: offset = 0. Refused where it matters, see above */
    FOVEA_ALIGN_BOTTOM_RIGHT = 1, /* offset = kv_length - q_length of the batch entry: the last query sees the last key */
    FOVEA_ALIGN_OFFSET = 2,       /* offset = FoveaAttentionDesc::q_offset; may be negative */
    FOVEA_ALIGN_TOP_LEFT = 3      /* offset = 0. PyTorch's is_causal, and ONNX's without a cache */
} FoveaAlign;

enum {
    FOVEA_FLAG_CAUSAL = 1u << 0,        /* keys after the query's position are masked */
    FOVEA_FLAG_WINDOW = 1u << 1,        /* window_left and window_right count */
    FOVEA_FLAG_ALIBI = 1u << 2,         /* binding ALIBI: f32 [Hq], the slopes */
    FOVEA_FLAG_SINKS = 1u << 3,         /* binding SINKS: f32 [Hq], one more logit per row that carries no value */
    FOVEA_FLAG_BATCH_TABLE = 1u << 4,   /* binding BATCH_TABLE: FoveaBatchEntry [B] */
    FOVEA_FLAG_FIXED_SPLITS = 1u << 5   /* key splits depend on the shape alone, never on the device or the batch */
};

/* Which of the intermediate results are wanted. Asking for one never changes another. Matrices are f32, packed
 * [B, Hq, Lq, Lkv], also where q and k lie end to end or in pages. In `scores` and `capped` masked keys hold their value
 * all the same; keys at or past kv_length, keys whose page is not in the pool and rows at or past q_length hold 0. */
enum {
    FOVEA_OUTPUT_O = 1u << 0,
    FOVEA_OUTPUT_LSE = 1u << 1,       /* f32 [B, Hq, Lq]: lse_i above, before dropout */
    FOVEA_OUTPUT_SCORES = 1u << 2,
    FOVEA_OUTPUT_CAPPED = 1u << 3,
    FOVEA_OUTPUT_MASKED = 1u << 4,    /* -inf where hidden */
    FOVEA_OUTPUT_WEIGHTS = 1u << 5,   /* after dropout, if there is any */
    FOVEA_OUTPUT_ROW_STATS = 1u << 6  /* FoveaRowStats [B, Hq, Lq], of the weights before dropout */
};

/* Names of results and arguments at a plan's boundary, and index into the arrays of buffers of a run. A buffer begins
 * with the first element of its tensor, and may be larger than FoveaPlanInfo::binding_bytes; what is after them is left
 * alone. What is written must not overlap with any other buffer's part in use, but for FoveaRopeDesc in place. */
typedef enum FoveaBinding {
    FOVEA_BIND_Q = 0,
    FOVEA_BIND_K = 1,
    FOVEA_BIND_V = 2,
    FOVEA_BIND_O = 3,
    FOVEA_BIND_MASK = 4,
    FOVEA_BIND_BIAS = 5,
    FOVEA_BIND_KEEP = 6,
    FOVEA_BIND_ALIBI = 7,
    FOVEA_BIND_SINKS = 8,
    FOVEA_BIND_BATCH_TABLE = 9,
    FOVEA_BIND_BLOCK_TABLE = 10,
    FOVEA_BIND_LSE = 11,
    FOVEA_BIND_SCORES = 12,
    FOVEA_BIND_CAPPED = 13,
    FOVEA_BIND_MASKED = 14,
    FOVEA_BIND_WEIGHTS = 15,
    FOVEA_BIND_ROW_STATS = 16,
    /* operations other than attention */
    FOVEA_BIND_X = 17,         /* rope, linear, append, merge: input; gather: the cache */
    FOVEA_BIND_Y = 18,         /* rope, linear, gather, merge: output; append: the cache */
    FOVEA_BIND_WEIGHT = 19,    /* linear */
    FOVEA_BIND_COS = 20,       /* rope */
    FOVEA_BIND_SIN = 21,       /* rope */
    FOVEA_BIND_POSITIONS = 22, /* rope: I32 [B, L]; gather: I32 [B, position_heads, L] */
    FOVEA_BIND_TILE_MASS = 23, /* map tile: two 32-bit words, low first, [head_count, height, width] */
    FOVEA_BIND_TILE_MAX = 24,  /* map tile: F32 [head_count, height, width] */
    /* gradients of attention */
    FOVEA_BIND_DO = 25,        /* of o: input */
    FOVEA_BIND_DQ = 26,
    FOVEA_BIND_DK = 27,
    FOVEA_BIND_DV = 28,
    FOVEA_BIND_DBIAS = 29,
    FOVEA_BIND_DALIBI = 30,
    FOVEA_BIND_DSINKS = 31,
    FOVEA_BIND_DLSE = 32,      /* of lse: input */
    FOVEA_BIND_PART_LSE = 33,  /* merge: F32 [parts, B, H, L], input */
    /* 34 to 46 are kept for later bindings, so that arrays of FOVEA_BIND_COUNT keep their length */
    FOVEA_BIND_WORKSPACE = 47, /* only a FoveaDispatchBinding::source: runs take the workspace by a field of its own */
    FOVEA_BIND_COUNT = 48
} FoveaBinding;

/* Distance in elements between neighbours along one axis; the last axis is contiguous. All three zero: packed
 * [B, H, L, D], or [rows, H, D] where a batch lies end to end (packed_rows_q, packed_rows_kv). Other layouts by numbers,
 * all three of them: [B, L, H, D] is {L*H*D, D, H*D}. Along an axis of one (and the batch of packed rows) the number does
 * not count and may be 0: one head of [L, D] is {0, 0, D}. Along any other, 0 is refused beside strides that are set;
 * where all entries, heads or rows of an input are one and the same, FOVEA_BROADCAST says so: one key head for a whole
 * batch is {FOVEA_BROADCAST, FOVEA_BROADCAST, D}. No other number may be negative. In an output no two rows may overlap. */
enum { FOVEA_BROADCAST = -1 };
typedef struct FoveaStrides {
    int64_t batch, head, row;
} FoveaStrides;

/* A matrix over queries and keys: mask, bias or keep. batch, heads and rows are B, Hq and Lq, or 1, which broadcasts the
 * axis. keys is at most Lkv and never broadcast: the missing tail is hidden (mask, bias) or dropped (keep). Zero extents
 * mean: batch 1, heads 1, rows Lq, keys Lkv. Strides all zero: packed [batch, heads, rows, keys]. Row i is query i of
 * its batch entry, also where entries lie end to end. U8, F16 and BF16 matrices are read in 32-bit words: round the size
 * of their buffer up to a multiple of 4. */
typedef struct FoveaMatrixDesc {
    uint32_t present; /* 0 or 1. 0: there is none, and all else in this struct must be zero */
    FoveaDtype type;  /* mask, keep: FOVEA_U8. bias: FOVEA_F32, FOVEA_F16 or FOVEA_BF16 */
    uint32_t batch, heads;
    uint64_t rows, keys;
    FoveaStrides strides;
} FoveaMatrixDesc;

/* One batch entry of binding BATCH_TABLE. Values outside [0, limit] are clamped to it on use; the limits of the lengths
 * are len_q and len_kv. Starts count rows and are used only by packed problems (packed_rows_q, packed_rows_kv). There
 * rows of o that no entry holds are not written, and those of two entries must not overlap. */
typedef struct FoveaBatchEntry {
    int32_t q_start, q_length, kv_start, kv_length;
} FoveaBatchEntry;

/* One row of binding ROW_STATS. An empty row: 0, 0, 0xffffffff, 0. */
typedef struct FoveaRowStats {
    float max_weight;      /* the largest weight, before dropout; at most 1 */
    float entropy;         /* -sum w ln w over the keys, in nats, 0 ln 0 = 0 */
    uint32_t argmax_key;   /* the first key with the largest weight */
    uint32_t visible_keys; /* keys that are not hidden */
} FoveaRowStats;

typedef enum FoveaKernel { /* ways to compute attention, see docs/concepts/kernels.md */
    FOVEA_KERNEL_AUTO = 0,
    FOVEA_KERNEL_STAGED = 1,         /* scores, softmax, weighted sum: every intermediate can be had */
    FOVEA_KERNEL_FLASH = 2,          /* one pass, online softmax, memory linear in length */
    FOVEA_KERNEL_FLASH_COOPMAT = 3,  /* VK_KHR_cooperative_matrix */
    FOVEA_KERNEL_FLASH_COOPMAT2 = 4, /* VK_NV_cooperative_matrix2 */
    FOVEA_KERNEL_DECODE = 5,         /* few queries over many keys: keys are split, groups share each load. linear: few rows */
    FOVEA_KERNEL_PLAIN = 6,          /* plain loops in float32: the oracle of the fast CPU kernels */
    FOVEA_KERNEL_REFERENCE = 7       /* plain loops in float64: the oracle of everything */
} FoveaKernel;
enum { FOVEA_KERNEL_COUNT = FOVEA_KERNEL_REFERENCE + 1 }; /* kernels are numbered from 0 up to this */

/* "auto", "staged", "flash", "flash_coopmat", ...: as reasons, refusals and the programs' --kernel call it; "unknown"
 * for a number that is no kernel's. Never null; lives as long as the library. */
FOVEA_API const char* foveaKernelName(FoveaKernel kernel);

typedef enum FoveaPrecision { /* what products may be rounded to */
    FOVEA_PRECISION_F32 = 0,         /* products and sums in float32, whatever the storage */
    FOVEA_PRECISION_F16_PRODUCTS = 1, /* opt-in: factors of a product may be rounded to float16, sums stay float32 */
    FOVEA_PRECISION_BF16_PRODUCTS = 2 /* the same with bfloat16, whose largest finite number stands for larger ones */
} FoveaPrecision;

typedef struct FoveaAttentionDesc { /* one attention call */
    uint32_t struct_size;
    uint32_t flags;                    /* FOVEA_FLAG_* */
    FoveaDtype q_type, k_type, v_type, o_type; /* FOVEA_F32, FOVEA_F16 or FOVEA_BF16 each; k and v: cached types too */
    uint32_t batch;                    /* B >= 1 */
    uint32_t heads_q, heads_kv;        /* Hq a multiple of Hkv */
    uint32_t dim_qk, dim_v;            /* D and Dv >= 1; any value, not only multiples of 8 */
    uint32_t outputs;                  /* FOVEA_OUTPUT_*; 0 means O */
    uint64_t len_q, len_kv;            /* Lq, Lkv: the largest of the batch. 0 is legal: nothing to do, or empty rows */
    FoveaStrides q_strides, k_strides, v_strides, o_strides;
    float scale;                       /* 0: 1/sqrt(D). Negative is legal; |scale| is at most 2.3e38 */
    float softcap;                     /* 0: none. Else at least 2^-126 */
    FoveaAlign align;
    int32_t reserved0;                 /* must be 0 */
    int64_t q_offset;                  /* with FOVEA_ALIGN_OFFSET */
    int64_t window_left, window_right; /* with FOVEA_FLAG_WINDOW; -1: unbounded */
    FoveaMatrixDesc mask, bias, keep;
    float dropout_p;                   /* [0, 1). Without `keep`: Philox4x32-10, see below; 0: no dropout at all */
    uint32_t reserved1;                /* must be 0 */
    uint64_t dropout_seed, dropout_offset;
    uint64_t packed_rows_q;            /* > 0: q and o hold the batch end to end, [rows, H, D] or any strides; */
    uint64_t packed_rows_kv;           /*   entry b's rows start at its q_start / kv_start. strides.batch must be 0 */
    uint32_t page_size;                /* > 0: k and v are pools [page_count, Hkv, page_size, D]; strides.batch is the */
    uint32_t page_count;               /*   stride of a page. Key j of entry b is row j % page_size of page */
    uint64_t block_table_pages;        /*   block_table[b][j / page_size]; binding BLOCK_TABLE: I32 [B, block_table_pages] */
    FoveaPrecision precision;
    FoveaKernel kernel;                /* AUTO: chosen, with reasons */
    double max_slice_cost;             /* FLOPs that one slice may cost, see below. 0: from the device's class */
    uint64_t workspace_limit;          /* bytes. 0: 64 MiB */
    uint64_t first_query, first_key, first_batch_head; /* of the whole call whose dropout this part draws, see below */
} FoveaAttentionDesc;

/* max_slice_cost bounds FoveaPlanInfo::max_slice_flops, and that every slice of the plan. On Vulkan, where a watchdog may
 * wait, a call whose smallest slice costs more is refused (FOVEA_LIMIT_EXCEEDED). On the CPU slices are then as small as
 * the kernel can cut them (rows, or the queries of one key/value head), and max_slice_flops says how much that is. */

/* Dropout without an explicit keep mask: key j of query i in head h of batch entry b is kept if
 *   philox4x32_10(counter = {(first_key + j) / 4, first_query + i, first_batch_head + b * Hq + h, low32(offset)},
 *                 key = seed ^ (high32(offset) << 32))[j % 4] >= uint32(dropout_p * 2^32, rounded down)
 * so any backend, tile or order gives the same mask, and a call over a part of another's queries, keys, heads or entries
 * its share of it: the three say where the part begins (first_key a multiple of 4; sums up to 2^30; refused where nothing
 * is drawn). Causal, window and ALiBi of a part: FOVEA_ALIGN_OFFSET, q_offset = the whole's + first_query - first_key. */

/* 1 where that mask keeps the weight, 0 where it drops it; batch_head is b * Hq + h. For a program that shows the mask.
 * dropout_p of 0 or less keeps all; of 1 or more, or NaN, drops all. */
FOVEA_API uint32_t foveaDropoutKeeps(float dropout_p, uint64_t seed, uint64_t offset, uint64_t batch_head, uint64_t query,
                                     uint64_t key);

/* IEEE 754 binary16, as the engine stores it: to the nearest, ties to even; beyond 65519 to infinity. And back, exactly. */
FOVEA_API uint16_t foveaFloatToHalf(float value);
FOVEA_API float foveaHalfToFloat(uint16_t half);
/* The same for bfloat16, which has the range of float32 and 8 significant bits. */
FOVEA_API uint16_t foveaFloatToBfloat(float value);
FOVEA_API float foveaBfloatToFloat(uint16_t bfloat);

/* ---- gradients ------------------------------------------------------------------------------------------------------
 *
 * Gradients of one attention call: what a number that depends on o (and lse) changes by with q, k, v and, on request,
 * bias, slopes and sinks. The weights are computed again from q, k and lse (Dao et al., FlashAttention, 2022): nothing
 * of the size Lq x Lkv is kept. With O and LSE as the forward call left them and DO the gradient of o,
 *
 *   weight_ij  = exp(masked_ij - lse_i), 0 where the key is hidden             before dropout
 *   r_ij       = keep_ij ? 1 / (1 - dropout_p) : 0                             1 without dropout
 *   delta_i    = sum_d do_id o_id - dlse_i
 *   dv_j       = sum_i weight_ij r_ij do_i                                     over all heads that read head h_kv
 *   dmasked_ij = weight_ij (r_ij dot(do_i, v_j) - delta_i)                     dbias before its broadcast axes are summed
 *   dscore_ij  = dmasked_ij (softcap > 0 ? 1 - (capped_ij / softcap)^2 : 1)
 *   dq_i       = scale sum_j dscore_ij k_j           dk_j = scale sum_i dscore_ij q_i
 *   dalibi_h   = sum_ij dmasked_ij (j - p_i)         dsinks_h = - sum_i exp(sink_h - lse_i) delta_i
 *
 * A row that sees no key gives nothing but dlse_i to dsinks_h, whatever its o, do and dlse hold; nothing is read of a
 * query row i >= q_length. Zeros are written for such rows of dq, and to dk and dv of keys at or past kv_length; where
 * entries lie end to end (packed_rows_q, packed_rows_kv), rows that none of them holds are not written, and the rows of
 * two entries must not overlap. A NaN in a key that is seen reaches dq of the rows that see it and dk and dv of the keys
 * that those rows see, and no others.
 * Every sum has one order. So the same plan gives the same bits for any number of threads and slices in any order, and
 * on one device, so does a batch entry alone as in any batch (but for what is summed over the batch).
 * Splitting the keys over several calls and merging by lse needs no more than this: each part is given the merged O and
 * LSE and returns its share of dq, and its own dk and dv. */
enum {
    FOVEA_GRAD_Q = 1u << 0,     /* binding DQ: like q, with types and strides below */
    FOVEA_GRAD_K = 1u << 1,     /* binding DK */
    FOVEA_GRAD_V = 1u << 2,     /* binding DV */
    FOVEA_GRAD_BIAS = 1u << 3,  /* binding DBIAS: f32, packed, of the bias's own extents [batch, heads, rows, keys] */
    FOVEA_GRAD_ALIBI = 1u << 4, /* binding DALIBI: f32 [Hq] */
    FOVEA_GRAD_SINKS = 1u << 5  /* binding DSINKS: f32 [Hq] */
};

/* The description of the forward call comes beside it and says what it says there; its outputs and its kernel are
 * ignored, and max_slice_cost and workspace_limit are of this plan. Bindings O and LSE are results of that call and
 * inputs here, as are Q, K, V and what its masks need; SINKS is needed for dsinks alone, since lse has the sinks in it.
 * Refused by name: paged or compressed keys and values (FOVEA_UNSUPPORTED); a gradient of a bias, of slopes or of sinks
 * that the call has not; rows of a gradient that overlap. */
typedef struct FoveaAttentionBackwardDesc {
    uint32_t struct_size;
    uint32_t gradients;           /* FOVEA_GRAD_*; 0 means Q, K and V */
    uint32_t accumulate;          /* FOVEA_GRAD_*, of `gradients`: added to what the buffer holds, then rounded */
    uint32_t has_lse_gradient;    /* 0 or 1. 1: binding DLSE: f32 [B, Hq, Lq], the gradient of lse; 0: it is zero */
    FoveaDtype do_type, dq_type, dk_type, dv_type; /* FOVEA_F32, FOVEA_F16 or FOVEA_BF16 each */
    FoveaStrides do_strides, dq_strides, dk_strides, dv_strides; /* all zero: packed. do may be broadcast, as o may */
    FoveaKernel kernel;           /* AUTO, FLASH; on the CPU also PLAIN and REFERENCE */
    uint32_t reserved0;           /* must be 0 */
} FoveaAttentionBackwardDesc;

/* ---- other operations ---------------------------------------------------------------------------------------------- */

/* Rotary embedding (Su et al., RoFormer, 2021) of X [B, H, L, D] into Y. In place, Y must be exactly the memory of X, with
 * the same type and strides.
 * The first `rotary_dim` elements of a row are rotated in pairs, the rest copied: pair n is (n, n + rotary_dim/2), or
 * (2n, 2n + 1) when interleaved;  y1 = cos*x1 - sin*x2,  y2 = sin*x1 + cos*x2.  COS and SIN are f32: tables
 * [table_rows, rotary_dim/2] indexed by POSITIONS, or without positions [B, L, rotary_dim/2]. */
typedef struct FoveaRopeDesc {
    uint32_t struct_size;
    FoveaDtype x_type, y_type;
    uint32_t batch, heads, dim;
    uint64_t len;
    FoveaStrides x_strides, y_strides;
    uint32_t rotary_dim;    /* even; 0: dim */
    uint32_t interleaved;   /* 0 or 1 */
    uint64_t table_rows;    /* 0: no positions. A position outside [0, table_rows) is clamped into it */
    FoveaKernel kernel;     /* AUTO; on the CPU also PLAIN and REFERENCE */
    uint32_t reserved0;     /* must be 0 */
} FoveaRopeDesc;

/* Y [rows, n_out] = X [rows, n_in] * W + bias. W is [n_out, n_in] (nn.Linear) or, transposed, [n_in, n_out] (Conv1D).
 * Binding WEIGHT is W (as [n_out, n_in] also of blocks), BIAS f32 [n_out] if has_bias. Strides in elements; 0: packed.
 * The CPU's kernel DECODE reads each weight once, as it is stored: AUTO takes it for at most 4 rows of float32 X and Y where
 * W is [n_out, n_in] and not float32. Its sums have an order of their own, by which their last bits may differ. */
typedef struct FoveaLinearDesc {
    uint32_t struct_size;
    FoveaDtype x_type, w_type, y_type;
    uint32_t n_in, n_out;
    uint32_t has_bias;
    uint32_t weight_is_in_out;
    uint64_t rows;
    int64_t x_row_stride, y_row_stride, w_row_stride;
    FoveaKernel kernel;     /* AUTO; on the CPU also DECODE, PLAIN and REFERENCE */
    FoveaPrecision precision; /* what AUTO may do */
} FoveaLinearDesc;

/* Copies new rows X [B, H, L, D] after the rows that a cache Y already holds: row i of entry b goes to row
 * kv_length(b) + i, where kv_length comes from BATCH_TABLE and counts the rows held *before* the call (without a table:
 * `first_row`, and first_row + len must be within the capacity). The cache is [B, H, capacity, D] by strides, or paged as
 * in FoveaAttentionDesc. Rows that a table places past the capacity, and those of pages outside the pool, are not written.
 * Two entries must not write the same row of the same page. 8-bit floats saturate; a block that holds no finite number or more than 127 * 65504 (8 * 65504) reads as NaN,
 * as do infinities in E4M3. */
typedef struct FoveaAppendDesc {
    uint32_t struct_size;
    FoveaDtype x_type, y_type;
    uint32_t batch, heads, dim;
    uint64_t len;
    uint64_t capacity;            /* rows of the cache for each entry; paged: block_table_pages * page_size */
    uint64_t first_row;           /* rows held; 0 with has_batch_table */
    FoveaStrides x_strides, y_strides;
    uint32_t has_batch_table;
    uint32_t page_size, page_count;
    uint32_t reserved0;           /* must be 0 */
    uint64_t block_table_pages;
} FoveaAppendDesc;

/* Compacts a cache by a list of what stays (H2O, SnapKV): row i of Y [B, H, L, D] becomes row POSITIONS[b, h, i] of the
 * cache X, [B, H, capacity, D] by strides or paged as in FoveaAppendDesc. A number that is no row, and one on a page outside
 * the pool, makes a row of zeros: -1 fills shorter lists up. Y must not overlap X. Equal types move their bits. */
typedef struct FoveaGatherDesc {
    uint32_t struct_size;
    FoveaDtype x_type, y_type;
    uint32_t batch, heads, dim;
    uint64_t len;                 /* rows of Y for each entry and head */
    uint64_t capacity;            /* rows of X for each entry; paged: at most block_table_pages * page_size */
    FoveaStrides x_strides, y_strides;
    uint32_t position_heads;      /* heads: a list for each; 0 or 1: one for all heads of an entry */
    uint32_t page_size, page_count;
    uint32_t reserved0;           /* must be 0 */
    uint64_t block_table_pages;
} FoveaGatherDesc;

/* One result from the results of the same queries over parts of the keys: shards of a context, a shared prefix and what
 * follows it, a cache that lies half here and half there. X [parts, B, H, L, D] holds each part's o, PART_LSE its
 * log-sum-exp (what an attention call writes to binding LSE: the natural logarithm). Y [B, H, L, D] and LSE [B, H, L]
 * receive what one call over all keys would give, but for rounding; of parts a and b
 *
 *   lse = log(exp(lse_a) + exp(lse_b))      y = exp(lse_a - lse) * o_a + exp(lse_b - lse) * o_b
 *
 * in float32, always with the larger lse taken out first. Parts are merged by one fixed tree, neighbours first: 0 and 1,
 * 2 and 3, then their results, an odd one at the end as it is. So the bits depend on the parts alone: not on slices, nor on
 * threads, nor on who computed which part. A row that saw no key (lse -inf) leaves the other part's bits as they are,
 * and its o is not read; of none but such rows y is 0 and lse -inf. NaN or +inf in lse makes its row of y and lse NaN.
 * Every key must stand in one part alone. A sink counts like a key: give it to one part only. */
enum { FOVEA_MERGE_MAX_PARTS = 4096 };
typedef struct FoveaMergeDesc {
    uint32_t struct_size;
    FoveaDtype x_type, y_type;
    FoveaKernel kernel;                /* AUTO; on the CPU also PLAIN and REFERENCE */
    uint32_t parts, batch, heads, dim; /* dim: of v */
    uint64_t len;
    FoveaStrides x_strides, y_strides;
    int64_t x_part_stride;             /* elements between parts; 0: each follows the last element of the one before */
} FoveaMergeDesc;

/* A picture of a rectangle of the attention weights, made from q, k and lse without the matrix itself: weights of query
 * rows [first_row, first_row + row_count) and keys [first_key, first_key + key_count), for each of head_count query
 * heads of one batch entry, reduced to height x width pixels. The description of the forward call says what the weights
 * are (masks, positions, dropout, groups, lengths, packing, paging, types), and how much a slice and the workspace may
 * take; binding LSE is its result and an input here. What bears on no weight beside lse (v, o, outputs, sinks) is
 * ignored, together with its bindings, and so is `kernel` but for PLAIN and REFERENCE.
 *
 * A cell's weight is exp(masked - lse_i), times 1 / (1 - dropout_p) where dropout keeps it and 0 where not; 0 where the
 * key is hidden. Pixel (x, y) holds the cells of rows and keys
 *   first_row + [y * row_count / height, (y + 1) * row_count / height)
 *   first_key + [x * key_count / width,  (x + 1) * key_count / width)        (whole-numbered division, never empty)
 * lse is rounded to float32, which is a relative error of |lse| * 2^-24 in every weight of its row.
 * The rectangle may reach past Lq and Lkv: cells out there weigh 0, so that a pyramid's tiles are all of one size.
 *
 * TILE_MASS is the sum of the pixel's weights in units of FOVEA_TILE_UNIT, an unsigned 64-bit whole number: each weight
 * is rounded down to whole units, and whole numbers add up to the same in any order. On one backend and device a cell
 * has the same units in every tile, slice and thread, so a pixel is exactly the sum of the pixels that its cells make
 * up in a finer tile. FOVEA_TILE_INVALID says that some weight is no number, or above 2 before dropout's factor (lse is
 * not that of this problem, or an input is not finite), or that the sum reaches 2^63 units; what holds such a pixel has
 * it too. TILE_MAX is the largest of the pixel's weights, NaN where some weight is no number or above 2 like that.
 *
 * sampled = 1: a preview at the cost of one cell for each pixel. Only the cell in the middle counts, the one at
 * begin + (end - begin) / 2 of either range; its weight, as in the exact tile, is the pixel's mass and maximum. */
enum {
    FOVEA_TILE_MASS = 1u << 0, /* binding TILE_MASS */
    FOVEA_TILE_MAX = 1u << 1   /* binding TILE_MAX */
};
#define FOVEA_TILE_UNIT (1.0 / 1099511627776.0) /* 2^-40 */
#define FOVEA_TILE_INVALID 0xffffffffffffffffull
enum { FOVEA_TILE_MAX_SIDE = 16384 }; /* pixels */

typedef struct FoveaMapTileDesc { /* one tile of the map of all weights */
    uint32_t struct_size;
    uint32_t batch;                  /* the entry, below B */
    uint32_t first_head, head_count; /* query heads; head_count 0: all from first_head on */
    uint64_t first_row, row_count;   /* first_row < Lq; row_count 0: to Lq */
    uint64_t first_key, key_count;   /* first_key < Lkv; key_count 0: to Lkv */
    uint32_t width, height;          /* at most key_count, row_count and FOVEA_TILE_MAX_SIDE; 0: one cell to a pixel */
    uint32_t outputs;                /* FOVEA_TILE_*; 0 means MASS */
    uint32_t sampled;                /* 0 or 1 */
} FoveaMapTileDesc;

/* ---- devices as facts ---------------------------------------------------------------------------------------------- */

typedef enum FoveaBackend { FOVEA_BACKEND_CPU = 0, FOVEA_BACKEND_VULKAN = 1 } FoveaBackend; /* what runs a plan */

typedef enum FoveaDeviceClass { /* decides tiles, and a slice's budget where none is given */
    FOVEA_CLASS_CPU = 0, /* a software Vulkan driver, or no Vulkan */
    FOVEA_CLASS_INTEGRATED = 1, FOVEA_CLASS_DISCRETE = 2, FOVEA_CLASS_VIRTUAL = 3
} FoveaDeviceClass;

enum {
    FOVEA_FEATURE_F16_STORAGE = 1u << 0,     /* storageBuffer16BitAccess */
    FOVEA_FEATURE_F16_ARITHMETIC = 1u << 1,  /* shaderFloat16 */
    FOVEA_FEATURE_SUBGROUP_ARITHMETIC = 1u << 2, FOVEA_FEATURE_SUBGROUP_SHUFFLE = 1u << 3,
    FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL = 1u << 4, /* with computeFullSubgroups */
    FOVEA_FEATURE_COOPMAT = 1u << 5,
    FOVEA_FEATURE_COOPMAT2 = 1u << 6, /* VK_NV_cooperative_matrix2: flexible sizes, reductions, conversions, per-element */
    FOVEA_FEATURE_PUSH_DESCRIPTORS = 1u << 7, FOVEA_FEATURE_TIMESTAMPS = 1u << 8,
    FOVEA_FEATURE_DEVICE_ATOMICS = 1u << 9,  /* always, unless vulkanMemoryModel was enabled without its DeviceScope */
    FOVEA_FEATURE_BF16_PRODUCTS = 1u << 10   /* CPU: AVX512-BF16. Vulkan: COOPMAT's shape with factors in bfloat16 */
};

/* How the Vulkan kernel `flash` cuts its work: a choice that was measured on the device. All zero: the planner's own. */
typedef struct FoveaFlashTile {
    uint32_t rows;         /* 1 to 8: query rows of a workgroup */
    uint32_t threads;      /* 8, 16 or 32: each holds four keys of a block */
    uint32_t column_quads; /* 1 or 2: value columns of a thread, in fours */
} FoveaFlashTile;

/* Calls that tiles are measured for: 3 * rows + columns, where rows is 0 for a single query row of a key/value head
 * (queries times heads of the group), 1 for up to four, 2 for more, and columns 0 for dim_v up to 64, 1 to 128, 2 above. */
enum { FOVEA_TILE_CLASS_COUNT = 9 };

/* Whether `flash` first makes a map of which blocks of a mask or bias are hidden and which clear. Never changes a result. */
typedef enum FoveaMaskMap {
    FOVEA_MASK_MAP_AUTO = 0,  /* where it is likely to pay */
    FOVEA_MASK_MAP_NEVER = 1,
    FOVEA_MASK_MAP_ALWAYS = 2 /* where there is a mask or bias at all */
} FoveaMaskMap;

/* All that the planner knows of a device. Filled by foveaCpuFacts or foveaContextFacts, or by hand for a host that
 * dispatches by itself (foveaGetDispatches) and in tests. Bytes and counts. */
typedef struct FoveaDeviceFacts {
    uint32_t struct_size;
    FoveaBackend backend;
    FoveaDeviceClass device_class;
    uint32_t features; /* FOVEA_FEATURE_* */
    /* Vulkan */
    uint32_t max_workgroup_invocations, max_shared_bytes, max_push_bytes;
    uint32_t max_workgroup_count[3];
    uint32_t subgroup_size, min_subgroup_size, max_subgroup_size; /* powers of two up to 128; 0: unknown */
    uint32_t storage_offset_alignment; /* a power of two up to 256 */
    uint64_t max_storage_range;        /* below 2^32, as in Vulkan */
    uint32_t core_count;              /* compute units; 0: unknown */
    uint32_t coopmat_m, coopmat_n, coopmat_k; /* the f16 x f16 -> f32 shape to use; 0: none */
    uint32_t vendor_id;
    /* CPU */
    uint32_t cpu_threads;             /* workers that the host lends, up to 2^16; 0 counts as 1 */
    uint32_t cpu_target;              /* an id of the instruction set in use, see foveaCpuTargetName */
    uint64_t l1_bytes, l2_bytes;      /* data caches of one core; 0: unknown */
    /* Vulkan, with FOVEA_FEATURE_COOPMAT2: f16 x f16 -> f32 of flexible dimensions */
    uint32_t coopmat2_m, coopmat2_n, coopmat2_k; /* sides of a matrix are multiples of these; 0: none */
    uint32_t coopmat2_threads;        /* of the workgroup that shares a matrix; 0: a subgroup has its own */
    uint32_t coopmat2_max_side;
    uint32_t coopmat2_reserved_bytes; /* of shared memory, taken by the driver where a workgroup shares a matrix */
    /* Vulkan: what was measured on the device, see fovea::Tuning and `./dev bench tune`. Tiles are left aside with
     * FOVEA_FLAG_FIXED_SPLITS, where results must not depend on the device. */
    FoveaFlashTile flash_tiles[FOVEA_TILE_CLASS_COUNT];
    FoveaMaskMap mask_map;
    /* Vulkan */
    uint32_t features_not_enabled;    /* FOVEA_FEATURE_* that the device has and its host left off: for words of reasons */
    uint32_t max_storage_buffers;     /* that one shader may bind, by every limit of the device that bounds them (of the */
                                      /*   stage, its resources, a set, a push); 0: unknown; no plan binds more than 8 */
    uint32_t max_workgroup_subgroups; /* of a pinned size, maxComputeWorkgroupSubgroups; 0: unknown, and not checked */
    FoveaKernel forced_kernel;        /* AUTO: each call's own; PLAIN or REFERENCE: of every call that may name a kernel */
    double slice_cost;                /* Vulkan: FLOP that the device was measured to do in a short time; 0: not measured. */
                                      /*   Sizes slices of attention, its gradients and map tiles whose max_slice_cost is 0; */
                                      /*   never refuses a call or changes its kernel or result */
} FoveaDeviceFacts;

/* Facts of the processor that runs this call, for `threads` workers. */
FOVEA_API FoveaResult foveaCpuFacts(uint32_t threads, FoveaDeviceFacts* out, FoveaDiag* diag);
/* "AVX2", "SSE4", "WASM", ...; never null. */
FOVEA_API const char* foveaCpuTargetName(uint32_t cpu_target);

/* ---- plans --------------------------------------------------------------------------------------------------------- */

/* Immutable after creation (foveaCompilePlan is part of creation). */
typedef struct FoveaPlan_T* FoveaPlan;

/* Is the description meaningful, and can a device with these facts (null: any) run it? Allocates nothing. */
FOVEA_API FoveaResult foveaCheckAttention(const FoveaDeviceFacts* facts, const FoveaAttentionDesc* desc, FoveaDiag* diag);

/* Pure functions of their arguments: the same facts and description give the same plan. The arguments are copied. */
FOVEA_API FoveaResult foveaPlanAttention(const FoveaDeviceFacts* facts, const FoveaAttentionDesc* desc,
                                         const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
FOVEA_API FoveaResult foveaPlanRope(const FoveaDeviceFacts* facts, const FoveaRopeDesc* desc,
                                    const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
FOVEA_API FoveaResult foveaPlanLinear(const FoveaDeviceFacts* facts, const FoveaLinearDesc* desc,
                                      const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
FOVEA_API FoveaResult foveaPlanAppend(const FoveaDeviceFacts* facts, const FoveaAppendDesc* desc,
                                      const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
FOVEA_API FoveaResult foveaPlanGather(const FoveaDeviceFacts* facts, const FoveaGatherDesc* desc,
                                      const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
FOVEA_API FoveaResult foveaPlanMerge(const FoveaDeviceFacts* facts, const FoveaMergeDesc* desc,
                                     const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
/* Gradients of the attention call `forward`. */
FOVEA_API FoveaResult foveaPlanAttentionBackward(const FoveaDeviceFacts* facts, const FoveaAttentionDesc* forward,
                                                 const FoveaAttentionBackwardDesc* backward,
                                                 const FoveaHostAllocator* allocator, FoveaPlan* out, FoveaDiag* diag);
/* Slices split the tile's pixels, never a pixel. */
FOVEA_API FoveaResult foveaPlanMapTile(const FoveaDeviceFacts* facts, const FoveaAttentionDesc* attention,
                                       const FoveaMapTileDesc* tile, const FoveaHostAllocator* allocator, FoveaPlan* out,
                                       FoveaDiag* diag);
/* Null is ignored. Command buffers that recorded the plan must have finished. */
FOVEA_API void foveaDestroyPlan(FoveaPlan plan);

typedef struct FoveaPlanInfo { /* what a host must know to run a plan */
    uint32_t struct_size;
    FoveaBackend backend;
    FoveaKernel kernel;
    uint32_t dispatches_per_slice;       /* at most */
    uint64_t binding_mask;               /* bit i: binding i must be given; others: null or size 0, but see ignored_mask */
    uint64_t output_mask;                /* bit i: binding i is written */
    uint64_t binding_bytes[FOVEA_BIND_COUNT]; /* smallest size of each buffer that is needed */
    uint64_t workspace_bytes, workspace_alignment;
    uint64_t slice_count;                /* at least 1 unless there is nothing to do; running 0 slices is legal */
    uint32_t slices_share_workspace;     /* 1: a barrier (compute write -> compute read|write) between slices */
    uint32_t reserved0;
    double flops;                        /* 2*(D+Dv) for each visited (query, key) pair; of a map tile 2*D; of gradients
                                            4*D+2*Dv for dq, 4*(D+Dv) for dk and dv, 2*(D+Dv) each for dbias, dalibi;
                                            2*Dv for each query row of dsinks */
    double max_slice_flops;              /* no slice costs more */
    double visited_pairs, total_pairs;   /* (query, key) pairs that are computed, and B*Hq*Lq*Lkv; a tile's */
    char reason[256];                    /* which kernel and why, and why not a faster one */
    /* Bytes of each tensor itself, on every backend the same. binding_bytes is at least that: a device that reads or
     * writes in 32-bit words needs a buffer of whole ones. Copies between host and device are of this size. */
    uint64_t tensor_bytes[FOVEA_BIND_COUNT];
    uint64_t ignored_mask; /* bit i: binding i may be given all the same (a map tile takes those of its call) */
} FoveaPlanInfo;
FOVEA_API FoveaResult foveaGetPlanInfo(FoveaPlan plan, FoveaPlanInfo* info, FoveaDiag* diag);

/* The plan in words, lines ended by \n: kernel, reasons, tiles, slices, workspace; the call as it was read (where query 0
 * stands among the keys, strides, what is one for a whole batch or all heads); bindings. Writes at most `capacity`
 * bytes with the terminator; returns the bytes that the whole text needs. */
FOVEA_API size_t foveaExplainPlan(FoveaPlan plan, char* text, size_t capacity);

/* ---- plans as data: for hosts that dispatch by themselves ------------------------------------------------------------ */

enum { FOVEA_MAX_DISPATCH_BINDINGS = 16, FOVEA_MAX_SPEC_CONSTANTS = 16, FOVEA_MAX_PUSH_WORDS = 32 }; /* of FoveaDispatch */

typedef struct FoveaDispatchBinding { /* a range of a buffer that a shader sees */
    uint32_t slot;    /* binding number in set 0 of the shader; each stands once in a dispatch */
    uint32_t source;  /* FoveaBinding; FOVEA_BIND_WORKSPACE for the workspace */
    uint32_t written; /* 0: only read */
    uint32_t reserved0;
    uint64_t offset, size; /* bytes within that buffer; offset is a multiple of storage_offset_alignment */
} FoveaDispatchBinding;

typedef struct FoveaDispatch { /* one vkCmdDispatch and all that it needs */
    uint32_t shader;           /* index for foveaShaderName and foveaShaderCode */
    uint32_t subgroup_size;    /* full subgroups of so many, required where min and max of the facts differ; 0: any */
    uint32_t spec_count, push_words, binding_count;
    uint32_t barrier_before;   /* 1: needs the writes of the dispatches before it in this slice */
    uint32_t groups[3];
    uint32_t spec[FOVEA_MAX_SPEC_CONSTANTS]; /* constant ids 0 .. spec_count-1 */
    uint32_t push[FOVEA_MAX_PUSH_WORDS];
    FoveaDispatchBinding bindings[FOVEA_MAX_DISPATCH_BINDINGS];
} FoveaDispatch;

/* The dispatches of one slice of a Vulkan plan, in order. *count: in the room of `out`, out the number written.
 * FOVEA_LIMIT_EXCEEDED if there is too little room (PlanInfo::dispatches_per_slice is enough). */
FOVEA_API FoveaResult foveaGetDispatches(FoveaPlan plan, uint64_t slice, FoveaDispatch* out, uint32_t* count, FoveaDiag* diag);
/* Writes a dispatch's SPIR-V, with the buffers of its slots and no others, by `shader`, `spec` and slots alone: `main`, set 0,
 * push constants from byte 0. *word_count: in the room, out the words; `words` null: the room needed, more than the words. */
FOVEA_API FoveaResult foveaDispatchCode(const FoveaDispatch* dispatch, uint32_t* words, size_t* word_count, FoveaDiag* diag);
/* For tools: a module as compiled, with every call's buffers, and for logs its name; null and "unknown" past the last. */
FOVEA_API const uint32_t* foveaShaderCode(uint32_t shader, size_t* word_count);
FOVEA_API const char* foveaShaderName(uint32_t shader);

/* ---- the CPU backend --------------------------------------------------------------------------------------------------- */

/* Threads are lent by the host: `run` calls task(arg, i, worker) once for each i < count, on any threads, in any order,
 * and returns when all are done; no two calls that overlap in time share a worker index, and worker < worker_count.
 * Results do not depend on the number of workers, bit for bit. */
typedef void (*FoveaTask)(void* arg, uint32_t index, uint32_t worker);
typedef struct FoveaParallel {
    void* user;
    void (*run)(void* user, uint32_t count, FoveaTask task, void* arg);
    uint32_t worker_count;
} FoveaParallel;

typedef struct FoveaHostBuffer { /* memory of the host */
    void* data;        /* aligned to 4 bytes (tensors of 16 bits, but for a bias: 2). Inputs are only read */
    uint64_t size_bytes;
} FoveaHostBuffer;

typedef struct FoveaCpuRun { /* one foveaRunCpu */
    uint32_t struct_size;
    uint32_t binding_count;          /* length of `bindings`, indexed by FoveaBinding */
    const FoveaHostBuffer* bindings;
    FoveaHostBuffer workspace;       /* PlanInfo::workspace_bytes, aligned to workspace_alignment */
    const FoveaParallel* parallel;   /* null: all on the calling thread. worker_count at most the facts' cpu_threads */
    uint64_t first_slice, slice_count; /* slice_count 0: all from first_slice on */
} FoveaCpuRun;

/* Runs slices of a CPU plan now; returns when they are done. Allocates nothing. Checks every binding before the first
 * write. */
FOVEA_API FoveaResult foveaRunCpu(FoveaPlan plan, const FoveaCpuRun* run, FoveaDiag* diag);

/* ---- initialisers ----------------------------------------------------------------------------------------------------
 *
 * One for each struct above that begins with struct_size: that set, all else zero, which is "the default" in every field.
 *
 *     FoveaDiag diag = foveaDiag();
 *     FoveaAttentionDesc call = foveaAttentionDesc();    (batch, heads, lengths and dims must be filled in)
 *
 * They are compiled into the caller, so that struct_size is the size that the caller knows. */
#define FOVEA_INITIALISER(Struct, name) \
    static inline Struct name(void) {   \
        Struct zero;                    \
        memset(&zero, 0, sizeof zero);  \
        zero.struct_size = sizeof zero; \
        return zero;                    \
    }
FOVEA_INITIALISER(FoveaDiag, foveaDiag)
FOVEA_INITIALISER(FoveaAttentionDesc, foveaAttentionDesc)
FOVEA_INITIALISER(FoveaAttentionBackwardDesc, foveaAttentionBackwardDesc)
FOVEA_INITIALISER(FoveaRopeDesc, foveaRopeDesc)
FOVEA_INITIALISER(FoveaLinearDesc, foveaLinearDesc)
FOVEA_INITIALISER(FoveaAppendDesc, foveaAppendDesc)
FOVEA_INITIALISER(FoveaGatherDesc, foveaGatherDesc)
FOVEA_INITIALISER(FoveaMergeDesc, foveaMergeDesc)
FOVEA_INITIALISER(FoveaMapTileDesc, foveaMapTileDesc)
FOVEA_INITIALISER(FoveaDeviceFacts, foveaDeviceFacts)
FOVEA_INITIALISER(FoveaPlanInfo, foveaPlanInfo)
FOVEA_INITIALISER(FoveaCpuRun, foveaCpuRun)

/* ---- examples ------------------------------------------------------------------------------------------------------
 *
 * The indented lines are C, compiled and run by the test consumer.header_examples as they stand here. Tensors are f32 and
 * packed; `facts` comes from foveaCpuFacts. On Vulkan the descriptions are the same. */

/* Example: run a plan on the CPU and free it. Used by the others.
 *
 *     static FoveaResult run_once(FoveaPlan plan, const FoveaHostBuffer* bindings, FoveaDiag* diag) {
 *         FoveaPlanInfo info = {.struct_size = sizeof info};
 *         FoveaCpuRun run = {.struct_size = sizeof run, .binding_count = FOVEA_BIND_COUNT, .bindings = bindings};
 *         char* memory = NULL;
 *         FoveaResult result = foveaGetPlanInfo(plan, &info, diag);
 *         if (result == FOVEA_OK && info.workspace_bytes > 0) {
 *             memory = malloc(info.workspace_bytes + info.workspace_alignment);
 *             if (!memory) result = FOVEA_OUT_OF_HOST_MEMORY;
 *             else run.workspace.data = memory + (info.workspace_alignment - (uintptr_t)memory % info.workspace_alignment);
 *             run.workspace.size_bytes = info.workspace_bytes;
 *         }
 *         if (result == FOVEA_OK) result = foveaRunCpu(plan, &run, diag);
 *         free(memory);
 *         foveaDestroyPlan(plan);
 *         return result;
 *     }
 *
 *     // Appends x to the cache y, as `append` says; its tables are null unless it asks for them.
 *     static FoveaResult append_rows(const FoveaDeviceFacts* facts, const FoveaAppendDesc* append, FoveaHostBuffer x,
 *                                    FoveaHostBuffer y, FoveaHostBuffer batch_table, FoveaHostBuffer block_table,
 *                                    FoveaDiag* diag) {
 *         FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
 *         FoveaPlan plan = NULL;
 *         FoveaResult result = foveaPlanAppend(facts, append, NULL, &plan, diag);
 *         if (result != FOVEA_OK) return result;
 *         bindings[FOVEA_BIND_X] = x;
 *         bindings[FOVEA_BIND_Y] = y;
 *         bindings[FOVEA_BIND_BATCH_TABLE] = batch_table;
 *         bindings[FOVEA_BIND_BLOCK_TABLE] = block_table;
 *         return run_once(plan, bindings, diag);
 *     }
 */

/* Example: one call. q and o are [heads, queries, dim], k and v [heads_kv, keys, dim], heads a multiple of heads_kv.
 * `align` is FOVEA_ALIGN_BOTTOM_RIGHT where the queries are the last tokens, FOVEA_ALIGN_TOP_LEFT for PyTorch's is_causal.
 * sinks [heads]: one logit more for each head, which takes its share of the weights and carries no value; null: none.
 *
 *     static FoveaResult attend_once(const FoveaDeviceFacts* facts, uint32_t heads, uint32_t heads_kv, uint32_t dim,
 *                                    uint64_t queries, uint64_t keys, FoveaAlign align, float* sinks, float* q,
 *                                    float* k, float* v, float* o, FoveaDiag* diag) {
 *         const uint64_t row = dim * sizeof(float);
 *         FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
 *         FoveaPlan plan = NULL;
 *         const FoveaAttentionDesc attend = {.struct_size = sizeof attend, .batch = 1, .heads_q = heads,
 *                                            .heads_kv = heads_kv, .dim_qk = dim, .dim_v = dim, .len_q = queries,
 *                                            .len_kv = keys, .align = align,
 *                                            .flags = FOVEA_FLAG_CAUSAL | (sinks ? FOVEA_FLAG_SINKS : 0)};
 *         const FoveaResult result = foveaPlanAttention(facts, &attend, NULL, &plan, diag);
 *         if (result != FOVEA_OK) return result;
 *         bindings[FOVEA_BIND_Q] = (FoveaHostBuffer){q, heads * queries * row};
 *         bindings[FOVEA_BIND_K] = (FoveaHostBuffer){k, heads_kv * keys * row};
 *         bindings[FOVEA_BIND_V] = (FoveaHostBuffer){v, heads_kv * keys * row};
 *         bindings[FOVEA_BIND_O] = (FoveaHostBuffer){o, heads * queries * row};
 *         if (sinks) bindings[FOVEA_BIND_SINKS] = (FoveaHostBuffer){sinks, heads * sizeof(float)};
 *         return run_once(plan, bindings, diag);
 *     }
 */

/* Example: packed sequences, a batch end to end without padding. q, k, v and o are [starts[count], heads, dim];
 * sequence b has the rows from starts[b] to starts[b + 1] and sees nothing of the others. `entries` is room for count.
 *
 *     static FoveaResult attend_packed(const FoveaDeviceFacts* facts, uint32_t heads, uint32_t dim, uint32_t count,
 *                                      const int32_t* starts, FoveaBatchEntry* entries, float* q, float* k, float* v,
 *                                      float* o, FoveaDiag* diag) {
 *         const uint64_t rows = (uint64_t)starts[count], size = rows * heads * dim * sizeof(float);
 *         FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
 *         FoveaPlan plan = NULL;
 *         FoveaResult result;
 *         FoveaAttentionDesc attend = foveaAttentionDesc();
 *         for (uint32_t b = 0; b < count; ++b) {
 *             const int32_t length = starts[b + 1] - starts[b];
 *             entries[b] = (FoveaBatchEntry){starts[b], length, starts[b], length};
 *             if ((uint64_t)length > attend.len_q) attend.len_q = attend.len_kv = (uint64_t)length;  // the longest
 *         }
 *         attend.batch = count;
 *         attend.heads_q = attend.heads_kv = heads;
 *         attend.dim_qk = attend.dim_v = dim;
 *         attend.packed_rows_q = attend.packed_rows_kv = rows;
 *         attend.flags = FOVEA_FLAG_CAUSAL | FOVEA_FLAG_BATCH_TABLE;
 *         result = foveaPlanAttention(facts, &attend, NULL, &plan, diag);
 *         if (result != FOVEA_OK) return result;
 *         bindings[FOVEA_BIND_Q] = (FoveaHostBuffer){q, size};
 *         bindings[FOVEA_BIND_K] = (FoveaHostBuffer){k, size};
 *         bindings[FOVEA_BIND_V] = (FoveaHostBuffer){v, size};
 *         bindings[FOVEA_BIND_O] = (FoveaHostBuffer){o, size};
 *         bindings[FOVEA_BIND_BATCH_TABLE] = (FoveaHostBuffer){entries, count * sizeof *entries};
 *         return run_once(plan, bindings, diag);
 *     }
 */

/* Example: append and attend. One sequence, whose caches [heads, capacity, dim] hold `held` tokens; the `fresh` new ones
 * q, k, v [heads, fresh, dim] go after them and attend to everything up to themselves; o is like q. Its three plans are
 * of one length: for many tokens one by one, plan once with lengths in a table (`paged_step`, samples/paged_decode.c).
 *
 *     static FoveaResult append_and_attend(const FoveaDeviceFacts* facts, uint32_t heads, uint32_t dim, uint64_t held,
 *                                          uint64_t fresh, uint64_t capacity, float* q, float* k, float* v,
 *                                          float* k_cache, float* v_cache, float* o, FoveaDiag* diag) {
 *         const uint64_t column = heads * dim * sizeof(float);  // bytes of one token
 *         const FoveaHostBuffer none = {0}, x[2] = {{k, fresh * column}, {v, fresh * column}};
 *         const FoveaHostBuffer caches[2] = {{k_cache, capacity * column}, {v_cache, capacity * column}};
 *         FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
 *         FoveaPlan plan = NULL;
 *         FoveaResult result = FOVEA_OK;
 *         FoveaAppendDesc append = {.struct_size = sizeof append, .batch = 1, .heads = heads, .dim = dim,
 *                                   .len = fresh, .capacity = capacity, .first_row = held};
 *         const FoveaStrides cache = {0, (int64_t)(capacity * dim), dim};  // they are longer than len_kv
 *         const FoveaAttentionDesc attend = {.struct_size = sizeof attend, .batch = 1, .heads_q = heads, .heads_kv = heads,
 *                                            .dim_qk = dim, .dim_v = dim, .len_q = fresh, .len_kv = held + fresh,
 *                                            .k_strides = cache, .v_strides = cache, .flags = FOVEA_FLAG_CAUSAL,
 *                                            .align = FOVEA_ALIGN_BOTTOM_RIGHT};  // the last query, the last key
 *         for (int n = 0; n < 2 && result == FOVEA_OK; ++n)
 *             result = append_rows(facts, &append, x[n], caches[n], none, none, diag);
 *         if (result == FOVEA_OK) result = foveaPlanAttention(facts, &attend, NULL, &plan, diag);
 *         if (result != FOVEA_OK) return result;
 *         bindings[FOVEA_BIND_Q] = (FoveaHostBuffer){q, fresh * column};
 *         bindings[FOVEA_BIND_K] = caches[0];
 *         bindings[FOVEA_BIND_V] = caches[1];
 *         bindings[FOVEA_BIND_O] = (FoveaHostBuffer){o, fresh * column};
 *         return run_once(plan, bindings, diag);
 *     }
 */

/* Example: past and present, as ONNX has them. past [batch, heads, past_len, dim] stays; present [.., past_len + fresh, ..]
 * gets it and then x [.., fresh, ..]. Once each for keys and values; then attend with FOVEA_ALIGN_OFFSET, q_offset past_len.
 *
 *     static FoveaResult past_to_present(const FoveaDeviceFacts* facts, uint32_t batch, uint32_t heads, uint32_t dim,
 *                                        uint64_t past_len, uint64_t fresh, float* past, float* x, float* present,
 *                                        FoveaDiag* diag) {
 *         const uint64_t column = (uint64_t)batch * heads * dim * sizeof(float);
 *         const FoveaHostBuffer none = {0}, y = {present, (past_len + fresh) * column};
 *         FoveaAppendDesc append = {.struct_size = sizeof append, .batch = batch, .heads = heads, .dim = dim,
 *                                   .len = past_len, .capacity = past_len + fresh};
 *         const FoveaHostBuffer held = {past, past_len * column}, added = {x, fresh * column};
 *         FoveaResult result = append_rows(facts, &append, held, y, none, none, diag);
 *         if (result != FOVEA_OK) return result;
 *         append.len = fresh;
 *         append.first_row = past_len;
 *         return append_rows(facts, &append, added, y, none, none, diag);
 *     }
 */

/* Example: paged keys and values, one token of each of two sequences. Pools [page_count, heads, page_size, dim] are shared;
 * pages[2][table_pages] says where each sequence's pages lie (the first may be one and the same page after a common
 * prefix), held[2] how many tokens each has. q, k, v and o are [2, heads, 1, dim]. window 0: every token is seen.
 *
 *     static FoveaResult paged_step(const FoveaDeviceFacts* facts, uint32_t heads, uint32_t dim, uint32_t page_size,
 *                                   uint32_t page_count, uint64_t table_pages, int32_t* pages, const int32_t* held,
 *                                   uint64_t window, float* q, float* k, float* v, float* k_pool, float* v_pool,
 *                                   float* o, FoveaDiag* diag) {
 *         FoveaBatchEntry before[2] = {{0, 1, 0, held[0]}, {0, 1, 0, held[1]}};
 *         FoveaBatchEntry after[2] = {{0, 1, 0, held[0] + 1}, {0, 1, 0, held[1] + 1}};
 *         const uint64_t pool = (uint64_t)page_count * heads * page_size * dim * sizeof(float);
 *         const uint64_t token = 2 * heads * dim * sizeof(float);
 *         const FoveaHostBuffer x[2] = {{k, token}, {v, token}}, pools[2] = {{k_pool, pool}, {v_pool, pool}};
 *         const FoveaHostBuffer table = {pages, 2 * table_pages * sizeof(int32_t)};
 *         FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
 *         FoveaPlan plan = NULL;
 *         FoveaResult result = FOVEA_OK;
 *         FoveaAppendDesc append = {.struct_size = sizeof append, .batch = 2, .heads = heads, .dim = dim, .len = 1,
 *                                   .capacity = table_pages * page_size, .has_batch_table = 1, .page_size = page_size,
 *                                   .page_count = page_count, .block_table_pages = table_pages};
 *         // len_kv: the longest that there can be; the lengths are in the table.
 *         FoveaAttentionDesc attend = {.struct_size = sizeof attend, .batch = 2, .heads_q = heads, .heads_kv = heads,
 *                                      .dim_qk = dim, .dim_v = dim, .len_q = 1, .len_kv = table_pages * page_size,
 *                                      .page_size = page_size, .page_count = page_count,
 *                                      .block_table_pages = table_pages, .flags = FOVEA_FLAG_BATCH_TABLE};
 *         for (int n = 0; n < 2 && result == FOVEA_OK; ++n)
 *             result = append_rows(facts, &append, x[n], pools[n], (FoveaHostBuffer){before, sizeof before}, table,
 *                                  diag);
 *         if (window > 0) {
 *             attend.flags |= FOVEA_FLAG_WINDOW;
 *             attend.align = FOVEA_ALIGN_BOTTOM_RIGHT;  // the query is the last key's token
 *             attend.window_left = (int64_t)window - 1;
 *         }
 *         if (result == FOVEA_OK) result = foveaPlanAttention(facts, &attend, NULL, &plan, diag);
 *         if (result != FOVEA_OK) return result;
 *         bindings[FOVEA_BIND_Q] = (FoveaHostBuffer){q, token};
 *         bindings[FOVEA_BIND_K] = pools[0];
 *         bindings[FOVEA_BIND_V] = pools[1];
 *         bindings[FOVEA_BIND_O] = (FoveaHostBuffer){o, token};
 *         bindings[FOVEA_BIND_BATCH_TABLE] = (FoveaHostBuffer){after, sizeof after};
 *         bindings[FOVEA_BIND_BLOCK_TABLE] = table;
 *         return run_once(plan, bindings, diag);
 *     }
 */

/* Example: a ring for a sliding window. A sequence of any length keeps only ring_pages pages: page n of its tokens lies
 * in page n % ring_pages of the pool, and a page that was overwritten is none. Fill each sequence's row of the table
 * before a step, then step as above with its window.
 *
 *     // `tokens`: the length with the new one. ring_pages is (window + page_size - 2) / page_size + 1 or more.
 *     static void fill_ring_table(uint64_t tokens, uint32_t page_size, uint32_t ring_pages, uint64_t table_pages,
 *                                 int32_t* pages) {
 *         const uint64_t used = (tokens + page_size - 1) / page_size;  // the newest page is number used - 1
 *         for (uint64_t n = 0; n < table_pages; ++n)
 *             pages[n] = n < used && n + ring_pages >= used ? (int32_t)(n % ring_pages) : -1;
 *     }
 */

/* Example: a prefix that many sequences begin with, attended to once for all of them. Part 0 is the queries of all
 * sequences against the prefix, part 1 each sequence's queries against its own tail; `parts` and `lse` hold both results
 * one after the other, [2, rows, dim] and [2, rows]. Sinks count once: they went with part 0.
 *
 *     static FoveaResult merge_two(const FoveaDeviceFacts* facts, uint32_t rows, uint32_t dim, float* parts, float* lse,
 *                                  float* o, float* o_lse, FoveaDiag* diag) {
 *         const uint64_t column = rows * sizeof(float);
 *         FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{0}};
 *         FoveaPlan plan = NULL;
 *         const FoveaMergeDesc merge = {
 *             .struct_size = sizeof merge, .parts = 2, .batch = 1, .heads = 1, .dim = dim, .len = rows};
 *         const FoveaResult result = foveaPlanMerge(facts, &merge, NULL, &plan, diag);
 *         if (result != FOVEA_OK) return result;
 *         bindings[FOVEA_BIND_X] = (FoveaHostBuffer){parts, 2 * column * dim};
 *         bindings[FOVEA_BIND_PART_LSE] = (FoveaHostBuffer){lse, 2 * column};
 *         bindings[FOVEA_BIND_Y] = (FoveaHostBuffer){o, column * dim};
 *         bindings[FOVEA_BIND_LSE] = (FoveaHostBuffer){o_lse, column};
 *         return run_once(plan, bindings, diag);
 *     }
 */

/* Enums are 32 bits wide in every struct above: not with a compiler that shortens them (-fshort-enums). */
typedef char FoveaEnumWidthCheck[sizeof(FoveaDtype) == 4 ? 1 : -1];

#ifdef __cplusplus
}
#endif
#endif
