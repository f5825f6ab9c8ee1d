#include "standard_streams.hpp"

#include "arguments.hpp"

#include <fovea/files.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#if defined(_WIN32)
#include <io.h>
#else
#include <fcntl.h>
#include <unistd.h>
#endif

namespace fovea::app {
namespace {

// Bytes of a text without a character at its end that is not complete: at most three bytes.
size_t whole_characters(std::string_view text) {
    for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if ((byte & 0xc0u) == 0x80u) continue;
        const size_t length = byte >= 0xf0u ? 4 : byte >= 0xe0u ? 3 : byte >= 0xc0u ? 2 : 1;
        return length > back ? text.size() - back : text.size();
    }
    return text.size();
}

}  // namespace

std::string without_controls(std::string_view text, std::string_view kept) {
    const std::string as_they_are = "'\\" + std::string(kept);
    std::string out;
    while (!text.empty()) {
        const size_t length = std::min(text.find_first_of(as_they_are), text.size());
        out += printable_name(text.substr(0, length), SIZE_MAX);
        if (length < text.size()) out += text[length];
        text.remove_prefix(std::min(length + 1, text.size()));
    }
    return out;
}

bool is_terminal(int number) {
#if defined(_WIN32)
    return _isatty(number) != 0;
#else
    return isatty(number) != 0;
#endif
}

void TextPrinter::show(std::string_view all) { end(all.substr(0, whole_characters(all))); }

void TextPrinter::end(std::string_view all) {
    if (all.size() <= shown_) return;
    const std::string_view fresh = all.substr(shown_);
    const std::string text = terminal_ ? without_controls(fresh, "\n\t") : std::string(fresh);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    shown_ = all.size();
}

void fill_closed_streams() {
#if !defined(_WIN32)
    for (int number = 0; number <= 2; ++number) {
        if (fcntl(number, F_GETFD) != -1 || errno != EBADF) continue;
        // The lowest free number is this one. Opened the wrong way round: reading or writing says so.
        if (open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY) != number) return;
    }
#endif
}

void let_large_files_fail() {
#if defined(SIGXFSZ)
    std::signal(SIGXFSZ, SIG_IGN);
#endif
}

int check_standard_output(int code) {
    errno = 0;
    const bool failed_before = std::ferror(stdout) != 0;
    if (std::fflush(stdout) == 0 && !failed_before) return code;
    const std::string why = errno ? std::strerror(errno) : "a write failed";
    return refuse(Error{FOVEA_IO_ERROR, "standard output", "standard output cannot be written: " + why});
}

}  // namespace fovea::app
