// A model's files: which of a folder's are its weights, and one name each.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include <fovea/files/checkpoint.hpp>

#include "files/buffer.hpp"
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

/// What a model's files lie in: a folder of the disk, or files that a program holds.
class ModelFolder {
  public:
    /// One of its files: mapped, or read when it is asked for.
    struct File {
        std::span<const std::byte> bytes;
        std::shared_ptr<const void> owner;
        std::shared_ptr<const StoredFile> stored;
        std::shared_ptr<const files::MappedFile> mapped;

        uint64_t size_bytes() const { return stored ? stored->size_bytes() : bytes.size(); }
        /// The first `count` bytes; read into memory where they are not there.
        Result<void> take(uint64_t count) {
            if (!stored || bytes.size() >= count) return {};
            files::Buffer head;
            if (!head.allocate(count)) return files::out_of_memory("file", count);
            if (Result<void> r = stored->read(0, head.bytes()); !r) return r;
            bytes = head.bytes(), owner = head.owner();
            return {};
        }
    };

    virtual ~ModelFolder() = default;
    virtual bool has(const std::string& name) const = 0;
    virtual std::vector<std::string> names() const = 0;
    virtual Result<File> open(const std::string& name) const = 0;
    virtual fs::path path(const std::string& name) const = 0;  // for people
};

class DiskFolder final : public ModelFolder {
  public:
    explicit DiskFolder(fs::path folder) : folder_(std::move(folder)) {}
    bool has(const std::string& name) const override {
        std::error_code ignored;
        return fs::exists(folder_ / name, ignored);
    }
    std::vector<std::string> names() const override {
        std::vector<std::string> all;
        std::error_code ignored;
        for (fs::directory_iterator it(folder_, ignored), end; !ignored && it != end; it.increment(ignored))
            all.push_back(it->path().filename().string());
        return all;
    }
    Result<File> open(const std::string& name) const override {
        const auto file = files::MappedFile::open(folder_ / name);
        if (!file) return file.error();
        return File{file.value()->bytes(), file.value(), {}, file.value()};
    }
    fs::path path(const std::string& name) const override { return folder_ / name; }

  private:
    fs::path folder_;
};

class HeldFolder final : public ModelFolder {
  public:
    explicit HeldFolder(std::span<const NamedFile> files) : files_(files) {}
    bool has(const std::string& name) const override { return find(name) != nullptr; }
    std::vector<std::string> names() const override {
        std::vector<std::string> all;
        for (const NamedFile& one : files_) all.push_back(one.name);
        return all;
    }
    Result<File> open(const std::string& name) const override {
        const NamedFile* const one = find(name);
        if (!one)
            return files::bad_argument("file",
                                       cat("'", printable_name(name), "' is not among the files given"));
        if (!one->file->held().empty()) return File{one->file->held(), one->file, {}, {}};
        return File{{}, {}, one->file, {}};
    }
    fs::path path(const std::string& name) const override { return name; }

  private:
    const NamedFile* find(const std::string& name) const {
        for (const NamedFile& one : files_)
            if (one.name == name) return &one;
        return nullptr;
    }
    std::span<const NamedFile> files_;
};

/// A JSON file as a tree. Its text is checked before anything is allocated for it.
Result<JsonValue> load_json(const ModelFolder& folder, const std::string& name, uint64_t limit) {
    const fs::path path = folder.path(name);
    Result<ModelFolder::File> file = folder.open(name);
    if (!file) return file.error();
    const uint64_t size = file->size_bytes();
    if (size > limit)
        return files::in_file(path, files::malformed("file", cat(size, " bytes, the limit is ", limit)));
    if (Result<void> r = file->take(size); !r) return files::in_file(path, r.error());
    Result<JsonValue> value =
        parse_json({reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size()}, kMaxJsonDepth);
    if (!value) return files::in_file(path, files::malformed("file", value.error().text));
    if (value->kind() != JsonValue::Kind::object)
        return files::in_file(path, files::malformed("file", "byte 0: is not a JSON object"));
    return value;
}

/// Adds the tensors of one safetensors file.
std::optional<Error> add_safetensors(const ModelFolder& folder, const std::string& name, Checkpoint& out) {
    const fs::path path = folder.path(name);
    Result<ModelFolder::File> file = folder.open(name);
    if (!file) return file.error();
    const uint64_t size = file->size_bytes();
    if (Result<void> r = file->take(std::min<uint64_t>(8, size)); !r) return files::in_file(path, r.error());
    if (Result<void> r = file->take(files::SafetensorsHeader::header_bytes(file->bytes, size)); !r)
        return files::in_file(path, r.error());
    const auto header = files::SafetensorsHeader::read({file->bytes, size});
    if (!header) return files::in_file(path, header.error());
    std::optional<Error> error;
    header->for_each(
        [&](const files::TensorEntry& entry) {
            StoredWeight weight;
            weight.name = entry.name.decoded();
            if (!error && !out.by_name.emplace(weight.name, out.weights.size()).second)
                error = files::in_file(
                    path, files::malformed("name", cat("tensor '", printable_name(weight.name),
                                                       "' is in another file of the folder, too")));
            weight.type = weight_type_of(entry.type);
            weight.type_text = std::string(files::safetensors_dtype(entry.type));
            weight.shape.assign(entry.shape().begin(), entry.shape().end());
            weight.size_bytes = entry.end - entry.begin;
            weight.place = header->data_begin() + entry.begin;
            weight.file = file->stored;
            if (!file->stored) {
                weight.bytes = file->bytes.subspan(size_t(weight.place), size_t(weight.size_bytes));
                weight.owner = file->owner;
            }
            out.weights.push_back(std::move(weight));
        },
        [](const files::JsonString&, const files::JsonString&) {});
    if (!error && file->mapped && !file->mapped->intact())
        error = files::in_file(path, files::malformed("file", "the file's size changed while it was read"));
    return error;
}

/// The files that model.safetensors.index.json names, in the order of their names, and that each holds what
/// it is said to.
std::optional<Error> add_indexed(const ModelFolder& folder, const std::string& index, Checkpoint& out) {
    const Result<JsonValue> json = load_json(folder, index, kMaxIndexBytes);
    if (!json) return json.error();
    const JsonValue& map = (*json)["weight_map"];
    const auto refuse = [&](std::string text) {
        return files::in_file(folder.path(index), files::malformed("weight_map", std::move(text)));
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
        if (auto error = add_safetensors(folder, name, out)) return error;
    for (const auto& [tensor, file] : map.members())
        if (out.find(tensor) == nullptr)
            return refuse(
                cat("tensor '", printable_name(tensor), "' is not in '", printable_name(file.text()), "'"));
    return std::nullopt;
}

std::optional<Error> add_folder(const ModelFolder& folder, Checkpoint& out) {
    const std::string index = "model.safetensors.index.json", one = "model.safetensors";
    if (folder.has(index)) return add_indexed(folder, index, out);
    if (folder.has(one)) return add_safetensors(folder, one, out);
    std::vector<std::string> all = folder.names();
    std::erase_if(all, [](const std::string& name) { return !name.ends_with(".safetensors"); });
    std::sort(all.begin(), all.end());
    for (const std::string& name : all)
        if (auto error = add_safetensors(folder, name, out)) return error;
    if (!all.empty()) return std::nullopt;
    return files::bad_argument("file", cat(files::path_text(out.path), ": no *.safetensors in this folder"));
}

Result<void> add_config(const ModelFolder& folder, Checkpoint& out) {
    if (!folder.has("config.json"))
        return files::bad_argument("config.json", cat(files::path_text(out.folder),
                                                      ": no config.json; it says what the weights are of"));
    Result<JsonValue> json = load_json(folder, "config.json", files::kMaxConfigBytes);
    if (!json) return json.error();
    out.config = std::move(*json);
    if (!folder.has("generation_config.json")) return {};
    json = load_json(folder, "generation_config.json", files::kMaxConfigBytes);
    if (!json) return json.error();
    out.generation_config = std::move(*json);
    return {};
}

void take_gguf(GgufFile file, Checkpoint& out) {
    out.weights = std::move(file.weights);
    for (size_t i = 0; i < out.weights.size(); ++i) out.by_name.emplace(out.weights[i].name, i);
    out.gguf = std::move(file);
}

bool begins_with_gguf(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    char magic[4] = {};
    file.read(magic, sizeof magic);
    return file && std::memcmp(magic, "GGUF", 4) == 0;
}

bool begins_with_gguf(const StoredFile& file) {
    std::byte magic[4] = {};
    return file.size_bytes() >= sizeof magic && file.read(0, magic) && std::memcmp(magic, "GGUF", 4) == 0;
}

}  // namespace

const StoredWeight* Checkpoint::find(std::string_view name) const noexcept {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : &weights[found->second];
}

uint64_t Checkpoint::stored_bytes() const noexcept {
    uint64_t sum = 0;
    for (const StoredWeight& weight : weights) sum += weight.size_bytes;
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
        take_gguf(std::move(*file), out);
        return out;
    }
    out.folder = is_folder ? path : path.parent_path();
    if (!is_folder && path.extension() != ".safetensors") {
        if (!fs::exists(path, code)) return files::io_failed(path, "open", ENOENT);
        return files::unsupported("file", cat(files::path_text(path),
                                              ": a model is a folder with config.json and safetensors, a "
                                              ".safetensors file of one, or a .gguf file"));
    }
    const DiskFolder folder(out.folder);
    if (Result<void> r = add_config(folder, out); !r) return r.error();
    if (auto error =
            is_folder ? add_folder(folder, out) : add_safetensors(folder, path.filename().string(), out))
        return *std::move(error);
    return out;
}

Result<Checkpoint> load_checkpoint(std::span<const NamedFile> given) {
    Checkpoint out;
    for (const NamedFile& one : given) {
        if (!one.name.ends_with(".gguf") && !begins_with_gguf(*one.file)) continue;
        out.path = one.name;
        if (given.size() > 1)
            return files::bad_argument("file", cat(files::path_text(out.path), " and ", given.size() - 1,
                                                   " more: a GGUF file is a model by itself"));
        Result<GgufFile> file = read_gguf(one.file);
        if (!file) return files::in_file(out.path, file.error());
        take_gguf(std::move(*file), out);
        return out;
    }
    out.path = out.folder = "the files given";
    const HeldFolder folder(given);
    if (Result<void> r = add_config(folder, out); !r) return r.error();
    if (auto error = add_folder(folder, out)) return *std::move(error);
    return out;
}

}  // namespace fovea
