#include "plan/text_sink.hpp"
#include "problem/format_text.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace fovea {

void TextSink::line(const char* format, ...) {
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
