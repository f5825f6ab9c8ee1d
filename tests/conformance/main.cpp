//   fovea_test_conformance [--backend cpu|reference|vulkan] [--kernel K] [--precision P] [--gtest_...]
//
//   FOVEA_ONNX_CASES=DIR fovea_test_conformance --gtest_filter=*published* ...     runs the cases in the
//   folders of DIR fovea_test_conformance --write DIR     writes the generated cases as files
#include "conformance/generated_cases.hpp"
#include "conformance/onnx_writer.hpp"
#include "conformance/options.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifndef FOVEA_ONNX_CASES
#define FOVEA_ONNX_CASES ""
#endif

namespace fovea::test {

Options& options() {
    static Options value;
    return value;
}

static const char* option(int argc, char** argv, const char* name) {
    for (int n = 1; n + 1 < argc; ++n)
        if (strcmp(argv[n], name) == 0) return argv[n + 1];
    return nullptr;
}

static int write_cases(const std::filesystem::path& folder) {
    for (const onnx::NodeCase& c : generated_cases()) {
        if (write_case(folder / c.name, c)) continue;
        fprintf(stderr, "cannot write %s\n", (folder / c.name).c_str());
        return 1;
    }
    return 0;
}

}  // namespace fovea::test

int main(int argc, char** argv) {
    using namespace fovea::test;
    if (const char* folder = option(argc, argv, "--write")) return write_cases(folder);
    if (const char* backend = option(argc, argv, "--backend")) {
        using fovea::BackendChoice;
        options().backend = strcmp(backend, "vulkan") == 0      ? BackendChoice::vulkan
                            : strcmp(backend, "reference") == 0 ? BackendChoice::reference
                                                                : BackendChoice::cpu;
    }
    if (const char* kernel = option(argc, argv, "--kernel")) {
        const fovea::Result<FoveaKernel> found = fovea::kernel_from_name(kernel);
        if (!found) {
            fprintf(stderr, "%s\n", found.error().text.c_str());
            return 2;
        }
        options().choice.kernel = *found;
    }
    if (const char* precision = option(argc, argv, "--precision")) {
        if (strcmp(precision, "f16-inputs") != 0) {
            fprintf(stderr, "--precision is '%s'; there is f16-inputs\n", precision);
            return 2;
        }
        options().choice.precision = FOVEA_PRECISION_F16_INPUTS;
    }
    const char* from_environment = getenv("FOVEA_ONNX_CASES");
    options().shared_cases = from_environment ? from_environment : FOVEA_ONNX_CASES;
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
