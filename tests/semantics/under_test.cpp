#include "semantics/under_test.hpp"

#include "support/case_generator.hpp"

#include <cstdio>
#include <map>

namespace fovea::test {

std::vector<std::string>& names_under_test() {
    static std::vector<std::string> names;
    return names;
}

bool& draws_whole_sweeps() {
    static bool is_whole = false;
    return is_whole;
}

uint64_t share_of_draws(const Executor& executor, uint64_t count) {
    const bool draws_all = draws_whole_sweeps() || executor.name() == names_under_test().back();
    return draws_all ? count : count / 10;
}

std::vector<std::string> cpu_names() {
    std::vector<std::string> names{"reference", "plain"};
    Case c = plain_case(1, 1, 1, 1, 3, 5, 8, 8);
    settle(c);
    const Result<FoveaPlanInfo> info = plan_info(c.desc);
    for (uint32_t id = 1; info && id < 32; ++id) {
        const std::string target = foveaCpuTargetName(id), name = "cpu@" + target;
        if (target == "unknown") break;
        std::string error;
        const std::unique_ptr<Executor> executor = make_executor(name, error);
        if (!executor) continue;
        const Outcome outcome = executor->run(c.desc, make_inputs(c, info->binding_bytes, Unused::zero));
        if (outcome.ran())
            names.push_back(name);
        else
            printf("skipped %s: %s\n", name.c_str(), outcome.text.c_str());
    }
    return names;
}

// Kept for the whole run: opening a Vulkan device takes longer than most tests.
static std::map<std::string, std::unique_ptr<Executor>>& opened() {
    static std::map<std::string, std::unique_ptr<Executor>> executors;
    return executors;
}

void close_executors() { opened().clear(); }

void on_each_executor(const std::function<void(Executor&)>& body) {
    for (const std::string& name : names_under_test()) {
        SCOPED_TRACE("on " + name);
        std::string error;
        std::unique_ptr<Executor>& executor = opened()[name];
        if (!executor) executor = make_executor(name, error);
        if (executor)
            body(*executor);
        else
            ADD_FAILURE() << error;
    }
}

bool is_lack_of_float16(FoveaResult code, const std::string& text) {
    return code == FOVEA_UNSUPPORTED && text.find("FOVEA_FEATURE_F16_STORAGE") != std::string::npos;
}

static bool skips(const Executor& executor, FoveaResult code, const std::string& text) {
    if (!is_lack_of_float16(code, text)) return false;
    printf("skipped on %s: %s\n", executor.name().c_str(), text.c_str());
    return true;
}

void expect_right(Case c) {
    settle(c);
    Result<PreparedCase> prepared = prepare(std::move(c));
    ASSERT_TRUE(prepared) << prepared.error().text;
    on_each_executor([&](Executor& executor) {
        const CaseReport report = run_case(executor, *prepared);
        if (report.kind == CaseReport::Kind::refused && skips(executor, report.code, report.text)) return;
        EXPECT_EQ(report.kind, CaseReport::Kind::passed) << report.text;
    });
}

Outcome run_or_fail(Executor& executor, const FoveaAttentionDesc& desc, const Tensors& inputs,
                    const ExecuteOptions& options) {
    Outcome outcome = executor.run(desc, inputs, options);
    if (outcome.kind == Outcome::Kind::refused && skips(executor, outcome.code, outcome.text)) return outcome;
    EXPECT_TRUE(outcome.ran()) << outcome.text;
    return outcome;
}

}  // namespace fovea::test
