// A model's files: which of a folder's are its weights, and one name each.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

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

/// The place of a model's files: a folder on disk, or files in memory.
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
            return files::bad_argument(
                "file", cat("'", printable_name(name), "' is missing; give it with the other files"));
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
        return files::in_file(
            path, files::malformed("file", cat("the file has ", size, " bytes; the limit is ", limit)));
    if (Result<void> r = file->take(size); !r) return files::in_file(path, r.error());
    Result<JsonValue> value =
        parse_json({reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size()}, kMaxJsonDepth,
                   JsonNumbers::python);
    if (!value) return files::in_file(path, files::malformed("file", value.error().text));
    if (value->kind() != JsonValue::Kind::object)
        return files::in_file(path, files::malformed("file", "byte 0: the file must hold a JSON object"));
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
    out.weights.reserve(out.weights.size() + size_t(header->tensor_count()));
    header->for_each(
        [&](const files::TensorEntry& entry) {
            StoredWeight weight;
            weight.name = entry.name.decoded();
            const bool known = entry.other_type.empty() && has_use(entry.type, kUseFile);
            weight.type = known ? entry.type : FOVEA_DTYPE_OTHER;
            weight.type_text =
                entry.other_type.empty() ? files::safetensors_dtype(entry.type) : entry.other_type;
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
    if (file->mapped && !file->mapped->intact())
        return files::in_file(path, files::malformed("file", "the file's size changed while it was read"));
    return std::nullopt;
}

/// Sorts the names, so that they can be found. Rejects two weights of one name.
std::optional<Error> order_names(Checkpoint& out) {
    out.by_name.resize(out.weights.size());
    std::iota(out.by_name.begin(), out.by_name.end(), 0u);
    const auto name = [&](uint32_t n) -> const std::string& { return out.weights[n].name; };
    std::sort(out.by_name.begin(), out.by_name.end(),
              [&](uint32_t a, uint32_t b) { return name(a) != name(b) ? name(a) < name(b) : a < b; });
    const auto twin = std::adjacent_find(out.by_name.begin(), out.by_name.end(),
                                         [&](uint32_t a, uint32_t b) { return name(a) == name(b); });
    if (twin == out.by_name.end()) return std::nullopt;
    return files::in_file(out.path, files::malformed("name", cat("tensor '", printable_name(name(*twin)),
                                                                 "' is in two of the model's files")));
}

/// The files that model.safetensors.index.json names, in the order of their names. Each must hold what it is
/// said to.
std::optional<Error> add_indexed(const ModelFolder& folder, const std::string& index, Checkpoint& out) {
    const Result<JsonValue> json = load_json(folder, index, kMaxIndexBytes);
    if (!json) return json.error();
    const JsonValue map = (*json)["weight_map"];
    const auto refuse = [&](std::string text) {
        return files::in_file(folder.path(index), files::malformed("weight_map", std::move(text)));
    };
    if (map.kind() != JsonValue::Kind::object || map.members().empty())
        return refuse("weight_map is not an object with at least one tensor");
    // Views of the map's text.
    std::vector<std::string_view> names;
    for (const auto& [tensor, file] : map.members()) {
        const std::string_view name = file.text();
        // A name from an untrusted file must stay in the folder.
        if (!name.ends_with(".safetensors") || name.find_first_of("/\\:") != std::string_view::npos ||
            name.find('\0') != std::string_view::npos || name.starts_with('.'))
            return refuse(cat("tensor '", printable_name(tensor), "' is listed in '", printable_name(name),
                              "', which is not a file name in this folder that ends in .safetensors"));
        if (names.empty() || names.back() != name) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::vector<size_t> ends;  // ends of each file's weights
    for (const std::string_view name : names) {
        if (auto error = add_safetensors(folder, std::string(name), out)) return error;
        ends.push_back(out.weights.size());
    }
    if (auto error = order_names(out)) return error;
    for (const auto& [tensor, file] : map.members()) {
        const StoredWeight* const weight = out.find(tensor);
        const size_t n = size_t(std::lower_bound(names.begin(), names.end(), file.text()) - names.begin());
        const size_t at = weight ? size_t(weight - out.weights.data()) : SIZE_MAX;
        if (at >= ends[n] || (n > 0 && at < ends[n - 1]))
            return refuse(
                cat("tensor '", printable_name(tensor), "' is not in '", printable_name(file.text()), "'"));
    }
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
    return files::bad_argument("file", cat(files::path_text(out.path), " has no .safetensors file"));
}

Result<void> add_config(const ModelFolder& folder, Checkpoint& out) {
    if (!folder.has("config.json"))
        return files::bad_argument("config.json",
                                   cat("config.json is missing for ", files::path_text(out.path),
                                       "; put it into the folder of the weights, as it says which model "
                                       "they belong to"));
    Result<JsonValue> json = load_json(folder, "config.json", files::kMaxConfigBytes);
    if (!json) return json.error();
    out.config = std::move(*json);
    if (!folder.has("generation_config.json")) return {};
    json = load_json(folder, "generation_config.json", files::kMaxConfigBytes);
    if (!json) return json.error();
    out.generation_config = std::move(*json);
    return {};
}

// ---- GGUF in one file or in parts ----

/// The integer under `split.NAME`.
uint64_t split_key(const GgufFile& file, const char* name, uint64_t otherwise) {
    const GgufValue* value = file.find(cat("split.", name));
    return value ? value->whole().value_or(otherwise) : otherwise;
}

/// The metadata of the first part, the weights of all; `paths` are for people.
std::optional<Error> take_gguf(std::vector<GgufFile> parts, const std::vector<fs::path>& paths,
                               Checkpoint& out) {
    for (size_t n = 0; n < parts.size() && parts.size() > 1; ++n)
        if (split_key(parts[n], "no", 0) != n || split_key(parts[n], "count", 1) != parts.size())
            return files::in_file(
                paths[n],
                files::malformed("split.no", cat("part ", split_key(parts[n], "no", 0) + 1, " of ",
                                                 split_key(parts[n], "count", 1), "; part ", n + 1, " of ",
                                                 parts.size(), " was expected under this name")));
    for (GgufFile& part : parts)
        std::move(part.weights.begin(), part.weights.end(), std::back_inserter(out.weights));
    const uint64_t expected = split_key(parts[0], "tensors.count", out.weights.size());
    out.gguf = std::move(parts[0]);
    out.gguf->weights.clear();
    if (parts.size() > 1 && expected != out.weights.size())
        return files::in_file(paths[0],
                              files::malformed("split.tensors.count",
                                               cat("the ", parts.size(), " parts hold ", out.weights.size(),
                                                   " tensors; split.tensors.count is ", expected,
                                                   ": give all parts of one model")));
    for (size_t n = 1; n < parts.size(); ++n) out.parts.push_back(std::move(parts[n].owner));
    return order_names(out);
}

Error part_missing(const fs::path& part, uint64_t n, uint64_t count) {
    return files::bad_argument("split.count", cat(files::path_text(part), " is missing: part ", n + 1, " of ",
                                                  count, "; give all parts of the model"));
}

/// "-00001-of-00003.gguf"
std::string part_ending(uint64_t n, uint64_t count) {
    const auto digits = [](uint64_t number) {
        const std::string text = std::to_string(number);
        return std::string(5 - std::min<size_t>(5, text.size()), '0') + text;
    };
    return "-" + digits(n + 1) + "-of-" + digits(count) + ".gguf";
}

Result<void> load_gguf_parts(const fs::path& path, Checkpoint& out) {
    std::vector<GgufFile> parts(1);
    std::vector<fs::path> paths = {path};
    Result<GgufFile> given = load_gguf(path);
    if (!given) return given.error();
    const uint64_t count = split_key(*given, "count", 1), number = split_key(*given, "no", 0);
    if (count <= 1) {
        parts[0] = std::move(*given);
        if (auto error = take_gguf(std::move(parts), paths, out)) return *std::move(error);
        return {};
    }
    const std::string name = path.filename().string(), ending = part_ending(number, count);
    if (!name.ends_with(ending))
        return files::in_file(path, files::malformed("split.no", cat("part ", number + 1, " of ", count,
                                                                     "; its name must end in ", ending,
                                                                     " so that the others are found")));
    const std::string stem = name.substr(0, name.size() - ending.size());
    paths.clear(), parts.clear();
    std::error_code code;
    for (uint64_t n = 0; n < count; ++n) {
        paths.push_back(path.parent_path() / (stem + part_ending(n, count)));
        if (!fs::exists(paths.back(), code)) return part_missing(paths.back(), n, count);
        Result<GgufFile> part = load_gguf(paths.back());
        if (!part) return part.error();
        parts.push_back(std::move(*part));
    }
    if (auto error = take_gguf(std::move(parts), paths, out)) return *std::move(error);
    return {};
}

/// Returns the .gguf file of a folder without config.json: the only one, or the first part of the only model.
/// Image projectors ("mmproj-...") do not count as models.
Result<fs::path> gguf_of_folder(const fs::path& folder) {
    std::vector<std::string> all = DiskFolder(folder).names();
    std::erase_if(all, [](const std::string& name) {
        return !name.ends_with(".gguf") || name.find("mmproj") != std::string::npos;
    });
    std::sort(all.begin(), all.end());
    if (all.empty()) return fs::path();
    const std::string ending = part_ending(0, all.size());
    const bool is_split = all.size() > 1 && all[0].ends_with(ending) &&
                          all.back() == all[0].substr(0, all[0].size() - ending.size()) +
                                            part_ending(all.size() - 1, all.size());
    if (all.size() == 1 || is_split) return folder / all[0];
    return files::bad_argument("file", cat(files::path_text(folder), ": the folder holds ", all.size(),
                                           " .gguf files; give one of them"));
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
    const auto found =
        std::lower_bound(by_name.begin(), by_name.end(), name,
                         [&](uint32_t n, std::string_view wanted) { return weights[n].name < wanted; });
    return found == by_name.end() || weights[*found].name != name ? nullptr : &weights[*found];
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
        if (Result<void> r = load_gguf_parts(path, out); !r) return r.error();
        return out;
    }
    if (is_folder && !fs::exists(path / "config.json", code)) {
        const Result<fs::path> file = gguf_of_folder(path);
        if (!file) return file.error();
        if (!file->empty()) return load_checkpoint(*file);
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
    if (auto error = order_names(out)) return *std::move(error);
    return out;
}

Result<Checkpoint> load_checkpoint(std::span<const NamedFile> given) {
    Checkpoint out;
    std::vector<GgufFile> parts;
    std::vector<fs::path> paths;
    for (const NamedFile& one : given) {
        if (!one.name.ends_with(".gguf") && !begins_with_gguf(*one.file)) continue;
        out.path = one.name;
        Result<GgufFile> file = read_gguf(one.file);
        if (!file) return files::in_file(out.path, file.error());
        const uint64_t count = split_key(*file, "count", 1), n = split_key(*file, "no", 0);
        if (given.size() > 1 && count <= 1)
            return files::bad_argument("file", cat(files::path_text(out.path), " and ", given.size() - 1,
                                                   " more: a GGUF file is a model by itself"));
        if (count > 1 && given.size() < count)
            return files::in_file(out.path,
                                  files::malformed("split.count", cat("part ", n + 1, " of ", count, "; ",
                                                                      given.size(), " files were given")));
        parts.resize(std::max<size_t>(parts.size(), size_t(std::min<uint64_t>(n, given.size() - 1)) + 1));
        paths.resize(parts.size());
        parts[size_t(std::min<uint64_t>(n, given.size() - 1))] = std::move(*file);
        paths[size_t(std::min<uint64_t>(n, given.size() - 1))] = one.name;
    }
    if (!parts.empty()) {
        out.path = paths[0];
        if (auto error = take_gguf(std::move(parts), paths, out)) return *std::move(error);
        return out;
    }
    out.path = out.folder = "the files given";
    const HeldFolder folder(given);
    if (Result<void> r = add_config(folder, out); !r) return r.error();
    if (auto error = add_folder(folder, out)) return *std::move(error);
    if (auto error = order_names(out)) return *std::move(error);
    return out;
}

}  // namespace fovea
