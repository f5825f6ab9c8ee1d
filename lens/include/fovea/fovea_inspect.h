/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking into attention, in C: the derivation of one weight, a head in numbers, colours of maps, the worked
 * lessons, and sessions. Part of `libfovea_runtime.so`; C++ programs have <fovea/inspect.hpp>. Row statistics and tiles of
 * the map are outputs of <fovea/fovea.h> itself (FOVEA_OUTPUT_ROW_STATS, foveaPlanMapTile).
 *
 * Conventions are those of <fovea/fovea.h> and <fovea/fovea_runtime.h>. Every function may be called from any thread; none
 * keeps state, needs a device or prints. What has no fixed shape comes as a text, mostly JSON of RFC 8259 in one line, in
 * which NaN and the infinities are the texts "nan", "inf" and "-inf".
 */
#ifndef FOVEA_FOVEA_INSPECT_H
#define FOVEA_FOVEA_INSPECT_H

#include <fovea/fovea.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- texts ----------------------------------------------------------------------------------------------------------- */

typedef struct FoveaText_T* FoveaText; /* what a function made, owned by the caller: foveaDestroyText */

/* The bytes, and a 0 after them; never null. They live as long as the text. */
FOVEA_API const char* foveaTextData(FoveaText text);
/* Without that 0. */
FOVEA_API size_t foveaTextSize(FoveaText text);
/* Null is ignored. */
FOVEA_API void foveaDestroyText(FoveaText text);

typedef enum FoveaTextForm { /* how a derivation or a lesson is written; not every one has all */
    FOVEA_TEXT_PLAIN = 0,    /* lines for a person */
    FOVEA_TEXT_JSON = 1,
    FOVEA_TEXT_CSV = 2,      /* derivations: digits that read back to the same float32 */
    FOVEA_TEXT_LATEX = 3,    /* derivations: an aligned block for a paper */
    FOVEA_TEXT_PYTHON = 4    /* derivations: a script that computes the weight again, by itself */
} FoveaTextForm;

/* ---- one weight, one head ---------------------------------------------------------------------------------------------- */

typedef struct FoveaCell { /* of one head's matrix of weights */
    uint32_t struct_size;
    uint32_t batch, head;  /* `head` of the query heads */
    uint32_t reserved0;    /* must be 0 */
    uint64_t query, key;
} FoveaCell;

/* Every number between q, k and what the cell adds to its row of o, in float32 and in the plain order, whatever the precision of
 * the forward call. `bindings` has FOVEA_BIND_COUNT elements and holds the inputs of that call, outputs left out. The cost is that
 * of one row. Refused: a cell outside the matrix, and buffers that are too small.
 * JSON: "q", "k", "products", "running" (one for each of D), "v", "contributions", "context" (one for each of Dv), "dot", "score",
 * "capped", "alibi", "masked", "rowMax", "lse", "exponential", "denominator", "weight", "finalWeight" (after dropout),
 * "hasDropout", "kept", "visibleKeys" and "hiddenBy" ("" where the query sees the key). */
FOVEA_API FoveaResult foveaDeriveCell(const FoveaAttentionDesc* desc, const FoveaHostBuffer* bindings, const FoveaCell* cell,
                                      FoveaTextForm form, FoveaText* out, FoveaDiag* diag);

/* What one head does, in means over the rows that see a key; 0 where there is none. */
typedef struct FoveaHeadStats {
    uint32_t struct_size;
    uint32_t reserved0;
    double entropy;          /* -sum w ln w, in nats */
    double relative_entropy; /* entropy / ln(keys that the row sees); 0 for rows that see one */
    double mean_distance;    /* sum w |position - key|, in tokens */
    double first_token_mass; /* weight of key 0 */
    double previous_token;   /* weight of the key before the query's position, over rows that have one */
    double largest_weight;   /* the mean of the rows' largest weights */
    uint64_t rows;           /* that see a key */
} FoveaHeadStats;

/* Of one head's weights [rows, keys], row-major; query i stands at key i + offset. */
FOVEA_API FoveaResult foveaHeadStats(const float* weights, uint64_t rows, uint64_t keys, int64_t offset, FoveaHeadStats* out,
                                     FoveaDiag* diag);

/* ---- maps: numbers and colours ----------------------------------------------------------------------------------- */

/* The numbers of a tile's pixels that a colour stands for: what a row gives to the pixel's keys, the mean over the pixel's rows.
 * `tile` as foveaPlanMapTile took it, with its width and height; `mass` is binding TILE_MASS of one head, [height, width]; rows
 * at or past len_q do not count. NaN where the mass is FOVEA_TILE_INVALID. */
FOVEA_API FoveaResult foveaMapValues(const FoveaMapTileDesc* tile, uint64_t len_q, const uint64_t* mass, float* values,
                                     FoveaDiag* diag);

typedef enum FoveaColourScale { /* how a range is spread over the colours */
    FOVEA_SCALE_LINEAR = 0,
    FOVEA_SCALE_LOGARITHMIC = 1, /* low must be above 0; what is at or below it takes the lowest colour */
    FOVEA_SCALE_SYMMETRIC = 2    /* linear around 0, which is the map's middle, to +-max(|low|, |high|) */
} FoveaColourScale;

typedef struct FoveaColours { /* how numbers become colours */
    uint32_t struct_size;
    FoveaColourScale scale;
    const char* map; /* "viridis", "magma", "cividis", "grey" or "blue-orange"; null: viridis */
    double low, high; /* both 0: those of the values, from 0 on where none is negative; LOGARITHMIC: the range must be given */
} FoveaColours;

/* rgb [count, 3] of values [count], sRGB. NaN is magenta, infinities are cyan, in every map. */
FOVEA_API FoveaResult foveaColourValues(const float* values, uint64_t count, const FoveaColours* colours, uint8_t* rgb,
                                        FoveaDiag* diag);

/* ---- lessons -------------------------------------------------------------------------------------------------------------- */

/* JSON, a list of the worked examples: "name", "title", "tutorial", "level" and the number of printed "tables" of each. */
FOVEA_API FoveaResult foveaListLessons(FoveaText* out, FoveaDiag* diag);
/* One worked example in strict float32. `name` in full ("t1-08-causal-weights"), short ("t1-08") or a level ("3"). `seed`, or
 * null, stands in for its first one.
 * JSON: "name", "title", "tutorial", "about", "seed" (-1 where nothing is drawn), "notes", "tables", "exact", and "list", each
 * printed table: "label", "tensor", "note", "times", "exact", "formula", "shape", and the elements "theirs" and "ours" as texts.
 * PLAIN: every stage as PyTorch prints it. */
FOVEA_API FoveaResult foveaRunLesson(const char* name, const uint64_t* seed, FoveaTextForm form, FoveaText* out, FoveaDiag* diag);

/* ---- sessions --------------------------------------------------------------------------------------------------------------- */

/* A tensor of the caller's, float32 [heads, tokens, width], packed. */
typedef struct FoveaSessionTensor {
    const float* data;
    uint64_t heads, tokens, width;
} FoveaSessionTensor;

/* A .fovea file's text (docs/reference/sessions.md) of an address as the page writes it ("v=1&causal=1", "" for the defaults) and of tensors
 * that stand in for its text; all three null: none, `v` alone may be null too. */
FOVEA_API FoveaResult foveaWriteSession(const char* address, const FoveaSessionTensor* q, const FoveaSessionTensor* k,
                                        const FoveaSessionTensor* v, FoveaText* out, FoveaDiag* diag);
/* A .fovea file's text read and written again, checked and whole. JSON: "session", the file; "notes", a "key" and a "text" each:
 * what could not be taken as it stands. */
FOVEA_API FoveaResult foveaReadSession(const char* text, FoveaText* out, FoveaDiag* diag);
/* Computes one stage of a .fovea file's text, whose tensors are within it: lines as `fovea session` prints them. `stage` "": the session's own. */
FOVEA_API FoveaResult foveaSessionStage(const char* session, const char* stage, uint32_t head, FoveaText* out, FoveaDiag* diag);

/* ---- initialisers: struct_size set, all else zero ---------------------------------------------------------------------------- */

FOVEA_INITIALISER(FoveaCell, foveaCell)
FOVEA_INITIALISER(FoveaHeadStats, foveaHeadStatsDesc)
FOVEA_INITIALISER(FoveaColours, foveaColours)

#ifdef __cplusplus
}
#endif
#endif
