#include "document/next_table.hpp"

#include "document/opened_model.hpp"

#include <fovea/model/learned.hpp>

#include <algorithm>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr size_t kMost = 8;

Result<F32Tensor> logits_of_rows(const Settings& s, const Stream& stream, uint64_t row) {
    F32Tensor rows({stream.size(), stream[0]->columns()});
    for (size_t n = 0; n < stream.size(); ++n) {
        if (row >= stream[n]->rows())
            return Error{FOVEA_INVALID_ARGUMENT, "row", "there is no token " + std::to_string(row)};
        std::copy_n(stream[n]->row(row).begin(), rows.columns(), rows.row(n).begin());
    }
    return s.model ? s.model->weights.logits(std::move(rows))
                   : fovea::logits_of(*learned_of(s).model, std::move(rows));
}

}  // namespace

bool changes_model(const Settings& s) {
    if (!s.changed.empty() || s.heads_off != 0 || !s.hidden_keys.empty()) return true;
    if (s.model) return false;  // what else a reader sets counts in the shown layer alone
    const Session own = level_session(s.level, s.task);
    return static_cast<const AttentionRules&>(own) != static_cast<const AttentionRules&>(s);
}

Result<NextTable> next_table(const Settings& s, const Stream& stream, const Stream& unchanged, uint64_t row) {
    NextTable table;
    table.row = row;
    const Result<F32Tensor> logits = logits_of_rows(s, stream, row);
    if (!logits) return logits.error();
    const auto entries = [&](std::span<const float> of) -> Result<std::vector<NextTable::Entry>> {
        const Result<std::vector<NextToken>> likeliest = next_tokens(of, kMost);
        if (!likeliest) return likeliest.error();
        std::vector<NextTable::Entry> all;
        for (const NextToken& next : *likeliest)
            all.push_back(
                {s.model ? token_text(*s.model, next.id) : learned_of(s).model->vocabulary[next.id], next});
        return all;
    };
    for (uint64_t n = 0; n < logits->rows(); ++n) {
        Result<std::vector<NextTable::Entry>> behind = entries(logits->row(n));
        if (!behind) return behind.error();
        table.behind.push_back(std::move(*behind));
    }
    if (unchanged.empty()) return table;
    const Result<F32Tensor> before = logits_of_rows(s, {unchanged.back()}, row);
    if (!before) return before.error();
    Result<std::vector<NextTable::Entry>> said_before = entries(before->row(0));
    if (!said_before) return said_before.error();
    table.said_before = std::move(*said_before);
    // Every token's probability, of which those of the list are taken.
    const std::vector<NextToken> all = *next_tokens(before->row(0), before->columns());
    for (const NextTable::Entry& entry : table.behind.back()) {
        const auto at = std::find_if(all.begin(), all.end(),
                                     [&](const NextToken& next) { return next.id == entry.token.id; });
        table.unchanged.push_back(at->probability);
    }
    return table;
}

}  // namespace fovea::visualizer
