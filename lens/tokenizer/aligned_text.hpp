// Text that was rewritten and still knows which bytes of the source it came from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// [begin, end) of the source; empty for what was inserted there.
struct ByteRange {
    uint32_t begin = 0, end = 0;
};

struct AlignedText {
    std::string text;
    std::vector<ByteRange> from;  // range of each byte of `text`

    // A stretch of the source that begins at its byte `first`.
    static AlignedText of(std::string_view source, size_t first) {
        AlignedText out;
        out.text = source;
        for (size_t i = 0; i < source.size(); ++i)
            out.from.push_back({uint32_t(first + i), uint32_t(first + i + 1)});
        return out;
    }

    bool empty() const { return text.empty(); }
    void append(std::string_view more, ByteRange of) {
        text += more;
        from.insert(from.end(), more.size(), of);
    }
    void append(const AlignedText& other, size_t begin, size_t end) {
        text.append(other.text, begin, end - begin);
        from.insert(from.end(), other.from.begin() + int64_t(begin), other.from.begin() + int64_t(end));
    }
    AlignedText part(size_t begin, size_t end) const {
        AlignedText out;
        out.append(*this, begin, end);
        return out;
    }
    // The bytes that [begin, end) came from; composition may have moved marks past each other.
    ByteRange source(size_t begin, size_t end) const {
        if (begin >= end) {
            const uint32_t at = from.empty() ? 0 : begin < from.size() ? from[begin].begin : from.back().end;
            return {at, at};
        }
        ByteRange all = from[begin];
        for (size_t i = begin + 1; i < end; ++i) {
            all.begin = std::min(all.begin, from[i].begin);
            all.end = std::max(all.end, from[i].end);
        }
        return all;
    }
};

}  // namespace fovea
