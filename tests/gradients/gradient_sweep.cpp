#include "gradients/gradient_sweep.hpp"

#include "support/case_generator.hpp"

#include <algorithm>
#include <cstdio>

namespace fovea::test {

GradientSweep sweep_gradients(Executor& executor, uint64_t seed, uint64_t count) {
    GradientSweep result;
    for (uint64_t n = 0; n < count && result.failures.size() < 5; ++n) {
        const uint64_t case_number = case_seed(seed, n);
        const Result<GradientCase> g = prepare_gradients(case_number);
        if (!g) {
            result.failures.push_back("case " + std::to_string(n) + ": no oracle: " + g.error().text);
            break;
        }
        const CaseReport report = run_gradients(executor, *g, gradient_replay(case_number, executor.name()));
        result.worst_share = std::max(result.worst_share, report.worst_share);
        if (report.kind == CaseReport::Kind::failed)
            result.failures.push_back("case " + std::to_string(n) + ": " + report.text);
        else if (report.kind == CaseReport::Kind::refused)
            ++result.refused, ++result.refusals[report.text];
        else
            ++result.passed, ++result.kernels[kernel_name(report.kernel)];
    }
    return result;
}

std::string GradientSweep::summary() const {
    char head[160];
    snprintf(head, sizeof head,
             "%llu passed, %zu failed, %llu refused; worst row at %.0f%% of its tolerance\n",
             static_cast<unsigned long long>(passed), failures.size(),
             static_cast<unsigned long long>(refused), 100 * worst_share);
    std::string text = head;
    for (const auto& [kernel, count] : kernels) text += "  " + kernel + " " + std::to_string(count) + "\n";
    for (const auto& [reason, count] : refusals)
        text += "  refused " + std::to_string(count) + ": " + reason + "\n";
    for (const std::string& failure : failures) text += "FAILED " + failure + "\n";
    return text;
}

}  // namespace fovea::test
