#include "files/mapped_file.hpp"

#include "files/refusal.hpp"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#if !defined(__EMSCRIPTEN__)
#include <sys/mman.h>
#endif
#endif

namespace fovea::files {
namespace {

Error changed(const std::filesystem::path& path) {
    return in_file(path, malformed("file", "the file's size changed while it was opened"));
}

}  // namespace

#if defined(_WIN32)

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
    const auto failed = [&](std::string_view doing) {
        const std::error_code code(static_cast<int>(GetLastError()), std::system_category());
        return io_failed(path, doing, code.default_error_condition().value());
    };
    auto file = std::make_shared<MappedFile>();
    const HANDLE handle = CreateFileW(path.c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING,
                                      FILE_ATTRIBUTE_NORMAL, nullptr);
    if (handle == INVALID_HANDLE_VALUE) return failed("open");
    file->handle_ = reinterpret_cast<std::intptr_t>(handle);
    LARGE_INTEGER size;
    if (!GetFileSizeEx(handle, &size)) return failed("read the size of");
    if (size.QuadPart == 0) return std::shared_ptr<const MappedFile>(std::move(file));
    file->mapping_ = CreateFileMappingW(handle, nullptr, PAGE_READONLY, 0, 0, nullptr);
    if (file->mapping_ == nullptr) return failed("map");
    file->data_ = static_cast<const std::byte*>(MapViewOfFile(file->mapping_, FILE_MAP_READ, 0, 0, 0));
    if (file->data_ == nullptr) return failed("map");
    file->size_bytes_ = static_cast<size_t>(size.QuadPart);
    if (!file->intact()) return changed(path);
    return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) UnmapViewOfFile(data_);
    if (mapping_ != nullptr) CloseHandle(mapping_);
    if (handle_ != -1) CloseHandle(reinterpret_cast<HANDLE>(handle_));
}

bool MappedFile::intact() const {
    LARGE_INTEGER size;
    return handle_ == -1 || (GetFileSizeEx(reinterpret_cast<HANDLE>(handle_), &size) &&
                             static_cast<uint64_t>(size.QuadPart) == size_bytes_);
}

#else

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
    auto file = std::make_shared<MappedFile>();
    // Not blocking: opening a pipe that nobody writes would wait for ever.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return io_failed(path, "open", errno);
    file->handle_ = fd;
    struct stat facts;
    if (::fstat(fd, &facts) != 0) return io_failed(path, "read the size of", errno);
    if (S_ISDIR(facts.st_mode)) return in_file(path, bad_argument("file", "this is a folder; give a file"));
    if (!S_ISREG(facts.st_mode))
        return in_file(path, bad_argument("file", "this is not a regular file; give one"));
    if (static_cast<uint64_t>(facts.st_size) > SIZE_MAX / 2)
        return in_file(path, out_of_memory("file", static_cast<uint64_t>(facts.st_size)));
    const auto size_bytes = static_cast<size_t>(facts.st_size);
    if (size_bytes == 0) return std::shared_ptr<const MappedFile>(std::move(file));
#if defined(__EMSCRIPTEN__)
    auto* block = new (std::nothrow) std::byte[size_bytes];
    if (block == nullptr) return in_file(path, out_of_memory("file", size_bytes));
    file->mapping_ = block;
    if (::read(fd, block, size_bytes) != static_cast<ssize_t>(size_bytes)) return changed(path);
    file->data_ = block;
#else
    void* mapped = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED) return io_failed(path, "map", errno);
    file->data_ = static_cast<const std::byte*>(mapped);
#endif
    file->size_bytes_ = size_bytes;
    if (!file->intact()) return changed(path);
    return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
#if defined(__EMSCRIPTEN__)
    delete[] static_cast<std::byte*>(mapping_);
#else
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
#endif
    if (handle_ != -1) ::close(static_cast<int>(handle_));
}

bool MappedFile::intact() const {
    struct stat facts;
    return handle_ == -1 || (::fstat(static_cast<int>(handle_), &facts) == 0 &&
                             static_cast<uint64_t>(facts.st_size) == size_bytes_);
}

#endif

}  // namespace fovea::files
