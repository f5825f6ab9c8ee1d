// Tokens that llama.cpp knows by their texts, whatever their types in a GGUF file are
// (llama_vocab::impl::load in its src/llama-vocab.cpp). tests/model/compare_named_tokens.py compares these
// tables with that file.
#pragma once

#include <span>
#include <string_view>

namespace fovea {

inline constexpr std::string_view kEndTexts[] = {"<|eot_id|>",
                                                 "<|im_end|>",
                                                 "<|end|>",
                                                 "<|return|>",
                                                 "<|call|>",
                                                 "<|flush|>",
                                                 "<|calls|>",
                                                 "<end_of_turn>",
                                                 "<|endoftext|>",
                                                 "</s>",
                                                 "<|eom_id|>",
                                                 "<EOT>",
                                                 "_<EOT>",
                                                 "[EOT]",
                                                 "[EOS]",
                                                 "<|end_of_text|>",
                                                 "<end_of_utterance>",
                                                 "<eos>",
                                                 "<turn|>",
                                                 "<|tool_response>",
                                                 "<｜end▁of▁sentence｜>",
                                                 "[e~["};
inline constexpr std::string_view kPrefixTexts[] = {"<|fim_prefix|>",  "<fim-prefix>", "<fim_prefix>",
                                                    "<｜fim▁begin｜>", "<PRE>",        "▁<PRE>",
                                                    "<|code_prefix|>", "<|prefix|>"};
inline constexpr std::string_view kSuffixTexts[] = {"<|fim_suffix|>",  "<fim-suffix>", "<fim_suffix>",
                                                    "<｜fim▁hole｜>",  "<SUF>",        "▁<SUF>",
                                                    "<|code_suffix|>", "<|suffix|>"};
inline constexpr std::string_view kMiddleTexts[] = {"<|fim_middle|>",  "<fim-middle>", "<fim_middle>",
                                                    "<｜fim▁end｜>",   "<MID>",        "▁<MID>",
                                                    "<|code_middle|>", "<|middle|>"};
inline constexpr std::string_view kPadTexts[] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"};
inline constexpr std::string_view kRepositoryTexts[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>",
                                                        "<REPO>", "<reponame>"};
inline constexpr std::string_view kFileTexts[] = {"<|file_sep|>"};

struct NamedTokens {
    std::string_view key, old_key;  // the texts count where neither tokenizer.ggml.KEY names a token
    bool ends;                      // generation stops after such a token
    std::span<const std::string_view> texts;
};
inline constexpr NamedTokens kNamedTokens[] = {{"", "", true, kEndTexts},
                                               {"fim_pre_token_id", "prefix_token_id", false, kPrefixTexts},
                                               {"fim_suf_token_id", "suffix_token_id", false, kSuffixTexts},
                                               {"fim_mid_token_id", "middle_token_id", false, kMiddleTexts},
                                               {"fim_pad_token_id", "", true, kPadTexts},
                                               {"fim_rep_token_id", "", true, kRepositoryTexts},
                                               {"fim_sep_token_id", "", true, kFileTexts}};

// True for vocabularies where "<|end|>" ends a part of an answer, not the answer. `has(text)` says whether
// the vocabulary has a text.
template <class Has>
bool end_is_within_answers(Has has) {
    return has("<|end|>") && (has("<|call|>") || has("<|calls|>")) && (has("<|return|>") || has("<|flush|>"));
}
// True for vocabularies where "</s>" is a tag in a text.
template <class Has>
bool end_tag_is_text(Has has) {
    return has("</s>") && has("<|tool_response>");
}

}  // namespace fovea
