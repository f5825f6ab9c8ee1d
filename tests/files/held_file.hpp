#pragma once
#include <fovea/files/checkpoint.hpp>

#include <algorithm>
#include <string>

namespace fovea::test {

/// A file whose bytes are in memory.
struct HeldFile final : StoredFile {
    explicit HeldFile(std::string all) : bytes(std::move(all)) {}
    uint64_t size_bytes() const noexcept override { return bytes.size(); }
    std::span<const std::byte> held() const noexcept override { return std::as_bytes(std::span(bytes)); }
    Result<void> read(uint64_t first, std::span<std::byte> out) const override {
        std::ranges::copy(held().subspan(first, out.size()), out.begin());
        return {};
    }
    std::string bytes;
};

}  // namespace fovea::test
