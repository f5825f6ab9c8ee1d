#include "support/by_hand.hpp"

#include <cstdio>
#include <cstring>

namespace fovea::test {

const char* option(int argc, char** argv, const char* name) {
    for (int n = 1; n + 1 < argc; ++n)
        if (strcmp(argv[n], name) == 0) return argv[n + 1];
    return nullptr;
}

std::unique_ptr<Executor> executor_asked_for(int argc, char** argv) {
    const char* name = option(argc, argv, "--on");
    std::string error;
    std::unique_ptr<Executor> executor = make_executor(name ? name : "plain", error);
    if (!executor) fprintf(stderr, "%s\n", error.c_str());
    return executor;
}

int print_report(const std::string& description, Executor& executor, const CaseReport& report) {
    const char* const kinds[] = {"passed", "refused", "FAILED"};
    printf("%s\n%s on %s (%.0f%% of the tolerance) %s\n", description.c_str(), kinds[int(report.kind)],
           executor.name().c_str(), 100 * report.worst_share, report.text.c_str());
    return report.kind == CaseReport::Kind::failed ? 1 : 0;
}

}  // namespace fovea::test
