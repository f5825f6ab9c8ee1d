// Reads the attention call that the metadata of a file of q, k and v describes
// (docs/reference/file-formats.md). Every program that opens such a file uses these functions.
#pragma once

#include <fovea/files.hpp>

#include <array>
#include <optional>
#include <string>

namespace fovea {

// The settings of an attention call that a file's metadata gives; empty where it gives none.
struct AttentionNotes {
    // The alignment of a causal mask.
    enum class Causal { none, top_left, bottom_right };
    std::optional<bool> rows_first;       // layout: true for blhd
    std::optional<float> scale, softcap;  // above 0
    std::optional<Causal> causal;
    std::optional<std::array<int32_t, 2>> window;  // keys before and after the query; -1: all
    std::string text;                              // all of them for people: "scale 0.5, causal top-left"
};

// Rejects a value that is not one of those above: a call without it would be another call.
Result<AttentionNotes> attention_notes(const TensorSet& file);

}  // namespace fovea
