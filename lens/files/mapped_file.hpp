#pragma once
// A whole file as read-only bytes: mapped where the system can, read into memory elsewhere.
#include <filesystem>
#include <memory>
#include <span>

#include <fovea/files.hpp>

namespace fovea::files {

class MappedFile {
  public:
    /// Regular files only (a pipe or device has no size to check against). The size is read again after
    /// mapping; a file that changed in between is rejected.
    static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);

    MappedFile() = default;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
    /// False if the mapped file became shorter: its last pages would fault.
    bool intact() const;

  private:
    const std::byte* data_ = nullptr;
    size_t size_bytes_ = 0;
    std::intptr_t handle_ = -1;                 // POSIX: file descriptor; Windows: file handle
    [[maybe_unused]] void* mapping_ = nullptr;  // Windows: mapping handle; without mapping: the block to free
};

}  // namespace fovea::files
