// The options that describe an attention call, shared by `attend` and `explain`.
#pragma once

#include "arguments.hpp"

#include <fovea/runtime.hpp>

#include <span>

namespace fovea::app {

std::span<const OptionSpec> attention_option_specs();

// Sets scale, masks, dropout, outputs and kernel of `desc` from the options; shapes and tensors come from
// elsewhere.
Result<void> apply_attention_options(const Arguments& arguments, FoveaAttentionDesc& desc);

// --backend and --device.
std::span<const OptionSpec> engine_option_specs();
Result<EngineOptions> engine_options(const Arguments& arguments);

// "o,lse" -> FOVEA_OUTPUT_* bits, and the names in the order of FoveaBinding.
struct OutputName {
    std::string_view name;
    uint32_t output;
    FoveaBinding binding;
};
std::span<const OutputName> output_names();

}  // namespace fovea::app
