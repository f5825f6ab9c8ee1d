// npz archives as tensor sets.
#include <algorithm>
#include <cstring>

#include <fovea/files.hpp>

#include "files/inflater.hpp"
#include "files/mapped_file.hpp"
#include "files/npy_header.hpp"
#include "files/refusal.hpp"
#include "files/zip_archive.hpp"

namespace fovea {
namespace files {
namespace {

constexpr std::string_view kSuffix = ".npy";

Error in_entry(const ZipEntry& entry, const Error& error) {
    return Error{error.code, error.field, cat("entry '", printable_name(entry.name), "': ", error.text)};
}

/// True for a type that no tensor has: the entry is listed, and rejected when it is read. Objects are
/// rejected at once: they run code when other programs read them.
bool is_unsupported(const Error& error) { return error.code == FOVEA_UNSUPPORTED && error.field == "descr"; }

std::string_view inflate_fault(InflateState state) {
    switch (state) {
        case InflateState::more:
            return "the deflated data is cut short";
        case InflateState::too_long:
            return "the entry inflates to more bytes than its header says";
        case InflateState::no_memory:
            return "not enough memory to inflate the entry";
        default:
            return "the deflated data is corrupt";
    }
}

/// Checks the inflated data of an entry and keeps only its npy header.
class EntryCheck {
  public:
    std::optional<Error> run(const ZipEntry& entry, std::span<const std::byte> packed) {
        uint32_t crc = 0;
        prefix_size_bytes_ = 0;
        if (entry.method == ZipMethod::stored) {
            crc = crc32_of(packed);
            keep(packed);
        } else {
            Inflater inflater(InflateFormat::raw, entry.inflated_bytes);
            const InflateState state = inflater.feed(packed, [&](std::span<const std::byte> piece) {
                crc = crc32_of(piece, crc);
                keep(piece);
                return true;
            });
            if (state != InflateState::ended)
                return zip_fault("data", entry.name, entry.data_offset, inflate_fault(state));
            if (inflater.unread_bytes() != 0 || inflater.produced_bytes() != entry.inflated_bytes)
                return zip_fault(
                    "sizes", entry.name, entry.data_offset,
                    cat("the entry inflates to ", inflater.produced_bytes(), " bytes with ",
                        inflater.unread_bytes(), " left over, its header says ", entry.inflated_bytes));
        }
        if (crc != entry.crc) return zip_fault("crc", entry.name, entry.data_offset, "the checksum is wrong");
        const auto header = read_npy_header({prefix_.data(), prefix_size_bytes_});
        if (!header && is_unsupported(header.error())) return std::nullopt;
        if (!header) return in_entry(entry, header.error());
        if (entry.inflated_bytes - header->data_offset != header->data_size_bytes)
            return zip_fault("data", entry.name, entry.data_offset,
                             cat(entry.inflated_bytes - header->data_offset, " bytes of data, shape ",
                                 format_shape(header->shape()), " of ", dtype_name(header->type), " needs ",
                                 header->data_size_bytes));
        return std::nullopt;
    }

  private:
    void keep(std::span<const std::byte> piece) {
        const size_t room = prefix_.size() - prefix_size_bytes_;
        const size_t count = std::min(room, piece.size());
        std::copy_n(piece.begin(), count, prefix_.begin() + static_cast<ptrdiff_t>(prefix_size_bytes_));
        prefix_size_bytes_ += count;
    }

    std::array<std::byte, kMaxNpyPrefixBytes> prefix_;
    size_t prefix_size_bytes_ = 0;
};

std::optional<Error> check_contents(const ZipArchive& archive, const LoadLimits& limits) {
    const std::unique_ptr<EntryCheck> check(new (std::nothrow) EntryCheck);
    if (check == nullptr) return out_of_memory("archive", sizeof(EntryCheck));
    uint64_t inflated = 0;
    return archive.for_each([&](const ZipEntry& entry) -> std::optional<Error> {
        if (!entry.name.ends_with(kSuffix))
            return zip_fault("name", entry.name, entry.record_offset,
                             "this is not an array; the name of each entry must end in .npy");
        if (entry.inflated_bytes > limits.inflated_bytes - inflated)
            return Error{
                FOVEA_LIMIT_EXCEEDED, "inflated_bytes",
                cat("entry '", printable_name(entry.name), "': ", entry.inflated_bytes, " bytes after ",
                    inflated, " exceed the limit for one archive, ", limits.inflated_bytes)};
        inflated += entry.inflated_bytes;
        return check->run(entry, archive.packed(entry));
    });
}

/// Reads an entry; deflated ones are inflated into memory that the tensor owns.
Result<Tensor> read_tensor(const ZipEntry& entry, std::span<const std::byte> packed,
                           const std::shared_ptr<const void>& owner) {
    if (entry.method == ZipMethod::stored) return parse_npy(packed, owner);
    Buffer buffer;
    if (!buffer.allocate(entry.inflated_bytes)) return out_of_memory("entry", entry.inflated_bytes);
    size_t at = 0;
    Inflater inflater(InflateFormat::raw, entry.inflated_bytes);
    const InflateState state = inflater.feed(packed, [&](std::span<const std::byte> piece) {
        std::memcpy(buffer.bytes().data() + at, piece.data(), piece.size());
        at += piece.size();
        return true;
    });
    // Checked before, so only a file that is being changed gets here.
    if (state != InflateState::ended || at != buffer.bytes().size())
        return zip_fault("data", entry.name, entry.data_offset, "the file changed while it was read");
    return parse_npy(buffer.bytes(), buffer.owner());
}

}  // namespace
}  // namespace files

Result<TensorSet> parse_npz(std::span<const std::byte> file, std::shared_ptr<const void> owner,
                            const LoadLimits& limits) {
    const auto archive = files::ZipArchive::read(file);
    if (!archive) return archive.error();
    if (auto error = files::check_contents(archive.value(), limits)) return *std::move(error);
    TensorSet set;
    auto error = archive->for_each([&](const files::ZipEntry& entry) -> std::optional<Error> {
        auto tensor = files::read_tensor(entry, archive->packed(entry), owner);
        const auto name = entry.name.substr(0, entry.name.size() - files::kSuffix.size());
        if (!tensor && files::is_unsupported(tensor.error())) {
            set.unsupported.emplace_back(name, "cannot be read: " + tensor.error().text);
            return std::nullopt;
        }
        if (!tensor) return files::in_entry(entry, tensor.error());
        tensor->name = name;
        set.tensors.push_back(std::move(tensor.value()));
        return std::nullopt;
    });
    if (error) return *std::move(error);
    return set;
}

Result<TensorSet> load_npz(const std::filesystem::path& path, const LoadLimits& limits) {
    auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    auto set = parse_npz(file.value()->bytes(), file.value(), limits);
    if (!set) return files::in_file(path, set.error());
    return set;
}

}  // namespace fovea
