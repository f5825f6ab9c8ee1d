#include <fovea/model/next_tokens.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/block_run.hpp"

namespace fovea {

Result<void> check_logits(std::span<const float> logits) {
    if (logits.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "logits", "logits is empty; it must have at least one element"};
    const auto wrong =
        std::find_if(logits.begin(), logits.end(), [](float logit) { return !std::isfinite(logit); });
    if (wrong == logits.end()) return {};
    const char* const value = std::isnan(*wrong) ? "nan" : *wrong > 0 ? "inf" : "-inf";
    return Error{FOVEA_INVALID_ARGUMENT, "logits",
                 "the logit of token ID " + std::to_string(wrong - logits.begin()) + " is " + value +
                     "; logits must be finite: check the model's weights"};
}

Result<std::vector<NextToken>> next_tokens(std::span<const float> logits, size_t most) {
    most = std::min(most, logits.size());
    if (most == 0) return std::vector<NextToken>();
    if (Result<void> r = check_logits(logits); !r) return r.error();
    std::vector<uint32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto larger = [&](uint32_t a, uint32_t b) {
        return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    };
    std::partial_sort(order.begin(), order.begin() + int64_t(most), order.end(), larger);
    const double largest = double(logits[order[0]]);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double(logit) - largest);
    std::vector<NextToken> next;
    for (size_t i = 0; i < most; ++i)
        next.push_back({order[i], logits[order[i]], std::exp(double(logits[order[i]]) - largest) / sum});
    return next;
}

Result<ComparedTokens> compared_tokens(std::span<const float> logits, std::span<const float> unchanged,
                                       size_t most) {
    ComparedTokens out;
    Result<std::vector<NextToken>> next = next_tokens(logits, most);
    if (!next) return next.error();
    out.next = std::move(*next);
    if (unchanged.empty()) return out;
    Result<std::vector<NextToken>> all = next_tokens(unchanged, SIZE_MAX);
    if (!all) return all.error();
    for (const NextToken& one : out.next)
        out.unchanged.push_back(
            *std::find_if(all->begin(), all->end(), [&](const NextToken& t) { return t.id == one.id; }));
    all->resize(out.next.size());
    out.before = std::move(*all);
    return out;
}

Result<F32Tensor> logits_of(const Model& model, F32Tensor rows) {
    if (!is_present(model.unembedding))
        return Error{FOVEA_INVALID_ARGUMENT, "unembedding",
                     "the model has no unembedding, which logits need"};
    if (rows.columns() != model.unembedding.d_in())
        return Error{FOVEA_INVALID_ARGUMENT, "rows",
                     "rows are " + std::to_string(rows.columns()) + " wide; the unembedding takes " +
                         std::to_string(model.unembedding.d_in())};
    return predict(model, std::move(rows), BlockLoops(nullptr));
}

}  // namespace fovea
