#include "allocations.hpp"

#include <atomic>
#include <cstdint>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FOVEA_COUNT_BY_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOVEA_COUNT_BY_SANITIZER
#endif
#if !defined(FOVEA_COUNT_BY_SANITIZER) && defined(__GLIBC__)
#define FOVEA_COUNT_BY_GLIBC
#endif

namespace {

std::atomic<bool> counting{false};
std::atomic<ptrdiff_t> live_bytes{0};
std::atomic<ptrdiff_t> peak_bytes{0};

[[maybe_unused]] void on_allocate(size_t size_bytes) {
    if (!counting) return;
    const ptrdiff_t now = live_bytes += static_cast<ptrdiff_t>(size_bytes);
    if (now > peak_bytes) peak_bytes = now;
}

[[maybe_unused]] void on_free(size_t size_bytes) {
    if (counting) live_bytes -= static_cast<ptrdiff_t>(size_bytes);
}

}  // namespace

#if defined(FOVEA_COUNT_BY_SANITIZER)

// Declared here because gcc ships the functions without <sanitizer/allocator_interface.h>.
extern "C" {
size_t __sanitizer_get_allocated_size(const volatile void* block);
void __sanitizer_malloc_hook(const volatile void*, size_t size_bytes) { on_allocate(size_bytes); }
void __sanitizer_free_hook(const volatile void* block) {
    if (counting && block != nullptr) on_free(__sanitizer_get_allocated_size(block));
}
}

#elif defined(FOVEA_COUNT_BY_GLIBC)

#include <malloc.h>

// glibc lets a program replace these for itself and for every library it loads; operator new calls malloc.
extern "C" {
void* __libc_malloc(size_t size_bytes);
void* __libc_calloc(size_t count, size_t size_bytes);
void* __libc_realloc(void* block, size_t size_bytes);
void __libc_free(void* block);

void* malloc(size_t size_bytes) {
    void* block = __libc_malloc(size_bytes);
    if (block != nullptr) on_allocate(malloc_usable_size(block));
    return block;
}
void* calloc(size_t count, size_t size_bytes) {
    void* block = __libc_calloc(count, size_bytes);
    if (block != nullptr) on_allocate(malloc_usable_size(block));
    return block;
}
void* realloc(void* block, size_t size_bytes) {
    const size_t before = block != nullptr ? malloc_usable_size(block) : 0;
    void* moved = __libc_realloc(block, size_bytes);
    if (moved == nullptr) return nullptr;
    on_free(before);
    on_allocate(malloc_usable_size(moved));
    return moved;
}
void free(void* block) {
    if (block != nullptr) on_free(malloc_usable_size(block));
    __libc_free(block);
}
}

#endif

namespace fovea::test {

bool can_count_allocations() {
#if defined(FOVEA_COUNT_BY_SANITIZER) || defined(FOVEA_COUNT_BY_GLIBC)
    return true;
#else
    return false;
#endif
}

AllocationPeak::AllocationPeak() {
    live_bytes = 0;
    peak_bytes = 0;
    counting = true;
}

AllocationPeak::~AllocationPeak() { counting = false; }

size_t AllocationPeak::bytes() const { return static_cast<size_t>(peak_bytes.load()); }

}  // namespace fovea::test
