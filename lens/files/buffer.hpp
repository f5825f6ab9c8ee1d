#pragma once
// Memory for tensor data whose failure is a value, and the one check of a shape against a byte count.
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <span>

#include <fovea/files.hpp>

namespace fovea::files {

constexpr uint64_t kMaxRank = 8;
constexpr uint64_t kMaxDim = uint64_t{1} << 48;

/// a * b, or nothing when it does not fit in 64 bits.
constexpr std::optional<uint64_t> checked_product(uint64_t a, uint64_t b) noexcept {
    if (b != 0 && a > UINT64_MAX / b) return std::nullopt;
    return a * b;
}

/// Bytes of a tensor, or the rule it breaks: rank, a dimension, or a product beyond 64 bits.
Result<uint64_t> checked_size_bytes(FoveaDtype type, std::span<const uint64_t> shape);
/// An error unless `size_bytes` is what type and shape ask for.
std::optional<Error> check_size(std::string_view name, FoveaDtype type, std::span<const uint64_t> shape,
                                uint64_t size_bytes);

/// The beginning of a file, as much of it as is in memory, and how long the whole is.
struct FileHead {
    std::span<const std::byte> bytes;
    uint64_t file_bytes = bytes.size();
};

/// A block for tensor data, aligned for every element type; uninitialised.
class Buffer {
  public:
    /// False when memory is short. Zero bytes always succeed.
    bool allocate(uint64_t size_bytes) {
        size_bytes_ = 0;
        if (size_bytes > SIZE_MAX / 2) return false;
        auto* block = new (std::nothrow) std::byte[static_cast<size_t>(size_bytes)];
        if (block == nullptr) return false;
        data_ = std::shared_ptr<std::byte[]>(block);
        size_bytes_ = static_cast<size_t>(size_bytes);
        return true;
    }
    std::span<std::byte> bytes() const { return {data_.get(), size_bytes_}; }
    std::shared_ptr<const void> owner() const { return data_; }

  private:
    std::shared_ptr<std::byte[]> data_;
    size_t size_bytes_ = 0;
};

}  // namespace fovea::files
