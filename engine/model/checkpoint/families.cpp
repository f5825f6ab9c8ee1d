#include "model/checkpoint/families.hpp"
#include "model/checkpoint/weight_names.hpp"

#include <algorithm>

namespace fovea {
namespace {

// A family a row; parts that are left out have the defaults of Family.
const Family kFamilies[] = {{.name = "GPT-2",
                             .types = {"gpt2"},
                             .ggufs = {"gpt2"},
                             .names = &kGpt2,
                             .norm = NormKind::layer,
                             .layout = WeightLayout::in_out,
                             .activation = Activation::gelu_tanh,
                             .epsilon = 1e-5},
                            {.name = "Llama",
                             .types = {"llama"},
                             .ggufs = {"llama"},
                             .names = &kLlama,
                             .theta = 10000.0,
                             .gguf_pairs_neighbours = true},
                            {.name = "Mistral",
                             .types = {"mistral"},
                             .names = &kLlama,
                             .theta = 10000.0,
                             .window = WindowRule::all,
                             .window_keys = 4096},
                            {.name = "Qwen 2",
                             .types = {"qwen2"},
                             .ggufs = {"qwen2"},
                             .names = &kLlama,
                             .theta = 10000.0,
                             .window = WindowRule::by_use_sliding,
                             .window_keys = 4096},
                            {.name = "Qwen 3",
                             .types = {"qwen3"},
                             .ggufs = {"qwen3"},
                             .names = &kQwen3,
                             .theta = 10000.0,
                             .head_width = 128,
                             .window = WindowRule::by_use_sliding,
                             .window_keys = 4096},
                            {.name = "Gemma",
                             .types = {"gemma"},
                             .ggufs = {"gemma"},
                             .names = &kLlama,
                             .norm_plus_one = true,
                             .activation = Activation::gelu_tanh,
                             .theta = 10000.0,
                             .head_width = 256,
                             .scale_by_width = true},
                            {.name = "Gemma 2",
                             .types = {"gemma2"},
                             .ggufs = {"gemma2"},
                             .names = &kGemma2,
                             .norm_plus_one = true,
                             .activation = Activation::gelu_tanh,
                             .theta = 10000.0,
                             .head_width = 256,
                             .window = WindowRule::even,
                             .window_keys = 4096,
                             .scale_by_width = true},
                            {.name = "Gemma 3",
                             .types = {"gemma3_text", "gemma3"},
                             .ggufs = {"gemma3"},
                             .names = &kGemma3,
                             .norm_plus_one = true,
                             .activation = Activation::gelu_tanh,
                             .theta = 1000000.0,
                             .local_theta = 10000.0,
                             .head_width = 256,
                             .window = WindowRule::five_of_six,
                             .window_keys = 4096,
                             .scale_by_width = true},
                            {.name = "Phi-3",
                             .types = {"phi3"},
                             .ggufs = {"phi3"},
                             .names = &kPhi3,
                             .epsilon = 1e-5,
                             .theta = 10000.0,
                             .window = WindowRule::all},
                            {.name = "GPT-NeoX",
                             .types = {"gpt_neox"},
                             .ggufs = {"gptneox"},
                             .names = &kNeoX,
                             .norm = NormKind::layer,
                             .order = BlockOrder::parallel,
                             .joint = JointRows::by_head,
                             .activation = Activation::gelu,
                             .epsilon = 1e-5,
                             .theta = 10000.0,
                             .rotated = 0.25},
                            {.name = "BERT",
                             .types = {"bert"},
                             .ggufs = {"bert"},
                             .names = &kBert,
                             .gguf_names = &kGgufBert,
                             .causal = false,
                             .norm = NormKind::layer,
                             .order = BlockOrder::post,
                             .activation = Activation::gelu,
                             .epsilon = 1e-12},
                            {.name = "RoBERTa",
                             .types = {"roberta", "xlm-roberta", "camembert"},
                             .names = &kRoberta,
                             .causal = false,
                             .norm = NormKind::layer,
                             .order = BlockOrder::post,
                             .activation = Activation::gelu,
                             .epsilon = 1e-12,
                             .first_position = 2},
                            {.name = "ModernBERT",
                             .types = {"modernbert"},
                             .names = &kModernBert,
                             .causal = false,
                             .norm = NormKind::layer,
                             .activation = Activation::gelu,
                             .epsilon = 1e-5,
                             .theta = 160000.0,
                             .local_theta = 10000.0,
                             .window = WindowRule::two_of_three,
                             .window_keys = 128,
                             .first_without_norm = true},
                            {.name = "ViT",
                             .types = {"vit"},
                             .names = &kVit,
                             .causal = false,
                             .norm = NormKind::layer,
                             .activation = Activation::gelu,
                             .epsilon = 1e-12}};

template <size_t N>
bool has(const std::array<std::string_view, N>& names, std::string_view name) {
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const Family* family_of_type(std::string_view model_type) {
    for (const Family& family : kFamilies)
        if (has(family.types, model_type)) return &family;
    return nullptr;
}

const Family* family_of_gguf(std::string_view architecture) {
    for (const Family& family : kFamilies)
        if (has(family.ggufs, architecture)) return &family;
    return nullptr;
}

const WeightNames& names_of(const Family& family, bool gguf) {
    if (!gguf) return *family.names;
    return family.gguf_names ? *family.gguf_names : kGguf;
}

std::string known_families() {
    std::string all;
    for (const Family& family : kFamilies) all += (all.empty() ? "" : ", ") + std::string(family.name);
    return all;
}

}  // namespace fovea
