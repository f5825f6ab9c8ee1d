// Sequences of the tasks, and which of their weights each score looks at.
#include <fovea/train/training_text.hpp>

#include <algorithm>

#include "train/counter_stream.hpp"
#include "train/task_sizes.hpp"

namespace fovea {
namespace {

// One row of a batch while it is written.
class RowWriter {
  public:
    RowWriter(Batch& batch, uint32_t row) : batch_(batch), row_(row) {}

    uint32_t* tokens() { return &batch_.tokens[size_t(row_) * batch_.context]; }
    uint32_t* targets() { return &batch_.targets[size_t(row_) * batch_.context]; }
    void train(uint32_t place) { batch_.loss_weights[size_t(row_) * batch_.context + place] = 1; }
    void score(uint32_t place) { batch_.scored[size_t(row_) * batch_.context + place] = 1; }
    void cell(HeadScore score, uint32_t query, uint32_t key) {
        batch_.cells.push_back({score, row_, query, key});
    }
    void counted_row(HeadScore score) { ++batch_.score_rows[static_cast<size_t>(score)]; }
    // A score that looks at one cell of a row.
    void only_cell(HeadScore score, uint32_t query, uint32_t key) {
        cell(score, query, key);
        counted_row(score);
    }

  private:
    Batch& batch_;
    uint32_t row_;
};

Batch empty_batch(const Task& task) {
    Batch batch;
    batch.rows = task.recipe.batch;
    batch.context = task.model.context;
    const size_t places = size_t(batch.rows) * batch.context;
    batch.tokens.assign(places, 0);
    batch.targets.assign(places, 0);
    batch.loss_weights.assign(places, 0);
    batch.scored.assign(places, 0);
    return batch;
}

// `tokens` has one more than the row: the target of its last place.
void write_tokens(RowWriter& row, const std::vector<uint32_t>& tokens) {
    std::copy(tokens.begin(), tokens.end() - 1, row.tokens());
    std::copy(tokens.begin() + 1, tokens.end(), row.targets());
}

// Scores copying: each place attends to the one before it and, at earlier occurrences of its token, to the
// tokens after them. It counts only if the first such occurrence predicts the next token.
void measure_copying(const Task& task, RowWriter& row, const std::vector<uint32_t>& tokens, uint32_t length) {
    const bool first_token = task.options.first_token;
    for (uint32_t i = 1; i < length; ++i) {
        row.only_cell(HeadScore::previous, i, i - 1);
        bool repeated = false;
        for (uint32_t j = 1; j <= i; ++j) {
            if (tokens[j - 1] != tokens[i]) continue;
            row.cell(HeadScore::induction, i, j);
            repeated = true;
        }
        if (repeated) row.counted_row(HeadScore::induction);
        if (!repeated && first_token && i >= 2) row.only_cell(HeadScore::sink, i, 0);
    }
}

void induction_row(const Task& task, CounterStream& random, RowWriter& row) {
    const uint32_t prefix = random.below(kInductionLongestPrefix + 1);
    const uint32_t word =
        kInductionShortestWord + random.below(kInductionLongestWord - kInductionShortestWord + 1);
    const std::vector<uint32_t> letters = random.distinct(prefix + word, kInductionLetters);
    std::vector<uint32_t> tokens;
    if (task.options.first_token) tokens.push_back(kInductionLetters);
    const uint32_t start = static_cast<uint32_t>(tokens.size());
    for (uint32_t n = 0; n < kInductionLength + 1; ++n)
        tokens.push_back(letters[n < prefix ? n : prefix + (n - prefix) % word]);
    write_tokens(row, tokens);
    const uint32_t length = task.model.context;
    const uint32_t known = start + prefix + word;  // the first place whose token was there before
    for (uint32_t i = 0; i < length; ++i) {
        if (i >= known) row.score(i);
        if (i >= known || !task.options.copy_only) row.train(i);
    }
    measure_copying(task, row, tokens, length);
}

// Writes the given part, a separator, and the same tokens in another order: places [given, 2 given) are the
// answer.
void write_answer(RowWriter& row, std::vector<uint32_t> tokens, uint32_t separator,
                  const std::vector<uint32_t>& answer, HeadScore score) {
    const uint32_t given = static_cast<uint32_t>(tokens.size());
    const std::vector<uint32_t> question = tokens;
    tokens.push_back(separator);
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    write_tokens(row, tokens);
    for (uint32_t n = 0; n < given; ++n) {
        row.train(given + n);
        row.score(given + n);
        uint32_t place = given - 1 - n;  // place of the next symbol; symbols may repeat, places do not
        if (score == HeadScore::next_larger)
            place = uint32_t(std::find(question.begin(), question.end(), answer[n]) - question.begin());
        row.only_cell(score, given + n, place);
    }
}

void sort_row(CounterStream& random, RowWriter& row) {
    const std::vector<uint32_t> numbers = random.distinct(kSortLength, kSortNumbers);
    std::vector<uint32_t> sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    write_answer(row, numbers, kSortNumbers, sorted, HeadScore::next_larger);
}

void reverse_row(CounterStream& random, RowWriter& row) {
    std::vector<uint32_t> symbols(kReverseLength);
    for (uint32_t& symbol : symbols) symbol = random.below(kReverseSymbols);
    write_answer(row, symbols, kReverseSymbols, {symbols.rbegin(), symbols.rend()}, HeadScore::mirror);
}

void recall_row(CounterStream& random, RowWriter& row) {
    const std::vector<uint32_t> keys = random.distinct(kRecallPairs, kRecallKeys);
    std::vector<uint32_t> tokens;
    for (const uint32_t key : keys) {
        row.only_cell(HeadScore::previous, uint32_t(tokens.size()) + 1, uint32_t(tokens.size()));
        tokens.push_back(key);
        tokens.push_back(kRecallKeys + random.below(kRecallValues));
    }
    for (const uint32_t asked : random.distinct(kRecallPairs, kRecallPairs)) {
        const uint32_t place = uint32_t(tokens.size());
        row.train(place);
        row.score(place);
        row.only_cell(HeadScore::induction, place, 2 * asked + 1);
        tokens.push_back(keys[asked]);
        tokens.push_back(tokens[2 * asked + 1]);
    }
    tokens.push_back(0);  // nothing after the last value counts
    write_tokens(row, tokens);
}

// Heads are measured on this many rows of a batch of text: each has some thousand cells.
constexpr uint32_t kMeasuredTextRows = 2;
// How far back a token is near, and of how many queries one is asked where it looks beyond the token before:
// there the cells are the whole row.
constexpr uint32_t kNearTokens = 8, kFarRowOneOf = 4;
// In training one of this many tokens is replaced by <unknown>, which so gets a trained vector and teaches
// the model not to depend on single tokens. Target tokens are not replaced.
constexpr uint32_t kUnknownOneOf = 64;

// Where each head of a text model may look that has a name.
void measure_reading(const Task& task, RowWriter& row, const std::vector<uint32_t>& tokens, uint32_t length) {
    measure_copying(task, row, tokens, length);
    for (uint32_t i = 1; i < length; ++i) {
        row.only_cell(HeadScore::current, i, i);
        if (i % kFarRowOneOf == kFarRowOneOf - 1) {
            for (uint32_t j = 1; j + 1 < i; ++j)
                row.cell(i - j <= kNearTokens ? HeadScore::near : HeadScore::far, i, j);
            row.counted_row(HeadScore::near);
            row.counted_row(HeadScore::far);
        }
        bool repeated = false;
        for (uint32_t j = 1; j < i; ++j) {
            if (tokens[j] != tokens[i]) continue;
            row.cell(HeadScore::duplicate, i, j);
            repeated = true;
        }
        if (repeated) row.counted_row(HeadScore::duplicate);
    }
}

void text_row(const Task& task, bool training, CounterStream& random, RowWriter& row, bool measured) {
    const TrainingText& text = *task.text;
    const std::vector<size_t>& lines = training ? text.training_lines() : text.held_out_lines();
    const size_t line = lines[random.below(uint32_t(lines.size()))];
    std::vector<uint32_t> tokens{LearnedTokenizer::kStart};
    const auto first = text.tokens().begin() + ptrdiff_t(line);
    tokens.insert(tokens.end(), first, first + task.model.context);
    write_tokens(row, tokens);
    for (uint32_t i = 0; i < task.model.context; ++i) {
        row.train(i);
        row.score(i);
        if (training && i > 0 && random.below(kUnknownOneOf) == 0)
            row.tokens()[i] = tokens[i] = LearnedTokenizer::kUnknown;
    }
    if (measured) measure_reading(task, row, tokens, task.model.context);
}

Batch drawn_batch(const Task& task, StreamPurpose purpose, uint64_t seed, uint32_t step) {
    Batch batch = empty_batch(task);
    for (uint32_t r = 0; r < batch.rows; ++r) {
        CounterStream random(purpose, seed, step, r);
        RowWriter row(batch, r);
        switch (task.options.kind) {
            case TaskKind::induction:
                induction_row(task, random, row);
                break;
            case TaskKind::sort:
                sort_row(random, row);
                break;
            case TaskKind::reverse:
                reverse_row(random, row);
                break;
            case TaskKind::recall:
                recall_row(random, row);
                break;
            case TaskKind::text:
                text_row(task, purpose == StreamPurpose::training_data, random, row, r < kMeasuredTextRows);
                break;
        }
    }
    return batch;
}

}  // namespace

Batch training_batch(const Task& task, uint64_t seed, uint32_t step) {
    return drawn_batch(task, StreamPurpose::training_data, seed, step);
}

Batch held_out_batch(const Task& task, uint32_t part) {
    return drawn_batch(task, StreamPurpose::held_out_data, 0, part);
}

namespace {

// Derives the targets of a copying task from the sequence itself: a repeated token is followed by the token
// that followed it before.
void read_copying(const Task& task, RowWriter& row, const std::vector<uint32_t>& tokens) {
    const uint32_t length = uint32_t(tokens.size());
    const bool recall = task.options.kind == TaskKind::recall;
    for (uint32_t i = 0; i < length; ++i) {
        if (recall && tokens[i] >= kRecallKeys) {
            if (i > 0) row.only_cell(HeadScore::previous, i, i - 1);
            continue;
        }
        for (uint32_t j = i; j-- > 0;) {  // the last earlier place
            if (tokens[j] != tokens[i]) continue;
            row.targets()[i] = tokens[j + 1];
            row.score(i);
            if (recall) row.only_cell(HeadScore::induction, i, j + 1);
            break;
        }
    }
    if (!recall) measure_copying(task, row, tokens, length);
}

// Derives the targets of a sequence with a separator: the answer begins there.
void read_answer(const Task& task, RowWriter& row, const std::vector<uint32_t>& tokens) {
    const bool sorts = task.options.kind == TaskKind::sort;
    const auto separator = std::find(tokens.begin(), tokens.end(), sorts ? kSortNumbers : kReverseSymbols);
    if (separator == tokens.end()) return;
    const std::vector<uint32_t> question(tokens.begin(), separator);
    std::vector<uint32_t> answer(question.rbegin(), question.rend());
    if (sorts) std::sort(answer.begin(), answer.end());
    const uint32_t given = uint32_t(question.size());
    for (uint32_t n = 0; n < given && given + n < tokens.size(); ++n) {
        row.targets()[given + n] = answer[n];
        row.score(given + n);
        uint32_t place = given - 1 - n;
        if (sorts)
            place = uint32_t(std::find(question.begin(), question.end(), answer[n]) - question.begin());
        row.only_cell(sorts ? HeadScore::next_larger : HeadScore::mirror, given + n, place);
    }
}

}  // namespace

Result<Batch> probe_batch(const Task& task, std::span<const uint32_t> tokens) {
    if (tokens.empty() || tokens.size() > task.model.context)
        return Error{FOVEA_INVALID_ARGUMENT, "tokens",
                     "tokens has " + std::to_string(tokens.size()) + " entries; " +
                         std::string(task_name(task.options.kind)) + " takes 1 to " +
                         std::to_string(task.model.context)};
    for (size_t i = 0; i < tokens.size(); ++i)
        if (tokens[i] >= task.model.vocabulary)
            return Error{FOVEA_INVALID_ARGUMENT, "tokens",
                         "tokens[" + std::to_string(i) + "] is " + std::to_string(tokens[i]) +
                             "; the limit is " + std::to_string(task.model.vocabulary - 1)};
    Batch batch = empty_batch(task);
    const std::vector<uint32_t> sequence(tokens.begin(), tokens.end());
    RowWriter row(batch, 0);
    std::copy(sequence.begin(), sequence.end(), row.tokens());
    std::copy(sequence.begin() + 1, sequence.end(), row.targets());
    switch (task.options.kind) {
        case TaskKind::induction:
        case TaskKind::recall:
            read_copying(task, row, sequence);
            break;
        case TaskKind::sort:
        case TaskKind::reverse:
            read_answer(task, row, sequence);
            break;
        case TaskKind::text:
            for (uint32_t i = 0; i + 1 < sequence.size(); ++i) row.score(i);
            measure_reading(task, row, sequence, uint32_t(sequence.size()));
            break;
    }
    return batch;
}

}  // namespace fovea
