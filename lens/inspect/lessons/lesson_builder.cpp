#include "inspect/lessons/lesson_builder.hpp"

#include <algorithm>

namespace fovea {
namespace {

std::string draw_formula(const Draw& draw, const std::string& seed_text) {
    std::string sizes;
    for (const uint64_t size : draw.shape) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    const std::string of_linear =
        "uniform in +-1/sqrt(" +
        std::to_string(draw.kind == Draw::Kind::linear_bias ? draw.value : draw.shape.back()) +
        "), as nn.Linear starts";
    switch (draw.kind) {
        case Draw::Kind::rand:
            return draw.tensor + " = rand(" + sizes + ")" + seed_text;
        case Draw::Kind::randn:
            return draw.tensor + " = randn(" + sizes + ")" + seed_text;
        default:
            return draw.tensor + " = " + of_linear + seed_text;
    }
}

F32Tensor stacked(const F32Tensor& matrix, uint64_t copies) {
    F32Tensor result({copies, matrix.shape[0], matrix.shape[1]});
    for (uint64_t i = 0; i < copies; ++i) {
        std::copy(matrix.values.begin(), matrix.values.end(), result.row(i * matrix.shape[0]).begin());
    }
    return result;
}

// Whole words replaced; letters, digits, underscores and dots make a word.
std::string with_words(const std::string& formula, const std::map<std::string, std::string>& words) {
    const auto in_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '.';
    };
    std::string result;
    for (size_t at = 0; at < formula.size();) {
        size_t end = at;
        while (end < formula.size() && in_word(formula[end])) ++end;
        if (end == at) {
            result += formula[at++];
            continue;
        }
        const auto found = words.find(formula.substr(at, end - at));
        result += found != words.end() ? found->second : formula.substr(at, end - at);
        at = end;
    }
    return result;
}

}  // namespace

LessonBuilder::LessonBuilder(const Lesson& lesson, Runner* engine) : lesson_(lesson), engine_(engine) {
    for (const auto& [name, tensor] : lesson.given) add(name, name + ", given", tensor);
    if (lesson.config.batch != 0 && has("inputs")) {
        const F32Tensor batch = stacked(at("inputs"), lesson.config.batch);
        stages_.clear();
        add("X", "X = the given inputs, stacked " + std::to_string(lesson.config.batch) + " times", batch);
    }
    for (const Draw& one : lesson.draws) draw(one);
    if (!has("X")) say("X", "inputs");
}

void LessonBuilder::draw(const Draw& draw) {
    if (draw.kind == Draw::Kind::manual_seed) {
        generator_.manual_seed(draw.value);
        seed_text_ = ", seed " + std::to_string(draw.value);
        return;
    }
    if (draw.kind == Draw::Kind::skip) return generator_.skip(draw.value);
    if (draw.kind == Draw::Kind::dropout) {
        dropout_draw_ = &draw;
        dropout_generator_ = generator_;
        return;
    }
    F32Tensor tensor(draw.shape);
    switch (draw.kind) {
        case Draw::Kind::rand:
            generator_.rand(tensor.values);
            break;
        case Draw::Kind::randn:
            generator_.randn(tensor.values);
            break;
        case Draw::Kind::linear_bias:
            generator_.linear_bias(tensor.values, draw.value);
            break;
        default:
            generator_.linear_weight(tensor.values, draw.shape.back());
            break;
    }
    add(draw.tensor, draw_formula(draw, seed_text_), std::move(tensor));
    seed_text_.clear();
}

void LessonBuilder::add(std::string name, std::string formula, F32Tensor tensor) {
    LessonStage stage;
    stage.name = std::move(name);
    stage.formula = std::move(formula);
    stage.tensor = std::move(tensor);
    for (size_t i = 0; i < lesson_.tables.size(); ++i) {
        if (lesson_.tables[i].tensor != stage.name) continue;
        stage.table_indices.push_back(i);
        stage.boolean = stage.boolean || lesson_.tables[i].notation == Notation::boolean;
    }
    stage.printed = print_tensor(stage.tensor, {.as_boolean = stage.boolean});
    stages_.push_back(std::move(stage));
}

void LessonBuilder::add(LayerStages stages, const Rename& rename) {
    std::vector<std::string> names;
    for (const LayerStage& stage : stages) {
        names.push_back(rename ? rename(stage.name) : stage.name);
        if (!names.back().empty()) say(stage.name, names.back());
    }
    for (size_t i = 0; i < stages.size(); ++i)
        if (!names[i].empty())
            add(names[i], with_words(stages[i].formula, words_), std::move(stages[i].tensor));
}

void LessonBuilder::add(LayerStages stages, std::initializer_list<std::string_view> names) {
    add(std::move(stages), [&](const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end() ? name : std::string();
    });
}

const F32Tensor& LessonBuilder::at(std::string_view name) const {
    static const F32Tensor kMissing;
    const auto found =
        std::find_if(stages_.begin(), stages_.end(), [&](const auto& s) { return s.name == name; });
    return found != stages_.end() ? found->tensor : kMissing;
}

bool LessonBuilder::has(std::string_view name) const {
    return std::any_of(stages_.begin(), stages_.end(), [&](const auto& s) { return s.name == name; });
}

const F32Tensor& LessonBuilder::input() const { return has("X") ? at("X") : at("inputs"); }

Linear LessonBuilder::linear(std::string_view weight, std::string_view bias) const {
    Linear layer;
    layer.weight = at(weight);
    layer.layout = config().weight_layout;
    if (!bias.empty()) layer.bias = at(bias);
    return layer;
}

F32Tensor row_of(const F32Tensor& matrix, uint64_t index) {
    const auto row = matrix.row(index);
    return F32Tensor({row.size()}, {row.begin(), row.end()});
}

F32Tensor as_vector(F32Tensor matrix) {
    const uint64_t count = matrix.values.size();
    return reshaped(std::move(matrix), {count});
}

F32Tensor scalar(float value) { return F32Tensor(Shape{}, {value}); }

F32Tensor lower_triangle(uint64_t size) {
    F32Tensor mask({size, size});
    for (uint64_t i = 0; i < size; ++i) std::fill_n(mask.row(i).begin(), i + 1, 1.0f);
    return mask;
}

F32Tensor strictly_upper_triangle(uint64_t size) {
    F32Tensor mask = lower_triangle(size);
    for (float& value : mask.values) value = 1.0f - value;
    return mask;
}

}  // namespace fovea
