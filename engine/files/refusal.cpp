#include "files/refusal.hpp"

#include <system_error>

namespace fovea::files {

std::string shape_text(std::span<const uint64_t> shape) {
    std::string out = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        if (i != 0) out += ", ";
        out += std::to_string(shape[i]);
    }
    return out + "]";
}

Error malformed(std::string field, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

Error unsupported(std::string field, std::string text) {
    return Error{FOVEA_UNSUPPORTED, std::move(field), std::move(text)};
}

Error bad_argument(std::string field, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

Error io_failed(const std::filesystem::path& path, std::string_view doing, int code) {
    return Error{FOVEA_IO_ERROR, "file",
                 cat(path_text(path), ": cannot ", doing, ": ", std::generic_category().message(code))};
}

Error out_of_memory(std::string field, uint64_t size_bytes) {
    std::string text = cat(field, ": no memory for ", size_bytes, " bytes");
    return Error{FOVEA_OUT_OF_HOST_MEMORY, std::move(field), std::move(text)};
}

Error in_file(const std::filesystem::path& path, Error error) {
    error.text = cat(path_text(path), ": ", error.text);
    return error;
}

std::string path_text(const std::filesystem::path& path) {
    const std::u8string text = path.u8string();
    return printable_name({reinterpret_cast<const char*>(text.data()), text.size()}, 4096);
}

std::string stem_text(const std::filesystem::path& path) {
    const std::u8string text = path.stem().u8string();
    return {reinterpret_cast<const char*>(text.data()), text.size()};
}

}  // namespace fovea::files
