#pragma once
// Where encoders write to: a file that appears whole or not at all, or memory.
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fovea/files.hpp>

#include "files/refusal.hpp"

namespace fovea::files {

class ByteSink {
  public:
    virtual ~ByteSink() = default;
    /// False when the bytes could not be taken; the encoder then stops, the owner of the sink knows why.
    virtual bool write(std::span<const std::byte> bytes) = 0;

    bool write_text(std::string_view text) { return write(std::as_bytes(std::span(text))); }
};

class MemorySink final : public ByteSink {
  public:
    bool write(std::span<const std::byte> bytes) override {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        return true;
    }
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

/// The result of an encoder, which checks its input and then writes. An Error is the reason for a rejection;
/// no Error and a failed sink mean that the sink failed.
using Encoded = std::optional<Error>;

/// A temporary file in the folder of `path`, made at the first write, that becomes `path` in one step.
/// Without a successful commit() the destructor removes it and `path` is unchanged. Only a regular file is
/// replaced: never a device, a pipe or a folder.
class AtomicFile final : public ByteSink {
  public:
    explicit AtomicFile(std::filesystem::path path);
    ~AtomicFile() override;
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    bool write(std::span<const std::byte> bytes) override;
    /// The file's size in bytes, or the first failure of opening, writing, flushing or renaming.
    Result<uint64_t> commit();

  private:
    void open_temporary();
    void fail(std::string_view doing, int code);

    std::filesystem::path path_;
    std::filesystem::path temporary_;
    void* file_ = nullptr;  // std::FILE
    uint64_t size_bytes_ = 0;
    std::optional<Error> failure_;
};

/// Runs `encode(ByteSink&) -> Encoded` into `path`.
template <class Encode>
Result<uint64_t> write_file(const std::filesystem::path& path, Encode encode) {
    AtomicFile file(path);
    if (Encoded refused = encode(static_cast<ByteSink&>(file))) return in_file(path, *std::move(refused));
    return file.commit();
}

}  // namespace fovea::files
