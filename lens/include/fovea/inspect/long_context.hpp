// Long causal self-attention to look around in without a model: queries and keys of one head, in which the
// patterns of trained heads are planted. The same values on every run; no file, no download.
#pragma once

#include <fovea/fovea.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fovea {

struct LongContextPreset {   // a length worth a look
    std::string_view name;   // "128k"
    std::string_view title;  // for a menu
    uint32_t tokens;
};
std::span<const LongContextPreset> long_context_presets();

inline constexpr uint32_t kLongContextDim = 64;  // the head size

struct LongContext {          // a call with planted patterns
    FoveaAttentionDesc call;  // one head, causal, f32, D = Dv = kLongContextDim, packed
    std::vector<float> q, k;  // [tokens, kLongContextDim]
    // Period of the text in tokens. A token occurs again at query - n * period, and an induction head attends
    // to the token after that.
    uint32_t period = 0;
};

// Builds q and k with planted patterns: a local band; a sink on the first token; vertical stripes of
// separator tokens, which every later token attends to; and for each token the successors of its earlier
// occurrences (induction). Takes 1 to 2^20 tokens. There is no v: a forward pass that asks only for
// FOVEA_OUTPUT_LSE needs the binding but not its values.
Result<LongContext> long_context(uint32_t tokens);
Result<LongContext> long_context(std::string_view preset);

}  // namespace fovea
