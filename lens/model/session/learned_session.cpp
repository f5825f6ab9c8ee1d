// Sessions of models that learned a task: what a reader typed as tokens, and the model under the session's
// rules.
#include <fovea/model/learned.hpp>

#include <algorithm>
#include <memory>
#include <tuple>

namespace fovea {
namespace {

constexpr std::string_view kFirstToken = "<start>", kSpaces = " \t\r\n";

std::string in_small_letters(std::string_view text) {
    std::string small(text);
    for (char& c : small)
        if (c >= 'A' && c <= 'Z') c = char(c + 32);
    return small;
}

// The longest token that `text` begins with, as an index and its length; the size of the vocabulary where
// there is none.
std::pair<size_t, size_t> longest_token(const std::vector<std::string>& vocabulary, std::string_view text) {
    std::pair<size_t, size_t> found = {vocabulary.size(), 0};
    for (size_t n = 0; n < vocabulary.size(); ++n)
        if (vocabulary[n].size() > found.second && text.starts_with(vocabulary[n]))
            found = {n, vocabulary[n].size()};
    return found;
}

// Bytes of the character that a text begins with.
size_t first_character(std::string_view text) {
    size_t bytes = 1;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0u) == 0x80u) ++bytes;
    return bytes;
}

// A head whose columns of the output projection are 0 adds nothing to the stream.
void switch_off(AttentionPart& part, uint32_t head) {
    F32Tensor& weight = part.output.weight;
    const uint64_t width = part.output.d_in() / part.heads;
    for (uint64_t row = 0; row < weight.rows(); ++row)
        for (uint64_t n = 0; n < weight.columns(); ++n) {
            const uint64_t in = part.output.layout == WeightLayout::out_in ? n : row;
            if (in / width == head) weight.row(row)[n] = 0.0f;
        }
}

}  // namespace

LearnedText learned_text(const LearnedModel& learned, std::string_view text) {
    LearnedText out;
    if (learned.tokenizer) {
        out.tokens = *learned_tokens(learned, text);
        return out;
    }
    const std::vector<std::string>& vocabulary = learned.model->vocabulary;
    const auto first = std::find(vocabulary.begin(), vocabulary.end(), kFirstToken);
    if (first != vocabulary.end()) out.tokens.push_back(static_cast<uint32_t>(first - vocabulary.begin()));
    while (!text.empty()) {
        if (kSpaces.find(text[0]) != std::string_view::npos) {
            text.remove_prefix(1);
            continue;
        }
        const std::string_view word = text.substr(0, std::min(text.find_first_of(kSpaces), text.size()));
        auto [token, bytes] = longest_token(vocabulary, word);
        if (bytes == 0) std::tie(token, bytes) = longest_token(vocabulary, in_small_letters(word));
        if (bytes == 0) {
            bytes = first_character(word);
            out.left_out += word.substr(0, bytes);
        } else if (!(first != vocabulary.end() && vocabulary[token] == kFirstToken &&
                     out.tokens.size() == 1)) {
            out.tokens.push_back(static_cast<uint32_t>(token));
        }
        text.remove_prefix(bytes);
    }
    return out;
}

size_t most_learned_tokens(const LearnedModel& learned) {
    const F32Tensor& positions = learned.model->embedding.positions;
    const size_t usual = most_tokens(1);
    return positions.values.empty() ? usual : std::min<size_t>(usual, positions.rows());
}

Result<SessionModel> learned_session(const Session& s, std::shared_ptr<const LearnedModel> learned) {
    SessionModel out;
    out.session = s;
    LearnedText text = learned_text(*learned, s.text);
    const std::vector<std::string>& vocabulary = learned->model->vocabulary;
    const bool says_nothing =
        text.tokens.empty() || (text.tokens.size() == 1 && vocabulary[text.tokens[0]] == kFirstToken);
    if (says_nothing)
        return Error{FOVEA_INVALID_ARGUMENT, "text",
                     "the text has no token of the task " + learned->task + "; its tokens are " +
                         vocabulary[0] + ", " + vocabulary[1] + " and so on"};
    if (!text.left_out.empty())
        out.notes.push_back({"text", "left out, as it is not a token of the task " + learned->task + ": " +
                                         printable_name(text.left_out, 40)});
    const size_t most = most_learned_tokens(*learned);
    if (text.tokens.size() > most) {
        out.notes.push_back({"text", "the text has " + std::to_string(text.tokens.size()) +
                                         " tokens; the task " + learned->task + " shows the first " +
                                         std::to_string(most)});
        text.tokens.resize(most);
    }
    Result<ModelInput> input = learned_input(*learned, text.tokens);
    if (!input) return input.error();
    out.input = std::move(*input);
    if (learned->tokenizer) {  // token n + 1 is token n of the text
        const std::vector<TextToken> places = learned->tokenizer->encode(s.text);
        for (size_t n = 0; n + 1 < out.input.tokens.size(); ++n) {
            out.input.tokens[n + 1].first_byte = places[n].first_byte;
            out.input.tokens[n + 1].bytes = places[n].bytes;
        }
    }
    auto model = std::make_shared<Model>(*learned->model);
    uint32_t head = 0;
    for (Block& block : model->blocks) {
        block.attention.rules = s;
        for (uint32_t n = 0; n < block.attention.heads; ++n, ++head)
            if (head < 32 && (s.heads_off >> head & 1u)) switch_off(block.attention, n);
    }
    if (head < 32 && s.heads_off >> head != 0)
        out.notes.push_back({"off", "off is " + std::to_string(s.heads_off) + "; the model has " +
                                        std::to_string(head) + " heads, and the other bits say nothing"});
    if (s.rope)
        out.notes.push_back({"rope", "the task " + learned->task +
                                         " has the positions that it learned with; "
                                         "rope is not used"});
    out.model = std::move(model);
    out.learned = std::move(learned);
    return out;
}

}  // namespace fovea
