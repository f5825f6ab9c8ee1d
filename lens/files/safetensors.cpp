// safetensors files as tensor sets, and back.
#include <algorithm>
#include <numeric>

#include <fovea/files.hpp>

#include "files/encoders.hpp"
#include "files/json_text.hpp"
#include "files/mapped_file.hpp"
#include "files/refusal.hpp"
#include "files/safetensors_header.hpp"
#include "files/utf8.hpp"

namespace fovea {

using files::cat;

Result<TensorSet> parse_safetensors(std::span<const std::byte> file, std::shared_ptr<const void> owner) {
    auto header = files::SafetensorsHeader::read({file});
    if (!header) return header.error();
    TensorSet set;
    set.tensors.reserve(static_cast<size_t>(header.value().tensor_count()));
    const auto data = file.subspan(static_cast<size_t>(header.value().data_begin()));
    header.value().for_each(
        [&](const files::TensorEntry& entry) {
            const auto shape = entry.shape();
            if (!entry.other_type.empty()) {
                set.unsupported.emplace_back(
                    entry.name.decoded(), cat("is stored as ", entry.other_type, ", which is not supported"));
                return;
            }
            set.tensors.push_back(
                {entry.name.decoded(),
                 entry.type,
                 {shape.begin(), shape.end()},
                 data.subspan(static_cast<size_t>(entry.begin), static_cast<size_t>(entry.end - entry.begin)),
                 owner});
        },
        [&](const files::JsonString& key, const files::JsonString& value) {
            set.metadata.emplace_back(key.decoded(), value.decoded());
        });
    return set;
}

Result<TensorSet> load_safetensors(const std::filesystem::path& path) {
    auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    auto set = parse_safetensors(file.value()->bytes(), file.value());
    if (!set) return files::in_file(path, set.error());
    if (!file.value()->intact())
        return files::in_file(path, files::malformed("file", "the file's size changed while it was read"));
    return set;
}

namespace files {
namespace {

std::optional<Error> check_text(std::string_view what, std::string_view text) {
    if (utf8_fault(text) == text.size()) return std::nullopt;
    return bad_argument("name", cat(what, " '", printable_name(text), "' is not valid UTF-8"));
}

/// Every rule of the reader, so that what was written can always be read.
std::optional<Error> check_set(const TensorSet& set) {
    if (set.tensors.size() > kMaxTensors)
        return bad_argument("tensors", cat(set.tensors.size(), " tensors, the limit is ", kMaxTensors));
    std::vector<std::string_view> names;
    for (const Tensor& tensor : set.tensors) {
        if (auto error = check_text("tensor name", tensor.name)) return error;
        if (tensor.name == kMetadataName)
            return bad_argument("name", "a tensor cannot be named __metadata__");
        if (auto error = check_size(tensor.name, tensor.type, tensor.shape, tensor.bytes.size()))
            return error;
        names.push_back(tensor.name);
    }
    if (const auto* twin = first_duplicate(names))
        return bad_argument("name", cat("two tensors are named '", printable_name(*twin), "'"));
    names.clear();
    for (const auto& [key, value] : set.metadata) {
        if (auto error = check_text("metadata key", key)) return error;
        if (auto error = check_text("metadata value", value)) return error;
        names.push_back(key);
    }
    if (const auto* twin = first_duplicate(names))
        return bad_argument("metadata", cat("metadata has '", printable_name(*twin), "' twice"));
    return std::nullopt;
}

void append_entry(std::string& header, const Tensor& tensor, uint64_t begin) {
    append_json_string(header, tensor.name);
    header += cat(":{\"dtype\":\"", safetensors_dtype(tensor.type), "\",\"shape\":[");
    for (size_t i = 0; i < tensor.shape.size(); ++i) header += cat(i == 0 ? "" : ",", tensor.shape[i]);
    header += cat("],\"data_offsets\":[", begin, ",", begin + tensor.bytes.size(), "]}");
}

/// The object after "__metadata__":
std::string metadata_text(const TensorSet& set) {
    std::string text = "{";
    for (const auto& [key, value] : set.metadata) {
        if (text.size() > 1) text += ',';
        append_json_string(text, key);
        text += ':';
        append_json_string(text, value);
    }
    return text + "}";
}

std::string header_text(std::string_view metadata, std::span<const Tensor* const> order) {
    std::string header = "{";
    if (metadata.size() > 2) header += cat("\"__metadata__\":", metadata);
    uint64_t begin = 0;
    for (const Tensor* tensor : order) {
        if (header.size() > 1) header += ',';
        append_entry(header, *tensor, begin);
        begin += tensor->bytes.size();
    }
    header += '}';
    // The data starts at a multiple of 8, the widest element.
    while (header.size() % 8 != 0) header += ' ';
    return header;
}

}  // namespace

Encoded encode_safetensors(const TensorSet& set, ByteSink& sink) {
    if (auto error = check_set(set)) return error;
    std::vector<const Tensor*> order(set.tensors.size());
    std::transform(set.tensors.begin(), set.tensors.end(), order.begin(), [](const Tensor& t) { return &t; });
    std::stable_sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) {
        return dtype_bytes(a->type) > dtype_bytes(b->type);
    });
    const std::string metadata = metadata_text(set);
    if (metadata.size() > kMaxMetadataBytes)
        return bad_argument("metadata",
                            cat("metadata of ", metadata.size(), " bytes, the limit is ", kMaxMetadataBytes));
    const std::string header = header_text(metadata, order);
    if (header.size() > kMaxHeaderBytes)
        return bad_argument("header",
                            cat("header of ", header.size(), " bytes, the limit is ", kMaxHeaderBytes));
    const uint64_t length = header.size();
    if (!sink.write(std::as_bytes(std::span(&length, 1))) || !sink.write_text(header)) return std::nullopt;
    for (const Tensor* tensor : order)
        if (!sink.write(tensor->bytes)) return std::nullopt;
    return std::nullopt;
}

}  // namespace files

Result<uint64_t> save_safetensors(const std::filesystem::path& path, const TensorSet& set) {
    return files::write_file(path,
                             [&](files::ByteSink& sink) { return files::encode_safetensors(set, sink); });
}

}  // namespace fovea
