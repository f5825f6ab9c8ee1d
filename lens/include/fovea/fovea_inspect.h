/* SPDX-License-Identifier: Apache-2.0
 *
 * Inspection of attention, in C: the computation of one weight step by step, statistics of a head, colors of maps, the
 * worked lessons, and sessions. It is part of `libfovea_runtime.so`; C++ applications may use <fovea/inspect.hpp>. Row
 * statistics and map tiles are outputs of <fovea/fovea.h> (FOVEA_OUTPUT_ROW_STATS, foveaPlanMapTile).
 *
 * The conventions of <fovea/fovea.h> and <fovea/fovea_runtime.h> apply. Every function is thread-safe. None keeps state,
 * needs a device or prints. Results without a fixed shape are texts, mostly one line of JSON (RFC 8259). NaN and the
 * infinities are the strings "nan", "inf" and "-inf" there.
 */
#ifndef FOVEA_FOVEA_INSPECT_H
#define FOVEA_FOVEA_INSPECT_H

#include <fovea/fovea.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- texts ----------------------------------------------------------------------------------------------------------- */

/* A text that a function made. The caller owns it and must destroy it with foveaDestroyText. */
typedef struct FoveaText_T* FoveaText;

/* Returns the bytes of a text, followed by a 0. Never null; lives as long as the text. */
FOVEA_API const char* foveaTextData(FoveaText text);
/* Returns the length of a text in bytes, without the final 0. */
FOVEA_API size_t foveaTextSize(FoveaText text);
/* Destroys a text; null is ignored. */
FOVEA_API void foveaDestroyText(FoveaText text);

/* The format of a derivation or a lesson. Functions list the formats that they support. */
typedef enum FoveaTextForm {
    FOVEA_TEXT_PLAIN = 0,    /* lines for people */
    FOVEA_TEXT_JSON = 1,
    FOVEA_TEXT_CSV = 2,      /* derivations: digits that read back to the same float32 */
    FOVEA_TEXT_LATEX = 3,    /* derivations: an aligned block for a paper */
    FOVEA_TEXT_PYTHON = 4    /* derivations: a complete script that computes the weight again */
} FoveaTextForm;

/* ---- one weight, one head ---------------------------------------------------------------------------------------------- */

/* One cell of a head's attention matrix. */
typedef struct FoveaCell {
    uint32_t struct_size;  /* sizeof(FoveaCell) */
    uint32_t batch, head;  /* batch entry and query head */
    uint32_t reserved0;    /* must be 0 */
    uint64_t query, key;   /* row below len_q, column below len_kv */
} FoveaCell;

/* Computes one attention weight step by step: every value between q, k and the cell's share of its row of o. It computes in
 * float32 and in sequential order, whatever the precision of the forward call. It costs as much as one row.
 *   bindings   FOVEA_BIND_COUNT elements with the inputs of the call; outputs are not used
 *   form       any FoveaTextForm
 *   out        receives the text; null after an error
 * JSON: "q", "k", "products", "running" (D elements each), "v", "contributions", "context" (Dv elements each), "dot", "score",
 * "capped", "alibi", "masked", "rowMax", "lse", "exponential", "denominator", "weight", "finalWeight" (after dropout),
 * "hasDropout", "kept", "visibleKeys" and "hiddenBy" (the rule that masks the key, or "").
 * Errors: FOVEA_INVALID_ARGUMENT for a cell outside the matrix and for buffers that are too small. */
FOVEA_API FoveaResult foveaDeriveCell(const FoveaAttentionDesc* desc, const FoveaHostBuffer* bindings, const FoveaCell* cell,
                                      FoveaTextForm form, FoveaText* out, FoveaDiag* diag);

/* Splits the score of a cell by what wrote to the residual stream of a model: embeddings, heads, feed-forward parts, biases.
 * <fovea/inspect/writers.hpp> has the formula. Runs the model's layers up to that one on this
 * thread, in float32; the split is float64.
 *   path      a folder with config.json and safetensors, or a GGUF file
 *   tokens    `token_count` token IDs, at least 1
 *   layer     counted from 0
 *   cell      the layer's head, query and key; batch must be 0
 *   most      entries to list, those of the largest magnitude
 *   form      FOVEA_TEXT_PLAIN, FOVEA_TEXT_JSON or FOVEA_TEXT_CSV
 *   out       receives the text; null after an error
 * JSON has "layer", "head", "query", "key", "score" (the logit), "weight" and "sum" (of all entries). Lists: "remainders" of
 * what is added to the sum ("name", "value"). "writers" ("kind", "layer", "head", "at_query", "at_key", "query_sum", "key_sum").
 * "entries" ("query_writer", "key_writer", "value"). Heads' contributions at the query or key ("at") by the position that they
 * read are "loadings" ("writer", "source", "value"). A writer's add up to its "query_sum" or "key_sum".
 * Errors: FOVEA_INVALID_ARGUMENT for what is not a known model. The same for a token, layer, head, query or key that does
 * not exist. A file that cannot be read has its own code. */
FOVEA_API FoveaResult foveaScoreWriters(const char* path, const uint32_t* tokens, uint64_t token_count, uint32_t layer,
                                        const FoveaCell* cell, uint64_t most, FoveaTextForm form, FoveaText* out,
                                        FoveaDiag* diag);

/* Splits a logit likewise, through the frozen final norm and the unembedding (direct logit attribution).
 *   path, tokens, token_count, out   those of foveaScoreWriters
 *   position  row of the logit, below token_count
 *   token     ID that the logit is of; null: the likeliest
 *   most      loadings and neurons to list, and in FOVEA_TEXT_PLAIN writers
 *   form      FOVEA_TEXT_PLAIN or FOVEA_TEXT_JSON
 * JSON has "position", "token", "logit", "probability", "sum" (of all writers) and "softcap" (added to the sum). It lists
 * "writers" ("kind", "layer", "head", "name", "value") and "loadings" of heads ("writer", "source", "value"). Lists of the
 * feed-forward parts are "neurons" ("writer", "neuron", "value") and "neuron_groups". A group counts the neurons that raise and
 * lower the logit, and adds them up ("writer", "raising", "raised", "lowering", "lowered").
 * Errors: those of foveaScoreWriters, and FOVEA_INVALID_ARGUMENT for a model without an unembedding. */
FOVEA_API FoveaResult foveaLogitWriters(const char* path, const uint32_t* tokens, uint64_t token_count, uint64_t position,
                                        const uint32_t* token, uint64_t most, FoveaTextForm form, FoveaText* out,
                                        FoveaDiag* diag);

/* Finds the largest singular directions of a head's QK and OV matrices, with the tokens that they read and write.
 * Biases and positions are left out, rotary ones too: <fovea/inspect/directions.hpp> has the formulas.
 *   count     directions of each matrix, at most its rank
 *   most      tokens at each end of a direction
 *   form      FOVEA_TEXT_PLAIN or FOVEA_TEXT_JSON
 *   out       receives the text; null after an error
 * JSON has "layer", "head", "qk" and "ov", both with directions. A direction has its singular value as "value". Unit vectors
 * "from" and "to" are of a query's and a key's row, or of what is read and written. Their "from_tokens" and "to_tokens" have
 * "high" and "low" ("token", and the dot product as "value").
 * Errors: FOVEA_INVALID_ARGUMENT for what is not a known model, and for a layer or head that does not exist. */
FOVEA_API FoveaResult foveaHeadDirections(const char* path, uint32_t layer, uint32_t head, uint64_t count, uint64_t most,
                                          FoveaTextForm form, FoveaText* out, FoveaDiag* diag);

/* Statistics of one head: means over the rows that are not fully masked, 0 if there are none. */
typedef struct FoveaHeadStats {
    uint32_t struct_size;    /* sizeof(FoveaHeadStats) */
    uint32_t reserved0;
    double entropy;          /* -sum w ln w, in nats */
    double relative_entropy; /* entropy / ln(visible keys of the row), 0 to 1; 0 for rows with one visible key */
    double mean_distance;    /* sum w |position - key|, in tokens */
    double first_token_mass; /* weight of key 0 */
    double previous_token;   /* weight of the key before the query's position, over the rows that have one */
    double largest_weight;   /* the mean of the rows' largest weights */
    uint64_t rows;           /* the rows that are not fully masked */
} FoveaHeadStats;

/* Computes the statistics of one head's attention weights.
 *   weights   [rows, keys], row-major
 *   offset    the position of query 0 among the keys
 *   out       receives the statistics; struct_size must be set */
FOVEA_API FoveaResult foveaHeadStats(const float* weights, uint64_t rows, uint64_t keys, int64_t offset, FoveaHeadStats* out,
                                     FoveaDiag* diag);

/* ---- maps: values and colors ----------------------------------------------------------------------------------------- */

/* Converts the mass of a map tile to the values that its colors show: the weight that a row gives to the pixel's keys, as a mean
 * over the pixel's rows.
 *   tile     the description that foveaPlanMapTile took, with row_count, width and height set
 *   len_q    rows of the call; rows at or past it do not count
 *   mass     binding TILE_MASS of one head, [height, width]
 *   values   receives [height, width]; NaN where the mass is FOVEA_TILE_INVALID
 * Errors: FOVEA_INVALID_ARGUMENT. */
FOVEA_API FoveaResult foveaMapValues(const FoveaMapTileDesc* tile, uint64_t len_q, const uint64_t* mass, float* values,
                                     FoveaDiag* diag);

/* The mapping from a value's place in a range to a color's place in a colormap. */
typedef enum FoveaColorScale {
    FOVEA_COLOR_SCALE_LINEAR = 0,
    FOVEA_COLOR_SCALE_LOGARITHMIC = 1, /* low must be above 0; values at or below it have the first color */
    FOVEA_COLOR_SCALE_SYMMETRIC = 2    /* linear around 0, the middle of the colormap, to +-max(|low|, |high|) */
} FoveaColorScale;

/* A colormap and its range of values. */
typedef struct FoveaColormap {
    uint32_t struct_size; /* sizeof(FoveaColormap) */
    FoveaColorScale scale;
    const char* name; /* "viridis", "magma", "cividis", "grey" or "blue-orange"; null: viridis */
    double low, high; /* values of the first and last color. Both 0: the range of the values, from 0 if none is negative; */
                      /*   LOGARITHMIC needs a range */
} FoveaColormap;

/* Converts values to colors.
 *   values   `count` values
 *   rgb      receives [count, 3], sRGB. NaN is magenta and infinities are cyan in every colormap
 * Errors: FOVEA_INVALID_ARGUMENT for an unknown colormap, scale or range. */
FOVEA_API FoveaResult foveaColorValues(const float* values, uint64_t count, const FoveaColormap* colormap, uint8_t* rgb,
                                       FoveaDiag* diag);

/* ---- lessons -------------------------------------------------------------------------------------------------------------- */

/* Lists the lessons (worked examples of published tutorials) as JSON: "name", "title", "tutorial", "level" and the number of
 * printed "tables" of each. */
FOVEA_API FoveaResult foveaListLessons(FoveaText* out, FoveaDiag* diag);
/* Computes one lesson in sequential float32.
 *   name   a full name ("t1-08-causal-weights"), a short one ("t1-08") or a level ("3")
 *   seed   replaces the lesson's first seed; null: the lesson's
 *   form   FOVEA_TEXT_PLAIN: every stage as PyTorch prints it; or FOVEA_TEXT_JSON
 * JSON: "name", "title", "tutorial", "about", "seed" (-1 if nothing is random), "notes", "tables", "exact", and "list" of the
 * printed tables: "label", "tensor", "note", "times", "exact", "formula", "shape", and the elements "theirs" and "ours" as
 * texts.
 * Errors: FOVEA_INVALID_ARGUMENT for an unknown lesson. */
FOVEA_API FoveaResult foveaRunLesson(const char* name, const uint64_t* seed, FoveaTextForm form, FoveaText* out, FoveaDiag* diag);

/* ---- sessions --------------------------------------------------------------------------------------------------------------- */

/* A float32 tensor of the caller, [heads, tokens, width], packed. */
typedef struct FoveaSessionTensor {
    const float* data;
    uint64_t heads, tokens, width; /* at least 1 */
} FoveaSessionTensor;

/* Makes the text of a .fovea session file (docs/reference/sessions.md).
 *   address   the state as in the web page's address, "v=1&causal=1" for example; "": the defaults
 *   q, k, v   tensors that replace the sentence, or all null; only v may be null next to q and k
 * Errors: FOVEA_INVALID_ARGUMENT. */
FOVEA_API FoveaResult foveaWriteSession(const char* address, const FoveaSessionTensor* q, const FoveaSessionTensor* k,
                                        const FoveaSessionTensor* v, FoveaText* out, FoveaDiag* diag);
/* Reads the text of a .fovea session file, checks it and writes it again with every key. JSON: "session" is the file; "notes"
 * lists the keys that could not be used as given, with "key" and "text".
 * Errors: FOVEA_INVALID_ARGUMENT. */
FOVEA_API FoveaResult foveaReadSession(const char* text, FoveaText* out, FoveaDiag* diag);
/* Computes one stage of a session, in lines as `fovea session` prints them. The session's text must contain its tensors.
 *   stage   "" selects the session's stage
 * Errors: FOVEA_INVALID_ARGUMENT. */
FOVEA_API FoveaResult foveaSessionStage(const char* session, const char* stage, uint32_t head, FoveaText* out, FoveaDiag* diag);

/* ---- initializers: struct_size set, all other fields zero ---------------------------------------------------------------------- */

FOVEA_INITIALIZER(FoveaCell, foveaCell)
FOVEA_INITIALIZER(FoveaHeadStats, foveaHeadStatsDesc)
FOVEA_INITIALIZER(FoveaColormap, foveaColormap)

#ifdef __cplusplus
}
#endif
#endif
