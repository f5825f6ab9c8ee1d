// The host's allocator, or malloc where none is given. Nothing in the library allocates in another way.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>
#include <type_traits>

namespace fovea {

// Copies *given, or the default if null, to `out`. Rejects an allocator with only some of its functions set.
FoveaResult choose_allocator(const FoveaHostAllocator* given, FoveaHostAllocator& out, FoveaDiag* diag);

// An array that lives in a scope; data() is null when the host had no memory for it.
template <class T>
class HostArray {
  public:
    static_assert(std::is_trivially_destructible_v<T>);
    HostArray(const FoveaHostAllocator& allocator, uint32_t count)
        : allocator_(allocator), size_bytes_(sizeof(T) * size_t{count}) {
        data_ = static_cast<T*>(allocator.allocate(allocator.user, size_bytes_, alignof(T)));
    }
    ~HostArray() {
        if (data_) allocator_.release(allocator_.user, data_, size_bytes_);
    }
    HostArray(const HostArray&) = delete;
    HostArray& operator=(const HostArray&) = delete;
    T* data() { return data_; }

  private:
    const FoveaHostAllocator& allocator_;
    size_t size_bytes_;
    T* data_;
};

}  // namespace fovea
