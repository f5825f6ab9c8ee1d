// fovea conformance: runs ONNX node test cases.
#pragma once

#include "commands.hpp"

namespace fovea::app {

int conformance_command(Words words);

}  // namespace fovea::app
