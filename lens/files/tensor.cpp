// Tensors as values: element types, sizes, conversion to float32.
#include <bit>
#include <cstring>
#include <new>

#include <fovea/files.hpp>
#include <fovea/half.hpp>

#include "files/buffer.hpp"
#include "files/refusal.hpp"
#include "files/utf8.hpp"

namespace fovea {

// Every format read here is little-endian or says its order; tensors are given out in the host's order as
// views.
static_assert(std::endian::native == std::endian::little,
              "the file library is written for little-endian hosts");

namespace {

template <class Stored, class Convert>
void convert_all(std::span<const std::byte> bytes, std::vector<float>& out, Convert convert) {
    for (size_t i = 0; i < out.size(); ++i) {
        Stored stored;
        std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
        out[i] = convert(stored);
    }
}

template <class Stored>
void cast_all(std::span<const std::byte> bytes, std::vector<float>& out) {
    convert_all<Stored>(bytes, out, [](Stored stored) { return static_cast<float>(stored); });
}

void convert_elements(FoveaDtype type, std::span<const std::byte> bytes, std::vector<float>& out) {
    switch (type) {
        case FOVEA_BOOL:
            return convert_all<uint8_t>(bytes, out, [](uint8_t b) { return b != 0 ? 1.0f : 0.0f; });
        case FOVEA_U8:
            return cast_all<uint8_t>(bytes, out);
        case FOVEA_I8:
            return cast_all<int8_t>(bytes, out);
        case FOVEA_I16:
            return cast_all<int16_t>(bytes, out);
        case FOVEA_I32:
            return cast_all<int32_t>(bytes, out);
        case FOVEA_I64:
            return cast_all<int64_t>(bytes, out);
        case FOVEA_U16:
            return cast_all<uint16_t>(bytes, out);
        case FOVEA_U32:
            return cast_all<uint32_t>(bytes, out);
        case FOVEA_U64:
            return cast_all<uint64_t>(bytes, out);
        case FOVEA_F16:
            return convert_all<uint16_t>(bytes, out, half_to_float);
        case FOVEA_BF16:
            return convert_all<uint16_t>(bytes, out, bfloat_to_float);
        case FOVEA_F32:
            return cast_all<float>(bytes, out);
        case FOVEA_F64:
            return cast_all<double>(bytes, out);
        default:  // no tensor has another: check_size() rejects it
            return;
    }
}

}  // namespace

std::string format_shape(std::span<const uint64_t> shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + "]";
}

uint64_t element_count(const Tensor& tensor) noexcept {
    uint64_t count = 1;
    for (const uint64_t dim : tensor.shape) count *= dim;
    return count;
}

Result<Tensor> make_tensor(std::string name, FoveaDtype type, std::vector<uint64_t> shape,
                           std::span<const std::byte> bytes) {
    if (auto error = files::check_size(name, type, shape, bytes.size())) return *std::move(error);
    files::Buffer buffer;
    if (!buffer.allocate(bytes.size())) return files::out_of_memory("tensor", bytes.size());
    if (!bytes.empty()) std::memcpy(buffer.bytes().data(), bytes.data(), bytes.size());
    return Tensor{std::move(name), type, std::move(shape), buffer.bytes(), buffer.owner()};
}

Result<Tensor> make_tensor(std::string name, std::vector<uint64_t> shape, std::vector<float> values) {
    const uint64_t size_bytes = values.size() * sizeof(float);
    if (auto error = files::check_size(name, FOVEA_F32, shape, size_bytes)) return *std::move(error);
    auto owner = std::make_shared<const std::vector<float>>(std::move(values));
    return Tensor{std::move(name), FOVEA_F32, std::move(shape), std::as_bytes(std::span(*owner)), owner};
}

Result<std::vector<float>> to_f32(const Tensor& tensor) {
    if (auto error = files::check_size(tensor.name, tensor.type, tensor.shape, tensor.bytes.size()))
        return *std::move(error);
    std::vector<float> out(element_count(tensor));
    convert_elements(tensor.type, tensor.bytes, out);
    return out;
}

std::string printable_name(std::string_view name, size_t limit_bytes) {
    constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    while (!name.empty()) {
        // C1 controls (U+0080 to U+009f) are valid UTF-8 and still drive some terminals.
        size_t length = files::utf8_length(name);
        const auto first = static_cast<unsigned char>(name[0]);
        const bool control = first < 0x20u || first == 0x7fu ||
                             (length == 2 && first == 0xc2u && static_cast<unsigned char>(name[1]) < 0xa0u);
        const bool escape = length == 0 || control || first == '\'' || first == '\\';
        if (length == 0) length = 1;
        if (out.size() + (escape ? 4 * length : length) > limit_bytes) return out + "...";
        for (size_t i = 0; i < length; ++i) {
            const auto byte = static_cast<unsigned char>(name[i]);
            if (escape)
                out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15u]};
            else
                out += static_cast<char>(byte);
        }
        name.remove_prefix(length);
    }
    return out;
}

std::string TensorSet::why_missing(std::string_view name) const {
    for (const auto& [other, reason] : unsupported)
        if (other == name) return reason;
    return "is not in the file";
}

const Tensor* TensorSet::find(std::string_view name) const noexcept {
    for (const Tensor& tensor : tensors)
        if (tensor.name == name) return &tensor;
    return nullptr;
}

const std::string* TensorSet::find_metadata(std::string_view key) const noexcept {
    for (const auto& [name, value] : metadata)
        if (name == key) return &value;
    return nullptr;
}

}  // namespace fovea
