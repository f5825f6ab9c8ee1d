#include "files/zip_archive.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "files/little_endian.hpp"
#include "files/refusal.hpp"
#include "files/utf8.hpp"

namespace fovea::files {
namespace {

Error archive_fault(uint64_t offset, std::string_view reason) {
    return malformed("archive", cat("byte ", offset, ": ", reason));
}

bool has_zip64_locator(std::span<const std::byte> file, uint64_t end_offset) {
    return end_offset >= kZip64LocatorBytes &&
           read_le(file, end_offset - kZip64LocatorBytes, 4) == kZip64LocatorSignature;
}

/// The zip64 field of an extra block: 64-bit values in a fixed order, only those whose 32-bit place says "see
/// there".
class Zip64Extra {
  public:
    Zip64Extra(std::span<const std::byte> file, uint64_t at, uint64_t size_bytes) : file_(file) {
        const uint64_t end = at + size_bytes;
        while (end - at >= 4) {
            const uint64_t id = read_le(file, at, 2), length = read_le(file, at + 2, 2);
            at += 4;
            if (length > end - at) return;
            if (id == kZip64ExtraId) {
                at_ = at;
                left_ = length;
                return;
            }
            at += length;
        }
    }
    /// Replaces `value` when it is the mark 0xffffffff; false when its 64-bit value is missing.
    bool widen(uint64_t& value) {
        if (value != kZipMark32) return true;
        if (left_ < 8) return false;
        value = read_le(file_, at_, 8);
        at_ += 8;
        left_ -= 8;
        return true;
    }

  private:
    std::span<const std::byte> file_;
    uint64_t at_ = 0, left_ = 0;
};

}  // namespace

Error zip_fault(std::string field, std::string_view name, uint64_t offset, std::string_view reason) {
    return malformed(std::move(field),
                     cat("entry '", printable_name(name), "', byte ", offset, ": ", reason));
}

struct ZipArchive::Place {
    uint64_t begin, end, record_offset;
};

Result<ZipArchive> ZipArchive::read(std::span<const std::byte> file) {
    ZipArchive archive;
    archive.file_ = file;
    if (auto error = archive.find_end()) return *std::move(error);
    if (auto error = archive.check_entries()) return *std::move(error);
    return archive;
}

std::optional<Error> ZipArchive::find_end() {
    if (file_.size() < kZipEndBytes)
        return archive_fault(
            0, cat(file_.size(), " bytes are too few for a zip archive, the least is ", kZipEndBytes));
    // The end record is followed by a comment of at most 65,535 bytes that must reach the end of the file
    // exactly.
    const uint64_t last = file_.size() - kZipEndBytes;
    const uint64_t first = last > 65'535 ? last - 65'535 : 0;
    uint64_t at = last + 1;
    while (at-- > first)
        if (read_le(file_, at, 4) == kZipEndSignature && read_le(file_, at + 20, 2) == last - at) break;
    if (at + 1 == first)
        return archive_fault(first, "no end-of-archive record: not a zip archive, or cut short");
    const uint64_t disk = read_le(file_, at + 4, 2), directory_disk = read_le(file_, at + 6, 2);
    entry_count_ = read_le(file_, at + 10, 2);
    directory_size_bytes_ = read_le(file_, at + 12, 4);
    directory_offset_ = read_le(file_, at + 16, 4);
    directory_end_ = at;
    // Python writes the zip64 record from 2 GiB on and yet leaves values that still fit in their short
    // places.
    const bool marked =
        entry_count_ == kZipMark16 || directory_size_bytes_ == kZipMark32 || directory_offset_ == kZipMark32;
    if (marked || has_zip64_locator(file_, at)) {
        if (auto error = read_zip64_end(at)) return error;
    } else if (disk != 0 || directory_disk != 0 || read_le(file_, at + 8, 2) != entry_count_) {
        return archive_fault(
            at, "the archive is spread over several disks, which is not supported; save it as one file");
    }
    if (directory_size_bytes_ > directory_end_ || directory_offset_ != directory_end_ - directory_size_bytes_)
        return archive_fault(at, cat("central directory of ", directory_size_bytes_, " bytes at ",
                                     directory_offset_, " does not end at ", directory_end_));
    if (entry_count_ > directory_size_bytes_ / kZipRecordBytes)
        return archive_fault(at, cat(entry_count_, " entries do not fit a central directory of ",
                                     directory_size_bytes_, " bytes"));
    return std::nullopt;
}

std::optional<Error> ZipArchive::read_zip64_end(uint64_t end_offset) {
    if (!has_zip64_locator(file_, end_offset))
        return archive_fault(end_offset, "the zip64 locator is missing");
    const uint64_t locator = end_offset - kZip64LocatorBytes;
    const uint64_t at = read_le(file_, locator + 8, 8);
    if (locator < kZip64EndBytes || at > locator - kZip64EndBytes ||
        read_le(file_, at, 4) != kZip64EndSignature || read_le(file_, at + 4, 8) != locator - at - 12)
        return archive_fault(locator, "the zip64 end record is not where its locator says");
    if (read_le(file_, at + 16, 4) != 0 || read_le(file_, at + 20, 4) != 0 ||
        read_le(file_, at + 24, 8) != read_le(file_, at + 32, 8))
        return archive_fault(
            at, "the archive is spread over several disks, which is not supported; save it as one file");
    entry_count_ = read_le(file_, at + 32, 8);
    directory_size_bytes_ = read_le(file_, at + 40, 8);
    directory_offset_ = read_le(file_, at + 48, 8);
    directory_end_ = at;
    return std::nullopt;
}

Result<ZipEntry> ZipArchive::read_entry(uint64_t at) const {
    if (directory_end_ - at < kZipRecordBytes || read_le(file_, at, 4) != kZipRecordSignature)
        return archive_fault(at, "no record of the central directory here");
    const uint64_t name_bytes = read_le(file_, at + 28, 2), extra_bytes = read_le(file_, at + 30, 2);
    ZipEntry entry;
    entry.record_offset = at;
    entry.record_size_bytes = kZipRecordBytes + name_bytes + extra_bytes + read_le(file_, at + 32, 2);
    if (entry.record_size_bytes > directory_end_ - at)
        return archive_fault(at, "a record of the central directory reaches past its end");
    entry.name = text(at + kZipRecordBytes, name_bytes);
    entry.flags = static_cast<uint32_t>(read_le(file_, at + 8, 2));
    const uint64_t method = read_le(file_, at + 10, 2);
    entry.crc = static_cast<uint32_t>(read_le(file_, at + 16, 4));
    entry.packed_bytes = read_le(file_, at + 20, 4);
    entry.inflated_bytes = read_le(file_, at + 24, 4);
    entry.local_offset = read_le(file_, at + 42, 4);
    Zip64Extra wide(file_, at + kZipRecordBytes + name_bytes, extra_bytes);
    if (!wide.widen(entry.inflated_bytes) || !wide.widen(entry.packed_bytes) ||
        !wide.widen(entry.local_offset))
        return zip_fault("zip64", entry.name, at, "a 64-bit size is announced and missing");
    if (utf8_fault(entry.name) != entry.name.size())
        return zip_fault("name", entry.name, at, "name is not valid UTF-8");
    if ((entry.flags & ~kZipKnownFlags) != 0)
        return zip_fault(
            "flags", entry.name, at,
            (entry.flags & 1u) != 0
                ? "the entry is encrypted, which is not supported; save the file without a password"
                : "the entry has flags that are not supported");
    if (method != 0 && method != 8)
        return zip_fault("method", entry.name, at,
                         cat("compression method is ", method, "; it must be 0 (stored) or 8 (deflated)"));
    entry.method = static_cast<ZipMethod>(method);
    if (read_le(file_, at + 34, 2) != 0)
        return zip_fault(
            "archive", entry.name, at,
            "the entry is on another disk, which is not supported; save the archive as one file");
    if (auto error = check_local(entry)) return *std::move(error);
    return entry;
}

std::optional<Error> ZipArchive::check_local(ZipEntry& entry) const {
    const uint64_t at = entry.local_offset;
    if (at > directory_offset_ || directory_offset_ - at < kZipLocalBytes ||
        read_le(file_, at, 4) != kZipLocalSignature)
        return zip_fault("local_offset", entry.name, entry.record_offset,
                         cat("no local header at byte ", at));
    const uint64_t name_bytes = read_le(file_, at + 26, 2), extra_bytes = read_le(file_, at + 28, 2);
    const uint64_t room = directory_offset_ - at - kZipLocalBytes;
    if (name_bytes + extra_bytes > room || entry.packed_bytes > room - name_bytes - extra_bytes)
        return zip_fault(
            "packed_bytes", entry.name, entry.record_offset,
            cat(entry.packed_bytes, " packed bytes reach past the central directory at ", directory_offset_));
    if (text(at + kZipLocalBytes, name_bytes) != entry.name)
        return zip_fault("name", entry.name, at, "the local header has another name");
    if (read_le(file_, at + 8, 2) != static_cast<uint64_t>(entry.method))
        return zip_fault("method", entry.name, at, "the local header has another compression method");
    // With the flag "sizes follow the data" the local sizes are zero or unset; the directory's count.
    if ((entry.flags & kZipSizesFollow) == 0) {
        uint64_t packed = read_le(file_, at + 18, 4), inflated = read_le(file_, at + 22, 4);
        Zip64Extra wide(file_, at + kZipLocalBytes + name_bytes, extra_bytes);
        if (!wide.widen(inflated) || !wide.widen(packed) || packed != entry.packed_bytes ||
            inflated != entry.inflated_bytes || read_le(file_, at + 14, 4) != entry.crc)
            return zip_fault("sizes", entry.name, at, "the local header has other sizes or another checksum");
    }
    if (entry.method == ZipMethod::stored && entry.packed_bytes != entry.inflated_bytes)
        return zip_fault(
            "sizes", entry.name, entry.record_offset,
            cat("the entry is stored, yet ", entry.packed_bytes, " bytes become ", entry.inflated_bytes));
    entry.data_offset = at + kZipLocalBytes + name_bytes + extra_bytes;
    return std::nullopt;
}

std::optional<Error> ZipArchive::check_entries() const {
    // 24 bytes an entry, half of the shortest record.
    const std::unique_ptr<Place[]> block(new (std::nothrow) Place[static_cast<size_t>(entry_count_)]);
    if (block == nullptr) return out_of_memory("archive", entry_count_ * sizeof(Place));
    const std::span<Place> places(block.get(), static_cast<size_t>(entry_count_));
    size_t count = 0;
    uint64_t directory_bytes = 0;
    auto error = for_each([&](const ZipEntry& entry) -> std::optional<Error> {
        places[count++] = {entry.local_offset, entry.data_offset + entry.packed_bytes, entry.record_offset};
        directory_bytes += entry.record_size_bytes;
        return std::nullopt;
    });
    if (error) return error;
    if (directory_bytes != directory_size_bytes_)
        return archive_fault(directory_offset_ + directory_bytes,
                             cat(directory_size_bytes_ - directory_bytes,
                                 " bytes of the central directory belong to no entry"));
    if (auto twin = check_names(places)) return twin;
    return check_overlap(places);
}

std::string_view ZipArchive::name_at(uint64_t record_offset) const {
    return text(record_offset + kZipRecordBytes, read_le(file_, record_offset + 28, 2));
}

std::optional<Error> ZipArchive::check_names(std::span<Place> places) const {
    const auto name = [this](const Place& place) { return name_at(place.record_offset); };
    std::sort(places.begin(), places.end(),
              [&](const Place& a, const Place& b) { return name(a) < name(b); });
    const auto twin = std::adjacent_find(places.begin(), places.end(),
                                         [&](const Place& a, const Place& b) { return name(a) == name(b); });
    if (twin == places.end()) return std::nullopt;
    return zip_fault("name", name(*twin), std::max(twin[0].record_offset, twin[1].record_offset),
                     "the name appears twice");
}

std::optional<Error> ZipArchive::check_overlap(std::span<Place> places) const {
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < places.size(); ++i)
        if (places[i].begin < places[i - 1].end)
            return zip_fault(
                "local_offset", name_at(places[i].record_offset), places[i].begin,
                cat("the entry overlaps the one before, which ends at byte ", places[i - 1].end));
    return std::nullopt;
}

}  // namespace fovea::files
