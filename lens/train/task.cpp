#include <fovea/train/training_text.hpp>

#include <algorithm>
#include <utility>

#include "train/task_sizes.hpp"

namespace fovea {
namespace {

struct ModelSizes {
    uint32_t layers, heads, head_dim;
    bool layer_norm;
    uint32_t rope_theta;  // counts where positions are rotary
};
// Sizes and rates were found by trial: with these every one of ten seeds reaches the goal
// (docs/guides/training.md).
struct TaskRow {
    std::string_view name;
    TaskOptions preset;
    ModelSizes sizes;
    double learning_rate;
    TaskGoal goal;
    std::vector<HeadScore> scores;
};

// In the order of TaskKind.
const std::array<TaskRow, kTaskKinds>& task_rows() {
    using enum HeadScore;
    static const std::array<TaskRow, kTaskKinds> rows{{
        {"induction",
         {TaskKind::induction, true, false, true, Positions::rotary},
         {2, 2, 16, true, 1000},
         1e-2,
         {0.95, {0.65f, 0.9f, 0.6f, 0, 0}, 400},
         {induction, previous, sink}},
        {"sort",
         {TaskKind::sort, true, false, false, Positions::none},
         {1, 1, 32, false, 1000},
         2e-2,
         {0.98, {}, 300},
         {next_larger}},
        {"reverse",
         {TaskKind::reverse, true, false, false, Positions::learned},
         {1, 1, 32, false, 1000},
         1e-2,
         {0.98, {}, 100},
         {mirror}},
        {"recall",
         {TaskKind::recall, true, false, true, Positions::rotary},
         {2, 2, 16, false, 100},
         1e-2,
         {0.98, {}, 400},
         {induction, previous}},
        {"text",
         {TaskKind::text, true, false, true, Positions::rotary},
         {3, 4, 32, true, 1000},
         3e-3,
         {0.3, {}, 2500},
         {previous, near, far, current, duplicate, induction, sink}},
    }};
    return rows;
}

const TaskRow& row_of(TaskKind kind) { return task_rows()[static_cast<size_t>(kind)]; }

constexpr std::array<std::string_view, 3> kPositions{"none", "learned", "rotary"};
struct ScoreText {
    std::string_view name, label;
};
constexpr std::array<ScoreText, kHeadScores> kScores{{{"previous", "previous token"},
                                                      {"induction", "induction"},
                                                      {"sink", "first token"},
                                                      {"next_larger", "next larger number"},
                                                      {"mirror", "mirror image"},
                                                      {"current", "the token itself"},
                                                      {"duplicate", "same token before"},
                                                      {"near", "last few tokens"},
                                                      {"far", "far back"}}};
static_assert(!kScores.back().name.empty(), "a score has no name");

// A sentence that is not in the text, of words that are.
constexpr std::string_view kTextSample =
    "The king said unto his son, Go into the house of the king, and bring the gold unto the king of the "
    "land.";

std::string letter(uint32_t n) { return std::string(1, n < 26 ? char('a' + n) : char('A' + (n - 26))); }

// A text for each token, in the order in which batch.cpp numbers them.
std::vector<std::string> vocabulary_of(const TaskOptions& options) {
    std::vector<std::string> words;
    switch (options.kind) {
        case TaskKind::induction:
            for (uint32_t n = 0; n < kInductionLetters; ++n) words.push_back(letter(n));
            if (options.first_token) words.push_back("<start>");
            break;
        case TaskKind::sort:
            for (uint32_t n = 0; n < kSortNumbers; ++n) words.push_back(std::to_string(n));
            words.push_back("=");
            break;
        case TaskKind::reverse:
            for (uint32_t n = 0; n < kReverseSymbols; ++n) words.push_back(letter(n));
            words.push_back("=");
            break;
        case TaskKind::recall:
            for (uint32_t n = 0; n < kRecallKeys; ++n) words.push_back(letter(n));
            for (uint32_t n = 0; n < kRecallValues; ++n) words.push_back(std::to_string(n));
            break;
        case TaskKind::text:  // defined by its text
            break;
    }
    return words;
}

// Letters as tokens of the vocabularies that begin with them.
std::vector<uint32_t> letters(std::string_view text) {
    std::vector<uint32_t> tokens;
    for (const char c : text) tokens.push_back(uint32_t(c - 'a'));
    return tokens;
}

std::vector<uint32_t> sample_of(const TaskOptions& options) {
    std::vector<uint32_t> tokens;
    switch (options.kind) {
        case TaskKind::induction:
            tokens = letters("withfoveafoveafovea");
            if (options.first_token) tokens.insert(tokens.begin(), kInductionLetters);
            break;
        case TaskKind::sort:
            tokens = {17, 3, 29, 11, 8, 24, 0, 14, 31, 20, 5, 27, kSortNumbers};
            for (const uint32_t number : {0u, 3u, 5u, 8u, 11u, 14u, 17u, 20u, 24u, 27u, 29u})
                tokens.push_back(number);
            break;
        case TaskKind::reverse:
            tokens = letters("placebomagic");
            tokens.push_back(kReverseSymbols);
            for (const uint32_t symbol : letters("cigamobecal")) tokens.push_back(symbol);
            break;
        case TaskKind::recall:
            for (const uint32_t key : {3u, 8u, 0u, 13u, 6u, 11u, 1u, 14u,     // told
                                       6u, 14u, 3u, 1u, 11u, 0u, 8u, 13u}) {  // asked
                tokens.push_back(key);
                tokens.push_back(kRecallKeys + (5 * key + 2) % kRecallValues);
            }
            break;
        case TaskKind::text:
            break;
    }
    return tokens;
}

uint32_t context_of(const TaskOptions& options) {
    switch (options.kind) {
        case TaskKind::induction:
            return kInductionLength + (options.first_token ? 1 : 0);
        case TaskKind::sort:
            return 2 * kSortLength;
        case TaskKind::reverse:
            return 2 * kReverseLength;
        case TaskKind::recall:
            return 4 * kRecallPairs;
        case TaskKind::text:
            return kTextContext;
    }
    return 0;
}

}  // namespace

std::string_view task_name(TaskKind kind) { return row_of(kind).name; }

Result<TaskKind> task_from_name(std::string_view name) {
    std::string known;
    for (const TaskRow& row : task_rows()) {
        if (row.name == name) return row.preset.kind;
        known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    return Error{FOVEA_INVALID_ARGUMENT, "task",
                 "task is '" + std::string(name) + "'; it must be one of " + known};
}

std::string_view positions_name(Positions positions) { return kPositions[static_cast<size_t>(positions)]; }

Result<Positions> positions_from_name(std::string_view name) {
    for (size_t n = 0; n < kPositions.size(); ++n)
        if (kPositions[n] == name) return static_cast<Positions>(n);
    return Error{FOVEA_INVALID_ARGUMENT, "positions",
                 "positions is '" + std::string(name) + "'; it must be none, learned or rotary"};
}

std::string_view head_score_name(HeadScore score) { return kScores[static_cast<size_t>(score)].name; }
std::string_view head_score_label(HeadScore score) { return kScores[static_cast<size_t>(score)].label; }

TaskOptions task_options(TaskKind kind) { return row_of(kind).preset; }

Task make_task(TaskKind kind) { return std::move(make_task(task_options(kind)).value()); }

namespace {

Result<Task> task_with(const TaskOptions& options, std::vector<std::string> vocabulary,
                       std::vector<uint32_t> sample) {
    if (static_cast<uint32_t>(options.kind) >= kTaskKinds)
        return Error{FOVEA_INVALID_ARGUMENT, "kind",
                     "kind is " + std::to_string(static_cast<uint32_t>(options.kind)) + "; the limit is " +
                         std::to_string(kTaskKinds - 1)};
    const TaskRow& row = row_of(options.kind);
    if (options.kind != TaskKind::induction && (!options.first_token || options.copy_only))
        return Error{FOVEA_INVALID_ARGUMENT, options.copy_only ? "copy_only" : "first_token",
                     std::string(options.copy_only ? "copy_only" : "first_token") +
                         " is a choice of the task induction, not of " + std::string(row.name)};
    Task task;
    task.options = options;
    task.vocabulary = std::move(vocabulary);
    task.scores = row.scores;
    task.sample = std::move(sample);
    if (!options.first_token) std::erase(task.scores, HeadScore::sink);
    task.model.vocabulary = static_cast<uint32_t>(task.vocabulary.size());
    task.model.context = context_of(options);
    task.model.layers = row.sizes.layers;
    task.model.heads = row.sizes.heads;
    task.model.head_dim = row.sizes.head_dim;
    task.model.layer_norm = row.sizes.layer_norm;
    task.model.query_key_bias = options.query_key_bias;
    task.model.positions = options.positions;
    task.model.rope_theta = row.sizes.rope_theta;
    task.recipe.learning_rate = row.learning_rate;
    task.goal = row.goal;
    return task;
}

}  // namespace

Result<Task> make_task(const TaskOptions& options) {
    if (options.kind == TaskKind::text)
        return Error{FOVEA_INVALID_ARGUMENT, "kind",
                     "kind is text, a task that is made of a text; use make_text_task"};
    return task_with(options, vocabulary_of(options), sample_of(options));
}

Result<Task> make_text_task(std::shared_ptr<const TrainingText> text) {
    const LearnedTokenizer& tokenizer = text->tokenizer();
    std::vector<uint32_t> sample{LearnedTokenizer::kStart};
    for (const TextToken& token : tokenizer.encode(kTextSample)) sample.push_back(token.token);
    if (sample.size() > kTextContext) sample.resize(kTextContext);  // a small vocabulary spells it out
    Result<Task> task = task_with(task_options(TaskKind::text), tokenizer.vocabulary(), std::move(sample));
    if (!task) return task;
    task->text = std::move(text);
    // Three fifths of the run at one rate, then down: it ends where a constant rate would still wander.
    task->recipe.warm_up_steps = 200;
    task->recipe.cooling_from = task->goal.within_steps / 5 * 3;
    task->recipe.cooling_to = task->goal.within_steps;
    return task;
}

double TaskRecipe::rate(uint32_t step) const {
    constexpr double kLeast = 0.02;
    double share = std::min(1.0, double(step) / double(warm_up_steps));
    if (cooling_to > cooling_from && step > cooling_from) {
        const double left = double(cooling_to) - double(std::min(step, cooling_to));
        share *= std::max(kLeast, left / double(cooling_to - cooling_from));
    }
    return learning_rate * share;
}

}  // namespace fovea
