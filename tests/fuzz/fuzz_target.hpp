#pragma once
// Shared by all fuzz targets. A target takes any bytes; broken promises end the program, so that libFuzzer
// and the replay both see them.
#include <fovea/files.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>

#include "files/allocations.hpp"
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

/// Runs `read` on an input of `size` bytes. Rejected or served, it costs at most four times the input and 1
/// MiB, `more_bytes` apart that the reader's own limits allow, and time in proportion to the input. The bound
/// on the time is a hundred times what readers take under the sanitizers: it finds loops without end and
/// cubes.
template <class Read>
auto at_cost(size_t size, Read read, size_t more_bytes = 0) {
    const std::clock_t begin = std::clock();
    const test::AllocationPeak peak;
    auto result = read();
    require(peak.bytes() <= 4 * size + (size_t{1} << 20) + more_bytes,
            "reading costs at most four times the input and 1 MiB");
    const double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
    require(seconds <= 0.5 + 1e-4 * double(size), "reading takes time in proportion to the input");
    return result;
}

/// An error is one line of printable text with a field.
inline void check_error(const Error& error) {
    require(error.code != FOVEA_OK && !error.field.empty() && !error.text.empty(),
            "an error has code, field and text");
    for (const char c : error.text)
        require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f,
                ("an error's text is one printable line: " + error.field + ": " + error.text).c_str());
}

/// Shape, type and bytes agree and every byte can be read.
inline void check_tensor(const Tensor& tensor) {
    require(tensor.bytes.size() == element_count(tensor) * dtype_bytes(tensor.type), "bytes match the shape");
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
