// Prints the tokens of texts, for comparisons with other programs (compare_tokenizers.mjs).
//
//     fovea_tokenize < CASES > ANSWERS
//
// A case is a line of JSON: [tokenizer.json as text, [text, ...], [[ID, ...], ...]]. Its answer is a line,
// too: [[[ID, begin, end, ID, ...] of each text], [decoded text of each list of IDs]], with a text in place
// of what was rejected.

#include <fovea/files/json.hpp>
#include <fovea/tokenizer.hpp>

#include <iostream>

int main() {
    using namespace fovea;
    std::string line;
    while (std::getline(std::cin, line)) {
        const Result<JsonValue> one = parse_json(line);
        if (!one) {
            std::cerr << one.error().text << "\n";
            return 2;
        }
        const Result<TextTokenizer> made = TextTokenizer::parse(one->items()[0].text());
        if (!made) {
            std::cout << json_string(made.error().text) << "\n";
            continue;
        }
        std::string out = "[[", separator;
        for (const JsonValue& text : one->items()[1].items()) {
            out += std::exchange(separator, ",");
            const Result<std::vector<SplitToken>> tokens = made->tokens(text.text());
            if (!tokens) {
                out += json_string(tokens.error().text);
                continue;
            }
            std::string numbers;
            for (const SplitToken& token : *tokens)
                numbers += (numbers.empty() ? "" : ",") + std::to_string(token.id) + "," +
                           std::to_string(token.begin) + "," + std::to_string(token.end);
            out += "[" + numbers + "]";
        }
        out += "],[", separator.clear();
        for (const JsonValue& list : one->items()[2].items()) {
            std::vector<uint32_t> ids;
            for (const JsonValue& id : list.items()) ids.push_back(uint32_t(id.number()));
            out += std::exchange(separator, ",") + json_string(made->decode(ids));
        }
        std::cout << out << "]]\n";
    }
    return 0;
}
