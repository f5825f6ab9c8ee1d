// `fovea bench codegen`: what the compilers of real GPUs make of the pipelines of typical calls.
#pragma once

#include "commands.hpp"

namespace fovea::app {

int bench_codegen_command(Words words);

}  // namespace fovea::app
