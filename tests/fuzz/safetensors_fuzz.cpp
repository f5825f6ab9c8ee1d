#include "files/model_config.hpp"
#include "fuzz_target.hpp"

using namespace fovea;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // The same bytes as a model's config.json: the other use of the JSON reader.
    TensorSet config;
    if (const auto refused = files::add_model_config(fuzz::as_bytes(data, size), config))
        fuzz::check_error(*refused);
    const auto set = fuzz::at_cost(size, [&] { return parse_safetensors(fuzz::as_bytes(data, size)); });
    if (!set) {
        fuzz::check_error(set.error());
        return 0;
    }
    for (const Tensor& tensor : set->tensors) fuzz::check_tensor(tensor);
    files::MemorySink sink;
    fuzz::require(!files::encode_safetensors(set.value(), sink), "what was loaded can be saved");
    const auto again = parse_safetensors(sink.bytes());
    fuzz::check_same(set.value(), again);
    fuzz::require(again->metadata == set->metadata, "metadata survives");
    // The model readers take any checkpoint.
    for (const uint64_t layer : {0, 3}) {
        if (const auto gpt2 = load_gpt2_attention(set.value(), layer, {2}); !gpt2)
            fuzz::check_error(gpt2.error());
        if (const auto llama = load_llama_attention(set.value(), layer); !llama)
            fuzz::check_error(llama.error());
    }
    return 0;
}
