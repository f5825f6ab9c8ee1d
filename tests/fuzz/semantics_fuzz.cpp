// Attention cases over the whole meaning of fovea.h, drawn from the bytes, against the float64 reference.
// Runs on the CPU's own choice of kernel; FOVEA_FUZZ_ON names another executor (tests/support/executor.hpp),
// such as "vulkan".
#include "support/case_generator.hpp"
#include "support/random.hpp"
#include "support/run_case.hpp"

#include <cstdio>
#include <cstdlib>

using namespace fovea::test;

static Executor& executor() {
    static const std::unique_ptr<Executor> chosen = [] {
        const char* name = std::getenv("FOVEA_FUZZ_ON");
        std::string error;
        std::unique_ptr<Executor> made = make_executor(name ? name : "cpu", error);
        if (!made) {
            std::fprintf(stderr, "%s\n", error.c_str());
            std::exit(2);
        }
        return made;
    }();
    return *chosen;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    uint64_t seed = size;
    for (size_t n = 0; n < size; ++n) seed = hash(seed, data[n]);
    const auto prepared = prepare(generate_case(seed, CaseLimits{2e5}));
    if (!prepared) {
        std::fprintf(stderr, "no oracle: %s\n", prepared.error().text.c_str());
        std::abort();
    }
    const CaseReport report = run_case(executor(), *prepared);
    if (report.kind != CaseReport::Kind::failed) return 0;
    std::fprintf(stderr, "%s --flops 2e5\n", report.text.c_str());
    std::abort();
}
