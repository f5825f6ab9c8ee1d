// The texts that a survey of heads reads, and how a run knows its inputs again.
#pragma once

#include <fovea/fovea.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// The texts of a file: a line each, or the member "text" of each line of a .jsonl file. Empty lines are left
/// out. Safe from any thread.
class TextCorpus {
  public:
    /// Reads at most the first `texts`; 0: all. Rejects a file that is not UTF-8, one without a text, and a
    /// line of a .jsonl file that has none.
    static Result<TextCorpus> open(const std::filesystem::path& path, uint64_t texts);
    size_t size() const { return lines_.size(); }
    /// Text n, which must be below size().
    Result<std::string> text(size_t n) const;
    /// The file's name without folder and extension.
    const std::string& name() const { return name_; }
    /// SHA-256 of the file.
    std::string fingerprint() const;

  private:
    std::string path_, name_;
    std::vector<char> bytes_;  // a vector's place stays when it moves
    std::vector<std::string_view> lines_;
    bool is_json_ = false;
};

/// SHA-256 of files' names, sizes, first and last 64 KiB: all bytes of a model would take too long.
std::string model_fingerprint(std::span<const std::filesystem::path> files);

}  // namespace fovea
