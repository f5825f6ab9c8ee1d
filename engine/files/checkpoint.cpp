// A model's files: which of a folder's are its weights, and one name each.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include <fovea/files/checkpoint.hpp>

#include "files/mapped_file.hpp"
#include "files/model_config.hpp"
#include "files/refusal.hpp"
#include "files/safetensors_header.hpp"

namespace fovea {
namespace {

using files::cat;
namespace fs = std::filesystem;

constexpr uint64_t kMaxIndexBytes = 100'000'000;
constexpr size_t kMaxJsonDepth = 32;

WeightType weight_type_of(ElementType type) {
    switch (type) {
        case ElementType::f32:
            return WeightType::f32;
        case ElementType::f16:
            return WeightType::f16;
        case ElementType::bf16:
            return WeightType::bf16;
        case ElementType::f64:
            return WeightType::f64;
        default:
            return WeightType::other;
    }
}

/// A JSON file as a tree. Its text is checked before anything is allocated for it.
Result<JsonValue> load_json(const fs::path& path, uint64_t limit) {
    const auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    const auto bytes = file.value()->bytes();
    if (bytes.size() > limit)
        return files::in_file(path,
                              files::malformed("file", cat(bytes.size(), " bytes, the limit is ", limit)));
    Result<JsonValue> value =
        parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kMaxJsonDepth);
    if (!value) return files::in_file(path, files::malformed("file", value.error().text));
    if (value->kind() != JsonValue::Kind::object)
        return files::in_file(path, files::malformed("file", "byte 0: is not a JSON object"));
    return value;
}

/// Adds the tensors of one safetensors file.
std::optional<Error> add_safetensors(const fs::path& path, Checkpoint& out) {
    Result<TensorSet> set = load_safetensors(path);
    if (!set) return set.error();
    for (Tensor& t : set->tensors) {
        if (!out.by_name.emplace(t.name, out.weights.size()).second)
            return files::in_file(path,
                                  files::malformed("name", cat("tensor '", printable_name(t.name),
                                                               "' is in another file of the folder, too")));
        out.weights.push_back({std::move(t.name), weight_type_of(t.type),
                               std::string(files::safetensors_dtype(t.type)), std::move(t.shape), t.bytes,
                               std::move(t.owner)});
    }
    return std::nullopt;
}

/// The files that model.safetensors.index.json names, in the order of their names, and that each holds what
/// it is said to.
std::optional<Error> add_indexed(const fs::path& index, Checkpoint& out) {
    const Result<JsonValue> json = load_json(index, kMaxIndexBytes);
    if (!json) return json.error();
    const JsonValue& map = (*json)["weight_map"];
    const auto refuse = [&](std::string text) {
        return files::in_file(index, files::malformed("weight_map", std::move(text)));
    };
    if (map.kind() != JsonValue::Kind::object || map.members().empty())
        return refuse("weight_map is not an object with at least one tensor");
    std::set<std::string, std::less<>> names;
    for (const auto& [tensor, file] : map.members()) {
        const std::string_view name = file.text();
        // A name from a stranger stays in the folder.
        if (!name.ends_with(".safetensors") || name.find_first_of("/\\:") != std::string_view::npos ||
            name.find('\0') != std::string_view::npos || name.starts_with('.'))
            return refuse(cat("tensor '", printable_name(tensor), "' is said to be in '",
                              printable_name(name),
                              "', which is no file name in this folder that ends in .safetensors"));
        names.emplace(name);
    }
    for (const std::string& name : names)
        if (auto error = add_safetensors(index.parent_path() / name, out)) return error;
    for (const auto& [tensor, file] : map.members())
        if (out.find(tensor) == nullptr)
            return refuse(
                cat("tensor '", printable_name(tensor), "' is not in '", printable_name(file.text()), "'"));
    return std::nullopt;
}

std::optional<Error> add_folder(const fs::path& folder, Checkpoint& out) {
    std::error_code ignored;
    const fs::path index = folder / "model.safetensors.index.json", one = folder / "model.safetensors";
    if (fs::exists(index, ignored)) return add_indexed(index, out);
    if (fs::exists(one, ignored)) return add_safetensors(one, out);
    std::vector<fs::path> all;
    for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored))
        if (it->path().extension() == ".safetensors") all.push_back(it->path());
    std::sort(all.begin(), all.end());
    for (const fs::path& path : all)
        if (auto error = add_safetensors(path, out)) return error;
    if (!all.empty()) return std::nullopt;
    return files::bad_argument("file", cat(files::path_text(folder), ": no *.safetensors in this folder"));
}

bool begins_with_gguf(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    char magic[4] = {};
    file.read(magic, sizeof magic);
    return file && std::memcmp(magic, "GGUF", 4) == 0;
}

}  // namespace

const StoredWeight* Checkpoint::find(std::string_view name) const noexcept {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : &weights[found->second];
}

uint64_t Checkpoint::stored_bytes() const noexcept {
    uint64_t sum = 0;
    for (const StoredWeight& weight : weights) sum += weight.bytes.size();
    return sum;
}

Result<Checkpoint> load_checkpoint(const fs::path& path) {
    Checkpoint out;
    out.path = path;
    std::error_code code;
    const bool is_folder = fs::is_directory(path, code);
    if (!is_folder && (path.extension() == ".gguf" || begins_with_gguf(path))) {
        Result<GgufFile> file = load_gguf(path);
        if (!file) return file.error();
        out.weights = std::move(file->weights);
        for (size_t i = 0; i < out.weights.size(); ++i) out.by_name.emplace(out.weights[i].name, i);
        out.gguf = std::move(*file);
        return out;
    }
    out.folder = is_folder ? path : path.parent_path();
    if (!is_folder && path.extension() != ".safetensors") {
        if (!fs::exists(path, code)) return files::io_failed(path, "cannot open", ENOENT);
        return files::unsupported("file", cat(files::path_text(path),
                                              ": a model is a folder with config.json and safetensors, a "
                                              ".safetensors file of one, or a .gguf file"));
    }
    const fs::path config = out.folder / "config.json";
    if (!fs::exists(config, code))
        return files::bad_argument("config.json", cat(files::path_text(out.folder),
                                                      ": no config.json; it says what the weights are of"));
    Result<JsonValue> json = load_json(config, files::kMaxConfigBytes);
    if (!json) return json.error();
    out.config = std::move(*json);
    if (auto error = is_folder ? add_folder(path, out) : add_safetensors(path, out)) return *std::move(error);
    return out;
}

}  // namespace fovea
