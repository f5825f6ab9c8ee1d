// Tensors of a test case as the engine takes them, and back.
#pragma once

#include "onnx/model_file.hpp"

#include <string_view>

namespace fovea::onnx {

// Numbers in one of the engine's types, packed. Room for whole 32-bit words, as U8 buffers need.
struct HostTensor {
    FoveaDtype type = FOVEA_F32;
    std::vector<std::byte> bytes;

    FoveaHostBuffer buffer() { return {bytes.empty() ? nullptr : bytes.data(), bytes.size()}; }
};
HostTensor make_host(FoveaDtype type, uint64_t elements);
float host_float(const HostTensor& tensor, uint64_t index);

// float32, float16 and bfloat16 stay what they are. FOVEA_UNSUPPORTED for others.
Result<HostTensor> to_host(const Tensor& tensor, std::string_view name);

// As float32 whatever the type: for tables, and for masks, where integers count as their value and a finite
// float64 past the range of float32 becomes the largest float32, not an infinity that would hide a key.
Result<HostTensor> to_host_float(const Tensor& tensor, std::string_view name);
HostTensor to_host_boolean(const Tensor& tensor);

// int64 or int32 values; an error for other types and for values outside [low, high].
Result<std::vector<int64_t>> to_integers(const Tensor& tensor, std::string_view name, int64_t low,
                                         int64_t high);

// `type` is float32, float16 or bfloat16; rounds once.
Tensor from_host(const HostTensor& host, ElementType type, std::vector<int64_t> dims);

// One element as a number, for comparing.
double value_at(const Tensor& tensor, uint64_t index);

}  // namespace fovea::onnx
