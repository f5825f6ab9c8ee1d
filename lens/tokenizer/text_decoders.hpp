// How tokens become a text again: the part `decoder` of tokenizer.json, as the library `tokenizers` reads it.
// Bytes that are not UTF-8 stay as they are, where the library writes U+FFFD.
#pragma once

#include <fovea/files/json.hpp>

#include <functional>
#include <string>
#include <vector>

namespace fovea {

// Changes the texts of tokens in place; what is left is joined.
using DecodeStep = std::function<void(std::vector<std::string>&)>;

// Appends the steps of a decoder. Rejected with an error that names the kind: decoders that are not known.
Result<void> read_decoder(const JsonValue& json, std::vector<DecodeStep>& to);

DecodeStep bytes_decoder();          // GPT-2's characters for bytes
DecodeStep byte_fallback_decoder();  // "<0x41>"
DecodeStep replace_decoder(std::string from, std::string to);
DecodeStep join_decoder();
// Takes up to `start` and `stop` of a character from the ends of each text.
DecodeStep strip_decoder(std::string character, uint64_t start, uint64_t stop);
DecodeStep word_piece_decoder(std::string prefix, bool cleans_up);
DecodeStep space_decoder();  // a space between two, as the library does without a decoder

}  // namespace fovea
