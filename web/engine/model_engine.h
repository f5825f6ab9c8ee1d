/* The page's door to published models (<fovea/model/checkpoint_model.hpp>): a separate module, called by a
 * separate Worker, so that a reader who opens no model never loads it.
 *
 * Files stay where they are: the module asks for their bytes when it needs them. Texts are UTF-8 and end with
 * 0. A returned text is owned by the module and lives until the next call that returns one. A call that fails
 * returns a null pointer and leaves the reason in webModelError(). One thread calls. Whoever makes the module
 * gives it `host` (web/src/model_host.ts). web/tools/abi.mjs makes the TypeScript declarations from this
 * file.
 */
#ifndef FOVEA_WEB_MODEL_ENGINE_H
#define FOVEA_WEB_MODEL_ENGINE_H

#include <stdint.h>

#if defined(__EMSCRIPTEN__)
#define WEB_API __attribute__((used, visibility("default")))
#else
#define WEB_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

WEB_API const char* webModelError(void);

/* The thread that calls and `threads` - 1 others compute from now on. */
WEB_API void webModelStart(uint32_t threads);
/* Names one of the files that the next webModelOpen opens, in the order of the host's own list. */
WEB_API void webModelFile(const char* name, double size_bytes);
/* Opens the named files: a GGUF file, or config.json with safetensors (and tokenizer.json). Up to `held`
 * bytes in all they are read into memory at once; larger ones layer by layer, whenever a layer is computed.
 * JSON: family, architecture, layers, heads, kvHeads, width, headWidth, vocabulary, context (null: not said),
 * causal, softcap (0: none), types (name and bytes of each), bytes, layerBytes (the largest as float32),
 * whyNoText (null: a text can be typed), text (something to begin with). */
WEB_API const char* webModelOpen(double held);
/* A text's tokens, as webModelRun gives them, without a run. JSON: tokens. */
WEB_API const char* webModelSplit(const char* text);
/* Runs the model. `ask`: JSON with text (or token IDs if there is no tokenizer), scales (lists of layer, head
 * and what its context is multiplied by; 0: off), patches (lists of layer, head and the text of as many
 * tokens whose context it has) and hidden (numbers of tokens that nobody sees). What earlier runs computed
 * and this one does not change is kept. JSON: tokens (id, text, begin, end, with places in the text's bytes),
 * side (of a thumbnail), pictures (address and count of [layers, heads, side, side], the largest weight of
 * each pixel's cells), heads (of each layer a list of: previous, induction, first, same, entropy, job),
 * firstLayer (layers before it were not computed again). */
WEB_API const char* webModelRun(const char* ask);
/* Returns the predictions after a token. JSON: next (a list of text, probability, and unchanged: the
 * unchanged model's probability), said (the unchanged model's own list, null without changes), lens (for
 * each layer and after the last one a list of text and probability: the logit lens). Null texts: no
 * unembedding. */
WEB_API const char* webModelNext(uint32_t token);
/* One head of the last run. JSON: weights, masked, valued (addresses and count of [tokens, tokens]; the last
 * is the weight times the length of the value it multiplies), entropy (of each row). */
WEB_API const char* webModelHead(uint32_t layer, uint32_t head);
/* One weight taken apart: the members of a derivation, scale, and origins of query, key and value: what
 * tensor and row of the files their first number comes from. */
WEB_API const char* webModelDerive(uint32_t layer, uint32_t head, uint32_t query, uint32_t key);
/* Splits the same weight's score by what earlier parts wrote to the query's and the key's rows. JSON: split,
 * as writers_json() of <fovea/inspect/writers.hpp> has it; matrix (address and count of [writers at the
 * query, writers at the key]). */
WEB_API const char* webModelWhy(uint32_t layer, uint32_t head, uint32_t query, uint32_t key);
/* Returns a token's row of a stage of a layer of the last run, or of the nearest stage that the layer has. If
 * a stage has fewer heads than the model, it is the head that `head` shares. JSON: stage (the one used),
 * stages (id, formula, heads, rows and columns of each that has a row for each token and is not a matrix of
 * pairs), row (address and count). */
WEB_API const char* webModelRow(uint32_t layer, const char* stage, uint32_t head, uint32_t row);
/* One number of such a row as the sum that it is. JSON: value, and sum, null where the number is given: how
 * (with the tensor and row of the files), a and b (the operands), terms (name, a, b and product of the
 * largest), left and leftSum (of those that are not among them), addedName, added, sum, ending, result,
 * factors (sums that the ending takes in). */
WEB_API const char* webModelSum(uint32_t layer, const char* stage, uint32_t head, uint32_t row,
                                uint32_t column);
/* Queries and keys of one head on a text of any length that the model reads, for a map of its weights: the
 * layers up to it are run without a matrix. `ask`: JSON with text, layer, head and scales as webModelRun has
 * them; hidden and patches must be empty. JSON: dim, q and k (addresses and counts of [tokens, dim]), tokens
 * (their texts), scale, softcap, causal, windowed, left, right: as sessions say them. */
WEB_API const char* webModelMap(const char* ask);
/* For tests: the last run's logits [tokens, vocabulary] and, as hidden, [layers + 1, tokens, width]
 * (addresses and counts). With `numbers`, token IDs with spaces between, the run is made first. */
WEB_API const char* webModelNumbers(const char* numbers);

#ifdef __cplusplus
}
#endif

#endif
