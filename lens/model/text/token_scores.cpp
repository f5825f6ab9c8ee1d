#include <fovea/model/token_scores.hpp>

#include <limits>

namespace fovea {
namespace {

// A mean over the rows that have such a key.
class Mean {
  public:
    void add(double share) { sum_ += share, ++rows_; }
    float result() const {
        return rows_ == 0 ? std::numeric_limits<float>::quiet_NaN() : float(sum_ / double(rows_));
    }

  private:
    double sum_ = 0;
    uint64_t rows_ = 0;
};

constexpr TokenScoreName kNames[] = {{"previous", "previous token", &TokenScores::previous},
                                     {"induction", "induction", &TokenScores::induction},
                                     {"first", "first token", &TokenScores::first},
                                     {"same", "same token", &TokenScores::same}};

}  // namespace

std::span<const TokenScoreName> token_score_names() { return kNames; }

std::string_view head_job(const TokenScores& scores) {
    const TokenScoreName* best = nullptr;
    for (const TokenScoreName& one : kNames)
        if (scores.*one.value >= kMinJob && (!best || scores.*one.value > scores.*best->value)) best = &one;
    return best ? best->label : "";
}

TokenScores token_scores(std::span<const float> weights, std::span<const uint32_t> ids) {
    Mean previous, induction, first, same;
    for (size_t i = 1; i < ids.size(); ++i) {
        const std::span<const float> row = weights.subspan(i * ids.size(), ids.size());
        previous.add(double(row[i - 1]));
        first.add(double(row[0]));
        double behind = 0, equal = 0;
        bool seen = false, followed = false;
        for (size_t j = 0; j < i; ++j) {
            if (ids[j] != ids[i]) continue;
            seen = true;
            equal += double(row[j]);
            if (j + 1 == i) continue;  // the next token is the query itself
            followed = true;
            behind += double(row[j + 1]);
        }
        if (seen) same.add(equal);
        if (followed) induction.add(behind);
    }
    return {previous.result(), induction.result(), first.result(), same.result()};
}

}  // namespace fovea
