#include "onnx/tensor_values.hpp"

#include "problem/elements.hpp"
#include "problem/problem.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <optional>

namespace fovea::onnx {
namespace {

template <class T>
T element(const std::vector<std::byte>& bytes, uint64_t index) {
    T value;
    memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
}

template <class T>
void put(std::vector<std::byte>& bytes, uint64_t index, T value) {
    memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

Error unsupported(std::string_view name, ElementType type) {
    return Error{FOVEA_UNSUPPORTED, std::string(name),
                 "element type " + type_name(type) + " is not one the engine has"};
}

std::optional<FoveaDtype> engine_type(ElementType type) {
    if (type == ElementType::float32) return FOVEA_F32;
    if (type == ElementType::float16) return FOVEA_F16;
    if (type == ElementType::bfloat16) return FOVEA_BF16;
    return std::nullopt;
}

float narrowed(double value) {
    if (!std::isfinite(value)) return float(value);
    return float(std::clamp(value, -double(FLT_MAX), double(FLT_MAX)));
}

}  // namespace

HostTensor make_host(FoveaDtype type, uint64_t elements) {
    const uint64_t size = dtype_bytes(type);
    HostTensor host;
    host.type = type;
    host.bytes.resize(size_t((elements * size + 3) / 4 * 4));
    return host;
}

float host_float(const HostTensor& tensor, uint64_t index) {
    return with_type(tensor.type,
                     [&](auto number) { return widened(element<decltype(number)>(tensor.bytes, index)); });
}

Result<HostTensor> to_host(const Tensor& tensor, std::string_view name) {
    const std::optional<FoveaDtype> type = engine_type(tensor.type);
    if (!type) return unsupported(name, tensor.type);
    HostTensor host = make_host(*type, tensor.elements());
    std::copy(tensor.data.begin(), tensor.data.end(), host.bytes.begin());
    return host;
}

Result<HostTensor> to_host_float(const Tensor& tensor, std::string_view name) {
    if (tensor.type == ElementType::boolean) return unsupported(name, tensor.type);
    HostTensor host = make_host(FOVEA_F32, tensor.elements());
    for (uint64_t n = 0; n < tensor.elements(); ++n) put(host.bytes, n, narrowed(value_at(tensor, n)));
    return host;
}

HostTensor to_host_boolean(const Tensor& tensor) {
    HostTensor host = make_host(FOVEA_U8, tensor.elements());
    std::copy(tensor.data.begin(), tensor.data.end(), host.bytes.begin());
    return host;
}

Result<std::vector<int64_t>> to_integers(const Tensor& tensor, std::string_view name, int64_t low,
                                         int64_t high) {
    if (tensor.type != ElementType::int64 && tensor.type != ElementType::int32)
        return unsupported(name, tensor.type);
    std::vector<int64_t> values;
    for (uint64_t n = 0; n < tensor.elements(); ++n) {
        const int64_t value = tensor.type == ElementType::int64 ? element<int64_t>(tensor.data, n)
                                                                : element<int32_t>(tensor.data, n);
        if (value < low || value > high)
            return Error{FOVEA_INVALID_ARGUMENT, std::string(name),
                         "element " + std::to_string(n) + " is " + std::to_string(value) +
                             "; it must be in " + std::to_string(low) + " .. " + std::to_string(high)};
        values.push_back(value);
    }
    return values;
}

Tensor from_host(const HostTensor& host, ElementType type, std::vector<int64_t> dims) {
    Tensor tensor;
    tensor.type = type;
    tensor.dims = std::move(dims);
    const uint64_t elements = tensor.elements();
    tensor.data.resize(size_t(elements * size_of(type)));
    if (engine_type(type) == host.type) {
        std::copy_n(host.bytes.begin(), tensor.data.size(), tensor.data.begin());
        return tensor;
    }
    for (uint64_t n = 0; n < elements; ++n) {
        const float value = host_float(host, n);
        if (type == ElementType::float32) put(tensor.data, n, value);
        if (type == ElementType::float16) put(tensor.data, n, float_to_half(value));
        if (type == ElementType::bfloat16) put(tensor.data, n, float_to_bfloat(value));
    }
    return tensor;
}

double value_at(const Tensor& tensor, uint64_t index) {
    switch (tensor.type) {
        case ElementType::float32:
            return element<float>(tensor.data, index);
        case ElementType::float16:
            return half_to_float(element<uint16_t>(tensor.data, index));
        case ElementType::bfloat16:
            return bfloat_to_float(element<uint16_t>(tensor.data, index));
        case ElementType::float64:
            return element<double>(tensor.data, index);
        case ElementType::uint8:
        case ElementType::boolean:
            return element<uint8_t>(tensor.data, index);
        case ElementType::int8:
            return element<int8_t>(tensor.data, index);
        case ElementType::int16:
            return element<int16_t>(tensor.data, index);
        case ElementType::int32:
            return element<int32_t>(tensor.data, index);
        case ElementType::int64:
            return double(element<int64_t>(tensor.data, index));
    }
    return NAN;
}

}  // namespace fovea::onnx
