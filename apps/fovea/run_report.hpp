// Shared by commands that run one call on a file: choosing the device, and the report at the end.
#pragma once

#include "attention_tensors.hpp"

#include <string>

namespace fovea::app {

// Rejects validation unless the device is a Vulkan device.
Result<Engine> open_engine(const EngineOptions& options);
// The first message of the validation layer as an error.
Result<void> refuse_messages(Engine& engine);
// Writes the outputs, whole or not at all, and prints device, kernel, slices, time, notes and the file that
// was written; as one line of JSON where asked. The result is the command's exit code.
Result<int> finish_run(const RunReport& report, const AttentionCall& call, const Result<TensorSet>& outputs,
                       const std::string& out, bool as_json);

}  // namespace fovea::app
