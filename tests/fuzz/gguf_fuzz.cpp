#include "fuzz_target.hpp"

#include <fovea/files/checkpoint.hpp>

using namespace fovea;

namespace {

void check_value(const GgufValue& value) {
    value.whole(), value.number(), value.truth();
    if (const auto text = value.text())
        fuzz::require(text->size() + 8 == value.bytes.size(), "a text ends where its value does");
    if (const auto texts = value.texts())
        fuzz::require(texts->size() == value.count, "an array has as many texts as it says");
    if (const auto numbers = value.numbers(); numbers && value.is_array)
        fuzz::require(numbers->size() == value.count, "an array has as many numbers as it says");
}

// Type, shape and bytes agree, and every row can be read.
void check_weight(const StoredWeight& weight) {
    if (weight.type == WeightType::other) return;
    const uint64_t blocks = weight.columns() / weight_block_elements(weight.type) * weight.rows();
    fuzz::require(weight.bytes.size() == blocks * weight_block_bytes(weight.type), "bytes match the shape");
    std::vector<float> all(weight.rows() * weight.columns());
    fuzz::require(read_rows(weight, 0, all).has_value(), "a loaded weight converts to float32");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto file = parse_gguf(fuzz::as_bytes(data, size));
    if (!file) {
        fuzz::check_error(file.error());
        return 0;
    }
    for (const GgufValue& value : file->metadata) {
        check_value(value);
        fuzz::require(file->find(value.key) == &value, "a key is there once");
    }
    for (const StoredWeight& weight : file->weights) check_weight(weight);
    return 0;
}
