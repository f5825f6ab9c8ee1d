#include "semantics/under_test.hpp"

namespace fovea::test {

std::vector<std::string>& names_under_test() {
    static std::vector<std::string> names;
    return names;
}

void on_each_executor(const std::function<void(Executor&)>& body) {
    for (const std::string& name : names_under_test()) {
        SCOPED_TRACE("on " + name);
        std::string error;
        const std::unique_ptr<Executor> executor = make_executor(name, error);
        if (executor)
            body(*executor);
        else
            ADD_FAILURE() << error;
    }
}

void expect_right(Case c) {
    settle(c);
    Result<PreparedCase> prepared = prepare(std::move(c));
    ASSERT_TRUE(prepared) << prepared.error().text;
    on_each_executor([&](Executor& executor) {
        const CaseReport report = run_case(executor, *prepared);
        EXPECT_EQ(report.kind, CaseReport::Kind::passed) << report.text;
    });
}

Outcome run_or_fail(Executor& executor, const FoveaAttentionDesc& desc, const Tensors& inputs,
                    const ExecuteOptions& options) {
    Outcome outcome = executor.run(desc, inputs, options);
    EXPECT_TRUE(outcome.ran()) << outcome.text;
    return outcome;
}

}  // namespace fovea::test
