#pragma once
// The sizes in a checkpoint's config.json that do not follow from its weights.
#include <filesystem>
#include <optional>
#include <span>

#include <fovea/files.hpp>

namespace fovea::files {

constexpr uint64_t kMaxConfigBytes = 1'000'000;

/// Adds n_head, num_attention_heads, num_key_value_heads, head_dim and rope_theta to the checkpoint's
/// metadata where the file has them and the metadata does not, and `rope_scaling` with its type where the
/// rotary embedding is scaled. On an error nothing was added.
std::optional<Error> add_model_config(std::span<const std::byte> json, TensorSet& checkpoint);

/// The same from the config.json in the folder of `safetensors`, when there is one.
std::optional<Error> add_model_config_beside(const std::filesystem::path& safetensors, TensorSet& checkpoint);

}  // namespace fovea::files
