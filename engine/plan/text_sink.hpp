// Builds a text in a caller's buffer and counts what the whole text needs.
#pragma once

#include "problem/status.hpp"

#include <cstdarg>
#include <cstddef>
#include <cstring>

namespace fovea {

class TextSink {
  public:
    TextSink(char* buffer, size_t capacity) : buffer_(buffer), capacity_(capacity) {
        if (capacity_) buffer_[0] = '\0';
    }
    void line(const char* format, ...)
#if defined(__GNUC__)
        __attribute__((format(printf, 2, 3)))
#endif
        ;
    // Bytes of the whole text with its terminator.
    size_t needed() const { return length_ + 1; }

  private:
    char* buffer_;
    size_t capacity_;
    size_t length_ = 0;
};

inline void TextSink::line(const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int written = format_text(text, sizeof text - 1, format, arguments);
    va_end(arguments);
    if (written < 0) return;
    size_t length = size_t(written) < sizeof text - 2 ? size_t(written) : sizeof text - 2;
    text[length++] = '\n';
    if (length_ < capacity_) {
        const size_t room = capacity_ - length_ - 1, copied = length < room ? length : room;
        memcpy(buffer_ + length_, text, copied);
        buffer_[length_ + copied] = '\0';
    }
    length_ += length;
}

}  // namespace fovea
