// Small models that learn while one watches: tasks whose data are drawn by counters, states that can be kept
// and taken up again, and the step between two of them, computed by the engine's own plans.
#pragma once

#include <fovea/train/state_file.hpp>
#include <fovea/train/task.hpp>
#include <fovea/train/trainer.hpp>
#include <fovea/train/training_run.hpp>
#include <fovea/train/training_text.hpp>
