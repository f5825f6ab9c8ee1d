#include "tokenizer/gguf_splits.hpp"

#include <string>

#include "tokenizer/text_steps.hpp"

namespace fovea {
namespace {

// Parts that the patterns of a family share: contractions, words, and characters that are neither letters nor
// digits.
#define FOVEA_CONTRACTIONS R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))"
#define FOVEA_WORD R"([^\r\n\p{L}\p{N}]?\p{L}+)"
#define FOVEA_MARKS R"( ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define FOVEA_SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define FOVEA_LLAMA3 FOVEA_CONTRACTIONS "|" FOVEA_WORD R"(|\p{N}{1,3}|)" FOVEA_MARKS "|" FOVEA_SPACES
#define FOVEA_QWEN2 FOVEA_CONTRACTIONS "|" FOVEA_WORD R"(|\p{N}|)" FOVEA_MARKS "|" FOVEA_SPACES
// Words of letters that may be upper case, then of those that may be lower case; llama.cpp takes ASCII's for
// the cases.
#define FOVEA_CASED(upper, lower, end) \
    R"([^\r\n\p{L}\p{N}]?)" upper "*" lower "+" end R"(|[^\r\n\p{L}\p{N}]?)" upper "+" lower "*" end
#define FOVEA_UPPER R"([\p{L}&&[^a-z]])"
#define FOVEA_LOWER R"([\p{L}&&[^A-Z]])"
#define FOVEA_ANY_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define FOVEA_ANY_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define FOVEA_PATHS R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)"

constexpr std::string_view kLlama3 = FOVEA_LLAMA3, kQwen2 = FOVEA_QWEN2;
constexpr std::string_view kThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kKana = R"([一-龥぀-ゟ゠-ヿ]+)";
constexpr std::string_view kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o = FOVEA_CASED(
    FOVEA_UPPER, FOVEA_LOWER, FOVEA_CONTRACTIONS "?") R"(|\p{N}{1,3}|)" FOVEA_PATHS "|" FOVEA_SPACES;
constexpr std::string_view kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
// Cased letters, as DeepSeek's pattern lists them; in escapes where editors compose the letters.
constexpr std::string_view kLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚ\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)";

constexpr GgufSplit kSplits[] = {
    {" default ", {R"([\p{P}$+<=>^~|]+)", kGpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
    {" gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert mpt olmo jais "
     "trillion "
     "granite-docling jina-v1-en jina-v2-code roberta-bpe exaone4 ",
     {kGpt2Pattern}},
    {" llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano ",
     {kLlama3},
     true,
     true},
    {" dbrx smaug-bpe glm4 chatglm-bpe ", {kLlama3}},
    {" qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 megrez hunyuan solar-open grok-2 ", {kQwen2}},
    {" starcoder refact command-r smollm codeshell exaone minerva-7b mellum2 ", {R"(\p{N})", kGpt2Pattern}},
    {" falcon ", {R"([\p{P}$+<=>^~|`]+)", kGpt2Pattern, "[0-9][0-9][0-9]"}},
    {" deepseek-llm ",
     {R"([\r\n])", kLetters, R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+\z)", R"([一-龥ࠀ-一가-퟿]+)",
      R"(\p{N}+)"}},
    {" deepseek-coder ",
     {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", R"([一-龥ࠀ-一가-퟿]+)", R"(\p{N})"}},
    {" deepseek-v3 hunyuan-dense joyai-llm hy_v4 ", {kThreeDigits, kKana, kDeepSeek3}},
    {" spark2_5 ",
     {kThreeDigits, kKana,
      R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)",
      R"(\p{N})"}},
    {" youtu ",
     {R"([가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+)",
      FOVEA_CASED(FOVEA_ANY_UPPER, FOVEA_ANY_LOWER, FOVEA_CONTRACTIONS "?") R"(|\p{N}|)" FOVEA_PATHS
                                                                            "|" FOVEA_SPACES},
     true},
    {" qwen35 ",
     {FOVEA_CONTRACTIONS
      R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" FOVEA_SPACES}},
    {" poro-chat bloom gpt3-finnish ", {kBloom}},
    {" viking ", {kBloom, R"(\p{N})"}},
    {" tekken ",
     {FOVEA_CASED(FOVEA_UPPER, FOVEA_LOWER, "") R"(|\p{N}|)" FOVEA_PATHS "|" FOVEA_SPACES},
     true,
     true},
    {" chameleon ",
     {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", R"([\t\n]|    |  )", R"(\p{N})", R"([\p{P}!-/:-@\[-`{-~])",
      kGpt2Pattern},
     false,
     true},
    {" gpt-4o llama4 kanana2 talkie minimax-m2 ", {kGpt4o}},
    {" granite-embed-multi-97m ",
     {FOVEA_CASED(R"([\p{L}\p{M}&&[^a-z]])", R"([\p{L}\p{M}&&[^A-Z]])",
                  FOVEA_CONTRACTIONS "?") R"(|\p{N}{1,3}|)" FOVEA_PATHS "|" FOVEA_SPACES},
     true},
    {" tiny_aya cohere2moe ",
     {R"([0-9]{1,3}(?=(?:[0-9]{3})*(?![0-9A-Za-z_])))",
      FOVEA_CASED(FOVEA_ANY_UPPER, FOVEA_ANY_LOWER, FOVEA_CONTRACTIONS "?") R"(|\p{N}{1,3}|)" FOVEA_PATHS
                                                                            "|" FOVEA_SPACES}},
    {" superbpe ", {R"(\p{N}+)", R"((?=(?:[0-9]{3})+(?![0-9])))"}},
    {" bailingmoe bailingmoe2 llada-moe ",
     {R"('(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|)" FOVEA_WORD R"(|\p{N}|)" FOVEA_MARKS
      R"(|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    {" seed-coder ", {FOVEA_CONTRACTIONS "|" FOVEA_WORD R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" FOVEA_SPACES}},
    {" ufakzeka ", {FOVEA_WORD R"(|\p{N}|)" FOVEA_MARKS "|" FOVEA_SPACES}},
    {" laguna ", {R"([^\n]+|[\n]+)", kQwen2}},
    {" exaone-moe ",
     {FOVEA_CONTRACTIONS
      R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}},
    {" minicpm5 ",
     {kThreeDigits, FOVEA_CONTRACTIONS "|" FOVEA_WORD R"(|\p{N}+|)" FOVEA_MARKS "|" FOVEA_SPACES},
     true},
    {" jais-2 ",
     {FOVEA_CONTRACTIONS
      "|" FOVEA_WORD R"(|\p{N}{1,3}|)" FOVEA_MARKS
      R"(|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"}},
};

}  // namespace

const GgufSplit* gguf_split(std::string_view name) {
    const std::string key = " " + std::string(name) + " ";
    for (const GgufSplit& split : kSplits)
        if (split.names.find(key) != std::string_view::npos) return &split;
    return nullptr;
}

}  // namespace fovea
