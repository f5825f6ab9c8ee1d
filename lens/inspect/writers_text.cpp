// The writers of scores and logits as lines, JSON and CSV.
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

// The reader of a logit.
constexpr const char* kLogitReader = "the final norm and the unembedding";

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

// `reader`: what the reader's own biases are of.
std::string name_of(const Writer& w, uint64_t position, const std::string& token, const std::string& reader) {
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
    return "biases of " + reader;
}

// Kind and place of a writer as members of an object.
JsonObject writer_json(const Writer& w) {
    JsonObject one;
    one.text("kind", kKinds[size_t(w.kind)]);
    if (w.kind >= Writer::Kind::head) one.number("layer", w.layer);
    if (w.kind == Writer::Kind::head) one.number("head", w.head);
    return one;
}

std::string line(double value, const std::string& text) {
    return right(format_value(value), 12) + "  " + text + "\n";
}

// Contributions of heads to a score through both rows; those at the key are after `at_query`.
struct BothShares {
    std::vector<WriterShares> all;
    size_t at_query = 0;

    explicit BothShares(const ScoreWriters& of) : all(of.query_shares), at_query(of.query_shares.size()) {
        all.insert(all.end(), of.key_shares.begin(), of.key_shares.end());
    }
};

// The neurons of a feed-forward part that raise a logit, or lower it.
struct NeuronGroup {
    uint64_t count = 0;
    double value = 0;
};
NeuronGroup group_of(const WriterShares& of, bool raising) {
    NeuronGroup made;
    for (const double value : of.values)
        if (raising ? value > 0 : value < 0) ++made.count, made.value += value;
    return made;
}

// A logit's shares of heads, or of feed-forward parts.
std::vector<WriterShares> shares_of(const LogitWriters& of, Writer::Kind kind) {
    std::vector<WriterShares> made;
    std::ranges::copy_if(of.shares, std::back_inserter(made),
                         [&](const WriterShares& one) { return of.writers[one.writer].kind == kind; });
    return made;
}

}  // namespace

std::string writer_name(const ScoreWriters& of, uint32_t writer, bool at_query, const std::string& token) {
    const Writer& w = of.writers.at(writer);
    return name_of(w, at_query ? of.cell.query : of.cell.key, token,
                   std::string(at_query ? "q" : "k") + " of head " + std::to_string(w.layer) + "." +
                       std::to_string(w.head));
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
    const BothShares both(of);
    const std::vector<ShareEntry> read = largest_shares(both.all, most);
    if (!read.empty()) text += right("score", 12) + "  read by earlier heads\n";
    for (const ShareEntry& one : read) {
        const bool at_query = one.shares < both.at_query;
        const std::string name =
            writer_name(of, both.all[one.shares].writer, at_query, at_query ? query : key);
        text += line(one.value, std::string(at_query ? "query" : "key") + ": " + name + " from " +
                                    place_of(one.source, token(one.source)));
    }
    return text;
}

std::string writers_json(const ScoreWriters& of, size_t most, const TokenAt& token) {
    const std::string query = token(of.cell.query), key = token(of.cell.key);
    const BothShares both(of);
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
                                       return writer_json(of.writers[i])
                                           .text("at_query", writer_name(of, i, true, query))
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
        .raw("loadings", array_json(largest_shares(both.all, most),
                                    [&](const ShareEntry& one) {
                                        return JsonObject()
                                            .number("writer", both.all[one.shares].writer)
                                            .text("at", one.shares < both.at_query ? "query" : "key")
                                            .number("source", double(one.source))
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

std::string logit_text(const LogitWriters& of, size_t most, const TokenAt& token, const std::string& name) {
    const std::string own = token(of.position);
    const auto name_at = [&](uint32_t w) { return name_of(of.writers[w], of.position, own, kLogitReader); };
    std::string text = "logit of " +
                       (name.empty() ? "token ID " + std::to_string(of.token)
                                     : "'" + name + "' (ID " + std::to_string(of.token) + ")") +
                       " after " + place_of(of.position, own) + ": " + format_number(of.logit, 6) +
                       " (probability " + format_number(of.probability) + ") = " + format_number(of.sum, 6) +
                       ", the sum of " + std::to_string(of.writers.size()) + " writers";
    if (of.softcap != 0)
        text += (of.softcap < 0 ? " - " : " + ") + format_number(std::abs(of.softcap), 6) + " softcap";
    const std::vector<WriterShares> heads = shares_of(of, Writer::Kind::head),
                                    neurons = shares_of(of, Writer::Kind::feed_forward);
    text += "\n" + right("logit", 12) + "  writer\n";
    // The writers' own values, as the shares of one.
    for (const ShareEntry& one : largest_shares(std::array{WriterShares{0, of.values}}, most)) {
        std::string writer = name_at(uint32_t(one.source));
        const auto part = std::ranges::find(neurons, uint32_t(one.source), &WriterShares::writer);
        if (part != neurons.end()) {
            const NeuronGroup up = group_of(*part, true), down = group_of(*part, false);
            writer += ": " + std::to_string(up.count) + " neurons raise it by " + format_number(up.value) +
                      ", " + std::to_string(down.count) + " lower it by " + format_number(-down.value);
        }
        text += line(one.value, writer);
    }
    text += right("logit", 12) + "  read by heads\n";
    for (const ShareEntry& one : largest_shares(heads, most))
        text += line(one.value,
                     name_at(heads[one.shares].writer) + " from " + place_of(one.source, token(one.source)));
    text += right("logit", 12) + "  neurons\n";
    for (const ShareEntry& one : largest_shares(neurons, most))
        text += line(one.value,
                     "neuron " + std::to_string(one.source) + " of " + name_at(neurons[one.shares].writer));
    return text;
}

std::string logit_json(const LogitWriters& of, size_t most, const TokenAt& token) {
    const std::string own = token(of.position);
    std::vector<uint32_t> all(of.writers.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = uint32_t(i);
    const std::vector<WriterShares> heads = shares_of(of, Writer::Kind::head),
                                    neurons = shares_of(of, Writer::Kind::feed_forward);
    const auto entries = [&](const std::vector<WriterShares>& shares, const char* source) {
        return array_json(largest_shares(shares, most), [&](const ShareEntry& one) {
            return JsonObject()
                .number("writer", shares[one.shares].writer)
                .number(source, double(one.source))
                .raw("value", number_json(one.value))
                .done();
        });
    };
    return JsonObject()
        .number("position", double(of.position))
        .number("token", of.token)
        .raw("logit", number_json(double(of.logit)))
        .raw("probability", number_json(of.probability))
        .raw("sum", number_json(of.sum))
        .raw("softcap", number_json(of.softcap))
        .raw("writers", array_json(all,
                                   [&](uint32_t i) {
                                       return writer_json(of.writers[i])
                                           .text("name",
                                                 name_of(of.writers[i], of.position, own, kLogitReader))
                                           .raw("value", number_json(of.values[i]))
                                           .done();
                                   }))
        .raw("loadings", entries(heads, "source"))
        .raw("neurons", entries(neurons, "neuron"))
        .raw("neuron_groups", array_json(neurons,
                                         [](const WriterShares& one) {
                                             const NeuronGroup up = group_of(one, true),
                                                               down = group_of(one, false);
                                             return JsonObject()
                                                 .number("writer", one.writer)
                                                 .number("raising", double(up.count))
                                                 .raw("raised", number_json(up.value))
                                                 .number("lowering", double(down.count))
                                                 .raw("lowered", number_json(down.value))
                                                 .done();
                                         }))
        .done();
}

}  // namespace fovea
