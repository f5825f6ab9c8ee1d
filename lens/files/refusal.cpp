#include "files/refusal.hpp"

#include <algorithm>
#include <system_error>

namespace fovea::files {

std::string_view letters_at_begin(std::span<const std::byte> file) {
    constexpr size_t kLetters = 8;
    if (file.size() < kLetters) return {};
    const std::string_view begin(reinterpret_cast<const char*>(file.data()), kLetters);
    const bool all = std::all_of(begin.begin(), begin.end(), [](char c) { return c >= ' ' && c <= '~'; });
    return all ? begin : std::string_view();
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
                 cat("cannot ", doing, " ", path_text(path), ": ", std::generic_category().message(code))};
}

Error out_of_memory(std::string field, uint64_t size_bytes) {
    std::string text = cat("not enough memory: ", field, " needs ", size_bytes, " bytes");
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
