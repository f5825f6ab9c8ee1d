/* SPDX-License-Identifier: Apache-2.0
 *
 * Models in C: opens a GGUF file or a Hugging Face folder, and splits texts by its own tokenizer. Runs it with any heads changed,
 * keeps the tensors that the caller names, and generates. It is part of `libfovea_runtime.so`. C++ applications may use
 * <fovea/inspect/kept_run.hpp> and <fovea/model/generate.hpp>. Python: fovea.model.
 *
 *     FoveaModel model = NULL;
 *     FoveaModelRun run = NULL;
 *     foveaOpenModel("model.gguf", NULL, &model, &diag);
 *     foveaRunModel(model, tokens, count, "hidden,weights:3.1", NULL, &run, &diag);
 *     foveaRunTensor(run, "weights:3.1", &tensor, &diag);   (tensor.data is [count, count])
 *     foveaDestroyModelRun(run);
 *     foveaCloseModel(model);
 *
 * The conventions of <fovea/fovea.h> and <fovea/fovea_runtime.h> apply. All functions are thread-safe, except that a handle
 * must not be in use when it is closed or destroyed. Runs and generations of one model take turns. Tensors are float32 on the
 * host, packed, last axis fastest. Layers, heads and tokens count from 0.
 */
#ifndef FOVEA_FOVEA_MODEL_H
#define FOVEA_FOVEA_MODEL_H

#include <fovea/fovea_inspect.h>
#include <fovea/fovea_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a model and its texts ------------------------------------------------------------------------------------------- */

/* An open model. Its weights stay in their file, in their stored types. */
typedef struct FoveaModel_T* FoveaModel;

/* Opens a model.
 *   path     a GGUF file, or a folder with config.json and safetensors; UTF-8. The files must not change until it is closed
 *   engine   where to compute. Null, and the CPU backend without a device: the CPU, with `cpu_threads` threads; then the sizes
 *            decide which loops run, as for the CLI without --device. Otherwise the device's kernels
 *   out      receives the model; close it with foveaCloseModel. Null after an error
 * Errors: FOVEA_INVALID_ARGUMENT and FOVEA_UNSUPPORTED for files that are not a known model of text. FOVEA_IO_ERROR, and
 * the errors of foveaOpenEngine. */
FOVEA_API FoveaResult foveaOpenModel(const char* path, const FoveaEngineOptions* engine, FoveaModel* out, FoveaDiag* diag);
/* Closes a model; null is ignored. Its runs and generations may still be used. */
FOVEA_API void foveaCloseModel(FoveaModel model);

/* The sizes of a model, as its files say. Texts live as long as the model. */
typedef struct FoveaModelInfo {
    uint32_t struct_size;    /* sizeof(FoveaModelInfo) */
    uint32_t has_tokenizer;  /* 0 or 1. 0: only token IDs can be given */
    uint32_t has_logits;     /* 0 or 1. 0: the files have no unembedding */
    uint32_t end_token_count;
    uint64_t layers, width;  /* columns of the hidden state */
    uint64_t heads, kv_heads, head_width;
    uint64_t vocabulary;     /* token IDs are below it */
    uint64_t context;        /* tokens of the longest text that the model was made for; 0: the files do not say */
    const uint32_t* end_tokens; /* `end_token_count` token IDs that end a generated text, ascending */
    const char* family;      /* "Llama" */
    const char* device;      /* "CPU", "llvmpipe (LLVM 15.0.6, 256 bits)", ... */
} FoveaModelInfo;

/* Returns the sizes of a model.
 *   info   receives them; struct_size must be set
 * Errors: FOVEA_INVALID_ARGUMENT, FOVEA_ABI_MISMATCH. */
FOVEA_API FoveaResult foveaGetModelInfo(FoveaModel model, FoveaModelInfo* info, FoveaDiag* diag);

/* Splits a text into token IDs by the model's own tokenizer.
 *   text       `text_bytes` bytes of UTF-8
 *   special    0 or 1. 1: with the tokens that the model's inputs begin or end with
 *   tokens     receives the first `capacity` token IDs; may be null if `capacity` is 0
 *   count      receives the number of all token IDs, which may be above `capacity`
 * Errors: FOVEA_INVALID_ARGUMENT for a text that is not UTF-8, FOVEA_UNSUPPORTED for a model without a tokenizer. */
FOVEA_API FoveaResult foveaModelTokens(FoveaModel model, const char* text, size_t text_bytes, uint32_t special, uint32_t* tokens,
                                       size_t capacity, size_t* count, FoveaDiag* diag);
/* Returns the text of token IDs as bytes. Special tokens give nothing. The last character may be incomplete UTF-8.
 *   out   receives the text; null after an error
 * Errors: FOVEA_UNSUPPORTED for a model without a tokenizer. */
FOVEA_API FoveaResult foveaModelText(FoveaModel model, const uint32_t* tokens, size_t count, FoveaText* out, FoveaDiag* diag);

/* ---- a run --------------------------------------------------------------------------------------------------------------- */

/* Multiplies what a head gives to the output projection. 0 switches the head off. */
typedef struct FoveaHeadScale {
    uint32_t layer, head;
    float scale;
} FoveaHeadScale;

#define FOVEA_HIDDEN 0xffffffffu /* FoveaModelPatch: the hidden state that enters the layer, in place of a head */

/* Values that replace the model's own. */
typedef struct FoveaModelPatch {
    uint32_t layer;      /* FOVEA_HIDDEN may have the number of layers: the state that leaves the last */
    uint32_t head;       /* the head that gets another context; or FOVEA_HIDDEN */
    const float* data;   /* [tokens, head_width]; FOVEA_HIDDEN: [tokens, width]. Read during the call */
    uint64_t rows, columns; /* the extents of `data`; they must be those */
} FoveaModelPatch;

/* Called before each layer, after patches, on the thread of foveaRunModel, and once more after the last. In that call `layer` is
 * the number of layers. `hidden` is the hidden state there, [tokens, width]. It lives during the call, and the run goes on with what
 * the function leaves in it. Returning 0 ends the run with FOVEA_CANCELLED. The function may call others of this header. */
typedef int32_t (*FoveaModelHook)(void* user, uint32_t layer, float* hidden, uint64_t tokens, uint64_t width);

/* How a run departs from the model. */
typedef struct FoveaModelChanges {
    uint32_t struct_size; /* sizeof(FoveaModelChanges) */
    uint32_t head_count, patch_count, masked_count; /* elements of the next three */
    const FoveaHeadScale* heads;   /* heads that are not listed stay as they are */
    const FoveaModelPatch* patches; /* put in after the heads' scales */
    const uint32_t* masked_tokens;  /* keys that no query sees in any layer, ascending, below the number of tokens */
    FoveaModelHook hook;            /* or null */
    void* user;                     /* for the hook */
} FoveaModelChanges;

/* The tensors that a run kept. They do not change. */
typedef struct FoveaModelRun_T* FoveaModelRun;

/* Runs the whole model on token IDs, layer by layer: of the weights one layer at a time is in memory as float32, or none.
 *   tokens    `count` token IDs, at least 1
 *   keep      names of the tensors to keep, separated by commas; or "" for none. A place after a colon picks a part and drops
 *             its axes: "weights:3.1" is layer 3, head 1
 *               hidden    [layers + 1, tokens, width]: what enters each layer, and what leaves the last
 *               q, k, v   [layers, heads, tokens, head_width], as attention takes them; k and v have kv_heads
 *               context   [layers, heads, tokens, head_width]: each head's weighted sum of v
 *               lse       [layers, heads, tokens]: the log-sum-exp of the scores, natural logarithm
 *               weights   [layers, heads, tokens, tokens]: query, key
 *               logits    [tokens, vocabulary]; "logits:T": [vocabulary], after token T, with the bits that generation has
 *             and other stages of a layer by their names in session files: "scores", "normed", "ff_hidden", ...
 *   changes   null: none
 *   out       receives the run; destroy it with foveaDestroyModelRun. Null after an error
 * Errors: FOVEA_INVALID_ARGUMENT for a token, name, layer, head or patch that does not exist or fit. FOVEA_LIMIT_EXCEEDED for
 * more memory than is free, FOVEA_CANCELLED by the hook, and those of the device. */
FOVEA_API FoveaResult foveaRunModel(FoveaModel model, const uint32_t* tokens, size_t count, const char* keep,
                                    const FoveaModelChanges* changes, FoveaModelRun* out, FoveaDiag* diag);
/* Destroys a run; null is ignored. */
FOVEA_API void foveaDestroyModelRun(FoveaModelRun run);

/* A tensor that a run kept. */
typedef struct FoveaModelTensor {
    uint32_t struct_size; /* sizeof(FoveaModelTensor) */
    uint32_t rank;        /* 1 to 4 */
    const float* data;    /* lives as long as the run */
    uint64_t shape[4];    /* the first `rank` */
} FoveaModelTensor;

/* Returns a tensor of a run.
 *   name     as in `keep`
 *   tensor   receives it; struct_size must be set
 * Errors: FOVEA_INVALID_ARGUMENT for a name that was not kept, FOVEA_ABI_MISMATCH. */
FOVEA_API FoveaResult foveaRunTensor(FoveaModelRun run, const char* name, FoveaModelTensor* tensor, FoveaDiag* diag);

/* Returns the cost of KV cache types, head by head, over texts: of every type that the model's head size allows, plain and with
 * FOVEA_FLAG_ROTATED_CACHE. Divergences are Kullback-Leibler, from the model's own values to those with the type, in nats. They are
 * means over tokens.
 *   tokens   the token IDs of all texts, one text after the other
 *   counts   `text_count` counts of token IDs, each at most what the model takes; texts of fewer than two are left out
 *   limit    null: no plan. Otherwise the largest divergence of a head's weights, at least 0, nats
 *   out      receives an object in JSON; null after an error. It has "texts", "tokens", "layers", "heads", "kv_heads" and
 *            "types": a list of objects with
 *              type, rotated           "q4_0", true
 *              bytes_per_token         of the whole cache
 *              next_token_divergence   of the next token's probabilities, with the type in all layers
 *              divergence              [layers * heads]: of a head's weights, with the model's own q, k and v
 *              context_change          [layers * heads]: |changed - own| / |own| of its context, likewise
 *            With a limit it has "plan": "limit", "bytes_per_token", "next_token_divergence", "largest_divergence", "types".
 *            The latter has for each of [layers * kv_heads] the smallest type within the limit for all its query heads, or
 *            "f32". A plan takes one attention call for each group of heads of one type.
 * Errors: FOVEA_INVALID_ARGUMENT for a token that does not exist, a limit, or no text of two tokens. FOVEA_UNSUPPORTED for
 * a model without an unembedding. FOVEA_LIMIT_EXCEEDED for more memory than is free, and those of the device. */
FOVEA_API FoveaResult foveaModelCacheCosts(FoveaModel model, const uint32_t* tokens, const size_t* counts, size_t text_count,
                                           const double* limit, FoveaText* out, FoveaDiag* diag);

/* ---- generation -------------------------------------------------------------------------------------------------------- */

/* How a text goes on, with the defaults, names and order of `fovea generate`. */
typedef struct FoveaGenerationDesc {
    uint32_t struct_size; /* sizeof(FoveaGenerationDesc) */
    uint32_t ignore_eos;  /* 0 or 1. 1: go on where the model ends its text */
    uint64_t count;       /* most tokens to generate, 1 to 1,000,000 */
    uint64_t top_k;       /* draw from the top_k likeliest tokens; 0: from all */
    uint64_t seed;        /* seed of the drawing; each place of the text draws its own number */
    double temperature;   /* 0 to 1000. 0 takes the likeliest token; the filters need more */
    double top_p;         /* 0 to 1. Draw from the likeliest tokens whose probabilities reach it together; 1: from all */
    double min_p;         /* 0 to 1. Draw from tokens with at least so many times the likeliest one's probability */
} FoveaGenerationDesc;

/* A text that goes on, with its KV cache. */
typedef struct FoveaGeneration_T* FoveaGeneration;

/* Begins to generate after token IDs. Nothing is computed yet.
 *   tokens   `count` token IDs, at least 1
 *   desc     null: the initializer's
 *   out      receives the generation; destroy it with foveaDestroyGeneration. Null after an error
 * Errors: FOVEA_INVALID_ARGUMENT, FOVEA_UNSUPPORTED for an encoder, FOVEA_LIMIT_EXCEEDED for more tokens than the model has
 * positions and for more memory than is free. */
FOVEA_API FoveaResult foveaStartGeneration(FoveaModel model, const uint32_t* tokens, size_t count, const FoveaGenerationDesc* desc,
                                           FoveaGeneration* out, FoveaDiag* diag);
/* The text after a token. */
typedef enum FoveaGenerationState {
    FOVEA_GENERATION_GOES_ON = 0,
    FOVEA_GENERATION_ENDED = 1, /* the token is an end token, which is not part of the text */
    FOVEA_GENERATION_FULL = 2   /* `count` tokens were generated */
} FoveaGenerationState;

/* Generates one token.
 *   token   receives it
 *   state   receives what the text is after it
 * Errors: FOVEA_INVALID_ARGUMENT once the text is complete, for a token ID outside the vocabulary, and for logits that are not
 * finite. Those of the device. After an error every further call fails with FOVEA_INVALID_ARGUMENT. */
FOVEA_API FoveaResult foveaNextToken(FoveaGeneration generation, uint32_t* token, FoveaGenerationState* state, FoveaDiag* diag);
/* Destroys a generation; null is ignored. */
FOVEA_API void foveaDestroyGeneration(FoveaGeneration generation);

/* ---- initializers: struct_size set, all other fields zero, except count = 32 and top_p = 1 ------------------------------------ */

FOVEA_INITIALIZER(FoveaModelInfo, foveaModelInfo)
FOVEA_INITIALIZER(FoveaModelChanges, foveaModelChanges)
FOVEA_INITIALIZER(FoveaModelTensor, foveaModelTensor)

static inline FoveaGenerationDesc foveaGenerationDesc(void) {
    FoveaGenerationDesc desc;
    memset(&desc, 0, sizeof desc);
    desc.struct_size = sizeof desc;
    desc.count = 32;
    desc.top_p = 1;
    return desc;
}

#ifdef __cplusplus
}
#endif
#endif
