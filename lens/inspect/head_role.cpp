#include <fovea/inspect/head_role.hpp>
#include <fovea/model/token_scores.hpp>

#include <algorithm>
#include <cctype>

namespace fovea {
namespace {

constexpr uint32_t kLeastLength = 3;

// {} is the name of a token.
struct RoleText {
    std::string_view label, sentence, stripe;
};
constexpr RoleText kRoles[] = {
    {"previous token", "This head looks at the {} before", "each {} looks one place back"},
    {"induction", "This head looks for what came after the same {} last time",
     "each {} finds what followed it last time"},
    {"first token", "This head rests on the first token", ""},
    {"next larger number", "This head looks for the next larger number", "each finds the next larger number"},
    {"mirror image", "This head looks at the {} that comes next when reading backwards",
     "the same {}s, backwards"},
    {"the token itself", "This head looks at the {} itself", "each {} looks at itself"},
    {"same token before", "This head looks for the same {} earlier", "each {} finds itself earlier"},
    {"same token", "This head looks for the same {} earlier", "each {} finds itself earlier"},
    {"last few tokens", "This head looks at the last few {}s", "each {} looks a few places back"},
    {"far back", "This head looks far back", ""}};

struct TaskNoun {
    std::string_view task, noun;
};
constexpr TaskNoun kNouns[] = {
    {"induction", "letter"}, {"reverse", "letter"}, {"recall", "key"}, {"sort", "number"}, {"text", "word"}};

std::string with_noun(std::string_view text, std::string_view noun) {
    std::string out(text);
    if (const size_t at = out.find("{}"); at != std::string::npos) out.replace(at, 2, noun);
    return out;
}

}  // namespace

HeadRole head_role(std::string_view label, std::string_view task) {
    const auto* noun = std::find_if(std::begin(kNouns), std::end(kNouns),
                                    [&](const TaskNoun& one) { return one.task == task; });
    const std::string_view name = noun == std::end(kNouns) ? "token" : noun->noun;
    for (const RoleText& role : kRoles)
        if (role.label == label) return {with_noun(role.sentence, name), with_noun(role.stripe, name)};
    return {};
}

double job_share(std::string_view label, std::span<const float> weights, std::span<const uint32_t> ids) {
    const TokenScores scores = token_scores(weights, ids);
    for (const TokenScoreName& one : token_score_names())
        if (one.label == label) return scores.*one.value > 0 ? double(scores.*one.value) : 0;
    const std::optional<WeightStripe> stripe = longest_stripe(weights, ids.size());
    double sum = 0;
    for (uint32_t n = 0; stripe && n < stripe->length; ++n)
        sum += double(weights[size_t(int64_t((stripe->row + n) * ids.size() + stripe->column) +
                                     int64_t(n) * stripe->step)]);
    return stripe ? sum / stripe->length : 0;
}

std::vector<bool> word_starts(std::string_view text, std::span<const std::string> tokens) {
    const auto is_space = [](char c) { return std::isspace(uint8_t(c)) != 0; };
    const auto is_equal = [](char a, char b) { return std::tolower(uint8_t(a)) == std::tolower(uint8_t(b)); };
    std::vector<bool> starts(tokens.size());
    bool any = false, inside = false;
    size_t at = 0;
    for (size_t n = 0; n < tokens.size(); ++n) {
        const std::string& token = tokens[n];
        if (token.empty() || (token.size() > 2 && token.front() == '<')) continue;
        bool space = false;
        const auto found =
            std::search(text.begin() + ptrdiff_t(at), text.end(), token.begin(), token.end(), is_equal);
        if (found == text.end()) return {};
        for (; at < size_t(found - text.begin()); ++at) space |= is_space(text[at]);
        at += token.size();
        starts[n] = space && any;
        inside |= any && !space;
        any = true;
    }
    return inside ? starts : std::vector<bool>{};
}

std::optional<WeightStripe> longest_stripe(std::span<const float> weights, uint64_t columns) {
    if (columns == 0) return {};
    const auto rows = int64_t(weights.size() / columns), width = int64_t(columns);
    const auto is_large = [&](int64_t row, int64_t column) {
        return row >= 0 && row < rows && column >= 0 && column < width &&
               weights[size_t(row * width + column)] >= kMinJob;
    };
    std::optional<WeightStripe> best;
    const auto look = [&](int step) {
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t column = 0; column < width; ++column) {
                if (!is_large(row, column) || is_large(row - 1, column - step)) continue;
                uint32_t length = 1;
                while (is_large(row + length, column + int64_t(length) * step)) ++length;
                if (length >= kLeastLength && (!best || length > best->length))
                    best = WeightStripe{uint32_t(row), uint32_t(column), length, step};
            }
    };
    look(1), look(-1);
    return best;
}

}  // namespace fovea
