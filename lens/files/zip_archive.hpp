#pragma once
// The structure of a zip archive, as far as npz needs it: one disk, entries stored or deflated, zip64, no
// encryption. The central directory must end where the end record begins, entries may not overlap, names must
// differ.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <fovea/files.hpp>

namespace fovea::files {

// ---- constants of the zip format (APPNOTE 6.3), for reader and writer ----

constexpr uint64_t kZipLocalSignature = 0x04034b50, kZipLocalBytes = 30;
constexpr uint64_t kZipRecordSignature = 0x02014b50, kZipRecordBytes = 46;
constexpr uint64_t kZipEndSignature = 0x06054b50, kZipEndBytes = 22;
constexpr uint64_t kZip64EndSignature = 0x06064b50, kZip64EndBytes = 56;
constexpr uint64_t kZip64LocatorSignature = 0x07064b50, kZip64LocatorBytes = 20;
constexpr uint64_t kZip64ExtraId = 0x0001;
/// "Too large for this field, or in zip64 anyway."
constexpr uint64_t kZipMark32 = 0xffffffff, kZipMark16 = 0xffff;
constexpr uint64_t kZipVersion = 20, kZip64Version = 45;

constexpr uint32_t kZipSizesFollow = 1u << 3, kZipUtf8Name = 1u << 11;
/// Two bits about the deflate level, sizes after the data, UTF-8 names.
constexpr uint32_t kZipKnownFlags = 0x6u | kZipSizesFollow | kZipUtf8Name;

// ---- the reader ----

enum class ZipMethod : uint16_t { stored = 0, deflated = 8 };

struct ZipEntry {
    std::string_view name;
    uint64_t record_offset = 0;  // offset of the record in the central directory
    uint64_t record_size_bytes = 0;
    ZipMethod method = ZipMethod::stored;
    uint32_t flags = 0;
    uint32_t crc = 0;
    uint64_t packed_bytes = 0;
    uint64_t inflated_bytes = 0;
    uint64_t local_offset = 0;
    uint64_t data_offset = 0;
};

class ZipArchive {
  public:
    /// Checks everything but the entries' contents. Working memory: less than the central directory's size.
    static Result<ZipArchive> read(std::span<const std::byte> file);

    /// Calls `visit(const ZipEntry&) -> std::optional<Error>` in the directory's order until one returns an
    /// error.
    template <class Visit>
    std::optional<Error> for_each(Visit visit) const {
        uint64_t at = directory_offset_;
        for (uint64_t i = 0; i < entry_count_; ++i) {
            auto entry = read_entry(at);
            if (!entry) return entry.error();
            at += entry->record_size_bytes;
            if (auto error = visit(entry.value())) return error;
        }
        return std::nullopt;
    }
    std::span<const std::byte> packed(const ZipEntry& entry) const {
        return file_.subspan(static_cast<size_t>(entry.data_offset), static_cast<size_t>(entry.packed_bytes));
    }

  private:
    struct Place;

    std::optional<Error> find_end();
    std::optional<Error> read_zip64_end(uint64_t end_offset);
    std::optional<Error> check_entries() const;
    std::optional<Error> check_names(std::span<Place> places) const;
    std::optional<Error> check_overlap(std::span<Place> places) const;

    Result<ZipEntry> read_entry(uint64_t at) const;
    std::optional<Error> check_local(ZipEntry& entry) const;
    std::string_view name_at(uint64_t record_offset) const;
    std::string_view text(uint64_t at, uint64_t size_bytes) const {
        return {reinterpret_cast<const char*>(file_.data()) + at, static_cast<size_t>(size_bytes)};
    }

    std::span<const std::byte> file_;
    uint64_t directory_offset_ = 0;
    uint64_t directory_size_bytes_ = 0;
    uint64_t directory_end_ = 0;  // where the end records begin
    uint64_t entry_count_ = 0;
};

/// "entry 'NAME', byte OFFSET: reason"
Error zip_fault(std::string field, std::string_view name, uint64_t offset, std::string_view reason);

}  // namespace fovea::files
