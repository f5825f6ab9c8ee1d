// Untrusted tokenizers: the bytes are a GGUF file if they begin as one, else a tokenizer.json.
#include "fuzz_target.hpp"

#include "json_mutator.hpp"

#include <fovea/tokenizer.hpp>

using namespace fovea;

namespace {

constexpr const char* kTexts[] = {"",
                                  "a",
                                  "The quick brown fox",
                                  "  two  spaces\n\t",
                                  "caf\xc3\xa9 e\xcc\x81 \xe6\x9d\xb1",
                                  "<s>[MASK]</s> <0x41>",
                                  "\xf0\x9f\x98\x80\xe2\x80\x8d 12345'll \xef\xac\x81"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    Result<GgufFile> file =
        bytes.starts_with("GGUF") ? parse_gguf(fuzz::as_bytes(data, size)) : Result<GgufFile>(GgufFile());
    if (!file) {
        fuzz::check_error(file.error());
        return 0;
    }
    const auto made = fuzz::at_cost(size, [&] {
        return bytes.starts_with("GGUF") ? TextTokenizer::parse(*file) : TextTokenizer::parse(bytes);
    });
    if (!made) {
        fuzz::check_error(made.error());
        return 0;
    }
    for (const std::string_view text : kTexts) {
        const Result<std::vector<SplitToken>> tokens = made->tokens(text);
        if (!tokens) {
            fuzz::check_error(tokens.error());
            continue;
        }
        std::vector<uint32_t> ids;
        for (const SplitToken& token : *tokens) {
            fuzz::require(token.begin <= token.end && token.end <= text.size(), "a token lies in its text");
            ids.push_back(token.id);
        }
        made->decode(ids);
    }
    return 0;
}
