#include "files/npy_header.hpp"

#include <optional>

#include "files/refusal.hpp"
#include "files/utf8.hpp"

namespace fovea::files {
namespace {

struct Descr {
    std::string_view code;
    FoveaDtype type;
};
constexpr std::array<Descr, 12> kDescrs = {{{"b1", FOVEA_BOOL},
                                            {"u1", FOVEA_U8},
                                            {"i1", FOVEA_I8},
                                            {"i2", FOVEA_I16},
                                            {"i4", FOVEA_I32},
                                            {"i8", FOVEA_I64},
                                            {"u2", FOVEA_U16},
                                            {"u4", FOVEA_U32},
                                            {"u8", FOVEA_U64},
                                            {"f2", FOVEA_F16},
                                            {"f4", FOVEA_F32},
                                            {"f8", FOVEA_F64}}};

/// Reads the dictionary: a Python literal, of which only strings, True, False and tuples of integers occur.
class NpyDictionary {
  public:
    NpyDictionary(std::string_view text, uint64_t offset) : text_(text), offset_(offset) {}

    std::optional<Error> read(NpyHeader& header) {
        skip_space();
        if (!take('{')) return fault("header", "does not begin with '{'");
        unsigned seen = 0;
        for (skip_space(); !take('}'); skip_space()) {
            if (auto error = member(header, seen)) return error;
            skip_space();
            if (take(',')) continue;
            if (peek() != '}') return fault("header", "',' or '}' expected");
        }
        skip_space();
        if (at_ != text_.size()) return fault("header", "text after the dictionary");
        constexpr const char* kFields[] = {"descr", "fortran_order", "shape"};
        for (unsigned i = 0; i < 3; ++i)
            if ((seen & (1u << i)) == 0) return fault(kFields[i], cat(kFields[i], " is missing"));
        return std::nullopt;
    }

  private:
    Error fault(std::string field, std::string_view reason) const {
        return fault_at(at_, std::move(field), reason);
    }
    Error fault_at(size_t at, std::string field, std::string_view reason) const {
        return malformed(std::move(field), cat("byte ", offset_ + at, ": header: ", reason));
    }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    bool take(char expected) {
        if (peek() != expected) return false;
        ++at_;
        return true;
    }
    bool take_word(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) return false;
        at_ += word.size();
        return true;
    }
    void skip_space() {
        while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r') ++at_;
    }

    /// Text in single or double quotes without escapes, as numpy writes all that can be read here.
    std::optional<std::string_view> quoted() {
        const char quote = peek();
        if (quote != '\'' && quote != '"') return std::nullopt;
        const size_t end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) return std::nullopt;
        const std::string_view result = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return result;
    }

    std::optional<Error> member(NpyHeader& header, unsigned& seen) {
        const size_t start = at_;
        const auto key = quoted();
        if (!key) return fault("header", "a key in quotes expected");
        const unsigned bit = *key == "descr" ? 1u : *key == "fortran_order" ? 2u : *key == "shape" ? 4u : 0u;
        if (bit == 0) return fault_at(start, "header", cat("unknown key '", printable_name(*key), "'"));
        if ((seen & bit) != 0) return fault_at(start, "header", cat(*key, " appears twice"));
        seen |= bit;
        skip_space();
        if (!take(':')) return fault("header", "':' expected");
        skip_space();
        return bit == 1u ? descr(header) : bit == 2u ? order(header) : shape(header);
    }

    std::optional<Error> descr(NpyHeader& header) {
        const size_t start = at_;
        if (peek() == '[')
            return unsupported(
                "descr", cat("byte ", offset_ + at_, ": descr is a structured type; save one array a field"));
        const auto text = quoted();
        if (!text) return fault("descr", "descr must be text");
        const char order = text->empty() ? '\0' : text->front();
        const std::string_view code = text->substr(text->empty() ? 0 : 1);
        if (code.starts_with('O'))
            return unsupported("object",
                               cat("byte ", offset_ + start,
                                   ": descr '|O' is an object array: it holds a pickle, which runs code when "
                                   "read, and is never loaded"));
        for (const Descr& known : kDescrs) {
            if (code != known.code) continue;
            const bool bytes = dtype_bytes(known.type) == 1;
            if (order != '<' && order != '>' && order != '=' && !(order == '|' && bytes)) break;
            header.type = known.type;
            header.big_endian = order == '>' && !bytes;
            return std::nullopt;
        }
        return unsupported("descr", cat("byte ", offset_ + start, ": descr '", printable_name(*text),
                                        "' is not supported; it must be a bool, integer or float"));
    }

    std::optional<Error> order(NpyHeader& header) {
        header.fortran_order = take_word("True");
        if (!header.fortran_order && !take_word("False"))
            return fault("fortran_order", "fortran_order must be True or False");
        return std::nullopt;
    }

    std::optional<Error> shape(NpyHeader& header) {
        if (!take('(')) return fault("shape", "shape must be a tuple of integers");
        bool comma = true;
        for (skip_space(); !take(')'); skip_space()) {
            if (!comma) return fault("shape", "',' or ')' expected");
            if (header.rank == kMaxRank)
                return fault("shape", cat("shape has more dimensions than the limit, ", kMaxRank));
            const auto dim = whole_number();
            if (!dim || *dim > kMaxDim)
                return fault("shape", cat("dimension ", header.rank, " of shape is not an integer from 0 to ",
                                          kMaxDim));
            header.dims[header.rank++] = *dim;
            take('L');  // written by Python 2
            skip_space();
            comma = take(',');
        }
        if (header.rank == 1 && !comma)
            return fault("shape", "shape must be a tuple, such as (3,); it is a number");
        return std::nullopt;
    }

    std::optional<uint64_t> whole_number() {
        uint64_t value = 0;
        const size_t start = at_;
        while (peek() >= '0' && peek() <= '9' && at_ - start < 19)
            value = value * 10 + static_cast<unsigned>(text_[at_++] - '0');
        if (at_ == start || (peek() >= '0' && peek() <= '9')) return std::nullopt;
        return value;
    }

    std::string_view text_;
    uint64_t offset_;
    size_t at_ = 0;
};

uint64_t little_endian(std::span<const std::byte> bytes) {
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint64_t>(bytes[i]);
    return value;
}

}  // namespace

Result<NpyHeader> read_npy_header(std::span<const std::byte> file) {
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    if (!text.starts_with(kNpyMagic))
        return malformed("file", "byte 0: this is not an npy file: it does not begin with \\x93NUMPY");
    if (file.size() < 8) return malformed("version", "byte 6: the file ends before the version");
    const auto major = static_cast<unsigned>(file[6]), minor = static_cast<unsigned>(file[7]);
    if (major < 1 || major > 3 || minor != 0)
        return unsupported("version", cat("byte 6: version ", major, ".", minor, " is not 1.0, 2.0 or 3.0"));
    const size_t length_bytes = major == 1 ? 2 : 4;
    if (file.size() < 8 + length_bytes)
        return malformed("header_length", "byte 8: the file ends before the header length");
    const uint64_t length = little_endian(file.subspan(8, length_bytes));
    if (length > kMaxNpyHeaderBytes)
        return malformed("header_length",
                         cat("byte 8: the header length is ", length, "; the limit is ", kMaxNpyHeaderBytes));
    const uint64_t start = 8 + length_bytes;
    if (length > file.size() - start)
        return malformed("header_length",
                         cat("byte 8: the header has ", length, " bytes, but only ", file.size() - start,
                             " follow; the file was cut short: save or download it again"));
    const std::string_view dictionary = text.substr(start, static_cast<size_t>(length));
    if (const size_t fault = utf8_fault(dictionary); fault != dictionary.size())
        return malformed("header", cat("byte ", start + fault, ": header: not valid UTF-8"));
    NpyHeader header;
    if (auto error = NpyDictionary(dictionary, start).read(header)) return *std::move(error);
    const auto size_bytes = checked_size_bytes(header.type, header.shape());
    if (!size_bytes) return malformed("shape", cat("byte ", start, ": header: ", size_bytes.error().text));
    header.data_offset = start + length;
    header.data_size_bytes = size_bytes.value();
    return header;
}

Result<std::string> npy_prefix(const Tensor& tensor) {
    std::string dictionary;
    for (const Descr& known : kDescrs)
        if (known.type == tensor.type)
            dictionary = cat("{'descr': '", dtype_bytes(tensor.type) == 1 ? '|' : '<', known.code,
                             "', 'fortran_order': False, 'shape': (");
    if (dictionary.empty())
        return unsupported("type", cat("tensor '", printable_name(tensor.name), "': npy has no ",
                                       dtype_name(tensor.type), "; save it as safetensors"));
    for (size_t i = 0; i < tensor.shape.size(); ++i)
        dictionary +=
            cat(i == 0 ? "" : " ", tensor.shape[i], i == 0 || i + 1 < tensor.shape.size() ? "," : "");
    dictionary += "), }";
    // Spaces and a newline fill up to a multiple of 64, as numpy aligns the data.
    constexpr size_t kFixed = 10;
    while ((kFixed + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
    dictionary += '\n';
    std::string prefix(kNpyMagic);
    prefix += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
               static_cast<char>(dictionary.size() >> 8)};
    return prefix + dictionary;
}

}  // namespace fovea::files
