#pragma once
// The errors of the file library, one maker per reason, so that a code is chosen in one place only.
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <fovea/files.hpp>

namespace fovea::files {

inline void append_text(std::string& out, std::string_view part) { out += part; }
inline void append_text(std::string& out, char part) { out += part; }
template <std::integral Number>
void append_text(std::string& out, Number part) {
    out += std::to_string(part);
}

/// The parts one after the other; numbers in decimal.
template <class... Parts>
std::string cat(const Parts&... parts) {
    std::string out;
    (append_text(out, parts), ...);
    return out;
}

/// The first eight bytes where all of them are letters: of a file of text, or of another format under a wrong
/// name; else empty.
std::string_view letters_at_begin(std::span<const std::byte> file);

/// The bytes of a file break a rule of its format.
Error malformed(std::string field, std::string text);
/// Well formed as far as seen, but something this library does not read or write.
Error unsupported(std::string field, std::string text);
/// The caller's argument cannot be used.
Error bad_argument(std::string field, std::string text);
/// The operating system failed; `code` is its error.
Error io_failed(const std::filesystem::path& path, std::string_view doing, int code);
/// An allocation of `size_bytes` failed.
Error out_of_memory(std::string field, uint64_t size_bytes);

/// `error` with "PATH: " before its text.
Error in_file(const std::filesystem::path& path, Error error);
/// The path as text that is safe to print.
std::string path_text(const std::filesystem::path& path);
/// The file name without folder and extension, as UTF-8: what a file of one tensor calls it.
std::string stem_text(const std::filesystem::path& path);

}  // namespace fovea::files
