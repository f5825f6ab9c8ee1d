// The options of the commands that take an attention call: one table that they are parsed by and that they
// print.
#pragma once

#include "engine_options.hpp"

#include <fovea/model/cache_type.hpp>

#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fovea::app {

enum class AttentionCommand { attend, explain, map, gradients };

// All options of a command but those that it has for itself, in the order of its --help.
std::vector<OptionSpec> attention_command_options(AttentionCommand command);

// Runs a command, and names options in its errors in place of fields of the description: --dropout is 1.
std::function<Result<int>(const Arguments&)> naming_options(Result<int> (*command)(const Arguments&));

// Returns the error of a command that needs one input file and has none or several.
Error wrong_input_files(std::string_view command, const Arguments& arguments);

// Sets what the options give of scale, masks, dropout, outputs and kernel of `desc`; shapes and tensors come
// from elsewhere.
Result<void> apply_attention_options(const Arguments& arguments, AttentionCommand command,
                                     FoveaAttentionDesc& desc);

// --chunk, which is of --shards.
Result<uint64_t> chunk_option(const Arguments& arguments);

constexpr bool is_oracle(FoveaKernel kernel) {
    return kernel == FOVEA_KERNEL_PLAIN || kernel == FOVEA_KERNEL_REFERENCE;
}

// --cache-type and --cache-rotation: how keys and values are cached, or nothing.
Result<std::optional<CacheType>> cache_type_option(const Arguments& arguments);

// --layout: true for blhd; nothing where it is not given.
Result<std::optional<bool>> rows_first_option(const Arguments& arguments);

// "o,lse" -> FOVEA_OUTPUT_* bits, and the names in the order of FoveaBinding.
struct OutputName {
    std::string_view name;
    uint32_t output;
    FoveaBinding binding;
};
std::span<const OutputName> output_names();

}  // namespace fovea::app
