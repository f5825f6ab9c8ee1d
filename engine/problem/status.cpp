#include "problem/status.hpp"

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace fovea {
namespace {

void copy_cut(char* to, size_t room, const char* from) {
    size_t length = strlen(from);
    if (length >= room) length = room - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

// Maps the VkResult values that have their own FoveaResult. The values are those of the Vulkan API and
// never change.
FoveaResult code_of_vk_result(int vk_result) {
    switch (vk_result) {
        case -1:
            return FOVEA_OUT_OF_HOST_MEMORY;
        case -2:
            return FOVEA_OUT_OF_DEVICE_MEMORY;
        case -4:
            return FOVEA_DEVICE_LOST;
        case 2:
            return FOVEA_TIMEOUT;
        default:
            return FOVEA_VULKAN_ERROR;
    }
}

// An older caller's diag is smaller: it gets what it has room for, cut where a text would end outside.
void write_to_callers_size(const FoveaDiag& filled, FoveaDiag& to) {
    const uint32_t size = to.struct_size;
    const size_t bytes = size < sizeof filled ? size : sizeof filled;
    memcpy(static_cast<void*>(&to), &filled, bytes);
    to.struct_size = size;
    if (bytes > offsetof(FoveaDiag, field)) reinterpret_cast<char*>(&to)[bytes - 1] = '\0';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// True if a number that may have a fraction is among what the format prints.
bool has_fraction(const char* format) {
    while ((format = strchr(format, '%')) != nullptr) {
        ++format;
        format += strspn(format, "0123456789.-");
        if (*format == 'g' || *format == 'f') return true;
    }
    return false;
}

}  // namespace

int format_text(char* text, size_t room, const char* format, va_list arguments) {
    const int written = vsnprintf(text, room, format, arguments);
    char half[16];
    const int size = snprintf(half, sizeof half, "%.1f", 0.5);  // "0,5" where a comma is the point
    if (written < 0 || (size == 3 && half[1] == '.') || !has_fraction(format)) return written;
    const size_t point = size_t(size) - 2;
    half[1 + point] = '\0';
    int removed = 0;
    for (char* at = strstr(text, half + 1); at; at = strstr(at + 1, half + 1)) {
        if (at == text || !is_digit(at[-1]) || !is_digit(at[point])) continue;
        *at = '.';
        memmove(at + 1, at + point, strlen(at + point) + 1);
        removed += int(point) - 1;
    }
    return written - removed;
}

FoveaResult fail(FoveaDiag* diag, FoveaResult code, const char* field, const char* format, ...) {
    if (!diag || diag->struct_size <= sizeof(uint32_t)) return code;
    FoveaDiag filled{};
    filled.code = code;
    copy_cut(filled.field, sizeof filled.field, field);
    va_list arguments;
    va_start(arguments, format);
    format_text(filled.text, sizeof filled.text, format, arguments);
    va_end(arguments);
    write_to_callers_size(filled, *diag);
    return code;
}

void add_to_text(FoveaDiag* diag, const char* more) {
    if (!diag || diag->struct_size < sizeof(FoveaDiag)) return;
    const size_t length = strlen(diag->text);
    copy_cut(diag->text + length, sizeof diag->text - length, more);
}

FoveaResult fail_vulkan(FoveaDiag* diag, int vk_result, const char* call) {
    const FoveaResult code =
        fail(diag, code_of_vk_result(vk_result), call, "%s returned VkResult %d", call, vk_result);
    if (diag && diag->struct_size >= offsetof(FoveaDiag, field)) diag->vk_result = vk_result;
    return code;
}

}  // namespace fovea
