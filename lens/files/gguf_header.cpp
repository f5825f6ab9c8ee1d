#include "files/gguf_header.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "files/buffer.hpp"
#include "files/little_endian.hpp"
#include "files/refusal.hpp"
#include "files/utf8.hpp"

namespace fovea::files {
namespace {

constexpr size_t kFixedBytes = 24;  // magic, version, counts
constexpr const char* kCutShort = "; the file was cut short, as by a download that did not end";
/// The shortest entries: a key without letters and a byte, a tensor without letters and dimensions.
constexpr uint64_t kMinKeyBytes = 13, kMinTensorBytes = 24;

/// ggml's numbers of types. Those without a FoveaDtype are listed with their size, where a file may have
/// them, and rejected when their values are requested.
struct TypeRow {
    uint32_t number;
    std::string_view text;
    FoveaDtype type;
    uint32_t block_elements, block_bytes;  // block size of `other`
};
constexpr std::array<TypeRow, 34> kTypes = {{{0, "F32", FOVEA_F32, 0, 0},
                                             {1, "F16", FOVEA_F16, 0, 0},
                                             {2, "Q4_0", FOVEA_Q4_0, 0, 0},
                                             {3, "Q4_1", FOVEA_Q4_1, 0, 0},
                                             {6, "Q5_0", FOVEA_Q5_0, 0, 0},
                                             {7, "Q5_1", FOVEA_Q5_1, 0, 0},
                                             {8, "Q8_0", FOVEA_Q8_0, 0, 0},
                                             {9, "Q8_1", FOVEA_DTYPE_OTHER, 32, 36},
                                             {10, "Q2_K", FOVEA_DTYPE_OTHER, 256, 84},
                                             {11, "Q3_K", FOVEA_DTYPE_OTHER, 256, 110},
                                             {12, "Q4_K", FOVEA_Q4_K, 0, 0},
                                             {13, "Q5_K", FOVEA_Q5_K, 0, 0},
                                             {14, "Q6_K", FOVEA_Q6_K, 0, 0},
                                             {15, "Q8_K", FOVEA_DTYPE_OTHER, 256, 292},
                                             {16, "IQ2_XXS", FOVEA_DTYPE_OTHER, 256, 66},
                                             {17, "IQ2_XS", FOVEA_DTYPE_OTHER, 256, 74},
                                             {18, "IQ3_XXS", FOVEA_DTYPE_OTHER, 256, 98},
                                             {19, "IQ1_S", FOVEA_DTYPE_OTHER, 256, 50},
                                             {20, "IQ4_NL", FOVEA_DTYPE_OTHER, 32, 18},
                                             {21, "IQ3_S", FOVEA_DTYPE_OTHER, 256, 110},
                                             {22, "IQ2_S", FOVEA_DTYPE_OTHER, 256, 82},
                                             {23, "IQ4_XS", FOVEA_DTYPE_OTHER, 256, 136},
                                             {24, "I8", FOVEA_DTYPE_OTHER, 1, 1},
                                             {25, "I16", FOVEA_DTYPE_OTHER, 1, 2},
                                             {26, "I32", FOVEA_DTYPE_OTHER, 1, 4},
                                             {27, "I64", FOVEA_DTYPE_OTHER, 1, 8},
                                             {28, "F64", FOVEA_F64, 0, 0},
                                             {29, "IQ1_M", FOVEA_DTYPE_OTHER, 256, 56},
                                             {30, "BF16", FOVEA_BF16, 0, 0},
                                             {34, "TQ1_0", FOVEA_DTYPE_OTHER, 256, 54},
                                             {35, "TQ2_0", FOVEA_DTYPE_OTHER, 256, 66},
                                             {39, "MXFP4", FOVEA_DTYPE_OTHER, 32, 17},
                                             {40, "NVFP4", FOVEA_DTYPE_OTHER, 64, 36},
                                             {41, "Q1_0", FOVEA_DTYPE_OTHER, 128, 18}}};

const TypeRow* type_row(uint32_t number) {
    const auto* row =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& t) { return t.number == number; });
    return row == kTypes.end() ? nullptr : row;
}

uint64_t element_bytes(GgufType type) {
    switch (type) {
        case GgufType::u8:
        case GgufType::i8:
        case GgufType::boolean:
            return 1;
        case GgufType::u16:
        case GgufType::i16:
            return 2;
        case GgufType::u32:
        case GgufType::i32:
        case GgufType::f32:
            return 4;
        case GgufType::u64:
        case GgufType::i64:
        case GgufType::f64:
            return 8;
        default:
            return 0;
    }
}

}  // namespace

std::string gguf_type_text(uint32_t type) {
    const TypeRow* row = type_row(type);
    return row != nullptr ? std::string(row->text) : cat("type ", type);
}

/// Walks through the header. The first error is kept, and every later read gives zeros.
class GgufHeader::Reader {
  public:
    Reader(FileHead file, uint64_t at) : file_(file), at_(at) {}

    uint64_t at() const { return at_; }
    const std::optional<Error>& error() const { return error_; }
    bool needs_more() const { return needs_more_; }

    void fail(std::string_view field, uint64_t at, std::string_view reason) {
        if (error_) return;
        const std::string of = subject_.empty() ? "" : cat(what_, " '", printable_name(subject_), "', ");
        error_ = malformed(std::string(field), cat(of, "byte ", at, ": ", reason));
    }
    /// Sets the subject of the errors that follow.
    void about(const char* what, std::string_view subject) { what_ = what, subject_ = subject; }

    uint64_t whole(size_t size, const char* field) {
        if (!has(size, field)) return 0;
        const uint64_t value = read_le(file_.bytes, at_, size);
        at_ += size;
        return value;
    }
    std::string_view text(uint64_t limit, const char* field) {
        const uint64_t start = at_, length = whole(8, field);
        if (error_) return {};
        if (length > limit) {
            fail(field, start, cat("a text of ", length, " bytes; the limit is ", limit));
            return {};
        }
        if (!has(length, field)) return {};
        const std::string_view value(reinterpret_cast<const char*>(file_.bytes.data()) + at_, size_t(length));
        at_ += length;
        return value;
    }
    std::span<const std::byte> bytes(uint64_t size, const char* field) {
        if (!has(size, field)) return {};
        const auto value = file_.bytes.subspan(size_t(at_), size_t(size));
        at_ += size;
        return value;
    }

    GgufValue value() {
        GgufValue v;
        about("key", {});
        const uint64_t start = at_;
        v.key = text(kMaxGgufText, "key");
        if (!error_ && utf8_fault(v.key) != v.key.size()) fail("key", start, "the key is not valid UTF-8");
        about("key", v.key);
        v.type = type("type");
        if (!error_ && v.type == GgufType::array) {
            v.is_array = true;
            v.type = type("array");
            if (!error_ && v.type == GgufType::array) fail("array", at_ - 4, "an array of arrays");
            v.count = whole(8, "array");
        }
        const uint64_t from = at_;
        if (error_) return v;
        if (v.type == GgufType::text) {
            // Each text has 8 bytes at least, so that the count is bounded by the file before it is believed.
            if (v.count > (file_.file_bytes - at_) / 8) fail("array", from - 8, too_many(v.count));
            for (uint64_t i = 0; i < v.count && !error_; ++i) text(file_.file_bytes, "text");
        } else {
            const uint64_t size = element_bytes(v.type);
            if (v.count > (file_.file_bytes - at_) / size)
                fail(v.is_array ? "array" : "value", from, too_many(v.count));
            if (!error_) bytes(v.count * size, "value");
        }
        if (error_) return v;
        v.bytes = file_.bytes.subspan(size_t(from), size_t(at_ - from));
        if (v.type == GgufType::boolean)
            for (const std::byte b : v.bytes)
                if (std::to_integer<uint32_t>(b) > 1) fail("value", from, "a boolean that is not 0 or 1");
        return v;
    }

    GgufTensor tensor(uint64_t alignment) {
        GgufTensor t;
        about("tensor", {});
        const uint64_t start = at_;
        t.name = text(kMaxGgufText, "name");
        if (!error_ && utf8_fault(t.name) != t.name.size())
            fail("name", start, "the name is not valid UTF-8");
        about("tensor", t.name);
        t.rank = uint32_t(whole(4, "rank"));
        if (!error_ && t.rank > kMaxGgufRank)
            fail("shape", at_ - 4, cat(t.rank, " dimensions; the limit is ", kMaxGgufRank));
        for (uint32_t i = 0; i < t.rank && !error_; ++i) {
            t.dims[i] = whole(8, "shape");
            if (t.dims[i] > kMaxDim)
                fail("shape", at_ - 8, cat("dimension ", i, " is ", t.dims[i], ", the limit is ", kMaxDim));
        }
        t.type = uint32_t(whole(4, "type"));
        const uint64_t type_at = at_ - 4;
        t.offset = whole(8, "offset");
        if (error_) return t;
        if (t.offset % alignment != 0)
            fail("offset", at_ - 8,
                 cat("offset ", t.offset, " is not a multiple of the alignment, ", alignment));
        size(t, type_at);
        return t;
    }

  private:
    static std::string too_many(uint64_t count) {
        return cat("an array of ", count, " elements, which is more than the bytes that follow can hold");
    }
    bool has(uint64_t size, const char* field) {
        if (!error_ && size > file_.file_bytes - at_)
            fail(field, at_, cat("the file ends here; ", size, " bytes more are needed", kCutShort));
        if (!error_ && size > file_.bytes.size() - at_) {
            needs_more_ = true;
            fail(field, at_, "the header goes on");
        }
        return !error_;
    }
    GgufType type(const char* field) {
        const auto number = uint32_t(whole(4, field));
        if (!error_ && number > uint32_t(GgufType::f64))
            fail(field, at_ - 4, cat("type ", number, " is none of the 13 types of values"));
        return GgufType(number);
    }
    void size(GgufTensor& t, uint64_t type_at) {
        const TypeRow* row = type_row(t.type);
        if (row == nullptr) return;
        t.weight_type = row->type;
        const bool other = row->type == FOVEA_DTYPE_OTHER;
        const uint64_t elements = other ? row->block_elements : dtype_info(row->type).block.numbers;
        const uint64_t columns = t.rank == 0 ? 1 : t.dims[0];
        if (columns % elements != 0)
            return fail(
                "shape", type_at,
                cat("rows of ", columns, " are not a multiple of the blocks of ", row->text, ", ", elements));
        uint64_t size = columns / elements * (other ? row->block_bytes : dtype_bytes(row->type));
        bool empty = columns == 0;
        for (uint32_t i = 1; i < t.rank; ++i) empty = empty || t.dims[i] == 0;
        for (uint32_t i = 1; i < t.rank && !empty; ++i) {
            const auto product = checked_product(size, t.dims[i]);
            if (!product) return fail("shape", type_at, "the shape needs more than 2^64 - 1 bytes");
            size = *product;
        }
        t.size_bytes = empty ? 0 : size;
    }

    FileHead file_;
    uint64_t at_;
    bool needs_more_ = false;
    const char* what_ = "key";
    std::string_view subject_;
    std::optional<Error> error_;
};

Result<GgufHeader> GgufHeader::read(FileHead file, bool* needs_more) {
    GgufHeader header;
    header.file_ = file;
    if (file.file_bytes < kFixedBytes)
        return malformed("file", cat("byte 0: ", file.file_bytes,
                                     " bytes are too few for a GGUF file, the least is ", kFixedBytes));
    if (std::memcmp(file.bytes.data(), "GGUF", 4) != 0) {
        const std::string_view begin = letters_at_begin(file.bytes);
        return malformed("file", begin.empty()
                                     ? "byte 0: this is not a GGUF file: it does not begin with 'GGUF'"
                                     : cat("byte 0: this is not a GGUF file: it does not begin with "
                                           "'GGUF' but with '",
                                           begin, "'"));
    }
    header.version_ = uint32_t(read_le(file.bytes, 4, 4));
    const uint32_t swapped = header.version_ >> 24;
    if (header.version_ != 2 && header.version_ != 3)
        return unsupported(
            "version",
            (header.version_ & 0xffffffu) == 0 && swapped != 0
                ? std::string("byte 4: the file is big-endian; only little-endian files are supported")
                : cat("byte 4: version is ", header.version_, "; it must be 2 or 3"));
    header.tensor_count_ = read_le(file.bytes, 8, 8), header.key_count_ = read_le(file.bytes, 16, 8);
    const uint64_t rest = file.file_bytes - kFixedBytes;
    for (const auto& [what, at, count, least] :
         {std::tuple{"tensors", 8, header.tensor_count_, kMinTensorBytes},
          {"keys", 16, header.key_count_, kMinKeyBytes}})
        if (count > kMaxGgufEntries || count > rest / least)
            return malformed(what, cat("byte ", at, ": ", count, " ", what, "; the limit is ",
                                       kMaxGgufEntries, ", and the file has room for ", rest / least,
                                       count > kMaxGgufEntries ? "" : kCutShort));
    Reader reader(file, kFixedBytes);
    std::optional<Error> error = header.check_keys(reader);
    if (!error) error = header.check_tensors(reader);
    if (needs_more) *needs_more = reader.needs_more();
    if (error) return *std::move(error);
    return header;
}

std::optional<Error> GgufHeader::check_keys(Reader& reader) {
    std::vector<uint64_t> places;
    places.reserve(size_t(key_count_));
    for (uint64_t i = 0; i < key_count_; ++i) {
        const uint64_t at = reader.at();
        places.push_back(at);
        const GgufValue value = reader.value();
        if (reader.error()) return reader.error();
        if (value.key != "general.alignment") continue;
        const auto given = value.whole();
        if (value.type != GgufType::u32 || value.is_array || !given || *given == 0 || *given > 65536 ||
            (*given & (*given - 1)) != 0)
            return malformed("general.alignment", cat("key 'general.alignment', byte ", at,
                                                      ": is not a power of two up to 65536"));
        alignment_ = *given;
    }
    first_tensor_ = reader.at();
    return check_names(places, "key");
}

std::optional<Error> GgufHeader::check_tensors(Reader& reader) {
    std::vector<uint64_t> places;
    places.reserve(size_t(tensor_count_));
    for (uint64_t i = 0; i < tensor_count_; ++i) {
        places.push_back(reader.at());
        reader.tensor(alignment_);
        if (reader.error()) return reader.error();
    }
    const uint64_t end = reader.at(), padding = (alignment_ - end % alignment_) % alignment_;
    if (tensor_count_ > 0 && padding > file_.file_bytes - end)
        return malformed(
            "file", cat("byte ", end, ": the file ends before its data begins, at byte ", end + padding));
    data_begin_ = std::min<uint64_t>(end + padding, file_.file_bytes);
    if (auto error = check_names(places, "tensor")) return error;
    return check_places(places);
}

std::optional<Error> GgufHeader::check_names(std::vector<uint64_t>& places, const char* what) const {
    const auto name = [&](uint64_t place) { return Reader(file_, place).text(kMaxGgufText, "name"); };
    std::sort(places.begin(), places.end(), [&](uint64_t a, uint64_t b) { return name(a) < name(b); });
    for (size_t i = 1; i < places.size(); ++i)
        if (name(places[i - 1]) == name(places[i]))
            return malformed("name", cat(what, " '", printable_name(name(places[i])), "', byte ",
                                         std::max(places[i - 1], places[i]), ": appears twice"));
    return std::nullopt;
}

std::optional<Error> GgufHeader::check_places(std::vector<uint64_t>& places) const {
    const auto tensor = [&](uint64_t place) { return Reader(file_, place).tensor(alignment_); };
    std::sort(places.begin(), places.end(), [&](uint64_t a, uint64_t b) {
        const GgufTensor first = tensor(a), second = tensor(b);
        return first.offset != second.offset ? first.offset < second.offset
                                             : first.size_bytes < second.size_bytes;
    });
    const uint64_t data_bytes = file_.file_bytes - data_begin_;
    uint64_t end = 0;
    for (const uint64_t place : places) {
        const GgufTensor t = tensor(place);
        const auto refuse = [&](std::string_view reason) {
            return malformed("offset",
                             cat("tensor '", printable_name(t.name), "', byte ", place, ": ", reason));
        };
        if (t.offset > data_bytes || t.size_bytes > data_bytes - t.offset)
            return refuse(cat("bytes ", t.offset, " to ", t.offset, " + ", t.size_bytes,
                              " are beyond the data, which has ", data_bytes, kCutShort));
        if (t.offset < end)
            return refuse(cat("begins at ", t.offset, ", inside a tensor that ends at ", end));
        end = t.offset + t.size_bytes;
    }
    return std::nullopt;
}

std::vector<GgufValue> GgufHeader::values() const {
    std::vector<GgufValue> all;
    all.reserve(size_t(key_count_));
    Reader reader(file_, kFixedBytes);
    for (uint64_t i = 0; i < key_count_; ++i) all.push_back(reader.value());
    return all;
}

std::vector<GgufTensor> GgufHeader::tensors() const {
    std::vector<GgufTensor> all;
    all.reserve(size_t(tensor_count_));
    Reader reader(file_, first_tensor_);
    for (uint64_t i = 0; i < tensor_count_; ++i) all.push_back(reader.tensor(alignment_));
    return all;
}

}  // namespace fovea::files
