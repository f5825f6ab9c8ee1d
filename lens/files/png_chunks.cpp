#include "files/png_chunks.hpp"

#include <optional>
#include <string_view>

#include "files/buffer.hpp"
#include "files/inflater.hpp"
#include "files/refusal.hpp"

namespace fovea::files {
namespace {

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";

uint64_t big_endian(std::span<const std::byte> bytes, uint64_t at) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint64_t>(bytes[at + i]);
    return value;
}

Error chunk_fault(std::string_view type, uint64_t offset, std::string_view reason) {
    return malformed("chunk", cat("chunk '", printable_name(type), "', byte ", offset, ": ", reason));
}

/// Follows the inflated image bytes row by row: each row is one filter byte and its samples, in one pass or
/// in the seven of Adam7.
class RowWalk {
  public:
    explicit RowWalk(const PngHeader& header) : header_(header) { start_pass(); }

    static uint64_t total_bytes(const PngHeader& header) {
        uint64_t total = 0;
        RowWalk walk(header);
        for (; walk.pass_ < walk.pass_count(); walk.next_pass()) total += walk.rows_left_ * walk.row_bytes_;
        return total;
    }

    /// False at a filter byte above 4.
    bool take(std::span<const std::byte> piece) {
        while (!piece.empty() && pass_ < pass_count()) {
            if (at_ == 0 && std::to_integer<unsigned>(piece[0]) > 4) return false;
            const uint64_t step = std::min<uint64_t>(piece.size(), row_bytes_ - at_);
            piece = piece.subspan(static_cast<size_t>(step));
            at_ += step;
            if (at_ == row_bytes_) {
                at_ = 0;
                if (--rows_left_ == 0) next_pass();
            }
        }
        return true;
    }

  private:
    size_t pass_count() const { return header_.interlaced ? 7 : 1; }
    void next_pass() {
        ++pass_;
        start_pass();
    }
    void start_pass() {
        constexpr uint64_t kX0[] = {0, 4, 0, 2, 0, 1, 0}, kY0[] = {0, 0, 4, 0, 2, 0, 1};
        constexpr uint64_t kDx[] = {8, 8, 4, 4, 2, 2, 1}, kDy[] = {8, 8, 8, 4, 4, 2, 2};
        for (; pass_ < pass_count(); ++pass_) {
            uint64_t columns = header_.width;
            rows_left_ = header_.height;
            if (header_.interlaced) {
                columns = columns > kX0[pass_] ? (columns - kX0[pass_] + kDx[pass_] - 1) / kDx[pass_] : 0;
                rows_left_ =
                    rows_left_ > kY0[pass_] ? (rows_left_ - kY0[pass_] + kDy[pass_] - 1) / kDy[pass_] : 0;
            }
            row_bytes_ = 1 + columns * header_.channels;
            if (columns != 0 && rows_left_ != 0) return;  // an empty pass has no bytes at all
        }
        rows_left_ = 0;
    }

    const PngHeader header_;
    size_t pass_ = 0;
    uint64_t rows_left_ = 0, row_bytes_ = 0, at_ = 0;
};

class PngChecker {
  public:
    PngChecker(std::span<const std::byte> file, const LoadLimits& limits) : file_(file), limits_(limits) {}

    Result<PngHeader> run() {
        const std::string_view text(reinterpret_cast<const char*>(file_.data()), file_.size());
        if (!text.starts_with(kSignature))
            return malformed("file",
                             "byte 0: this is not a png file: it does not begin with the PNG signature");
        uint64_t at = kSignature.size();
        while (!ended_) {
            if (auto error = chunk(at)) return *std::move(error);
        }
        if (at != file_.size())
            return malformed("file",
                             cat("byte ", at, ": ", file_.size() - at, " bytes after the chunk IEND"));
        return header_;
    }

  private:
    std::optional<Error> chunk(uint64_t& at) {
        const uint64_t left = file_.size() - at;
        if (left < 12) return malformed("chunk", cat("byte ", at, ": the file ends before a chunk IEND"));
        const uint64_t length = big_endian(file_, at);
        const auto body = file_.subspan(static_cast<size_t>(at + 4));
        const std::string_view type(reinterpret_cast<const char*>(body.data()), 4);
        if (length > left - 12)
            return chunk_fault(type, at,
                               cat("length ", length, " is more than the ", left - 12, " bytes that follow"));
        const auto covered = body.first(static_cast<size_t>(4 + length));
        if (crc32_of(covered) != big_endian(body, 4 + length))
            return chunk_fault(type, at, "the checksum is wrong");
        auto error = contents(type, covered.subspan(4), at);
        at += 12 + length;
        return error;
    }

    std::optional<Error> contents(std::string_view type, std::span<const std::byte> data, uint64_t at) {
        if (header_.width == 0)
            return type == "IHDR" ? image_header(data, at)
                                  : chunk_fault(type, at, "IHDR is not the first chunk");
        if (type == "IHDR") return chunk_fault(type, at, "appears twice");
        if (type == "IDAT") return image_data(data, at);
        in_data_ = false;
        if (type == "IEND") {
            ended_ = true;
            if (!data.empty()) return chunk_fault(type, at, "holds data");
            return image_end(at);
        }
        // Bit 5 of the first letter: lower case chunks may be ignored by whoever does not know them. A
        // palette is only a suggestion here, where every pixel has its own color.
        if ((type[0] & 0x20) == 0 && type != "PLTE")
            return unsupported("chunk",
                               cat("chunk '", printable_name(type), "', byte ", at,
                                   ": this chunk is needed to read the image, and is not supported"));
        return std::nullopt;
    }

    std::optional<Error> image_header(std::span<const std::byte> data, uint64_t at) {
        if (data.size() != 13) return chunk_fault("IHDR", at, cat("has ", data.size(), " bytes, not 13"));
        const uint64_t width = big_endian(data, 0), height = big_endian(data, 4);
        if (width == 0 || height == 0 || width > kMaxPngSide || height > kMaxPngSide)
            return chunk_fault("IHDR", at,
                               cat("size ", width, " x ", height, " is not from 1 x 1 to ", kMaxPngSide,
                                   " x ", kMaxPngSide));
        const auto field = [&](size_t i) { return std::to_integer<unsigned>(data[i]); };
        const unsigned depth = field(8), color = field(9);
        header_.channels = color == 0 ? 1 : color == 4 ? 2 : color == 2 ? 3 : color == 6 ? 4 : 0;
        if (depth != 8 || header_.channels == 0)
            return unsupported(
                "IHDR",
                cat("chunk 'IHDR', byte ", at, ": ", depth, " bits of color type ", color,
                    "; only 8 bits of grey (0), RGB (2), grey and alpha (4), RGBA (6) are supported"));
        if (field(10) != 0 || field(11) != 0 || field(12) > 1)
            return chunk_fault("IHDR", at, "compression, filter or interlace method is unknown");
        header_.width = width;
        header_.height = height;
        header_.interlaced = field(12) == 1;
        const uint64_t pixels = width * height * header_.channels;
        if (pixels > limits_.inflated_bytes)
            return Error{FOVEA_LIMIT_EXCEEDED, "inflated_bytes",
                         cat("chunk 'IHDR', byte ", at, ": ", pixels, " bytes of pixels exceed the limit, ",
                             limits_.inflated_bytes)};
        total_bytes_ = RowWalk::total_bytes(header_);
        inflater_.emplace(InflateFormat::zlib, total_bytes_);
        rows_.emplace(header_);
        return std::nullopt;
    }

    std::optional<Error> image_data(std::span<const std::byte> data, uint64_t at) {
        if (!in_data_ && seen_data_) return chunk_fault("IDAT", at, "is not next to the IDAT before");
        in_data_ = seen_data_ = true;
        if (data.empty()) return std::nullopt;
        if (inflater_->state() == InflateState::ended)
            return chunk_fault("IDAT", at, "data after the end of the image");
        const InflateState state =
            inflater_->feed(data, [&](std::span<const std::byte> piece) { return rows_->take(piece); });
        if (state == InflateState::more) return std::nullopt;
        if (state == InflateState::too_long)
            return chunk_fault("IDAT", at,
                               cat("inflates to more than the ", total_bytes_, " bytes of the image"));
        if (state == InflateState::stopped) return chunk_fault("IDAT", at, "a row has an unknown filter");
        if (state == InflateState::no_memory) return out_of_memory("IDAT", 65'536);
        if (state == InflateState::corrupt) return chunk_fault("IDAT", at, "the compressed data is corrupt");
        if (inflater_->unread_bytes() != 0)
            return chunk_fault("IDAT", at,
                               cat(inflater_->unread_bytes(), " bytes after the end of the image"));
        return std::nullopt;
    }

    std::optional<Error> image_end(uint64_t at) {
        if (inflater_->state() == InflateState::ended && inflater_->produced_bytes() == total_bytes_)
            return std::nullopt;
        return chunk_fault(
            "IEND", at,
            cat("the image ends after ", inflater_->produced_bytes(), " of its ", total_bytes_, " bytes"));
    }

    std::span<const std::byte> file_;
    const LoadLimits& limits_;
    PngHeader header_;
    std::optional<Inflater> inflater_;
    std::optional<RowWalk> rows_;
    uint64_t total_bytes_ = 0;
    bool seen_data_ = false, in_data_ = false, ended_ = false;
};

}  // namespace

Result<PngHeader> check_png(std::span<const std::byte> file, const LoadLimits& limits) {
    return PngChecker(file, limits).run();
}

}  // namespace fovea::files
