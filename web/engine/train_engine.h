/* The page's door to training (<fovea/train.hpp>): a separate module, called by a separate Worker, so that a
 * reader who never trains never loads it.
 *
 * Texts are UTF-8 and end with 0. A returned text is owned by the module and lives until the next call that
 * returns one. A call that fails returns a null pointer and leaves the reason in webTrainError(). One thread
 * calls. web/tools/abi.mjs makes the TypeScript declarations from this file.
 */
#ifndef FOVEA_WEB_TRAIN_ENGINE_H
#define FOVEA_WEB_TRAIN_ENGINE_H

#include <stdint.h>

#if defined(__EMSCRIPTEN__)
#define WEB_API __attribute__((used, visibility("default")))
#else
#define WEB_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

WEB_API const char* webTrainError(void);

/* Begins a run at step 0. `place`: task, changes and seed of the session key `train` (read_training_place of
 * <fovea/train/training_run.hpp>); the rest is ignored. JSON: vocabulary (texts), context, layers, heads,
 * scores (name and label of those that the task has), goal (accuracy, within), weights (their number),
 * example (a sequence to inspect). */
WEB_API const char* webTrainOpen(const char* place);
/* `count` steps further. JSON: a list with step, loss, accuracy and heads (the scores of each, null where the
 * task has no such score), of the state before each step, on the step's own sequences. */
WEB_API const char* webTrainStep(uint32_t count);
/* To a step that was reached before, or to a later one: from the nearest kept state, the steps between made
 * again. The same bits come out. JSON as webTrainStep, of the steps that were made. */
WEB_API const char* webTrainSeek(uint32_t step);
/* On sequences that no run trains on, with the heads of the bits `heads_off` (layer * heads + head) switched
 * off. JSON: step, loss, accuracy, heads. */
WEB_API const char* webTrainEvaluate(double heads_off);
/* A forward pass over a reader's sequence, tokens with spaces between. JSON: tokens, weights (address and
 * count of [heads of all layers, length, length]), said (texts), sure (its probability), labels (what each
 * head is called, how much of it, and which score that is), cells (score, query and key of each weight that a
 * score is the mean of), loss and accuracy over what can be known (null where that is nothing).
 */
WEB_API const char* webTrainProbe(const char* tokens, double heads_off);

#ifdef __cplusplus
}
#endif

#endif
