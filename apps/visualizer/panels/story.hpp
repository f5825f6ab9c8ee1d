// The walk through a level, as the page tells it: what to read, the cells it is about, one thing to do, and
// whether it was done.
#pragma once

#include "panels/panels.hpp"

#include <string>

namespace fovea::visualizer {

// Goes to the next step (1), the one before (-1) or, from no step, the first; the story ends after the last.
// Each is an undo step.
void step_story(Workbench& bench, int by);
void end_story(Workbench& bench);
// Over the panels, while there is a step.
void draw_story(PanelContext& ui);
// "story, step 2 of 11: ...; done"; empty without a step.
std::string describe_story(const Workbench& bench);

}  // namespace fovea::visualizer
