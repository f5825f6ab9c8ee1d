#include <fovea/inspect/head_role.hpp>
#include <fovea/model/token_scores.hpp>

#include <algorithm>

namespace fovea {
namespace {

constexpr uint32_t kLeastLength = 3;

// {} is the name of a token.
struct RoleText {
    std::string_view label, sentence, stripe;
};
constexpr RoleText kRoles[] = {
    {"previous token", "Looks at the {} before", "each {} looks one place back"},
    {"induction", "Looks for what came after the same {} last time",
     "each {} finds what followed it last time"},
    {"first token", "Rests on the first token", ""},
    {"next larger number", "Looks for the next larger number", "each finds the next larger number"},
    {"mirror image", "Looks at the {} that comes next when reading backwards", "the same {}s, backwards"},
    {"the token itself", "Looks at the {} itself", "each {} looks at itself"},
    {"same token before", "Looks for the same {} earlier", "each {} finds itself earlier"},
    {"same token", "Looks for the same {} earlier", "each {} finds itself earlier"},
    {"last few tokens", "Looks at the last few {}s", "each {} looks a few places back"},
    {"far back", "Looks far back", ""}};

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
