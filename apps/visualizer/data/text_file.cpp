#include "data/text_file.hpp"

#include <cstdio>
#include <memory>

namespace fovea::visualizer {
namespace {

struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

Error refused(const std::filesystem::path& path, const char* what) {
    return Error{FOVEA_INVALID_ARGUMENT, path.filename().string(), path.string() + " " + what};
}

}  // namespace

Result<std::string> read_text_file(const std::filesystem::path& path) {
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (error) return refused(path, "cannot be read");
    if (size > kMaxTextBytes) return refused(path, "has more than 256 MiB, the limit of a text");
    const File file(std::fopen(path.string().c_str(), "rb"));
    std::string text(size, '\0');
    if (!file || std::fread(text.data(), 1, size, file.get()) != size) return refused(path, "cannot be read");
    return text;
}

Result<void> write_text_file(const std::filesystem::path& path, std::string_view text) {
    std::filesystem::path unfinished = path;
    unfinished += ".part";
    File file(std::fopen(unfinished.string().c_str(), "wb"));
    if (!file) return refused(path, "cannot be written");
    bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
    written = std::fclose(file.release()) == 0 && written;
    std::error_code error;
    if (written) std::filesystem::rename(unfinished, path, error);
    if (written && !error) return {};
    std::filesystem::remove(unfinished, error);
    return refused(path, "cannot be written");
}

}  // namespace fovea::visualizer
