#pragma once
// The writers of the formats, into any sink: save_*() gives them a file, tests and fuzzers memory.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fovea/files.hpp>

#include "files/byte_sink.hpp"

namespace fovea::files {

Encoded encode_safetensors(const TensorSet& set, ByteSink& sink);
Encoded encode_npy(const Tensor& tensor, ByteSink& sink);
Encoded encode_npz(const TensorSet& set, const NpzOptions& options, ByteSink& sink);
Encoded encode_csv(const Tensor& tensor, std::span<const std::string> columns,
                   std::span<const std::string> row_names, ByteSink& sink);
Encoded encode_png(const Tensor& image, ByteSink& sink);

/// Sorts `names` and returns the first duplicate, or null.
inline const std::string_view* first_duplicate(std::vector<std::string_view>& names) {
    std::sort(names.begin(), names.end());
    const auto twin = std::adjacent_find(names.begin(), names.end());
    return twin == names.end() ? nullptr : &*twin;
}

}  // namespace fovea::files
