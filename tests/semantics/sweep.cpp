#include "semantics/sweep.hpp"
#include <fovea/dtype.hpp>

#include <algorithm>
#include <cstdio>

namespace fovea::test {
namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void count_features(const Case& c, SweepResult& result) {
    ++result.key_types[c.desc.k_type], ++result.value_types[c.desc.v_type];
    for (uint32_t f = 0; f < kFeatureCount; ++f) {
        ++result.levels[{f, c.levels[f]}];
        for (uint32_t g = f + 1; g < kFeatureCount; ++g) ++result.pairs[{f, c.levels[f], g, c.levels[g]}];
    }
}

std::string counted(const char* what, const std::map<FoveaDtype, uint64_t>& types) {
    std::string text = std::string("  ") + what + ":";
    for (const auto& [type, count] : types)
        text += std::string(" ") + dtype_name(type) + " " + std::to_string(count);
    return text + "\n";
}

// low-bias needs a bias to be low.
bool can_meet(Feature f, uint32_t f_level, Feature g, uint32_t g_level) {
    return !(f == Feature::bias && f_level == 0 && g == Feature::values &&
             Values(g_level) == Values::low_bias);
}

}  // namespace

SweepResult sweep(Executor& executor, const SweepOptions& options) {
    SweepResult result;
    const double begin = now();
    for (uint64_t n = options.first; n < options.first + options.count; ++n) {
        if (options.seconds > 0 && now() - begin > options.seconds) break;
        Result<PreparedCase> prepared =
            prepare(generate_composed(options.of, case_seed(options.seed, n), options.limits));
        if (!prepared) {
            result.failures.push_back("case " + std::to_string(n) + ": no oracle: " + prepared.error().text);
            break;
        }
        const CaseReport report = run_composed(executor, options.of, *prepared);
        result.worst_share = std::max(result.worst_share, report.worst_share);
        if (report.kind == CaseReport::Kind::passed) {
            ++result.passed;
            ++result.kernels[report.kernel];
            count_features(prepared->c, result);
        } else if (report.kind == CaseReport::Kind::refused) {
            ++result.refused;
            ++result.refusals[report.text];
        } else {
            result.failures.push_back("case " + std::to_string(n) + ": " + report.text);
            if (result.failures.size() >= options.max_failures) break;
        }
    }
    result.seconds = now() - begin;
    return result;
}

std::string SweepResult::summary() const {
    char head[200];
    snprintf(head, sizeof head,
             "%llu passed, %zu failed, %llu refused in %.1f s; worst row at %.0f%% of its tolerance\n",
             static_cast<unsigned long long>(passed), failures.size(),
             static_cast<unsigned long long>(refused), seconds, 100 * worst_share);
    std::string text = head;
    for (uint32_t f = 0; f < kFeatureCount; ++f) {
        text += std::string("  ") + feature_name(Feature(f)) + ":";
        for (uint32_t level = 0; level < level_count(Feature(f)); ++level) {
            const auto found = levels.find({f, level});
            text += std::string(" ") + feature_levels(Feature(f))[level] + " " +
                    std::to_string(found == levels.end() ? 0 : found->second);
        }
        text += "\n";
    }
    text += "  kernels:";
    for (const auto& [kernel, count] : kernels)
        text += std::string(" ") + kernel_name(kernel) + " " + std::to_string(count);
    text += "\n" + counted("k_type", key_types) + counted("v_type", value_types);
    for (const auto& [reason, count] : refusals)
        text += "  refused " + std::to_string(count) + ": " + reason + "\n";
    for (const std::string& failure : failures) text += "FAILED " + failure + "\n";
    return text;
}

std::vector<std::string> SweepResult::missing_pairs() const {
    std::vector<std::string> missing;
    for (uint32_t f = 0; f < kFeatureCount; ++f)
        for (uint32_t g = f + 1; g < kFeatureCount; ++g)
            for (uint32_t a = 0; a < level_count(Feature(f)); ++a)
                for (uint32_t b = 0; b < level_count(Feature(g)); ++b)
                    if (can_meet(Feature(f), a, Feature(g), b) && !pairs.contains({f, a, g, b}))
                        missing.push_back(std::string(feature_name(Feature(f))) + "=" +
                                          feature_levels(Feature(f))[a] + " with " +
                                          feature_name(Feature(g)) + "=" + feature_levels(Feature(g))[b]);
    return missing;
}

}  // namespace fovea::test
