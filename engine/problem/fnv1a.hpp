// FNV-1a (Fowler, Noll, Vo, 1991), 64 bits: a hash that tells changed values, not one that resists attacks.
#pragma once

#include <cstdint>
#include <span>

namespace fovea {

inline constexpr uint64_t kFnv1aStart = 0xcbf29ce484222325u;

// The hash of unsigned elements, of what `state` is the hash of and these after it. Each step is a bijection
// of the state, so a change of one element always changes the result.
template <class T>
constexpr uint64_t fnv1a(std::span<const T> elements, uint64_t state = kFnv1aStart) {
    for (const T one : elements) state = (state ^ one) * 0x100000001b3u;
    return state;
}

}  // namespace fovea
