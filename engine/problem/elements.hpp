// Elements of a tensor as types: code that is written once for elements T serves every storage type.
#pragma once

#include <fovea/fovea.h>
#include <fovea/half.hpp>

#include <cstdint>
#include <type_traits>

namespace fovea {

// Calls body(T()), where T is what a tensor of `type` holds in memory: float, uint16_t (binary16) or
// Bfloat16. `type` must be a float type, see is_float. What the body returns must not be a vector: this
// function is compiled for no instruction set.
template <class Body>
inline decltype(auto) with_type(FoveaDtype type, Body&& body) {
    if (type == FOVEA_F16) return body(uint16_t());
    if (type == FOVEA_BF16) return body(Bfloat16());
    return body(float());
}

// The same with `data` as a pointer to them, const where `data` is.
template <class Void, class Body>
inline decltype(auto) with_elements(FoveaDtype type, Void* data, Body&& body) {
    return with_type(type, [&](auto number) -> decltype(auto) {
        using T = decltype(number);
        return body(static_cast<std::conditional_t<std::is_const_v<Void>, const T*, T*>>(data));
    });
}

// One number to float32, exactly.
constexpr float widened(float value) { return value; }
constexpr float widened(uint16_t half) { return half_to_float(half); }
constexpr float widened(Bfloat16 bfloat) { return bfloat_to_float(uint16_t(bfloat)); }

// One number from float32, rounded to nearest even.
constexpr void narrow(float value, float& to) { to = value; }
constexpr void narrow(float value, uint16_t& to) { to = float_to_half(value); }
constexpr void narrow(float value, Bfloat16& to) { to = Bfloat16(float_to_bfloat(value)); }

}  // namespace fovea
