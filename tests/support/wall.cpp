#include "support/wall.hpp"

#include <algorithm>
#include <utility>

#if defined(__unix__) && !defined(__EMSCRIPTEN__)
#define FOVEA_TEST_WALLS 1
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>
#else
#define FOVEA_TEST_WALLS 0
#include <cstring>
#include <new>
#endif

namespace fovea::test {

#if FOVEA_TEST_WALLS

namespace {

const char* volatile running = nullptr;

size_t page_bytes() {
    static const auto bytes = size_t(sysconf(_SC_PAGESIZE));
    return bytes;
}

// The next fault, on the way back from here, ends the process as it would have without this.
void report_fault(int number) {
    const auto say = [](const char* text) { (void)!write(STDERR_FILENO, text, strlen(text)); };
    say("\nFAILED: memory outside a buffer was read or written");
    if (const char* what = running) say("\n  while running "), say(what);
    say("\n");
    signal(number, SIG_DFL);
}

// The sanitizers bring a better one.
void watch_faults() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    static const bool watching = [] {
        for (const int number : {SIGSEGV, SIGBUS}) {
            struct sigaction action {};
            action.sa_handler = report_fault;
            sigaction(number, &action, nullptr);
        }
        return true;
    }();
    (void)watching;
#endif
}

}  // namespace

WalledMemory::WalledMemory(size_t size_bytes) {
    watch_faults();
    size_ = std::max<size_t>(1, (size_bytes + page_bytes() - 1) / page_bytes()) * page_bytes();
    mapped_ = size_ + page_bytes();
    void* pages = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) abort();
    data_ = static_cast<std::byte*>(pages);
    if (mprotect(data_ + size_, page_bytes(), PROT_NONE) != 0) abort();
}

WalledMemory::~WalledMemory() {
    if (data_) munmap(data_, mapped_);
}

void WalledMemory::forbid(size_t first, size_t count) const {
    const size_t begin = (first + page_bytes() - 1) / page_bytes() * page_bytes();
    const size_t end = (first + count) / page_bytes() * page_bytes();
    if (begin < end && mprotect(data_ + begin, end - begin, PROT_NONE) != 0) abort();
}

Running::Running(const std::string& what) : before_(running), text_(what) { running = text_.c_str(); }
Running::~Running() { running = before_; }

#else

// Pages begin on multiples that plain allocations do not, and workspaces ask for 64.
constexpr std::align_val_t kPage{4096};

WalledMemory::WalledMemory(size_t size_bytes) : size_(std::max<size_t>(size_bytes, 1)) {
    data_ = static_cast<std::byte*>(operator new(size_, kPage));
    memset(data_, 0, size_);
}
WalledMemory::~WalledMemory() {
    if (data_) operator delete(data_, kPage);
}
void WalledMemory::forbid(size_t, size_t) const {}
Running::Running(const std::string& what) : before_(nullptr), text_(what) {}
Running::~Running() = default;

#endif

WalledMemory::WalledMemory(WalledMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(other.size_), mapped_(other.mapped_) {}

}  // namespace fovea::test
