#pragma once
// Constants of the zip format (APPNOTE 6.3) that reader and writer share.
#include <cstdint>

namespace fovea::files {

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

}  // namespace fovea::files
