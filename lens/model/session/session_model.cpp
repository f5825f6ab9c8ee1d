// The seven levels: models whose weights come from a seed.
#include <fovea/model/learned.hpp>
#include <fovea/model/torch_random.hpp>
#include <fovea/model/transformer.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include <fovea/files.hpp>

#include "model/tables.hpp"

namespace fovea {
namespace {

struct KnownWord {
    std::string_view word;
    std::array<float, 3> vector;
};
// The input that four of the tutorials share.
constexpr KnownWord kKnownWords[] = {{"your", {0.43f, 0.15f, 0.89f}},   {"journey", {0.55f, 0.87f, 0.66f}},
                                     {"starts", {0.57f, 0.85f, 0.64f}}, {"with", {0.22f, 0.58f, 0.33f}},
                                     {"one", {0.77f, 0.25f, 0.10f}},    {"step", {0.05f, 0.80f, 0.55f}}};

// FNV-1a of the letters in lower case.
uint32_t spelling_hash(std::string_view word) {
    uint32_t hash = 2166136261u;
    for (const char c : word) {
        const char lower = c >= 'A' && c <= 'Z' ? char(c + 32) : c;
        hash = (hash ^ static_cast<unsigned char>(lower)) * 16777619u;
    }
    return hash;
}

bool is_known(const KnownWord& known, std::string_view word) {
    return std::equal(word.begin(), word.end(), known.word.begin(), known.word.end(),
                      [](char a, char b) { return (a >= 'A' && a <= 'Z' ? char(a + 32) : a) == b; });
}

// The architecture of a level, from the table.
struct LevelShape {
    uint32_t width, head_width, all_heads_width;
    bool stacked, projects, positions;
    float spread;  // spread of normal weights; 0: use the session's init
};

LevelShape shape_of(int level) {
    const JsonValue& row = model_table("levels").items()[size_t(level - 1)]["shape"];
    const auto whole = [&](const char* key) { return uint32_t(row[key].number()); };
    return {whole("width"),
            whole("head_width"),
            whole("all_heads_width"),
            row["stacked"].boolean(),
            row["projects"].boolean(),
            row["positions"].boolean(),
            row["spread"].number_f32()};
}

// Heads share the width that a level has for all of them; where it cannot be shared, each is 1 wide.
uint32_t head_width(const LevelShape& shape, uint32_t heads) {
    if (shape.all_heads_width == 0) return shape.head_width;
    return shape.all_heads_width % heads == 0 ? shape.all_heads_width / heads : 1;
}

// The matrices of queries, keys and values as one draws them: torch.rand as [in, out], nn.Linear's as [out,
// in].
class Drawing {
  public:
    Drawing(const Session& session, const LevelShape& shape)
        : s_(session), shape_(shape), generator_(session.seed), width_(head_width(shape, session.heads)) {}

    void draw(AttentionPart& part) {
        part.query = matrix(s_.heads), part.key = matrix(s_.kv_heads), part.value = matrix(s_.kv_heads);
        if (shape_.stacked)
            draw_stacked(part);
        else
            for (Linear* layer : {&part.query, &part.key, &part.value}) fill(*layer, 0, layer->d_out());
        if (shape_.spread > 0)
            for (Linear* layer : {&part.query, &part.key, &part.value}) {
                generator_.randn(layer->weight.values);
                for (float& w : layer->weight.values) w *= shape_.spread;
            }
        if (!shape_.projects) return;
        const uint64_t width = part.query.d_out();
        part.output = make_linear(generator_, width, width, true);
    }

  private:
    bool by_rand() const { return s_.init == WeightInit::rand; }

    Linear matrix(uint32_t heads) const {
        const uint64_t out = uint64_t{heads} * width_;
        Linear layer;
        layer.layout = by_rand() ? WeightLayout::in_out : WeightLayout::out_in;
        layer.weight = F32Tensor(by_rand() ? Shape{shape_.width, out} : Shape{out, shape_.width});
        return layer;
    }

    // One head's three matrices after another's; side by side they are one matrix of all heads.
    void draw_stacked(AttentionPart& part) {
        for (uint32_t h = 0; h < s_.heads; ++h) {
            fill(part.query, uint64_t{h} * width_, width_);
            if (h >= s_.kv_heads) continue;
            fill(part.key, uint64_t{h} * width_, width_);
            fill(part.value, uint64_t{h} * width_, width_);
        }
    }

    // Draws the part of a matrix that gives columns [first, first + count) of the result.
    void fill(Linear& layer, uint64_t first, uint64_t count) {
        std::vector<float> drawn(count * shape_.width);
        by_rand() ? generator_.rand(drawn) : generator_.linear_weight(drawn, shape_.width);
        if (!by_rand()) {
            std::copy(drawn.begin(), drawn.end(), layer.weight.row(first).begin());
            return;
        }
        for (uint64_t i = 0; i < shape_.width; ++i)
            std::copy_n(&drawn[i * count], count, layer.weight.row(i).begin() + int64_t(first));
    }

    const Session& s_;
    LevelShape shape_;
    TorchGenerator generator_;
    uint32_t width_;
};

bool draws_the_same(const Session& a, const Session& b) {
    const auto key = [](const Session& s) {
        return std::tuple(s.level, s.task, s.init, s.seed, s.heads, s.kv_heads, s.tensors == nullptr,
                          s.edits);
    };
    return key(a) == key(b);
}

// A rotation that the heads are too narrow for is told and left out.
void settle_rope(const Session& s, uint64_t width, AttentionPart& part, std::vector<SessionNote>& notes) {
    if (!s.rope) return;
    if (width % 2 == 0)
        part.rope = Rope{};
    else
        notes.push_back({"rope", "heads are " + std::to_string(width) +
                                     " wide; rotary positions need an even width and are left out"});
}

// Replaces drawn values by the reader's own. One without a place is reported and kept, because the matrix may
// grow again.
void take_edits(const Session& s, F32Tensor& inputs, AttentionPart& part, std::vector<SessionNote>& notes) {
    const std::pair<StageId, Linear*> layers[] = {{StageId::inputs, nullptr},
                                                  {StageId::w_query, &part.query},
                                                  {StageId::w_key, &part.key},
                                                  {StageId::w_value, &part.value},
                                                  {StageId::w_output, &part.output}};
    for (const CellEdit& edit : s.edits) {
        Linear* const layer =
            std::ranges::find(layers, edit.stage, &std::pair<StageId, Linear*>::first)->second;
        const std::string& name = stage_name(edit.stage);
        const std::string told =
            "edits has " + name + " " + std::to_string(edit.row) + " " + std::to_string(edit.column) + "; ";
        if (layer && !is_present(*layer)) {
            notes.push_back({"edits", told + "this level has no " + name + ", so it is not used"});
            continue;
        }
        F32Tensor& matrix = layer ? layer->weight : inputs;
        if (edit.row < matrix.rows() && edit.column < matrix.columns())
            matrix.row(edit.row)[edit.column] = float(edit.value);
        else
            notes.push_back({"edits", told + name + " is " + std::to_string(matrix.rows()) + " x " +
                                          std::to_string(matrix.columns()) + ": it is not used"});
    }
}

void tell_unused_edits(const Session& s, const char* why, std::vector<SessionNote>& notes) {
    if (!s.edits.empty())
        notes.push_back({"edits", std::string("edits are only used in the layer of a level: ") + why});
}

Model level_model(const Session& s, const SessionModel* previous) {
    Model model;
    model.name = level_text(s.level).term;
    AttentionPart& part = model.blocks.emplace_back().attention;
    if (s.init == WeightInit::none) return model;
    if (previous && previous->model && draws_the_same(previous->session, s)) {
        part = previous->model->blocks[0].attention;
        part.rope.reset();
        return model;
    }
    Drawing(s, shape_of(s.level)).draw(part);
    part.heads = s.heads, part.kv_heads = s.kv_heads;
    return model;
}

Error refused(const std::string& field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, field, std::move(text)};
}

// [heads, tokens, width], whatever of [width], batch and heads the file left out.
Result<F32Tensor> as_heads(const std::string& name, const SessionTensor& t) {
    if (!t.path.empty())
        return refused("tensors", name + " is in the file " + printable_name(t.path) +
                                      ", which cannot be opened from here; open that file instead");
    Shape shape = t.shape;
    if (shape.size() == 4 && shape[0] == 1) shape.erase(shape.begin());
    if (shape.size() == 2) shape.insert(shape.begin(), 1);
    if (shape.size() != 3)
        return refused("tensors", name + " has " + std::to_string(shape.size()) +
                                      " dimensions; it must be [heads, tokens, width]");
    return F32Tensor(std::move(shape), t.values);
}

Result<void> take_tensors(const SessionTensors& tensors, SessionModel& out) {
    const std::pair<const char*, std::pair<const SessionTensor*, F32Tensor*>> all[] = {
        {"q", {&tensors.q, &out.input.q}},
        {"k", {&tensors.k, &out.input.k}},
        {"v", {&tensors.v, &out.input.v}}};
    for (const auto& [name, both] : all) {
        const auto& [from, to] = both;
        if (from->values.empty() && from->path.empty()) continue;  // v may be missing
        Result<F32Tensor> taken = as_heads(name, *from);
        if (!taken) return taken.error();
        *to = std::move(*taken);
    }
    if (out.input.q.rank() != 3 || out.input.k.rank() != 3)
        return refused("tensors", "q or k is missing or has no elements; both are needed");
    const uint64_t rows = out.input.q.shape[1], keys = out.input.k.shape[1], count = tensors.tokens.size();
    if (count != 0 && (count != rows || count != keys))
        return refused("tensors", "the session names " + std::to_string(count) + " tokens for " +
                                      std::to_string(rows) + " queries and " + std::to_string(keys) +
                                      " keys; all three must be equal");
    for (const std::string& text : tensors.tokens) out.input.tokens.push_back({text, 0, 0});
    return {};
}

}  // namespace

F32Tensor word_vectors(std::span<const Token> tokens, uint64_t width) {
    F32Tensor x({tokens.size(), width});
    for (size_t i = 0; i < tokens.size(); ++i) {
        const auto row = x.row(i);
        const auto known = std::find_if(std::begin(kKnownWords), std::end(kKnownWords),
                                        [&](const KnownWord& k) { return is_known(k, tokens[i].text); });
        if (known != std::end(kKnownWords) && width == known->vector.size()) {
            std::copy(known->vector.begin(), known->vector.end(), row.begin());
            continue;
        }
        TorchGenerator generator(spelling_hash(tokens[i].text));
        generator.rand(row);
        // Rounds to two decimals, as the tutorials do, so that the screen shows the exact values.
        for (float& value : row) value = float(std::round(double(value) * 100.0) / 100.0);
    }
    return x;
}

F32Tensor drawn_vectors(std::span<const Token> tokens, uint64_t width, bool positions) {
    F32Tensor x({tokens.size(), width});
    std::vector<float> place(width);
    std::map<std::string_view, size_t> drawn;  // a repeated word's row without its position
    std::vector<float> words;
    for (size_t i = 0; i < tokens.size(); ++i) {
        const auto [known, is_new] = drawn.try_emplace(tokens[i].text, words.size());
        if (is_new) {
            words.resize(words.size() + width);
            TorchGenerator(spelling_hash(tokens[i].text))
                .randn(std::span(words).subspan(known->second, width));
        }
        std::copy_n(words.begin() + int64_t(known->second), width, x.row(i).begin());
        if (!positions) continue;
        TorchGenerator(0x9E3779B9u ^ uint64_t{i}).randn(place);
        for (size_t c = 0; c < width; ++c) x.row(i)[c] += place[c];
    }
    return x;
}

Result<SessionModel> session_model(const Session& s, const SessionModel* previous,
                                   std::shared_ptr<const LearnedModel> learned, size_t most) {
    if (!s.published.empty())
        return refused("published", "the session shows the model " + printable_name(s.published, 200) +
                                        ", which only the visualizer opens; open the session there");
    if (!s.task.empty() && !s.tensors) {
        if (!learned || learned->task != s.task) learned = previous ? previous->learned : nullptr;
        if (!learned || learned->task != s.task) {
            Result<LearnedModel> read = learned_model(s.task);
            if (!read) return read.error();
            learned = std::make_shared<const LearnedModel>(std::move(*read));
        }
        Result<SessionModel> made = learned_session(s, std::move(learned));
        if (made) tell_unused_edits(s, "what a task has learned stays as it is", made->notes);
        return made;
    }
    SessionModel out;
    out.session = s;
    Model model;
    if (s.tensors) {
        if (Result<void> r = take_tensors(*s.tensors, out); !r) return r.error();
        model.name = "tensors";
        tell_unused_edits(s, "tensors of one's own stay as they are", out.notes);
        AttentionPart& part = model.blocks.emplace_back().attention;
        part.heads = uint32_t(out.input.q.shape[0]), part.kv_heads = uint32_t(out.input.k.shape[0]);
        settle_rope(s, out.input.q.shape[2], part, out.notes);
    } else {
        SessionTokens tokens = session_tokens(s, most ? most : most_tokens(s.level));
        if (tokens.tokens.empty()) return refused("text", "the text has no token; give at least one word");
        const LevelShape shape = shape_of(s.level);
        out.input.tokens = std::move(tokens.tokens);
        out.notes = std::move(tokens.notes);
        out.input.x = shape.positions ? drawn_vectors(out.input.tokens, shape.width, true)
                                      : word_vectors(out.input.tokens, shape.width);
        model = level_model(s, previous);
        take_edits(s, out.input.x, model.blocks[0].attention, out.notes);
        const bool projects = s.init != WeightInit::none;
        settle_rope(s, projects ? head_width(shape, s.heads) : shape.width, model.blocks[0].attention,
                    out.notes);
    }
    model.blocks[0].attention.rules = s;
    if (s.precision == Precision::f16_inputs)
        out.notes.push_back({"precision",
                             "float16 inputs are what the cooperative matrices of a GPU use; here the "
                             "inputs are float16 and the products float32"});
    out.model = std::make_shared<const Model>(std::move(model));
    return out;
}

}  // namespace fovea
