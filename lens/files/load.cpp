// Any of the formats by its name, or by its first bytes.
#include <fovea/files.hpp>

#include "files/mapped_file.hpp"
#include "files/npy_header.hpp"
#include "files/refusal.hpp"

namespace fovea {
namespace {

enum class Format { unknown, safetensors, npy, npz, csv, png };

Format format_of_extension(const std::filesystem::path& path) {
    std::string extension = path.extension().string();
    for (char& c : extension)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
    if (extension == ".safetensors") return Format::safetensors;
    if (extension == ".npy") return Format::npy;
    if (extension == ".npz") return Format::npz;
    if (extension == ".csv") return Format::csv;
    if (extension == ".png") return Format::png;
    return Format::unknown;
}

Format format_of_content(std::span<const std::byte> file) {
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    if (text.starts_with(files::kNpyMagic)) return Format::npy;
    if (text.starts_with("PK\x03\x04") || text.starts_with("PK\x05\x06")) return Format::npz;
    if (text.starts_with("\x89PNG\r\n\x1a\n")) return Format::png;
    if (text.size() > 8 && text[8] == '{') return Format::safetensors;
    return Format::unknown;
}

Result<TensorSet> one_tensor(Result<Tensor> tensor, const std::filesystem::path& path) {
    if (!tensor) return tensor.error();
    tensor->name = files::stem_text(path);
    TensorSet set;
    set.tensors.push_back(std::move(tensor.value()));
    return set;
}

Result<Tensor> table_values(std::span<const std::byte> file) {
    auto table = parse_csv(file);
    if (!table) return table.error();
    return std::move(table.value().values);
}

}  // namespace

Result<TensorSet> load_tensors(const std::filesystem::path& path, const LoadLimits& limits) {
    auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    const auto bytes = file.value()->bytes();
    Format format = format_of_extension(path);
    if (format == Format::unknown) format = format_of_content(bytes);
    const auto read = [&]() -> Result<TensorSet> {
        switch (format) {
            case Format::safetensors:
                return parse_safetensors(bytes, file.value());
            case Format::npy:
                return one_tensor(parse_npy(bytes, file.value()), path);
            case Format::npz:
                return parse_npz(bytes, file.value(), limits);
            case Format::csv:
                return one_tensor(table_values(bytes), path);
            case Format::png:
                return one_tensor(parse_png(bytes, limits), path);
            case Format::unknown:
                break;
        }
        return files::unsupported(
            "file", "this is not a safetensors, npy, npz, csv or png file, by its name or its first bytes");
    };
    auto set = read();
    if (!set) return files::in_file(path, set.error());
    if (!file.value()->intact())
        return files::in_file(path, files::malformed("file", "the file's size changed while it was read"));
    return set;
}

}  // namespace fovea
