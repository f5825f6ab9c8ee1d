// Common to the C functions of the libraries that use exceptions: no exception leaves them, and an Error
// becomes a FoveaResult with its diag.
#pragma once

#include "problem/status.hpp"

#include <fovea/fovea.hpp>

#include <exception>
#include <new>

struct FoveaEngineOptions;

namespace fovea {

struct EngineOptions;
// Checks a caller's options and reads them; null: all defaults. A part of the runtime.
FoveaResult read_options(const FoveaEngineOptions* given, EngineOptions& to, FoveaDiag* diag);

inline FoveaResult fail_with(FoveaDiag* diag, const Error& error) {
    const FoveaResult code = fail(diag, error.code, error.field.c_str(), "%s", error.text.c_str());
    if (diag && diag->struct_size >= offsetof(FoveaDiag, field)) diag->vk_result = error.vk_result;
    return code;
}

// Calls `body`, which returns a FoveaResult. Memory is what these libraries may run out of; anything else
// that is thrown is a mistake of theirs, which a caller in another language can at least report.
template <class Body>
FoveaResult without_exceptions(FoveaDiag* diag, Body body) noexcept {
#ifdef __cpp_exceptions
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return fail(diag, FOVEA_OUT_OF_HOST_MEMORY, "memory", "no host memory was left for this call");
    } catch (const std::exception& error) {
        return fail(diag, FOVEA_UNSUPPORTED, "internal",
                    "internal error: %s; this is a bug in Fovea, please report it", error.what());
    } catch (...) {
        return fail(diag, FOVEA_UNSUPPORTED, "internal",
                    "internal error; this is a bug in Fovea, please report it");
    }
#else  // there is none to stop
    static_cast<void>(diag);
    return body();
#endif
}

// A FoveaPlan of the C boundary as the C++ libraries want it: looked at and not owned.
union BorrowedPlan {
    Plan plan;
    explicit BorrowedPlan(FoveaPlan handle) : plan(handle) {}
    BorrowedPlan(const BorrowedPlan&) = delete;
    BorrowedPlan& operator=(const BorrowedPlan&) = delete;
    ~BorrowedPlan() {}  // does not destroy the handle: its owner calls foveaDestroyPlan
};

}  // namespace fovea
