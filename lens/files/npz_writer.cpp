// Tensor sets as npz archives.
#include <zlib.h>

#include <array>

#include <fovea/files.hpp>

#include "files/encoders.hpp"
#include "files/inflater.hpp"
#include "files/little_endian.hpp"
#include "files/npy_header.hpp"
#include "files/refusal.hpp"
#include "files/utf8.hpp"
#include "files/zip_archive.hpp"

namespace fovea {
namespace files {
namespace {

/// 1980-01-01, the format's zero: the same tensors give the same bytes.
constexpr uint64_t kDosTime = 0, kDosDate = 0x21;

class Deflater {
  public:
    Deflater() {
        ready_ =
            deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    }
    ~Deflater() { deflateEnd(&stream_); }
    Deflater(const Deflater&) = delete;
    Deflater& operator=(const Deflater&) = delete;

    /// Deflates `input` onto `out`; `last` closes the stream. False when memory is short.
    bool feed(std::span<const std::byte> input, bool last, std::string& out) {
        if (!ready_) return false;
        do {
            const size_t piece = std::min<size_t>(input.size(), size_t{1} << 30);
            stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data()));
            stream_.avail_in = static_cast<uInt>(piece);
            input = input.subspan(piece);
            const int flush = last && input.empty() ? Z_FINISH : Z_NO_FLUSH;
            do {
                stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
                stream_.avail_out = static_cast<uInt>(out_.size());
                deflate(&stream_, flush);
                out.append(out_.data(), out_.size() - stream_.avail_out);
            } while (stream_.avail_out == 0);
        } while (!input.empty());
        return true;
    }

  private:
    z_stream stream_{};
    bool ready_ = false;
    std::array<char, 65'536> out_;
};

struct PlannedEntry {
    std::string name;
    uint32_t crc = 0;
    uint64_t method = 0;
    uint64_t packed_bytes = 0, inflated_bytes = 0, local_offset = 0;
    bool zip64 = false;
};

/// Returns the fields that local header and directory record share: version to name length.
std::string shared_fields(const PlannedEntry& entry) {
    std::string out;
    append_le(out, entry.zip64 ? kZip64Version : kZipVersion, 2);
    append_le(out, kZipUtf8Name, 2);
    append_le(out, entry.method, 2);
    append_le(out, kDosTime, 2);
    append_le(out, kDosDate, 2);
    append_le(out, entry.crc, 4);
    append_le(out, entry.zip64 ? kZipMark32 : entry.packed_bytes, 4);
    append_le(out, entry.zip64 ? kZipMark32 : entry.inflated_bytes, 4);
    append_le(out, entry.name.size(), 2);
    return out;
}

std::string local_header(const PlannedEntry& entry) {
    std::string out;
    append_le(out, kZipLocalSignature, 4);
    out += shared_fields(entry);
    append_le(out, entry.zip64 ? 20 : 0, 2);
    out += entry.name;
    if (entry.zip64) {
        append_le(out, kZip64ExtraId, 2);
        append_le(out, 16, 2);
        append_le(out, entry.inflated_bytes, 8);
        append_le(out, entry.packed_bytes, 8);
    }
    return out;
}

std::string directory_record(const PlannedEntry& entry) {
    std::string out;
    append_le(out, kZipRecordSignature, 4);
    append_le(out, entry.zip64 ? kZip64Version : kZipVersion, 2);
    out += shared_fields(entry);
    append_le(out, entry.zip64 ? 28 : 0, 2);
    out.append(2 + 2 + 2 + 4, '\0');  // comment, disk, attributes
    append_le(out, entry.zip64 ? kZipMark32 : entry.local_offset, 4);
    out += entry.name;
    if (entry.zip64) {
        append_le(out, kZip64ExtraId, 2);
        append_le(out, 24, 2);
        append_le(out, entry.inflated_bytes, 8);
        append_le(out, entry.packed_bytes, 8);
        append_le(out, entry.local_offset, 8);
    }
    return out;
}

std::string end_records(uint64_t count, uint64_t directory_offset, uint64_t directory_bytes, bool zip64) {
    std::string out;
    zip64 = zip64 || count >= kZipMark16 || directory_offset >= kZipMark32 || directory_bytes >= kZipMark32;
    if (zip64) {
        append_le(out, kZip64EndSignature, 4);
        append_le(out, kZip64EndBytes - 12, 8);
        append_le(out, kZip64Version, 2);
        append_le(out, kZip64Version, 2);
        append_le(out, 0, 4 + 4);
        append_le(out, count, 8);
        append_le(out, count, 8);
        append_le(out, directory_bytes, 8);
        append_le(out, directory_offset, 8);
        append_le(out, kZip64LocatorSignature, 4);
        append_le(out, 0, 4);
        append_le(out, directory_offset + directory_bytes, 8);
        append_le(out, 1, 4);
    }
    append_le(out, kZipEndSignature, 4);
    append_le(out, 0, 2 + 2);
    append_le(out, zip64 ? kZipMark16 : count, 2);
    append_le(out, zip64 ? kZipMark16 : count, 2);
    append_le(out, zip64 ? kZipMark32 : directory_bytes, 4);
    append_le(out, zip64 ? kZipMark32 : directory_offset, 4);
    append_le(out, 0, 2);
    return out;
}

std::optional<Error> check_arrays(const TensorSet& set) {
    std::vector<std::string_view> names;
    for (const Tensor& tensor : set.tensors) {
        if (utf8_fault(tensor.name) != tensor.name.size() || tensor.name.size() > 65'531)
            return bad_argument("name", cat("tensor name '", printable_name(tensor.name),
                                            "' is not valid UTF-8 of at most 65531 bytes"));
        if (auto error = check_size(tensor.name, tensor.type, tensor.shape, tensor.bytes.size()))
            return error;
        if (const auto prefix = npy_prefix(tensor); !prefix) return prefix.error();
        names.push_back(tensor.name);
    }
    if (const auto* twin = first_duplicate(names))
        return bad_argument("name", cat("two tensors are named '", printable_name(*twin), "'"));
    return std::nullopt;
}

/// Packs one tensor and writes header and data.
Encoded write_entry(const Tensor& tensor, const NpzOptions& options, PlannedEntry& entry, ByteSink& sink) {
    const std::string prefix = npy_prefix(tensor).value();
    const auto prefix_bytes = std::as_bytes(std::span(prefix));
    entry.name = tensor.name + ".npy";
    entry.crc = crc32_of(tensor.bytes, crc32_of(prefix_bytes));
    entry.inflated_bytes = prefix.size() + tensor.bytes.size();
    entry.packed_bytes = entry.inflated_bytes;
    std::string packed;
    if (options.compress) {
        Deflater deflater;
        if (!deflater.feed(prefix_bytes, false, packed) || !deflater.feed(tensor.bytes, true, packed))
            return out_of_memory("entry", entry.inflated_bytes);
        entry.method = 8;
        entry.packed_bytes = packed.size();
    }
    entry.zip64 = options.force_zip64 || entry.packed_bytes >= kZipMark32 ||
                  entry.inflated_bytes >= kZipMark32 || entry.local_offset >= kZipMark32;
    if (!sink.write_text(local_header(entry))) return std::nullopt;
    if (options.compress)
        sink.write_text(packed);
    else if (sink.write(prefix_bytes))
        sink.write(tensor.bytes);
    return std::nullopt;
}

}  // namespace

Encoded encode_npz(const TensorSet& set, const NpzOptions& options, ByteSink& sink) {
    if (auto error = check_arrays(set)) return error;
    std::string directory;
    uint64_t offset = 0;
    for (const Tensor& tensor : set.tensors) {
        PlannedEntry entry;
        entry.local_offset = offset;
        if (auto error = write_entry(tensor, options, entry, sink)) return error;
        offset += local_header(entry).size() + entry.packed_bytes;
        directory += directory_record(entry);
    }
    if (sink.write_text(directory))
        sink.write_text(end_records(set.tensors.size(), offset, directory.size(), options.force_zip64));
    return std::nullopt;
}

}  // namespace files

Result<uint64_t> save_npz(const std::filesystem::path& path, const TensorSet& set,
                          const NpzOptions& options) {
    return files::write_file(path,
                             [&](files::ByteSink& sink) { return files::encode_npz(set, options, sink); });
}

}  // namespace fovea
