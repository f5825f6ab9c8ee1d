#include "inspect/lessons/lesson_data.hpp"

#include <array>
#include <limits>

namespace fovea {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kTutorials = {{
    {"t0", "[Handcrafted Large Model] Writing GPT2 from Scratch - Attention"},
    {"t1", "Coding Attention Mechanisms"},
    {"t2", "Build a LLM from scratch: Attention Mechanism"},
    {"t3", "Build a large language model from scratch, 3: Coding attention mechanisms (in Chinese)"},
    {"t4", "a text on causal multi-head attention in GPT, theory and code (shapes only)"},
}};

uint64_t whole(const JsonValue& value) { return static_cast<uint64_t>(value.number()); }

Shape shape_from_json(const JsonValue& value) {
    Shape shape;
    for (const JsonValue& dimension : value.items()) shape.push_back(whole(dimension));
    return shape;
}

std::vector<std::string> texts_from_json(const JsonValue& value) {
    std::vector<std::string> texts;
    for (const JsonValue& item : value.items()) texts.emplace_back(item.text());
    return texts;
}

Draw draw_from_json(const JsonValue& value) {
    constexpr std::array<std::pair<std::string_view, Draw::Kind>, 7> kKinds = {{
        {"manual_seed", Draw::Kind::manual_seed},
        {"rand", Draw::Kind::rand},
        {"randn", Draw::Kind::randn},
        {"linear_weight", Draw::Kind::linear_weight},
        {"linear_bias", Draw::Kind::linear_bias},
        {"dropout", Draw::Kind::dropout},
        {"skip", Draw::Kind::skip},
    }};
    Draw draw;
    for (const auto& [name, kind] : kKinds) {
        if (value["op"].text() == name) draw.kind = kind;
    }
    draw.tensor = value["tensor"].text();
    draw.shape = shape_from_json(value["shape"]);
    draw.drop_probability = value["p"].number();
    for (const char* name : {"value", "words", "fan_in"}) {
        if (const auto number = value.find(name)) draw.value = whole(*number);
    }
    return draw;
}

LessonConfig config_from_json(const JsonValue& value) {
    const auto whole_or = [&](const char* name, uint64_t fallback) {
        const auto found = value.find(name);
        return found ? whole(*found) : fallback;
    };
    LessonConfig config;
    if (const auto divisor = value.find("divisor")) config.scale = ScoreScale::divided_by(divisor->number());
    if (const auto factor = value.find("factor")) config.scale = ScoreScale::times(factor->number());
    config.scale_rule = value["scale_rule"].text();
    config.masks_first = value["mask_order"].text() == "mask_first";
    config.weight_layout =
        value["weight_layout"].text() == "in_out" ? WeightLayout::in_out : WeightLayout::out_in;
    config.batch = whole_or("batch", 0);
    config.heads = whole_or("heads", 1);
    config.query = whole_or("query", 0);
    config.points = whole_or("points", 0);
    config.context_length = whole_or("context_length", 0);
    config.dropout_p = value["dropout"].number();
    config.printed_variant = value["variant"].text();
    config.normalise = value["normalise"].text();
    config.result = value["result"].text();
    config.shows_zeros = value["shows_zeros"].boolean();
    return config;
}

PrintedTable table_from_json(const std::string& label, const JsonValue& value) {
    PrintedTable table;
    table.label = label;
    table.tensor = value["tensor"].text();
    table.times = static_cast<uint32_t>(whole(value["times"]));
    for (const Notation notation :
         {Notation::integer, Notation::fixed, Notation::scientific, Notation::boolean}) {
        if (value["notation"].text() == notation_name(notation)) table.notation = notation;
    }
    table.note = value["note"].text();
    table.elements = texts_from_json(value["data"]);
    return table;
}

}  // namespace

F32Tensor tensor_from_json(const JsonValue& value) {
    F32Tensor tensor;
    tensor.shape = shape_from_json(value["shape"]);
    tensor.values.clear();
    for (const JsonValue& item : value["data"].items()) {
        tensor.values.push_back(item.kind() == JsonValue::Kind::text ? -std::numeric_limits<float>::infinity()
                                                                     : item.number_f32());
    }
    return tensor;
}

JsonValue lesson_json(const EmbeddedFile& file) {
    Result<JsonValue> value = parse_json(file.text());
    return value ? std::move(*value) : JsonValue();
}

Lesson lesson_from_json(const JsonValue& value) {
    Lesson lesson;
    lesson.name = value["name"].text();
    lesson.title = value["title"].text();
    for (const auto& [key, title] : kTutorials) {
        if (value["tutorial"].text() == key) lesson.tutorial = title;
    }
    lesson.level = static_cast<uint32_t>(whole(value["level"]));
    lesson.about = value["about"].text();
    lesson.notes = texts_from_json(value["notes"]);
    lesson.tokens = texts_from_json(value["tokens"]);
    lesson.recipe = value["recipe"].text();
    lesson.config = config_from_json(value["config"]);
    for (const JsonValue& draw : value["draws"].items()) lesson.draws.push_back(draw_from_json(draw));
    for (const auto& [name, tensor] : value["given"].members()) {
        lesson.given.emplace_back(name, tensor_from_json(tensor));
    }
    for (const auto& [label, table] : value["printed"].members()) {
        lesson.tables.push_back(table_from_json(label, table));
    }
    return lesson;
}

}  // namespace fovea
