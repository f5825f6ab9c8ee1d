#include "fuzz_target.hpp"

#include <zlib.h>

#include <vector>

#include "mutate.hpp"

using namespace fovea;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto image = fuzz::at_cost(
        size, [&] { return parse_png(fuzz::as_bytes(data, size), fuzz::kLimits); },
        fuzz::kLimits.inflated_bytes);
    if (!image) {
        fuzz::check_error(image.error());
        return 0;
    }
    fuzz::check_tensor(image.value());
    files::MemorySink sink;
    fuzz::require(!files::encode_png(image.value(), sink), "what was loaded can be saved");
    const auto again = parse_png(sink.bytes());
    fuzz::require(again && fuzz::same(image.value(), again.value()), "an image survives saving and loading");
    return 0;
}

namespace {

uint32_t big_endian(const uint8_t* at) {
    return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

void put_big_endian(uint8_t* at, uint32_t value) {
    for (int i = 0; i < 4; ++i) at[i] = static_cast<uint8_t>(value >> (24 - 8 * i));
}

/// Every chunk that fits gets the checksum its bytes have now.
void repair_checksums(uint8_t* data, size_t size) {
    size_t at = 8;
    while (size >= 12 && at <= size - 12) {
        const size_t length = big_endian(data + at);
        if (length > size - at - 12) return;
        put_big_endian(data + at + 8 + length,
                       static_cast<uint32_t>(crc32(0, data + at + 4, static_cast<uInt>(length) + 4)));
        at += 12 + length;
    }
}

/// Replaces the first IDAT of the file by compressed and mutated `rows` bytes; 0 if there is not enough room.
size_t replace_rows(uint8_t* data, size_t size, size_t max_size) {
    size_t at = 8;
    while (size >= 12 && at <= size - 12 && std::memcmp(data + at + 4, "IDAT", 4) != 0) {
        if (big_endian(data + at) > size - at - 12) return 0;
        at += 12 + big_endian(data + at);
    }
    if (size < 12 || at > size - 12 || big_endian(data + at) > size - at - 12) return 0;
    const size_t length = big_endian(data + at);
    std::vector<uint8_t> rows(4096);
    uLongf count = 2048;
    if (uncompress(rows.data(), &count, data + at + 8, static_cast<uLong>(length)) != Z_OK) return 0;
    count = LLVMFuzzerMutate(rows.data(), count, rows.size());
    std::vector<uint8_t> packed(compressBound(count));
    uLongf packed_count = packed.size();
    if (compress(packed.data(), &packed_count, rows.data(), count) != Z_OK) return 0;
    const size_t tail = size - at - 8 - length;
    if (size - length + packed_count > max_size) return 0;
    std::memmove(data + at + 8 + packed_count, data + at + 8 + length, tail);
    std::memcpy(data + at + 8, packed.data(), packed_count);
    put_big_endian(data + at, static_cast<uint32_t>(packed_count));
    return size - length + packed_count;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
    size_t result = seed % 4 == 0 ? replace_rows(data, size, max_size) : 0;
    if (result == 0) result = LLVMFuzzerMutate(data, size, max_size);
    if (seed % 8 != 7) repair_checksums(data, result);
    return result;
}
