// csv files as tables of floats, and back.
#include <cstring>

#include <fovea/files.hpp>

#include "files/buffer.hpp"
#include "files/encoders.hpp"
#include "files/mapped_file.hpp"
#include "files/number_text.hpp"
#include "files/refusal.hpp"
#include "files/utf8.hpp"

namespace fovea {
namespace files {
namespace {

/// A decimal number of float64 needs at most 767 significant digits to be exact.
constexpr size_t kMaxFieldBytes = 1024;

struct CsvField {
    std::string_view raw;  // without the outer quotes, inner quotes still doubled
    uint64_t offset = 0;
    uint64_t row = 1, column = 1;  // as a person counts
    bool last_in_row = false;
};

std::string field_text(const CsvField& field) {
    std::string out;
    for (size_t i = 0; i < field.raw.size(); ++i) {
        out += field.raw[i];
        if (field.raw[i] == '"') ++i;
    }
    return out;
}

Error field_fault(const CsvField& field, std::string_view reason) {
    return malformed(
        "field", cat("row ", field.row, ", column ", field.column, ", byte ", field.offset, ": ", reason));
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<double> field_number(const CsvField& field) { return parse_number(trimmed(field.raw)); }

/// Cuts the text into fields, one after the other.
class CsvCursor {
  public:
    explicit CsvCursor(std::string_view text) : text_(text), at_(text.starts_with("\xef\xbb\xbf") ? 3 : 0) {}

    bool done() const { return at_ == text_.size() && !after_comma_; }

    std::optional<Error> next(CsvField& field) {
        field = CsvField{{}, at_, row_, column_, false};
        if (auto error = peek() == '"' ? quoted(field) : plain(field)) return error;
        after_comma_ = peek() == ',' && at_ < text_.size();
        if (after_comma_) {
            ++at_;
            ++column_;
            return std::nullopt;
        }
        field.last_in_row = true;
        if (at_ < text_.size() && text_[at_] == '\r') ++at_;
        if (at_ < text_.size() && text_[at_] == '\n') ++at_;
        ++row_;
        column_ = 1;
        return std::nullopt;
    }

  private:
    /// The end of the text reads as the end of a line.
    char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }

    /// At LF, CRLF, a CR that ends the text, or the end.
    bool at_line_end() const {
        return peek() == '\n' || (peek() == '\r' && (at_ + 1 == text_.size() || text_[at_ + 1] == '\n'));
    }

    std::optional<Error> plain(CsvField& field) {
        const size_t start = at_;
        while (peek() != ',' && !at_line_end()) {
            if (text_[at_] == '"') return fault_here(field, "a quote inside a field without quotes");
            if (static_cast<unsigned char>(text_[at_]) < 0x20u && text_[at_] != '\t')
                return fault_here(field, "a control character: not a csv file");
            if (++at_ - start > kMaxFieldBytes)
                return field_fault(field, cat("the field is longer than ", kMaxFieldBytes, " bytes"));
        }
        field.raw = text_.substr(start, at_ - start);
        return check_utf8(field);
    }

    std::optional<Error> quoted(CsvField& field) {
        const size_t start = ++at_;
        for (;; ++at_) {
            if (at_ == text_.size()) return field_fault(field, "the closing quote is missing");
            if (at_ - start > kMaxFieldBytes)
                return field_fault(field, cat("the field is longer than ", kMaxFieldBytes, " bytes"));
            if (text_[at_] != '"') continue;
            if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') break;
            ++at_;
        }
        field.raw = text_.substr(start, at_ - start);
        ++at_;
        if (peek() != ',' && !at_line_end()) return fault_here(field, "text after the closing quote");
        return check_utf8(field);
    }

    std::optional<Error> check_utf8(const CsvField& field) const {
        const size_t fault = utf8_fault(field.raw);
        if (fault == field.raw.size()) return std::nullopt;
        return field_fault(field, "not valid UTF-8");
    }
    Error fault_here(CsvField field, std::string_view reason) const {
        field.offset = at_;
        return field_fault(field, reason);
    }

    std::string_view text_;
    size_t at_;
    uint64_t row_ = 1, column_ = 1;
    bool after_comma_ = false;
};

struct CsvShape {
    bool header = false, row_names = false;
    uint64_t rows = 0, columns = 0;  // rows of values; columns including the one of names
};

/// The first line decides: all fields are numeric, or none. Columns are counted there.
std::optional<Error> check_first_line(std::string_view text, CsvShape& shape) {
    CsvCursor cursor(text);
    CsvField field, first_word;
    uint64_t words = 0;
    do {
        if (auto error = cursor.next(field)) return error;
        ++shape.columns;
        if (field_number(field)) continue;
        if (words++ == 0) first_word = field;
    } while (!field.last_in_row);
    shape.header = words == shape.columns;
    if (words == 0 || shape.header) return std::nullopt;
    return field_fault(first_word, cat("'", printable_name(field_text(first_word)),
                                       "' is not a number, other fields of the first row are"));
}

Result<CsvShape> check_table(std::string_view text) {
    CsvShape shape;
    if (CsvCursor(text).done()) return malformed("file", "byte 0: the file is empty");
    if (auto error = check_first_line(text, shape)) return *std::move(error);
    CsvCursor cursor(text);
    CsvField field;
    bool header = shape.header;
    while (!cursor.done()) {
        uint64_t columns = 0;
        do {
            if (auto error = cursor.next(field)) return *std::move(error);
            ++columns;
            const bool number = field_number(field).has_value(), first = columns == 1 && shape.columns > 1;
            // The first row of values decides whether its first field is a name.
            if (!header && first && shape.header && shape.rows == 0) shape.row_names = !number;
            if (!header && first && shape.row_names) {
                if (!number) continue;
                return field_fault(field, cat("'", printable_name(field_text(field)),
                                              "' is a number; the rows before have names"));
            }
            if (!header && !number)
                return field_fault(field, cat("'", printable_name(field_text(field)),
                                              "' is not a number that float64 holds"));
            if (columns > shape.columns)
                return field_fault(field,
                                   cat("the row has more columns than the first, which has ", shape.columns));
        } while (!field.last_in_row);
        if (columns < shape.columns)
            return field_fault(field,
                               cat("the row has ", columns, " columns, the first has ", shape.columns));
        shape.rows += header ? 0 : 1;
        header = false;
    }
    return shape;
}

template <class Stored>
Stored element_at(const Tensor& tensor, uint64_t index) {
    Stored stored;
    std::memcpy(&stored, tensor.bytes.data() + index * sizeof(Stored), sizeof(Stored));
    return stored;
}

void append_element(std::string& out, const Tensor& tensor, std::span<const float> as_f32, uint64_t index) {
    switch (tensor.type) {
        case FOVEA_F64:
            return append_number(out, element_at<double>(tensor, index));
        case FOVEA_I32:
            out += std::to_string(element_at<int32_t>(tensor, index));
            return;
        case FOVEA_U32:
            out += std::to_string(element_at<uint32_t>(tensor, index));
            return;
        case FOVEA_I64:
            out += std::to_string(element_at<int64_t>(tensor, index));
            return;
        case FOVEA_U64:
            out += std::to_string(element_at<uint64_t>(tensor, index));
            return;
        default:
            return append_number(out, as_f32[index]);  // exact for all narrower types
    }
}

void append_name(std::string& out, std::string_view name) {
    out += '"';
    for (const char c : name) {
        if (c == '"') out += '"';
        out += c;
    }
    out += '"';
}

std::optional<Error> check_names(const char* what, std::span<const std::string> names, uint64_t count) {
    if (names.size() != count)
        return bad_argument(cat(what, "s"),
                            cat(names.size(), " ", what, " names for ", count, " ", what, "s"));
    for (const std::string& name : names)
        if (name.size() > kMaxFieldBytes / 2 || utf8_fault(name) != name.size() ||
            parse_number(trimmed(name)))
            return bad_argument(cat(what, "s"),
                                cat(what, " name '", printable_name(name), "' is a number, longer than ",
                                    kMaxFieldBytes / 2, " bytes or not UTF-8"));
    return std::nullopt;
}

}  // namespace

Encoded encode_csv(const Tensor& tensor, std::span<const std::string> columns,
                   std::span<const std::string> row_names, ByteSink& sink) {
    if (tensor.shape.size() > 2)
        return bad_argument("shape", cat("tensor '", printable_name(tensor.name), "' has shape ",
                                         format_shape(tensor.shape), "; csv stores at most two dimensions"));
    const uint64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
    const uint64_t width = tensor.shape.size() == 2 ? tensor.shape[1] : 1;
    if (width == 0 || (rows == 0 && columns.empty()))
        return bad_argument("shape", cat("tensor '", printable_name(tensor.name), "' has shape ",
                                         format_shape(tensor.shape), "; csv cannot store an empty tensor"));
    if (!columns.empty())
        if (auto error = check_names("column", columns, width)) return error;
    if (!row_names.empty()) {
        if (columns.empty()) return bad_argument("rows", "names of rows need names of columns");
        if (auto error = check_names("row", row_names, rows)) return error;
    }
    const auto as_f32 = to_f32(tensor);
    if (!as_f32) return as_f32.error();
    std::string line;
    if (!row_names.empty()) line += "\"\",";
    for (size_t i = 0; i < columns.size(); ++i) {
        if (i != 0) line += ',';
        append_name(line, columns[i]);
    }
    if (!columns.empty()) line += '\n';
    for (uint64_t row = 0; row < rows; ++row) {
        if (!row_names.empty()) {
            append_name(line, row_names[row]);
            line += ',';
        }
        for (uint64_t column = 0; column < width; ++column) {
            if (column != 0) line += ',';
            append_element(line, tensor, as_f32.value(), row * width + column);
        }
        line += '\n';
        if (line.size() > 65'536 || row + 1 == rows) {
            if (!sink.write_text(line)) return std::nullopt;
            line.clear();
        }
    }
    if (!line.empty()) sink.write_text(line);
    return std::nullopt;
}

}  // namespace files

Result<CsvTable> parse_csv(std::span<const std::byte> file) {
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    const auto shape = files::check_table(text);
    if (!shape) return shape.error();
    const uint64_t width = shape->columns - (shape->row_names ? 1 : 0);
    const uint64_t size_bytes = shape->rows * width * sizeof(double);
    files::Buffer buffer;
    if (!buffer.allocate(size_bytes)) return files::out_of_memory("values", size_bytes);
    CsvTable table;
    table.values = Tensor{{}, FOVEA_F64, {shape->rows, width}, buffer.bytes(), buffer.owner()};
    files::CsvCursor cursor(text);
    files::CsvField field;
    size_t at = 0;
    for (uint64_t i = 0; !cursor.done(); ++i) {
        if (auto error = cursor.next(field)) return *std::move(error);
        if (shape->header && i < shape->columns) {
            if (i > 0 || !shape->row_names) table.columns.push_back(files::field_text(field));
            continue;
        }
        if (shape->row_names && i % shape->columns == 0) {
            table.rows.push_back(files::field_text(field));
            continue;
        }
        const double value = files::field_number(field).value_or(0.0);
        std::memcpy(buffer.bytes().data() + at, &value, sizeof(value));
        at += sizeof(value);
    }
    return table;
}

Result<CsvTable> load_csv(const std::filesystem::path& path) {
    auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    auto table = parse_csv(file.value()->bytes());
    if (!table) return files::in_file(path, table.error());
    table->values.name = files::stem_text(path);
    return table;
}

Result<uint64_t> save_csv(const std::filesystem::path& path, const Tensor& tensor,
                          std::span<const std::string> columns, std::span<const std::string> rows) {
    return files::write_file(
        path, [&](files::ByteSink& sink) { return files::encode_csv(tensor, columns, rows, sink); });
}

}  // namespace fovea
