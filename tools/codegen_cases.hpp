// The calls whose pipelines fovea_codegen compiles: what programs that use attention ask for most.
#pragma once

#include <fovea/fovea.hpp>

#include <functional>
#include <string>
#include <vector>

namespace fovea::app {

struct CodegenCase {
    std::string name;  // "prefill-d64-f16-matrix"
    bool gate;         // one of the few that a test compiles on every device
    std::function<Result<Plan>(const FoveaDeviceProperties& properties)> plan;
    uint32_t dim = 0;  // head size of queries and keys; 0: not attention
};

std::vector<CodegenCase> codegen_cases();

}  // namespace fovea::app
