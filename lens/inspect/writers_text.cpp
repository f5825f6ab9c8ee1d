// A score's writers as lines, JSON and CSV.
#include <fovea/inspect/format.hpp>
#include <fovea/inspect/json.hpp>
#include <fovea/inspect/writers.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace fovea {
namespace {

constexpr std::array kKinds = {"token",        "position", "embedding_bias", "head",
                               "feed_forward", "bias",     "reader_bias"};

std::string place_of(uint64_t position, const std::string& token) {
    return token.empty() ? "token " + std::to_string(position)
                         : "'" + token + "' (" + std::to_string(position) + ")";
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
}

std::string left(std::string text, size_t columns) {
    // Bytes that continue a character take no column.
    const auto shown =
        size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
    text.append(columns > shown ? columns - shown : 0, ' ');
    return text;
}

std::string right(const std::string& text, size_t columns) {
    return std::string(columns > text.size() ? columns - text.size() : 0, ' ') + text;
}

}  // namespace

std::string writer_name(const ScoreWriters& of, uint32_t writer, bool at_query, const std::string& token) {
    const Writer& w = of.writers.at(writer);
    const uint64_t position = at_query ? of.cell.query : of.cell.key;
    const std::string at = " at " + place_of(position, token);
    const std::string layer = std::to_string(w.layer), head = layer + "." + std::to_string(w.head);
    switch (w.kind) {
        case Writer::Kind::token:
            return "token embedding of " + place_of(position, token);
        case Writer::Kind::position:
            return "position embedding of " + std::to_string(position);
        case Writer::Kind::embedding_bias:
            return "bias of the embedding";
        case Writer::Kind::head:
            return "head " + head + at;
        case Writer::Kind::feed_forward:
            return "feed-forward " + layer + at;
        case Writer::Kind::bias:
            return "biases of layer " + layer;
        case Writer::Kind::reader_bias:
            break;
    }
    return std::string("biases of ") + (at_query ? "q" : "k") + " of head " + head;
}

std::string writers_text(const ScoreWriters& of, size_t most, const TokenAt& token) {
    const std::string query = token(of.cell.query), key = token(of.cell.key);
    const std::vector<WriterEntry> entries = largest_entries(of, most);
    std::string text = "head " + std::to_string(of.cell.layer) + "." + std::to_string(of.cell.head) +
                       ": query " + place_of(of.cell.query, query) + ", key " + place_of(of.cell.key, key) +
                       "\nscore " + format_number(of.score, 6) + " (weight " + format_number(of.weight) +
                       ") = " + format_number(of.sum, 6) + ", the sum of " +
                       std::to_string(of.writers.size()) + " x " + std::to_string(of.writers.size()) +
                       " writers";
    for (const ScoreWriters::Remainder& one : of.remainders)
        text += (one.value < 0 ? " - " : " + ") + format_number(std::abs(one.value), 6) + " " + one.name;
    text += "\n";
    if (entries.empty()) return text;
    std::vector<std::string> names;
    size_t width = 0;
    for (const WriterEntry& one : entries) {
        names.push_back(writer_name(of, one.query_writer, true, query));
        width = std::max(width, names.back().size());
    }
    text += right("score", 12) + "  " + left("written at the query", width) + "  written at the key\n";
    for (size_t i = 0; i < entries.size(); ++i)
        text += right(format_value(entries[i].value), 12) + "  " + left(names[i], width) + "  " +
                writer_name(of, entries[i].key_writer, false, key) + "\n";
    return text;
}

std::string writers_json(const ScoreWriters& of, size_t most, const TokenAt& token) {
    const std::string query = token(of.cell.query), key = token(of.cell.key);
    std::vector<uint32_t> all(of.writers.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = uint32_t(i);
    return JsonObject()
        .number("layer", of.cell.layer)
        .number("head", of.cell.head)
        .number("query", double(of.cell.query))
        .number("key", double(of.cell.key))
        .raw("score", number_json(of.score))
        .raw("weight", number_json(of.weight))
        .raw("sum", number_json(of.sum))
        .raw("remainders",
             array_json(
                 of.remainders,
                 [](const ScoreWriters::Remainder& one) {
                     return JsonObject().text("name", one.name).raw("value", number_json(one.value)).done();
                 }))
        .raw("writers", array_json(all,
                                   [&](uint32_t i) {
                                       const Writer& w = of.writers[i];
                                       JsonObject one;
                                       one.text("kind", kKinds[size_t(w.kind)]);
                                       if (w.kind >= Writer::Kind::head) one.number("layer", w.layer);
                                       if (w.kind == Writer::Kind::head) one.number("head", w.head);
                                       return one.text("at_query", writer_name(of, i, true, query))
                                           .text("at_key", writer_name(of, i, false, key))
                                           .raw("query_sum", number_json(of.of_query_writer(i)))
                                           .raw("key_sum", number_json(of.of_key_writer(i)))
                                           .done();
                                   }))
        .raw("entries", array_json(largest_entries(of, most),
                                   [](const WriterEntry& one) {
                                       return JsonObject()
                                           .number("query_writer", one.query_writer)
                                           .number("key_writer", one.key_writer)
                                           .raw("value", number_json(one.value))
                                           .done();
                                   }))
        .done();
}

std::string writers_csv(const ScoreWriters& of, size_t most, const TokenAt& token) {
    std::string text = "score,written at the query,written at the key\n";
    for (const WriterEntry& one : largest_entries(of, most))
        text += number_json(one.value) + "," +
                quoted(writer_name(of, one.query_writer, true, token(of.cell.query))) + "," +
                quoted(writer_name(of, one.key_writer, false, token(of.cell.key))) + "\n";
    return text;
}

}  // namespace fovea
