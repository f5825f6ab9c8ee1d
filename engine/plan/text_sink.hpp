// Builds a text in a caller's buffer and counts what the whole text needs.
#pragma once

#include <cstddef>

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

}  // namespace fovea
