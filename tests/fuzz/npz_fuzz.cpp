#include "fuzz_target.hpp"

#include <vector>

#include "files/inflater.hpp"
#include "files/zip_archive.hpp"
#include "mutate.hpp"

using namespace fovea;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto set = fuzz::at_cost(
        size, [&] { return parse_npz(fuzz::as_bytes(data, size), {}, fuzz::kLimits); },
        fuzz::kLimits.inflated_bytes);
    if (!set) {
        fuzz::check_error(set.error());
        return 0;
    }
    for (const Tensor& tensor : set->tensors) fuzz::check_tensor(tensor);
    for (const NpzOptions options : {NpzOptions{true, false}, NpzOptions{false, true}}) {
        files::MemorySink sink;
        fuzz::require(!files::encode_npz(set.value(), options, sink), "what was loaded can be saved");
        // Headers written here may be longer than those read: no limit on the way back.
        fuzz::check_same(set.value(), parse_npz(sink.bytes()));
    }
    return 0;
}

namespace {

/// Where the archive's structure holds, each entry gets the checksum that its bytes have now, in both its
/// headers.
void repair_checksums(uint8_t* data, size_t size) {
    const auto archive = files::ZipArchive::read(fuzz::as_bytes(data, size));
    if (!archive) return;
    (void)archive->for_each([&](const files::ZipEntry& entry) -> std::optional<Error> {
        uint32_t crc = 0;
        const auto packed = archive->packed(entry);
        if (entry.method == files::ZipMethod::stored) {
            crc = files::crc32_of(packed);
        } else {
            files::Inflater inflater(files::InflateFormat::raw, entry.inflated_bytes);
            inflater.feed(packed, [&](std::span<const std::byte> piece) {
                crc = files::crc32_of(piece, crc);
                return true;
            });
        }
        for (unsigned i = 0; i < 4; ++i) {
            const auto byte = static_cast<uint8_t>(crc >> (8 * i));
            data[entry.record_offset + 16 + i] = byte;
            data[entry.local_offset + 14 + i] = byte;
        }
        return std::nullopt;
    });
}

/// A new archive around mutated arrays: reaches the npy reader through the packing.
size_t repack(uint8_t* data, size_t size, size_t max_size, bool compress) {
    const auto set = parse_npz(fuzz::as_bytes(data, size), {}, fuzz::kLimits);
    if (!set) return 0;
    files::MemorySink sink;
    if (files::encode_npz(set.value(), {compress, !compress}, sink) || sink.bytes().size() > max_size)
        return 0;
    std::memcpy(data, sink.bytes().data(), sink.bytes().size());
    return sink.bytes().size();
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
    if (seed % 32 == 0)
        if (const size_t result = repack(data, size, max_size, (seed & 32u) != 0)) size = result;
    size = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 != 7) repair_checksums(data, size);
    return size;
}
