// Formats texts with values.
#pragma once

#include <cstdarg>
#include <cstddef>

namespace fovea {

// vsnprintf with a point in every number, whatever the application's locale.
int format_text(char* text, size_t room, const char* format, va_list arguments);

}  // namespace fovea
