#include "problem/host_memory.hpp"

#include "problem/status.hpp"

#include <cstddef>
#include <cstdlib>

namespace fovea {
namespace {

#if defined(_WIN32)
void* default_allocate(void*, size_t size_bytes, size_t alignment) {
    return _aligned_malloc(size_bytes, alignment);
}
void default_release(void*, void* pointer, size_t) { _aligned_free(pointer); }
#else
void* default_allocate(void*, size_t size_bytes, size_t alignment) {
    if (alignment <= alignof(max_align_t)) return malloc(size_bytes);
    // aligned_alloc asks for a size that is a multiple of the alignment.
    return aligned_alloc(alignment, (size_bytes + alignment - 1) / alignment * alignment);
}
void default_release(void*, void* pointer, size_t) { free(pointer); }
#endif

}  // namespace

FoveaResult choose_allocator(const FoveaHostAllocator* given, FoveaHostAllocator& out, FoveaDiag* diag) {
    out = FoveaHostAllocator{nullptr, default_allocate, default_release};
    if (!given) return FOVEA_OK;
    if (!given->allocate || !given->release)
        return fail(diag, FOVEA_INVALID_ARGUMENT,
                    given->allocate ? "allocator.release" : "allocator.allocate",
                    given->allocate ? "allocator.release is null; give both functions or no allocator"
                                    : "allocator.allocate is null; give both functions or no allocator");
    out = *given;
    return FOVEA_OK;
}

}  // namespace fovea
