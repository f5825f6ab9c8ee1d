#include "files/byte_sink.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>

#include "files/refusal.hpp"

#if defined(_WIN32)
#include <io.h>
#else
#include <unistd.h>
#endif

namespace fovea::files {
namespace {

std::FILE* as_file(void* file) { return static_cast<std::FILE*>(file); }

std::FILE* create_exclusively(const std::filesystem::path& path) {
#if defined(_WIN32)
    return _wfopen(path.c_str(), L"wbx");
#else
    return std::fopen(path.c_str(), "wbx");
#endif
}

bool flush_to_disk(std::FILE* file) {
    if (std::fflush(file) != 0) return false;
#if defined(_WIN32)
    return _commit(_fileno(file)) == 0;
#else
    // A file system without fsync answers EINVAL; its writes are then as safe as they get.
    return ::fsync(::fileno(file)) == 0 || errno == EINVAL;
#endif
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {}

AtomicFile::~AtomicFile() {
    if (file_ != nullptr) std::fclose(as_file(file_));
    std::error_code ignored;
    if (!temporary_.empty()) std::filesystem::remove(temporary_, ignored);
}

void AtomicFile::open_temporary() {
    std::error_code code;
    const auto status = std::filesystem::status(path_, code);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
        failure_ =
            in_file(path_, bad_argument("file", "this exists and is not a regular file; give another name"));
        return;
    }
    // A link is followed, so that the file it names is replaced and not the link.
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(path_, code))) {
        const auto target = std::filesystem::weakly_canonical(path_, code);
        if (!code) path_ = target;
    }
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    for (uint64_t attempt = 0; attempt < 16; ++attempt) {
        std::filesystem::path candidate = path_;
        candidate += cat(".", static_cast<uint64_t>(now) + attempt, ".tmp");
        errno = 0;
        file_ = create_exclusively(candidate);
        if (file_ != nullptr) {
            temporary_ = std::move(candidate);
            return;
        }
        if (errno != EEXIST) break;
    }
    fail("create", errno);
}

void AtomicFile::fail(std::string_view doing, int code) {
    if (!failure_) failure_ = io_failed(path_, doing, code);
}

bool AtomicFile::write(std::span<const std::byte> bytes) {
    if (file_ == nullptr && !failure_) open_temporary();
    if (failure_) return false;
    errno = 0;
    if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), as_file(file_)) != bytes.size()) {
        fail("write", errno);
        return false;
    }
    size_bytes_ += bytes.size();
    return true;
}

Result<uint64_t> AtomicFile::commit() {
    if (file_ == nullptr && !failure_) open_temporary();
    if (failure_) return *failure_;
    errno = 0;
    const bool flushed = flush_to_disk(as_file(file_));
    const int flush_code = errno;
    const bool closed = std::fclose(as_file(file_)) == 0;
    file_ = nullptr;
    if (!flushed || !closed) {
        fail("write", flushed ? errno : flush_code);
        return *failure_;
    }
    std::error_code code;
    std::filesystem::rename(temporary_, path_, code);
    if (code) {
        fail("rename the finished file to", code.value());
        return *failure_;
    }
    temporary_.clear();
    return size_bytes_;
}

}  // namespace fovea::files
