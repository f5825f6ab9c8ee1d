// The lesson of a task that a model learned: its heads on one sequence, named by what they do.
#pragma once

#include <fovea/inspect/heatmap.hpp>
#include <fovea/model/learned.hpp>

#include <string>
#include <vector>

namespace fovea {
/// One head that is worth a look: where it is in the model, and its weights on the lesson's tokens.
struct LearnedHead {
    uint32_t layer = 0, head = 0;
    std::string label;  // "previous token"
    F32Tensor weights;  // [tokens, tokens]
};
struct LearnedLesson {
    LearnedModel learned;
    std::vector<uint32_t> ids;
    std::vector<std::string> tokens;   // the text of each ID
    std::vector<LearnedHead> heads;    // layer by layer
    std::vector<std::string> said;     // the most likely next token after each token
    std::vector<float> probabilities;  // the probabilities of `said`
};

// A forward pass over `tokens`, or over the model's sample where they are empty, in the trace's own
// arithmetic. Rejects what learned_input() rejects, and an empty sequence.
Result<LearnedLesson> learned_lesson(LearnedModel learned, std::span<const uint32_t> tokens = {});

// The index of the head to show first: of the last layer with a named head, the one with the largest
// job_share(). The last head if none has a name.
size_t clearest_head(const LearnedLesson& lesson);

// The heads that have a name, as panels over the tokens; all of them where none has. The title is "LABEL
// (layer L, head H)".
std::vector<HeatmapPanel> learned_panels(const LearnedLesson& lesson);
// Title and subtitle are the task's own where the style has none.
Result<RgbaImage> learned_picture(const LearnedLesson& lesson, HeatmapStyle style = {});

}  // namespace fovea
