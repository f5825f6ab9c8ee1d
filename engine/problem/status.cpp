#include "problem/status.hpp"

#include <cstdarg>
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

}  // namespace

FoveaResult fail(FoveaDiag* diag, FoveaResult code, const char* field, const char* format, ...) {
    // A diag of another size is a caller's mistake that must not cost it its memory: leave it alone.
    if (!diag || diag->struct_size < sizeof(FoveaDiag)) return code;
    diag->code = code;
    diag->vk_result = 0;
    copy_cut(diag->field, sizeof diag->field, field);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(diag->text, sizeof diag->text, format, arguments);
    va_end(arguments);
    return code;
}

FoveaResult fail_vulkan(FoveaDiag* diag, int vk_result, const char* call) {
    const FoveaResult code =
        fail(diag, code_of_vk_result(vk_result), call, "%s returned VkResult %d", call, vk_result);
    if (diag && diag->struct_size >= sizeof(FoveaDiag)) diag->vk_result = vk_result;
    return code;
}

}  // namespace fovea
