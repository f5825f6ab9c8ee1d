// A FoveaText, how the C boundaries of this library make one, and their errors.
#pragma once

#include "runtime/c_boundary.hpp"

#include <fovea/fovea_inspect.h>

#include <string>

struct FoveaText_T {
    std::string bytes;
};

namespace fovea {

inline Error refused(const char* field, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, field, std::move(text)};
}

inline FoveaResult null_refused(FoveaDiag* diag, const char* name) {
    return fail(diag, FOVEA_INVALID_ARGUMENT, name, "%s is null", name);
}

// The boundary of a function that makes a text: `body` returns Result<std::string>.
template <class Body>
FoveaResult make_text(FoveaText* out, FoveaDiag* diag, Body body) {
    if (!out) return null_refused(diag, "out");
    *out = nullptr;
    return without_exceptions(diag, [&]() -> FoveaResult {
        Result<std::string> made = body();
        if (!made) return fail_with(diag, made.error());
        *out = new FoveaText_T{std::move(*made)};
        return FOVEA_OK;
    });
}

}  // namespace fovea
