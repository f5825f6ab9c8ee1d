#pragma once
// The header of a GGUF file, checked in full without allocating for what it claims.
//
//   "GGUF" | u32 version | u64 tensors | u64 keys | keys: text, u32 type, value | tensors: text, u32 rank,
//   u64 dims (fastest first), u32 type, u64 offset | padding to the alignment | data
//   text: u64 bytes, then those; an array: u32 type, u64 count, elements. Everything little-endian.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <fovea/files/checkpoint.hpp>

#include "files/buffer.hpp"

namespace fovea::files {

constexpr uint64_t kMaxGgufEntries = 1'000'000;
constexpr uint64_t kMaxGgufText = 65'535;
constexpr uint64_t kMaxGgufRank = 4;

/// One tensor as the header says it.
struct GgufTensor {
    std::string_view name;
    uint32_t rank = 0, type = 0;
    uint64_t dims[kMaxGgufRank] = {};  // fastest first, as in the file
    uint64_t offset = 0;               // from the start of the data
    uint64_t size_bytes = 0;           // 0 for a type whose size is not known
    FoveaDtype weight_type = FOVEA_DTYPE_OTHER;
};

/// "Q4_K"; "type 99" for one that ggml did not have when this was written.
std::string gguf_type_text(uint32_t type);

/// A header that kept every rule. Views `file`.
class GgufHeader {
  public:
    /// Sets `needs_more` if the header continues after the available bytes; then the error does not describe
    /// the file.
    static Result<GgufHeader> read(FileHead file, bool* needs_more = nullptr);

    uint32_t version() const { return version_; }
    /// Where the data begins in the file.
    uint64_t data_begin() const { return data_begin_; }
    /// In file order; what they return is a view of the file.
    std::vector<GgufValue> values() const;
    std::vector<GgufTensor> tensors() const;

  private:
    class Reader;

    std::optional<Error> check_keys(Reader& reader);
    std::optional<Error> check_tensors(Reader& reader);
    std::optional<Error> check_names(std::vector<uint64_t>& places, const char* what) const;
    std::optional<Error> check_places(std::vector<uint64_t>& places) const;

    FileHead file_;
    uint64_t data_begin_ = 0;
    uint32_t version_ = 0;
    uint64_t key_count_ = 0, tensor_count_ = 0, first_tensor_ = 0, alignment_ = 32;
};

}  // namespace fovea::files
