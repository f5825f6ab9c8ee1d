#include "conformance_command.hpp"

#include "arguments.hpp"
#include "attention_options.hpp"
#include "onnx/node_runner.hpp"

#include <cstdio>

namespace fovea::app {
namespace {

std::vector<OptionSpec> all_options() {
    std::vector<OptionSpec> specs(engine_option_specs().begin(), engine_option_specs().end());
    specs.push_back({"--kernel", "K", "auto (default), staged, flash, flash_coopmat, ...: for Attention"});
    specs.push_back({"--precision", "f32|f16-products",
                     "what Attention may multiply in; its rule of comparison follows"});
    specs.push_back({"--help", "", "this text"});
    return specs;
}

void print_help(const std::vector<OptionSpec>& specs) {
    std::printf(
        "usage: fovea conformance DIR [options]\n\n"
        "Runs the ONNX node tests (model.onnx, test_data_set_N) in the folders of DIR: Attention of opsets "
        "23 to 25 "
        "and\nRotaryEmbedding, on one backend. A skip names what the engine or the device does not have; it "
        "is not a "
        "pass.\nExit codes: 0 nothing failed, 1 a case failed, 2 refused.\n\n");
    print_options(specs);
}

// One line for each case.
struct Tally {
    int passed = 0, failed = 0, skipped = 0;

    void add(const std::string& name, const onnx::CaseResult& result) {
        using Kind = onnx::CaseResult::Kind;
        int& count = result.kind == Kind::passed ? passed : result.kind == Kind::failed ? failed : skipped;
        const char* word = result.kind == Kind::passed   ? "pass"
                           : result.kind == Kind::failed ? "FAIL"
                                                         : "skip";
        ++count;
        std::printf("%s  %s%s%s\n", word, name.c_str(), result.text.empty() ? "" : ": ", result.text.c_str());
    }
};

onnx::CaseResult run_folder(Engine& engine, const std::filesystem::path& folder,
                            const onnx::AttentionChoice& choice) {
    const Result<onnx::NodeCase> node_case = onnx::load_case(folder);
    if (node_case) return onnx::run_case(engine, *node_case, choice);
    using Kind = onnx::CaseResult::Kind;
    const Error& error = node_case.error();
    return {error.code == FOVEA_UNSUPPORTED ? Kind::skipped : Kind::failed, error.field + ": " + error.text};
}

Result<int> conform(const Arguments& a) {
    if (a.positional().size() != 1)
        return Error{FOVEA_INVALID_ARGUMENT, "DIR", "give one folder of test cases"};
    const Result<std::vector<std::filesystem::path>> folders =
        onnx::find_cases(std::filesystem::path(a.positional()[0]));
    if (!folders) return folders.error();
    const Result<EngineOptions> options = engine_options(a);
    if (!options) return options.error();
    const Result<FoveaKernel> kernel = kernel_from_name(a.has("--kernel") ? a.text("--kernel") : "auto");
    if (!kernel) return kernel.error();
    onnx::AttentionChoice choice{*kernel, FOVEA_PRECISION_F32};
    const std::string_view precision = a.text("--precision");
    if (precision == "f16-products")
        choice.precision = FOVEA_PRECISION_F16_PRODUCTS;
    else if (!precision.empty() && precision != "f32")
        return Error{FOVEA_INVALID_ARGUMENT, "--precision",
                     "'" + std::string(precision) + "' is not f32 or f16-products"};
    Result<Engine> engine = Engine::open(*options);
    if (!engine) return engine.error();
    std::fprintf(stderr, "fovea: on %s\n", engine->device().name.c_str());
    Tally tally;
    for (const std::filesystem::path& folder : *folders)
        tally.add(folder.filename().string(), run_folder(*engine, folder, choice));
    std::printf("%d passed, %d failed, %d skipped\n", tally.passed, tally.failed, tally.skipped);
    return tally.failed ? 1 : 0;
}

}  // namespace

int conformance_command(Words words) {
    const std::vector<OptionSpec> specs = all_options();
    return run_command(
        words, specs, [&] { print_help(specs); }, conform);
}

}  // namespace fovea::app
