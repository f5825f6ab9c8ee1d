#include "files/safetensors_header.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "files/refusal.hpp"

namespace fovea::files {
namespace {

/// A tensor's types as the format calls them.
constexpr std::pair<FoveaDtype, std::string_view> kNames[] = {
    {FOVEA_BOOL, "BOOL"}, {FOVEA_U8, "U8"},   {FOVEA_I8, "I8"},   {FOVEA_I16, "I16"}, {FOVEA_I32, "I32"},
    {FOVEA_I64, "I64"},   {FOVEA_U16, "U16"}, {FOVEA_U32, "U32"}, {FOVEA_U64, "U64"}, {FOVEA_F16, "F16"},
    {FOVEA_BF16, "BF16"}, {FOVEA_F32, "F32"}, {FOVEA_F64, "F64"}};
/// Types of the format without a FoveaDtype, and the bits of an element.
struct OtherDtype {
    std::string_view name;
    uint64_t bits;
};
constexpr std::array<OtherDtype, 10> kOtherDtypes = {{{"F8_E4M3", 8},
                                                      {"F8_E5M2", 8},
                                                      {"F8_E4M3FNUZ", 8},
                                                      {"F8_E5M2FNUZ", 8},
                                                      {"F8_E8M0", 8},
                                                      {"F6_E2M3", 6},
                                                      {"F6_E3M2", 6},
                                                      {"F4", 4},
                                                      {"F4_E2M1", 4},
                                                      {"C64", 64}}};
constexpr size_t kLengthBytes = 8;

Error header_fault(size_t header_offset, std::string_view reason) {
    return malformed("header", cat("byte ", kLengthBytes + header_offset, ": header: ", reason));
}

std::string quoted(const JsonString& text) {
    // Decoding only as much as is shown: the raw text may be as long as the header.
    JsonString head{text.raw.substr(0, std::min<size_t>(text.raw.size(), 600))};
    if (head.raw.size() < text.raw.size()) return cat("'", printable_name(head.raw), "'");
    return cat("'", printable_name(head.decoded()), "'");
}

}  // namespace

std::string_view safetensors_dtype(FoveaDtype type) {
    for (const auto& [known, name] : kNames)
        if (known == type) return name;
    return {};
}

std::optional<FoveaDtype> element_type_of_dtype(const JsonString& dtype) {
    for (const auto& [type, name] : kNames)
        if (dtype.equals(name)) return type;
    return std::nullopt;
}

/// The part of a metadata key that sorting needs: 8 bytes. The text is limited to 1 MB.
struct SafetensorsHeader::KeyPlace {
    uint32_t offset, size_bytes;
};

/// The part of a tensor's entry that sorting needs: 24 bytes, less than half of the shortest entry in the
/// text.
struct SafetensorsHeader::Place {
    uint64_t begin, end;
    KeyPlace name;
};

Error SafetensorsHeader::fault(std::string field, const TensorEntry& entry, size_t offset,
                               std::string_view reason) const {
    return malformed(std::move(field),
                     cat("tensor ", quoted(entry.name), ", byte ", kLengthBytes + offset, ": ", reason));
}

Error SafetensorsHeader::place_fault(std::string field, const Place& place, size_t offset,
                                     std::string_view reason) const {
    TensorEntry entry;
    entry.name = string_at(place.name.offset, place.name.size_bytes);
    return fault(std::move(field), entry, offset, reason);
}

uint64_t SafetensorsHeader::header_bytes(std::span<const std::byte> begin, uint64_t file_bytes) {
    if (begin.size() < kLengthBytes) return begin.size();
    uint64_t length = 0;
    std::memcpy(&length, begin.data(), kLengthBytes);
    return length > kMaxHeaderBytes || length > file_bytes - kLengthBytes ? kLengthBytes + 2
                                                                          : kLengthBytes + length;
}

Result<SafetensorsHeader> SafetensorsHeader::read(FileHead file) {
    SafetensorsHeader header;
    if (auto error = header.check_length(file)) return *std::move(error);
    if (header.text_[0] != '{') return header_fault(0, "does not begin with '{'");
    if (const auto json = check_json(header.text_, kMaxHeaderDepth))
        return header_fault(json->offset, json->reason);
    if (auto error = header.check_members()) return *std::move(error);
    if (auto error = header.check_metadata_keys()) return *std::move(error);
    if (auto error = header.check_places()) return *std::move(error);
    return header;
}

std::optional<Error> SafetensorsHeader::check_length(FileHead file) {
    if (file.file_bytes < kLengthBytes + 2)
        return malformed("file",
                         cat("byte 0: ", file.file_bytes,
                             " bytes are too few for a safetensors file, the least is ", kLengthBytes + 2));
    uint64_t length = 0;
    std::memcpy(&length, file.bytes.data(), kLengthBytes);
    const auto out_of_range = [&] {
        return malformed("header_length", cat("byte 0: the header length is ", length,
                                              "; it must be from 2 to ", kMaxHeaderBytes));
    };
    if (length < 2) return out_of_range();
    // Eight letters where the length should be: a file of text, or of another format under this name.
    const std::string_view begin = letters_at_begin(file.bytes);
    if (length > kMaxHeaderBytes && !begin.empty())
        return malformed("file", cat("byte 0: this is not a safetensors file: it begins with '", begin, "'"));
    if (length > kMaxHeaderBytes) return out_of_range();
    if (length > file.file_bytes - kLengthBytes)
        return malformed("header_length", cat("byte 0: the header has ", length, " bytes, but only ",
                                              file.file_bytes - kLengthBytes,
                                              " follow; the file was cut short: save or download it again"));
    text_ = {reinterpret_cast<const char*>(file.bytes.data()) + kLengthBytes, static_cast<size_t>(length)};
    data_bytes_ = file.file_bytes - kLengthBytes - length;
    return std::nullopt;
}

std::optional<Error> SafetensorsHeader::check_members() {
    JsonCursor cursor(text_);
    bool has_metadata = false;
    cursor.enter();
    while (cursor.next()) {
        TensorEntry entry;
        entry.name_offset = cursor.offset();
        entry.name = cursor.key();
        if (entry.name.equals(kMetadataName)) {
            if (has_metadata) return header_fault(entry.name_offset, "__metadata__ appears twice");
            has_metadata = true;
            if (auto error = check_metadata(cursor)) return error;
            continue;
        }
        if (++tensor_count_ > kMaxTensors)
            return header_fault(entry.name_offset, cat("more tensors than the limit, ", kMaxTensors));
        if (auto error = read_entry(cursor, entry)) return error;
    }
    return std::nullopt;
}

std::optional<Error> SafetensorsHeader::check_metadata(JsonCursor& cursor) {
    if (cursor.kind() != JsonKind::object)
        return header_fault(cursor.offset(), "__metadata__ must be an object of strings");
    metadata_offset_ = cursor.offset();
    cursor.enter();
    while (cursor.next()) {
        const JsonString key = cursor.key();
        if (cursor.kind() != JsonKind::string)
            return header_fault(cursor.offset(), cat("__metadata__ ", quoted(key), " must be a string"));
        cursor.string();
        ++metadata_count_;
        if (cursor.offset() - metadata_offset_ > kMaxMetadataBytes)
            return header_fault(metadata_offset_,
                                cat("__metadata__ is longer than the limit, ", kMaxMetadataBytes, " bytes"));
    }
    return std::nullopt;
}

std::optional<Error> SafetensorsHeader::read_entry(JsonCursor& cursor, TensorEntry& entry) const {
    if (cursor.kind() != JsonKind::object)
        return fault("header", entry, cursor.offset(),
                     "the entry must be an object with dtype, shape and data_offsets");
    const size_t offset = cursor.offset();
    unsigned seen = 0;
    cursor.enter();
    while (cursor.next())
        if (auto error = read_field(cursor, entry, seen)) return error;
    if ((seen & 1u) == 0) return fault("dtype", entry, offset, "dtype is missing");
    if ((seen & 2u) == 0) return fault("shape", entry, offset, "shape is missing");
    if ((seen & 4u) == 0) return fault("data_offsets", entry, offset, "data_offsets is missing");
    return check_extent(entry);
}

std::optional<Error> SafetensorsHeader::read_field(JsonCursor& cursor, TensorEntry& entry,
                                                   unsigned& seen) const {
    const size_t offset = cursor.offset();
    const JsonString key = cursor.key();
    const auto first_time = [&](unsigned bit) {
        const bool first = (seen & bit) == 0;
        seen |= bit;
        return first;
    };
    const auto twice = [&](const char* field) {
        return fault(field, entry, offset, cat(field, " appears twice"));
    };
    if (key.equals("dtype")) {
        if (!first_time(1)) return twice("dtype");
        if (cursor.kind() != JsonKind::string)
            return fault("dtype", entry, cursor.offset(), "dtype must be a string");
        const size_t value_offset = cursor.offset();
        const JsonString dtype = cursor.string();
        const auto type = element_type_of_dtype(dtype);
        for (const OtherDtype& other : kOtherDtypes)
            if (dtype.equals(other.name)) entry.other_type = other.name;
        if (!type && entry.other_type.empty())
            return fault("dtype", entry, value_offset,
                         cat("dtype ", quoted(dtype),
                             " is not one of BOOL U8 I8 I16 I32 I64 U16 U32 U64 F16 BF16 F32 F64"));
        entry.type = type.value_or(FOVEA_U8);
        return std::nullopt;
    }
    if (key.equals("shape")) return first_time(2) ? read_shape(cursor, entry) : twice("shape");
    if (key.equals("data_offsets"))
        return first_time(4) ? read_offsets(cursor, entry) : twice("data_offsets");
    return fault("header", entry, offset, cat("unknown key ", quoted(key)));
}

std::optional<Error> SafetensorsHeader::read_shape(JsonCursor& cursor, TensorEntry& entry) const {
    if (cursor.kind() != JsonKind::array)
        return fault("shape", entry, cursor.offset(), "shape must be an array of integers");
    cursor.enter();
    while (cursor.next()) {
        const size_t offset = cursor.offset();
        if (entry.rank == kMaxRank)
            return fault("shape", entry, offset, cat("shape has more dimensions than the limit, ", kMaxRank));
        std::optional<uint64_t> dim;
        if (cursor.kind() == JsonKind::number) dim = json_unsigned(cursor.number());
        if (!dim || *dim > kMaxDim)
            return fault("shape", entry, offset,
                         cat("dimension ", entry.rank, " of shape is not an integer from 0 to ", kMaxDim));
        entry.dims[entry.rank++] = *dim;
    }
    return std::nullopt;
}

std::optional<Error> SafetensorsHeader::read_offsets(JsonCursor& cursor, TensorEntry& entry) const {
    const size_t start = cursor.offset();
    if (cursor.kind() != JsonKind::array)
        return fault("data_offsets", entry, start, "data_offsets must be an array of two integers");
    std::array<uint64_t, 2> values{};
    size_t count = 0;
    cursor.enter();
    while (cursor.next()) {
        const size_t offset = cursor.offset();
        if (count == values.size())
            return fault("data_offsets", entry, offset,
                         "data_offsets has more than two elements; it must have two");
        std::optional<uint64_t> value;
        if (cursor.kind() == JsonKind::number) value = json_unsigned(cursor.number());
        if (!value)
            return fault("data_offsets", entry, offset,
                         "each of data_offsets must be an integer of at least 0");
        values[count++] = *value;
    }
    if (count != values.size())
        return fault("data_offsets", entry, start,
                     "data_offsets has fewer than two elements; it must have two");
    entry.begin = values[0];
    entry.end = values[1];
    return std::nullopt;
}

std::optional<Error> SafetensorsHeader::check_extent(const TensorEntry& entry) const {
    if (entry.begin > entry.end)
        return fault("data_offsets", entry, entry.name_offset,
                     cat("data_offsets begin at ", entry.begin, ", after their end ", entry.end));
    if (entry.end > data_bytes_)
        return fault("data_offsets", entry, entry.name_offset,
                     cat("the file ends early or was cut: data_offsets end at ", entry.end, ", the data has ",
                         data_bytes_, " bytes"));
    auto needed = checked_size_bytes(entry.type, entry.shape());
    for (const OtherDtype& other : kOtherDtypes)
        if (needed && entry.other_type == other.name) {
            if (*needed > UINT64_MAX / other.bits || *needed * other.bits % 8 != 0)
                return fault("shape", entry, entry.name_offset,
                             cat("shape ", format_shape(entry.shape()), " of ", other.name,
                                 " does not fill whole bytes"));
            needed = *needed * other.bits / 8;
        }
    if (!needed) return fault(needed.error().field, entry, entry.name_offset, needed.error().text);
    if (needed.value() != entry.end - entry.begin)
        return fault(
            "data_offsets", entry, entry.name_offset,
            cat("data_offsets span ", entry.end - entry.begin, " bytes, shape ", format_shape(entry.shape()),
                " of ", entry.other_type.empty() ? safetensors_dtype(entry.type) : entry.other_type,
                " needs ", needed.value()));
    return std::nullopt;
}

std::optional<Error> SafetensorsHeader::check_metadata_keys() {
    if (metadata_count_ < 2) return std::nullopt;
    const std::unique_ptr<KeyPlace[]> block(new (std::nothrow) KeyPlace[metadata_count_]);
    if (block == nullptr) return out_of_memory("metadata", metadata_count_ * sizeof(KeyPlace));
    const std::span<KeyPlace> keys(block.get(), metadata_count_);
    JsonCursor cursor(text_, metadata_offset_);
    cursor.enter();
    for (size_t i = 0; cursor.next(); ++i) {
        keys[i].offset = static_cast<uint32_t>(cursor.offset());
        keys[i].size_bytes = static_cast<uint32_t>(cursor.key().raw.size());
        cursor.string();
    }
    const auto order = [this](const KeyPlace& a, const KeyPlace& b) { return compare(a, b); };
    std::sort(keys.begin(), keys.end(),
              [&](const KeyPlace& a, const KeyPlace& b) { return order(a, b) < 0; });
    const auto twin = std::adjacent_find(
        keys.begin(), keys.end(), [&](const KeyPlace& a, const KeyPlace& b) { return order(a, b) == 0; });
    if (twin == keys.end()) return std::nullopt;
    return header_fault(
        std::max(twin[0].offset, twin[1].offset),
        cat("__metadata__ ", quoted(string_at(twin->offset, twin->size_bytes)), " appears twice"));
}

std::optional<Error> SafetensorsHeader::check_places() {
    const std::unique_ptr<Place[]> block(new (std::nothrow) Place[tensor_count_]);
    if (block == nullptr) return out_of_memory("header", tensor_count_ * sizeof(Place));
    const std::span<Place> places(block.get(), tensor_count_);
    size_t count = 0;
    for_each(
        [&](const TensorEntry& entry) {
            const KeyPlace name = {static_cast<uint32_t>(entry.name_offset),
                                   static_cast<uint32_t>(entry.name.raw.size())};
            places[count++] = {entry.begin, entry.end, name};
        },
        [](const JsonString&, const JsonString&) {});
    if (auto error = check_names(places)) return error;
    return check_coverage(places);
}

int SafetensorsHeader::compare(const KeyPlace& a, const KeyPlace& b) const {
    return string_at(a.offset, a.size_bytes).compare(string_at(b.offset, b.size_bytes));
}

std::optional<Error> SafetensorsHeader::check_names(std::span<Place> places) const {
    std::sort(places.begin(), places.end(),
              [this](const Place& a, const Place& b) { return compare(a.name, b.name) < 0; });
    const auto twin =
        std::adjacent_find(places.begin(), places.end(),
                           [this](const Place& a, const Place& b) { return compare(a.name, b.name) == 0; });
    if (twin == places.end()) return std::nullopt;
    return place_fault("name", *twin, std::max(twin[0].name.offset, twin[1].name.offset),
                       "the name appears twice");
}

std::optional<Error> SafetensorsHeader::check_coverage(std::span<Place> places) const {
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    const uint64_t data_start = kLengthBytes + text_.size();
    uint64_t covered = 0;
    for (const Place& place : places) {
        if (place.begin != covered)
            return place_fault("data_offsets", place, place.name.offset,
                               cat("data_offsets begin at ", place.begin, ", the data before ends at ",
                                   covered, place.begin < covered ? " (overlap)" : " (hole)"));
        covered = place.end;
    }
    if (covered == data_bytes_) return std::nullopt;
    return malformed("file", cat("byte ", data_start + covered, ": ", data_bytes_ - covered,
                                 " bytes after the last tensor belong to none"));
}

}  // namespace fovea::files
