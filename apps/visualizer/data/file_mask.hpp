// What a file of scripts/export_attention.py says of a layer beside its queries: its mask, bias and sinks.
#pragma once

#include "model/settings.hpp"

#include <string>
#include <vector>

namespace fovea::visualizer {

// Whether the mapped layer has a boolean mask of its own and the settings no pattern: then it counts.
bool has_file_mask(const Settings& settings);

// Its cells, 1 is visible, row by row; empty where there is none of rows x keys that all heads share.
std::vector<uint8_t> file_mask(const Settings& settings, uint64_t rows, uint64_t keys);

// What the layer was computed with and the shown weights are not: a line for a person each.
std::vector<std::string> unused_of_file(const Settings& settings, uint64_t rows, uint64_t keys);

}  // namespace fovea::visualizer
