#include "files/model_config.hpp"

#include <algorithm>
#include <array>

#include "files/json_text.hpp"
#include "files/mapped_file.hpp"
#include "files/refusal.hpp"

namespace fovea::files {
namespace {

/// Nested parts (quantisation, tasks) are only stepped over.
constexpr size_t kMaxConfigDepth = 32;
constexpr std::array<std::string_view, 5> kNumbers = {"n_head", "num_attention_heads", "num_key_value_heads",
                                                      "head_dim", "rope_theta"};

using Entries = std::vector<std::pair<std::string, std::string>>;

Error config_fault(size_t offset, std::string field, std::string_view reason) {
    return malformed(std::move(field), cat("byte ", offset, ": ", reason));
}

/// Steps over the value of a wanted key and keeps it; null counts as not there.
std::optional<Error> take_number(JsonCursor& cursor, std::string_view key, Entries& found) {
    if (cursor.kind() == JsonKind::null) {
        cursor.skip_value();
        return std::nullopt;
    }
    if (cursor.kind() != JsonKind::number)
        return config_fault(cursor.offset(), std::string(key), cat(key, " is not a number"));
    const size_t offset = cursor.offset();
    const std::string_view text = cursor.number();
    for (const auto& [name, value] : found)
        if (name == key && value != text)
            return config_fault(offset, std::string(key), cat(key, " appears twice with different values"));
    found.emplace_back(key, text);
    return std::nullopt;
}

/// rope_scaling, or rope_parameters as newer versions write it: {"rope_type": "llama3", "rope_theta":
/// 500000.0, ...}
std::optional<Error> take_rope(JsonCursor& cursor, Entries& found) {
    if (cursor.kind() != JsonKind::object) {
        cursor.skip_value();
        return std::nullopt;
    }
    cursor.enter();
    while (cursor.next()) {
        const JsonString key = cursor.key();
        if (key.equals("rope_theta")) {
            if (auto error = take_number(cursor, "rope_theta", found)) return error;
        } else if ((key.equals("rope_type") || key.equals("type")) && cursor.kind() == JsonKind::string) {
            const std::string type = cursor.string().decoded();
            if (type != "default") found.emplace_back("rope_scaling", type);
        } else {
            cursor.skip_value();
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<Error> add_model_config(std::span<const std::byte> json, TensorSet& checkpoint) {
    if (json.size() > kMaxConfigBytes)
        return malformed("file", cat("byte 0: ", json.size(), " bytes, the limit for a configuration is ",
                                     kMaxConfigBytes));
    const std::string_view text(reinterpret_cast<const char*>(json.data()), json.size());
    if (const auto fault = check_json(text, kMaxConfigDepth, JsonNumbers::python))
        return config_fault(fault->offset, "file", fault->reason);
    JsonCursor cursor(text);
    if (cursor.kind() != JsonKind::object)
        return config_fault(cursor.offset(), "file", "the file must hold a JSON object");
    Entries found;
    cursor.enter();
    while (cursor.next()) {
        const JsonString key = cursor.key();
        const auto* number = std::find_if(kNumbers.begin(), kNumbers.end(),
                                          [&](std::string_view name) { return key.equals(name); });
        std::optional<Error> error;
        if (number != kNumbers.end())
            error = take_number(cursor, *number, found);
        else if (key.equals("rope_scaling") || key.equals("rope_parameters"))
            error = take_rope(cursor, found);
        else
            cursor.skip_value();
        if (error) return error;
    }
    for (auto& [key, value] : found)
        if (checkpoint.find_metadata(key) == nullptr) checkpoint.metadata.emplace_back(key, value);
    return std::nullopt;
}

std::optional<Error> add_model_config_beside(const std::filesystem::path& safetensors,
                                             TensorSet& checkpoint) {
    const std::filesystem::path path = safetensors.parent_path() / "config.json";
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return std::nullopt;
    const auto file = MappedFile::open(path);
    if (!file) return file.error();
    auto error = add_model_config(file.value()->bytes(), checkpoint);
    if (error) return in_file(path, *std::move(error));
    return std::nullopt;
}

}  // namespace fovea::files
