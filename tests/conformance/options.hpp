// The options of this test program's command line.
#pragma once

#include "onnx/node_runner.hpp"

#include <fovea/runtime.hpp>

#include <string>

namespace fovea::test {

struct Options {
    BackendChoice backend = BackendChoice::cpu;
    onnx::AttentionChoice choice;
    std::string shared_cases;  // folders with the ONNX project's own cases, separated by ':'; may be empty
};
Options& options();

}  // namespace fovea::test
