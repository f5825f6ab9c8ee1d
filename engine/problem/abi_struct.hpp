// Reading a caller's struct that may be older or newer than this library's (see fovea.h, Conventions).
#pragma once

#include "problem/abi_fields.hpp"
#include "problem/status.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fovea {

// No struct of this boundary comes near it: a struct_size beyond is not a newer caller's but garbage, and to
// look for its tail could leave the caller's memory.
constexpr uint32_t kMaxStructBytes = 4096;

// A struct_size must not end inside a field: half a pointer would be followed, half an integer written.
template <class T>
FoveaResult check_fields(const T& whole, uint32_t size, const char* name, FoveaDiag* diag) {
    if (!FieldsOf<T>::end_inside(whole, size)) return FOVEA_OK;
    return fail(diag, FOVEA_ABI_MISMATCH, "struct_size",
                "%s.struct_size is %u, which ends inside a field; set it to sizeof the struct", name, size);
}

// Copies *from into `to`, zero-filling what an older caller does not have. T starts with `uint32_t
// struct_size`.
template <class T>
FoveaResult read_struct(const T* from, T& to, const char* name, FoveaDiag* diag) {
    if (!from) return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is null", name);
    uint32_t size = 0;
    memcpy(&size, from, sizeof size);
    if (size < sizeof(uint32_t))
        return fail(diag, FOVEA_ABI_MISMATCH, "struct_size",
                    "%s.struct_size is %u; set it to sizeof the struct", name, size);
    static_assert(sizeof(T) <= kMaxStructBytes);
    if (size > kMaxStructBytes)
        return fail(diag, FOVEA_ABI_MISMATCH, "struct_size",
                    "%s.struct_size is %u; no struct is larger than %u bytes, and this one has %zu", name,
                    size, kMaxStructBytes, sizeof(T));
    const auto* bytes = reinterpret_cast<const unsigned char*>(from);
    for (size_t i = sizeof(T); i < size; ++i) {
        if (bytes[i] != 0)
            return fail(diag, FOVEA_ABI_MISMATCH, "struct_size",
                        "%s.struct_size is %u, this library knows %zu bytes, and byte %zu is not zero", name,
                        size, sizeof(T), i);
    }
    memset(static_cast<void*>(&to), 0, sizeof to);
    if (FoveaResult r = check_fields(to, size, name, diag)) return r;
    memcpy(static_cast<void*>(&to), from, size < sizeof(T) ? size : sizeof(T));
    to.struct_size = sizeof(T);
    return FOVEA_OK;
}

// The number in a caller's field of an enum type. To read it as the enum is undefined in C++ before the
// number is known to be one of the enum's, and a caller in C, or a newer one, may have written any.
template <class Enum>
int enum_number(const Enum& field) {
    int number = 0;
    static_assert(sizeof field == sizeof number);
    memcpy(&number, &field, sizeof number);
    return number;
}

// Writes `from` into a caller's struct of its own size and keeps the caller's struct_size.
template <class T>
FoveaResult write_struct(const T& from, T* to, const char* name, FoveaDiag* diag) {
    if (!to) return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is null", name);
    const uint32_t size = to->struct_size;
    if (size < sizeof(uint32_t))
        return fail(diag, FOVEA_ABI_MISMATCH, "struct_size",
                    "%s.struct_size is %u; set it to sizeof the struct", name, size);
    if (FoveaResult r = check_fields(from, size, name, diag)) return r;
    memcpy(static_cast<void*>(to), &from, size < sizeof(T) ? size : sizeof(T));
    to->struct_size = size;
    return FOVEA_OK;
}

}  // namespace fovea
