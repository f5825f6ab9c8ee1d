// A lesson as a picture: its matrices over tokens, from scores to weights.
#pragma once

#include <fovea/inspect/heatmap.hpp>
#include <fovea/inspect/lessons.hpp>

namespace fovea {

// The panels that tell the lesson: scores, masked scores, weights (one panel a head) and what dropout leaves
// of them, of the first batch entry; where a lesson has none of these, its last matrices. Masked weights are
// hatched.
std::vector<HeatmapPanel> lesson_panels(const Lesson& lesson, const LessonRun& run);

// Title and subtitle are the lesson's own where the style has none.
Result<RgbaImage> lesson_picture(const Lesson& lesson, const LessonRun& run, HeatmapStyle style = {});

}  // namespace fovea
