#pragma once
// The mutator of the targets that read JSON: three changes of four put one value or key in another's place,
// so that the text stays JSON and the fuzzer reaches what reads its meaning.
#include "mutate.hpp"

#include <cctype>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "support/random.hpp"

namespace fovea::fuzz {

/// Texts, numbers and words of a JSON text, in order; each a stretch of it.
inline std::vector<std::string_view> json_scalars(std::string_view json) {
    std::vector<std::string_view> found;
    for (size_t at = 0; at < json.size();) {
        const size_t begin = at;
        if (json[at] == '"') {
            for (++at; at < json.size() && json[at] != '"'; ++at)
                if (json[at] == '\\') ++at;
            at = at < json.size() ? at + 1 : json.size();
        } else {
            while (at < json.size() && (std::isalnum(static_cast<unsigned char>(json[at])) ||
                                        json[at] == '-' || json[at] == '+' || json[at] == '.'))
                ++at;
        }
        if (at == begin)
            ++at;
        else
            found.push_back(json.substr(begin, at - begin));
    }
    return found;
}

/// Replaces one scalar of the text by another one of the text or by one that readers are likely to mishandle.
inline std::string replace_scalar(std::string_view json, test::Random& random) {
    static constexpr std::string_view kTelling[] = {"null",
                                                    "true",
                                                    "false",
                                                    "0",
                                                    "-1",
                                                    "1",
                                                    "0.5",
                                                    "1e308",
                                                    "-1e-308",
                                                    "4294967296",
                                                    "2",
                                                    "\"\"",
                                                    "\"a\"",
                                                    "\" \"",
                                                    "\"\\u0000\"",
                                                    "\"\\ud83d\\ude00\"",
                                                    "[]",
                                                    "{}",
                                                    "[[]]",
                                                    "[1,2]",
                                                    "1000",
                                                    "\"##a\"",
                                                    "9007199254740993",
                                                    "\"\\u2581\""};
    const auto scalars = json_scalars(json);
    if (scalars.empty()) return std::string(json);
    const std::string_view old = scalars[random.below(scalars.size())];
    const std::string_view made = random.chance(0.5) ? scalars[random.below(scalars.size())]
                                                     : kTelling[random.below(std::size(kTelling))];
    const auto at = static_cast<size_t>(old.data() - json.data());
    std::string result(json.substr(0, at));
    result.append(made).append(json.substr(at + old.size()));
    return result;
}

}  // namespace fovea::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (seed % 4 == 0 || bytes.starts_with("GGUF")) return LLVMFuzzerMutate(data, size, max_size);
    fovea::test::Random random(seed);
    const std::string made = fovea::fuzz::replace_scalar(bytes, random);
    if (made.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
    std::memcpy(data, made.data(), made.size());
    return made.size();
}
