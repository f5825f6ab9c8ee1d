#pragma once
// What every fuzz target shares. A target takes any bytes; broken promises end the program, so that libFuzzer
// and the replay both see them.
#include <fovea/files.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "files/encoders.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace fovea::fuzz {

/// Small enough for thousands of inputs a second under the sanitizers.
constexpr LoadLimits kLimits = {uint64_t{1} << 20};

inline std::span<const std::byte> as_bytes(const uint8_t* data, size_t size) {
    return std::as_bytes(std::span(data, size));
}

inline void require(bool holds, const char* promise) {
    if (holds) return;
    std::fprintf(stderr, "broken promise: %s\n", promise);
    std::abort();
}

/// An error is one line of printable text with a field.
inline void check_error(const Error& error) {
    require(error.code != FOVEA_OK && !error.field.empty() && !error.text.empty(),
            "an error has code, field and text");
    for (const char c : error.text)
        require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "an error's text is one printable line");
}

/// Shape, type and bytes agree and every byte can be read.
inline void check_tensor(const Tensor& tensor) {
    require(tensor.bytes.size() == element_count(tensor) * element_size_bytes(tensor.type),
            "bytes match the shape");
    require(to_f32(tensor).has_value(), "a loaded tensor converts to float32");
}

inline bool same(const Tensor& a, const Tensor& b) {
    return a.type == b.type && a.shape == b.shape &&
           std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

/// Every tensor of `before` is in `after`, bit for bit.
inline void check_same(const TensorSet& before, const Result<TensorSet>& after) {
    require(after.has_value(), "what was loaded can be saved and loaded again");
    require(after->tensors.size() == before.tensors.size(), "the number of tensors survives");
    for (const Tensor& tensor : before.tensors) {
        const Tensor* twin = after->find(tensor.name);
        require(twin != nullptr && same(tensor, *twin), "a tensor survives saving and loading");
    }
}

}  // namespace fovea::fuzz
