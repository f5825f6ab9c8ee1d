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

// The parts of VkResult that have a code of their own; the numbers are the API's and never change.
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

}  // namespace

FoveaResult fail(FoveaDiag* diag, FoveaResult code, const char* field, const char* format, ...) {
    if (!diag || diag->struct_size <= sizeof(uint32_t)) return code;
    FoveaDiag filled{};
    filled.code = code;
    copy_cut(filled.field, sizeof filled.field, field);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(filled.text, sizeof filled.text, format, arguments);
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
