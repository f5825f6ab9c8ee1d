#include "support/run_case.hpp"

#include "support/random.hpp"
#include "support/wall.hpp"

#include <algorithm>

namespace fovea::test {

Result<PreparedCase> prepare(Case c) {
    Result<FoveaPlanInfo> info = plan_info(c.desc);
    if (!info) return info.error();
    PreparedCase prepared;
    prepared.clean = make_inputs(c, info->binding_bytes, Unused::zero);
    prepared.poisoned = make_inputs(c, info->binding_bytes, Unused::poison);
    Result<Oracle> oracle = make_oracle(c, prepared.clean);
    if (!oracle) return oracle.error();
    prepared.oracle = std::move(*oracle);
    prepared.c = std::move(c);
    return prepared;
}

std::string first_difference(const Tensors& a, const Tensors& b) {
    for (size_t i = 0; i < a.size(); ++i) {
        if (a[i].size() != b[i].size()) return "binding " + std::to_string(i) + " has another size";
        const auto at = std::mismatch(a[i].begin(), a[i].end(), b[i].begin()).first;
        if (at != a[i].end())
            return "binding " + std::to_string(i) + " byte " + std::to_string(at - a[i].begin());
    }
    return {};
}

CaseReport run_case_by(const PreparedCase& prepared, const RunInputs& run, const std::string& replay) {
    const Case& c = prepared.c;
    CaseReport report;
    const auto failed = [&](const std::string& text) {
        report.kind = CaseReport::Kind::failed;
        report.text = text + "\n  " + describe(c) + "\n  replay: " + replay;
        return report;
    };
    const Running running(replay);
    ExecuteOptions options;
    options.workers = 1 + uint32_t(c.seed % 3);
    options.host_memory = hash(c.seed, 79) % 2 == 0;
    if (c.desc.max_slice_cost > 0) options.shuffle_seed = c.seed | 1;
    // The least that a slice can cost depends on the kernel's tiles.
    double budget = c.desc.max_slice_cost;
    Outcome outcome = run(prepared.poisoned, options, budget);
    while (outcome.code == FOVEA_LIMIT_EXCEEDED && outcome.text.rfind("max_slice_cost", 0) == 0 &&
           budget < 1e12) {
        budget *= 4;
        outcome = run(prepared.poisoned, options, budget);
    }
    if (outcome.kind == Outcome::Kind::refused) {
        report.kind = CaseReport::Kind::refused;
        report.text = outcome.text;
        report.code = outcome.code;
        return report;
    }
    report.kernel = outcome.kernel;
    if (!outcome.ran()) return failed(outcome.text);
    const Verdict verdict = judge(c, prepared.oracle, outcome);
    report.worst_share = verdict.worst_share;
    if (!verdict.ok) return failed(verdict.text);
    if (hash(c.seed, 77) % 4 == 0) {
        const Outcome twin = run(prepared.clean, {}, 0);
        if (!twin.ran()) return failed("on clean inputs: " + twin.text);
        // A budget that is too small for the first kernel's smallest slice sends AUTO on to the next one.
        const bool same_kernel = twin.kernel == outcome.kernel;
        if (const Verdict again = judge(c, prepared.oracle, twin); !again.ok)
            return failed("on clean inputs: " + again.text);
        if (const std::string where = first_difference(outcome.outputs, twin.outputs);
            same_kernel && !where.empty())
            return failed("poison in unused slots, slices or workers changed " + where);
    }
    report.kind = CaseReport::Kind::passed;
    return report;
}

CaseReport run_case(Executor& executor, const PreparedCase& prepared) {
    const RunInputs run = [&](const Tensors& inputs, const ExecuteOptions& options, double budget) {
        FoveaAttentionDesc desc = prepared.c.desc;
        desc.max_slice_cost = budget;
        return executor.run(desc, inputs, options);
    };
    return run_case_by(prepared, run, replay_command(prepared.c, executor.name()));
}

}  // namespace fovea::test
