// What a command that ran one call on a file says at its end.
#pragma once

#include "attention_tensors.hpp"

#include <string>

namespace fovea::app {

// Device, kernel, slices, time, notes and the file that was written; as one line of JSON where asked.
void print_run(const RunReport& report, const AttentionCall& call, const std::string& out, bool as_json);

}  // namespace fovea::app
