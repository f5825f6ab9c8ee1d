// How a call inside the library says no: one line that fills the caller's diag and returns the code.
#pragma once

#include <fovea/fovea.h>

#include <cstdarg>
#include <cstddef>

namespace fovea {

// Fills `diag` (may be null) and returns `code`. `field` and the formatted text are cut to the diag's room.
FoveaResult fail(FoveaDiag* diag, FoveaResult code, const char* field, const char* format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 4, 5)))
#endif
    ;

// As fail, for a Vulkan call that returned `vk_result`; chooses the code from it.
FoveaResult fail_vulkan(FoveaDiag* diag, int vk_result, const char* call);

// Appends to the text that `fail` wrote, as far as there is room.
void add_to_text(FoveaDiag* diag, const char* more);

// vsnprintf with a point in every number, whatever the application's locale.
int format_text(char* text, size_t room, const char* format, va_list arguments);

}  // namespace fovea
