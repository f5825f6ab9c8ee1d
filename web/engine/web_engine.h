/* The page's door to the engine: C functions that a Worker calls. Everything else is computed by the public
 * interface <fovea/fovea.h> on the CPU backend; nothing here touches the page.
 *
 * Texts are UTF-8 and end with 0. A returned text or array is owned by the engine and lives until the next
 * call that returns one. A call that fails returns 0 (or a null pointer) and leaves the reason in webError().
 * One thread calls. web/tools/abi.mjs makes the TypeScript declarations from this file.
 */
#ifndef FOVEA_WEB_ENGINE_H
#define FOVEA_WEB_ENGINE_H

#include <stdint.h>

#if defined(__EMSCRIPTEN__)
#define WEB_API __attribute__((used, visibility("default")))
#else
#define WEB_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Starts `threads` workers (1: none). */
WEB_API int32_t webStart(int32_t threads);
/* JSON: abi, target, threads. */
WEB_API const char* webInfo(void);
WEB_API const char* webError(void);

/* Memory for arguments; 0 when it cannot be had. */
WEB_API void* webAllocate(uint32_t size_bytes);
WEB_API void webRelease(void* memory);

/* Reads a session (<fovea/model/session.hpp>) from text: a .fovea file, or the part of an address after '#'.
 * JSON: "session", as write_session writes it but without its tensors; "notes", a key and a sentence for each
 * value that was not used or that the page does not show; "tensors", q, k and v with shape, address and count
 * of their float32 values (count 0: none); "tokens", the texts of the rows. */
WEB_API const char* webReadSession(const char* text, int32_t is_file);
/* A .fovea file of an address and the tensors that are shown; an address as the model writes it. */
WEB_API const char* webWriteSession(const char* address);
WEB_API const char* webWriteAddress(const char* address);
/* JSON: "text", one stage of a .fovea file as `fovea session` prints it (stage "": the session's own), and
 * "notes". */
WEB_API const char* webSessionStage(const char* session, const char* stage, uint32_t head);

/* The model that sessions of its task show from now on: a file of `fovea train` (lens/model/learned).
 * Borrowed for the call. 0: it is none. */
WEB_API int32_t webLearned(const void* bytes, uint32_t size_bytes);
/* Computes the session of an address. JSON: "notes" as above; "tokens"; "rows", "keys", "heads";
 * "outputBias" of the layer; "visible", the whole mask as the key "bits" of a session has it ("" beyond 128
 * tokens); "arithmetic", what computes and why; "learned", of a session with a task: layers, labels (of each
 * head, layer by layer), vocabulary, said (the prediction after each token) and sure (its probability), of
 * the layer queryBias, keyBias, valueBias and whether rotary positions turn queries and keys ("rotates"),
 * else null. Heads are those of all layers, and stages those of the layer of the session's head. */
WEB_API const char* webCompute(const char* address);
/* The same for the reader's tensors instead of the text: float32 q [heads, rows, dim], k [kv_heads, keys,
 * dim], v [kv_heads, keys, dim_v] (v may be 0). `tokens`: JSON, a list of the texts of queries and keys, or
 * "": they are numbered. */
WEB_API const char* webComputeTensors(const char* address, uint32_t heads, uint32_t kv_heads, uint32_t rows,
                                      uint32_t keys, uint32_t dim, uint32_t dim_v, const float* q,
                                      const float* k, const float* v, const char* tokens);
/* JSON: the stages of one head (or, if head < 0, those that all heads share), each with its formula, its
 * shape and the address of its float32 values. */
WEB_API const char* webStages(int32_t head);
/* Returns float32 [heads, size, size]: each head's weights, averaged down to size x size; size at most the
 * token count. After them [heads, 4]: entropy, mean distance, weight on the first and on the previous
 * token. */
WEB_API float* webThumbnails(int32_t size);
/* JSON: every step from a query and a key to their weight and its share of the context row. */
WEB_API const char* webDerive(int32_t head, int32_t query, int32_t key);
/* The same as text to take along: format 0 plain, 1 CSV, 2 LaTeX, 3 Python. */
WEB_API const char* webDeriveText(int32_t head, int32_t query, int32_t key, int32_t format);

/* JSON: name, type and shape of each tensor in a safetensors (format 0) or npy (1) file. Takes over `bytes`,
 * which webAllocate gave. webFileTensor: the elements of one of them as float32. */
WEB_API const char* webOpenFile(void* bytes, uint32_t size_bytes, int32_t format);
WEB_API float* webFileTensor(uint32_t index);

/* JSON: name, title, tutorial, level and number of printed tables of each worked example. */
WEB_API const char* webLessons(void);
/* Returns JSON of one worked example in strict float32: each printed table's strings next to the computed
 * ones, the number of exact ones, and its first seed ("seed": -1 if nothing is drawn). seed >= 0 replaces
 * it. */
WEB_API const char* webLesson(const char* name, double seed);

/* JSON of why a head of a model that learned gives a weight: "split" and "matrix" as webModelWhy of
 * model_engine.h has them. Heads are those of all layers. */
WEB_API const char* webWhy(int32_t head, int32_t query, int32_t key);

/* Deep zoom: the weights of one head as tiles of 256 x 256 pixels, never held as a matrix. webMapBegin makes
 * a synthetic sequence; webMapSession takes the head of an address's session: of all tokens of its text, or
 * of one head's tensors, float32 q [rows, dim] and k [keys, dim] (q 0: none), `head` of the `heads` that
 * their file has. JSON: "rows", "keys", "notes" as above, "tokens" of the text. webMapPrepare runs the next
 * part of the forward pass and returns its progress, 1 when done. */
WEB_API int32_t webMapBegin(uint32_t tokens);
WEB_API const char* webMapSession(const char* address, uint32_t head, uint32_t heads, uint32_t rows,
                                  uint32_t keys, uint32_t dim, const float* q, const float* k);
WEB_API double webMapPrepare(double max_flops);
/* JSON: progress ("level", tiles "needed" and "exact", "bytes" held) and "pieces", what to draw and in which
 * order: tile (level, y, x, sampled), whether it is exact, and "at": first row, first key, rows and keys of
 * the map that it covers, then x, y, width and height within the tile's pixels. webMapStep computes about
 * `max_flops` of the tile that the view needs next; pieces only where a tile was finished. */
WEB_API const char* webMapView(double row, double key, double rows, double keys, uint32_t width,
                               uint32_t height);
WEB_API const char* webMapStep(double max_flops);
/* Returns a tile's pixels [256, 256]: mass, then the largest weight; NaN for invalid pixels. */
WEB_API float* webMapPixels(uint32_t level, uint32_t y, uint32_t x, int32_t sampled);
/* The weight of one cell, computed like a tile of only that cell. webMapDerive is JSON: every step of the
 * weight except those with values, computed only from q and k; the cost is that of the row. */
WEB_API double webMapCell(double query, double key);
WEB_API const char* webMapDerive(double query, double key);

/* 256 colors, red, green, blue: "viridis", "magma", "cividis", "grey", "blue-orange" of the inspection
 * library (any other name: grey), "ink" and "balance" in the page's colors, light or dark. */
WEB_API const uint8_t* webColorTable(const char* name, int32_t dark);
/* A value's place on a map, 0 to 1, and a number as text: what the page computes by itself while it draws,
 * for the test that holds both equal. scale: 0 linear, 1 logarithmic, 2 symmetric. */
WEB_API double webColorPlace(int32_t scale, double low, double high, double value);
WEB_API const char* webNumber(int32_t is_fixed, double value, int32_t decimals);

/* Seconds of one attention call of [heads, tokens, dim] float32 on `threads` of the workers; the best of
 * `repeats`, each as many calls as take 5 ms. */
WEB_API double webBench(uint32_t heads, uint32_t tokens, uint32_t dim, int32_t causal, int32_t threads,
                        int32_t repeats);

#ifdef __cplusplus
}
#endif
#endif
