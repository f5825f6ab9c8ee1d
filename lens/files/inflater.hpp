#pragma once
// zlib's inflate as a stream that stops at a byte count known beforehand. Its memory is a constant, about 60
// KiB.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace fovea::files {

enum class InflateFormat { raw, zlib };

enum class InflateState {
    more,      // wants more input
    ended,     // the stream's own end was reached, check values agreed
    too_long,  // inflates to more than expected
    stopped,   // `take` returned false
    corrupt,
    no_memory
};

class Inflater {
  public:
    Inflater(InflateFormat format, uint64_t expected_bytes) : expected_bytes_(expected_bytes) {
        if (inflateInit2(&stream_, format == InflateFormat::raw ? -15 : 15) != Z_OK)
            state_ = InflateState::no_memory;
    }
    ~Inflater() { inflateEnd(&stream_); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;

    /// Inflates `input`, handing pieces of at most 16 KiB to `take(span) -> bool`. Input left over after the
    /// stream's end is counted in unread_bytes().
    template <class Take>
    InflateState feed(std::span<const std::byte> input, Take take) {
        while (state_ == InflateState::more && !input.empty()) {
            const size_t piece = std::min<size_t>(input.size(), size_t{1} << 30);
            stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input.data()));
            stream_.avail_in = static_cast<uInt>(piece);
            run(take);
            input = input.subspan(piece - stream_.avail_in);
        }
        unread_bytes_ = input.size();
        return state_;
    }

    InflateState state() const { return state_; }
    uint64_t produced_bytes() const { return produced_bytes_; }
    size_t unread_bytes() const { return unread_bytes_; }

  private:
    template <class Take>
    void run(Take& take) {
        do {
            stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
            stream_.avail_out = static_cast<uInt>(out_.size());
            const int code = inflate(&stream_, Z_NO_FLUSH);
            const std::span<const std::byte> piece(out_.data(), out_.size() - stream_.avail_out);
            produced_bytes_ += piece.size();
            if (produced_bytes_ > expected_bytes_)
                state_ = InflateState::too_long;
            else if (!piece.empty() && !take(piece))
                state_ = InflateState::stopped;
            else if (code == Z_STREAM_END)
                state_ = InflateState::ended;
            else if (code == Z_MEM_ERROR)
                state_ = InflateState::no_memory;
            else if (code != Z_OK && code != Z_BUF_ERROR)
                state_ = InflateState::corrupt;
        } while (state_ == InflateState::more && (stream_.avail_in != 0 || stream_.avail_out == 0));
    }

    z_stream stream_{};
    uint64_t expected_bytes_;
    uint64_t produced_bytes_ = 0;
    size_t unread_bytes_ = 0;
    InflateState state_ = InflateState::more;
    std::array<std::byte, 16'384> out_;
};

/// zlib's CRC-32 of a span of any length, continuing from `crc` (0 to begin).
inline uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t crc = 0) {
    if (bytes.empty()) return crc;  // zlib takes a null pointer as "begin anew"
    return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace fovea::files
