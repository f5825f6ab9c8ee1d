#include "standard_streams.hpp"

#include "arguments.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#if !defined(_WIN32)
#include <fcntl.h>
#include <unistd.h>
#endif

namespace fovea::app {

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
    return refuse(Error{FOVEA_IO_ERROR, "standard output", "cannot be written: " + why});
}

}  // namespace fovea::app
