// Untrusted configurations: the bytes are a GGUF file if they begin as one, else a config.json.
#include "fuzz_target.hpp"

#include "json_mutator.hpp"
#include "model/checkpoint/families.hpp"

using namespace fovea;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Checkpoint files;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (bytes.starts_with("GGUF")) {
        Result<GgufFile> file = parse_gguf(fuzz::as_bytes(data, size));
        if (!file) return 0;
        files.gguf = std::move(*file);
    } else {
        Result<JsonValue> json = fuzz::at_cost(size, [&] { return parse_json(bytes); });
        if (!json) {
            fuzz::check_error(json.error());
            return 0;
        }
        files.config = std::move(*json);
    }
    const Result<KnownModel> known = fuzz::at_cost(size, [&] { return read_config(files); });
    if (!known) {
        fuzz::check_error(known.error());
        return 0;
    }
    const ModelConfig& f = known->config;
    fuzz::require(f.layers > 0 && f.windowed.size() == f.layers,
                  "a model has layers, each with or without a window");
    fuzz::require(f.heads > 0 && f.kv_heads > 0 && f.heads % f.kv_heads == 0, "heads are grouped");
    fuzz::require(f.width > 0 && f.head_width > 0, "a model has a width");
    return 0;
}
