// GGUF files: their metadata as values, their tensors as stored weights.
#include <algorithm>
#include <bit>
#include <cmath>

#include <fovea/files/checkpoint.hpp>

#include "files/buffer.hpp"
#include "files/gguf_header.hpp"
#include "files/little_endian.hpp"
#include "files/mapped_file.hpp"
#include "files/refusal.hpp"

namespace fovea {
namespace {

/// Returns element `index` of a numeric value.
std::optional<double> element(const GgufValue& v, uint64_t index) {
    const auto at = [&](size_t size) { return files::read_le(v.bytes, index * size, size); };
    switch (v.type) {
        case GgufType::u8:
            return double(at(1));
        case GgufType::i8:
            return double(int8_t(at(1)));
        case GgufType::u16:
            return double(at(2));
        case GgufType::i16:
            return double(int16_t(at(2)));
        case GgufType::u32:
            return double(at(4));
        case GgufType::i32:
            return double(int32_t(at(4)));
        case GgufType::u64:
            return double(at(8));
        case GgufType::i64:
            return double(int64_t(at(8)));
        case GgufType::f32:
            return double(std::bit_cast<float>(uint32_t(at(4))));
        case GgufType::f64:
            return std::bit_cast<double>(at(8));
        case GgufType::boolean:
            return double(at(1));
        default:
            return std::nullopt;
    }
}

}  // namespace

std::optional<uint64_t> GgufValue::whole() const {
    if (is_array || type == GgufType::f32 || type == GgufType::f64 || type == GgufType::boolean)
        return std::nullopt;
    if (type == GgufType::u64) return files::read_le(bytes, 0, 8);
    const auto value = element(*this, 0);
    return value && *value >= 0 ? std::optional(uint64_t(*value)) : std::nullopt;
}

std::optional<double> GgufValue::number() const {
    return is_array || type == GgufType::boolean ? std::nullopt : element(*this, 0);
}

std::optional<bool> GgufValue::truth() const {
    if (is_array || type != GgufType::boolean) return std::nullopt;
    return bytes[0] != std::byte{0};
}

std::optional<std::string_view> GgufValue::text() const {
    if (is_array || type != GgufType::text) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(bytes.data()) + 8, bytes.size() - 8);
}

std::optional<std::vector<std::string_view>> GgufValue::texts() const {
    if (!is_array || type != GgufType::text) return std::nullopt;
    std::vector<std::string_view> all;
    all.reserve(size_t(count));
    uint64_t at = 0;
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t length = files::read_le(bytes, at, 8);
        all.emplace_back(reinterpret_cast<const char*>(bytes.data()) + at + 8, size_t(length));
        at += 8 + length;
    }
    return all;
}

std::optional<std::vector<double>> GgufValue::numbers() const {
    if (!is_array || type == GgufType::text) return std::nullopt;
    std::vector<double> all;
    all.reserve(size_t(count));
    for (uint64_t i = 0; i < count; ++i) all.push_back(*element(*this, i));
    return all;
}

const GgufValue* GgufFile::find(std::string_view key) const noexcept {
    for (const GgufValue& value : metadata)
        if (value.key == key) return &value;
    return nullptr;
}

namespace {

// Copies a header's contents: metadata as views of it, tensors with the places of their bytes in the file.
GgufFile of_header(const files::GgufHeader& header, std::shared_ptr<const void> owner) {
    GgufFile out;
    out.version = header.version();
    out.metadata = header.values();
    out.owner = std::move(owner);
    const std::vector<files::GgufTensor> tensors = header.tensors();
    out.weights.reserve(tensors.size());
    for (const files::GgufTensor& t : tensors) {
        StoredWeight weight;
        weight.name = std::string(t.name);
        weight.type = t.weight_type;
        weight.type_text = files::gguf_type_text(t.type);
        weight.shape.assign(std::make_reverse_iterator(t.dims + t.rank), std::make_reverse_iterator(t.dims));
        weight.size_bytes = t.size_bytes;
        weight.place = header.data_begin() + t.offset;
        out.weights.push_back(std::move(weight));
    }
    return out;
}

}  // namespace

Result<GgufFile> parse_gguf(std::span<const std::byte> file, std::shared_ptr<const void> owner) {
    const Result<files::GgufHeader> header = files::GgufHeader::read({file});
    if (!header) return header.error();
    GgufFile out = of_header(*header, owner);
    for (StoredWeight& weight : out.weights) {
        weight.bytes = file.subspan(size_t(weight.place), size_t(weight.size_bytes));
        weight.owner = owner;
    }
    return out;
}

Result<GgufFile> read_gguf(std::shared_ptr<const StoredFile> file) {
    // How long the header is, only its end tells: twice as much is read until it is there.
    constexpr uint64_t kFirstBytes = uint64_t{1} << 20;
    if (!file->held().empty()) return parse_gguf(file->held(), file);
    const uint64_t size = file->size_bytes();
    for (uint64_t head_bytes = std::min(kFirstBytes, size);; head_bytes = std::min(2 * head_bytes, size)) {
        files::Buffer head;
        if (!head.allocate(head_bytes)) return files::out_of_memory("file", head_bytes);
        if (Result<void> r = file->read(0, head.bytes()); !r) return r.error();
        bool needs_more = false;
        const Result<files::GgufHeader> header = files::GgufHeader::read({head.bytes(), size}, &needs_more);
        if (needs_more) continue;
        if (!header) return header.error();
        GgufFile out = of_header(*header, head.owner());
        for (StoredWeight& weight : out.weights) weight.file = file;
        return out;
    }
}

Result<GgufFile> load_gguf(const std::filesystem::path& path) {
    auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    Result<GgufFile> read = parse_gguf(file.value()->bytes(), file.value());
    if (!read) return files::in_file(path, read.error());
    if (!file.value()->intact())
        return files::in_file(path, files::malformed("file", "the file's size changed while it was read"));
    return read;
}

}  // namespace fovea
