// What the settings ask of one attention call, in host memory: the description and the bytes of its inputs.
#pragma once

#include "model/settings.hpp"
#include "model/token_model.hpp"

#include <array>
#include <span>
#include <vector>

namespace fovea::visualizer {

// Whether the weights of all heads are few enough to be kept as matrices.
bool fits_matrices(const Projected& projected);

// The slope of ALiBi: the file's, or by the rule of its paper.
float alibi_slope(const CallExtras& extras, uint32_t head, uint64_t heads);

// Rounds q, k, v and the stages that show them to what the settings' precision stores. Refused where a number
// is beyond float16.
Result<void> round_to_precision(Projected& projected, const Settings& settings);

// `bytes` of q, k and v may be those of `projected`, which must then outlive this.
struct AttentionInputs {
    FoveaAttentionDesc desc = foveaAttentionDesc();  // outputs, kernel and precision are left to the caller
    std::array<std::span<const std::byte>, FOVEA_BIND_COUNT> bytes;  // empty: no such input
    std::vector<std::vector<std::byte>> owned;
};
// Refuses what is too large to be kept as matrices.
Result<AttentionInputs> attention_inputs(const Projected& projected, const Settings& settings);

}  // namespace fovea::visualizer
