#pragma once
// The header of a safetensors file, checked in full without allocating for what it claims.
//
//   u64 little-endian N | N bytes of JSON | data
//   JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...,
//          "__metadata__": {"key": "text", ...}}     offsets count from the start of the data
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <fovea/files.hpp>

#include "files/buffer.hpp"
#include "files/json_text.hpp"

namespace fovea::files {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr uint64_t kMaxTensors = 1'000'000;
constexpr uint64_t kMaxMetadataBytes = 1'000'000;
constexpr size_t kMaxHeaderDepth = 4;
constexpr std::string_view kMetadataName = "__metadata__";

/// The format's name of an element type ("F32"), and back.
std::string_view safetensors_dtype(FoveaDtype type);
std::optional<FoveaDtype> element_type_of_dtype(const JsonString& dtype);

/// One tensor as its header entry says it.
struct TensorEntry {
    JsonString name;
    size_t name_offset = 0;  // offset of the name's opening quote in the header
    FoveaDtype type = FOVEA_F32;
    std::string_view other_type;  // a type of the format that FoveaDtype lacks; then `type` has no meaning
    std::array<uint64_t, kMaxRank> dims{};
    size_t rank = 0;
    uint64_t begin = 0, end = 0;

    std::span<const uint64_t> shape() const { return {dims.data(), rank}; }
};

/// A header that kept every rule.
class SafetensorsHeader {
  public:
    /// Checks the whole file's structure (rules in the order: length, JSON, each entry, names, coverage of
    /// the data). Working memory: less than the header's size, or 1.4 MB. The result views `file`, which has
    /// header_bytes() or all there is.
    static Result<SafetensorsHeader> read(FileHead file);
    /// How much of a file that begins with these bytes its header takes with the length before it; what a
    /// reader would reject is at most the least that is rejected.
    static uint64_t header_bytes(std::span<const std::byte> begin, uint64_t file_bytes);

    uint64_t tensor_count() const { return tensor_count_; }
    /// Where the data begins in the file, and its size.
    uint64_t data_begin() const { return 8 + text_.size(); }
    uint64_t data_bytes() const { return data_bytes_; }

    /// Calls `visit(TensorEntry)` for each tensor and `note(key, value)` for each metadata entry, in file
    /// order.
    template <class Visit, class Note>
    void for_each(Visit visit, Note note) const {
        JsonCursor cursor(text_);
        cursor.enter();
        while (cursor.next()) {
            TensorEntry entry;
            entry.name_offset = cursor.offset();
            entry.name = cursor.key();
            if (entry.name.equals(kMetadataName)) {
                cursor.enter();
                while (cursor.next()) {
                    const JsonString key = cursor.key();
                    note(key, cursor.string());
                }
            } else {
                (void)read_entry(cursor, entry);
                visit(entry);
            }
        }
    }

  private:
    struct KeyPlace;
    struct Place;

    std::optional<Error> check_length(FileHead file);
    std::optional<Error> check_members();
    std::optional<Error> check_metadata(JsonCursor& cursor);
    std::optional<Error> check_places();
    std::optional<Error> check_metadata_keys();
    std::optional<Error> check_names(std::span<Place> places) const;
    std::optional<Error> check_coverage(std::span<Place> places) const;

    /// Reads the entry's value; the cursor must be at it.
    std::optional<Error> read_entry(JsonCursor& cursor, TensorEntry& entry) const;
    std::optional<Error> read_field(JsonCursor& cursor, TensorEntry& entry, unsigned& seen) const;
    std::optional<Error> read_shape(JsonCursor& cursor, TensorEntry& entry) const;
    std::optional<Error> read_offsets(JsonCursor& cursor, TensorEntry& entry) const;
    std::optional<Error> check_extent(const TensorEntry& entry) const;

    JsonString string_at(uint32_t offset, uint32_t size_bytes) const {
        return {text_.substr(offset + 1, size_bytes)};
    }
    Error fault(std::string field, const TensorEntry& entry, size_t offset, std::string_view reason) const;

    Error place_fault(std::string field, const Place& place, size_t offset, std::string_view reason) const;
    int compare(const KeyPlace& a, const KeyPlace& b) const;

    std::string_view text_;
    uint64_t data_bytes_ = 0;
    uint64_t tensor_count_ = 0;
    uint64_t metadata_count_ = 0;
    size_t metadata_offset_ = 0;
};

}  // namespace fovea::files
