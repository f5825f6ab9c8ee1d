// The wire format of protocol buffers, read from memory that may hold anything: every length is checked
// against what is left, nothing is read past the end, nothing is allocated.
#pragma once

#include <fovea/fovea.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fovea::onnx {

enum class WireType : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
    uint32_t number = 0;
    WireType type = WireType::varint;
    uint64_t value = 0;                // varint, fixed64, fixed32
    std::span<const std::byte> bytes;  // for type bytes: a part of the memory that is read

    std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

class WireReader {
  public:
    // The memory must outlive the reader and the fields it gave.
    explicit WireReader(std::span<const std::byte> message) : rest_(message), size_(message.size()) {}

    // The next field; false at the end of the message. Anything malformed is an error that names the offset.
    Result<bool> next(WireField& field);

  private:
    Result<uint64_t> varint();
    Result<uint64_t> fixed(size_t size_bytes);
    Error malformed(const char* what) const;

    std::span<const std::byte> rest_;
    size_t size_;
};

}  // namespace fovea::onnx
