// fovea lesson TASK: the heads of a model that learned the task.
#pragma once

#include "arguments.hpp"

#include <fovea/inspect/heatmap.hpp>

namespace fovea::app {

// True if the lesson's name is a task whose weights the library contains.
bool is_learned_task(std::string_view name);
// Prints what the model does and draws its heads where --png asks for it.
Result<int> teach_task(std::string_view task, const Arguments& arguments);
// One line for each, for --list.
void list_learned_tasks();

// As a PNG file, and says so.
Result<void> write_picture_file(const RgbaImage& image, std::string_view path);
// In lines of up to 100 columns, each with `indent` before it.
void print_wrapped(const char* indent, std::string_view text);

}  // namespace fovea::app
