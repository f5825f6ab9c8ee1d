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
                             .defaults = {12, 768, 12, 0, 0, 1024, {50256}, 0, 0, 0, true},
                             .grouped = false,
                             .norm = NormKind::layer,
                             .layout = WeightLayout::in_out,
                             .activation = Activation::gelu_tanh,
                             .epsilon = 1e-5},
                            {.name = "Llama",
                             .types = {"llama"},
                             .ggufs = {"llama"},
                             .names = &kLlama,
                             .defaults = {32, 4096, 32, 0, 11008, 2048, {2}},
                             .theta = 10000.0,
                             .pairs = RotaryPairs::neighbours_in_gguf},
                            {.name = "Mistral",
                             .types = {"mistral"},
                             .names = &kLlama,
                             .defaults = {32, 4096, 32, 8, 14336, 131072, {2}},
                             .theta = 10000.0,
                             .window = WindowRule::all,
                             .window_keys = 4096},
                            {.name = "Qwen 2",
                             .types = {"qwen2"},
                             .ggufs = {"qwen2"},
                             .names = &kLlama,
                             .defaults = {32, 4096, 32, 32, 22016, 32768, {}},
                             .theta = 10000.0,
                             .window = WindowRule::by_use_sliding,
                             .window_keys = 4096},
                            {.name = "Qwen 3",
                             .types = {"qwen3"},
                             .ggufs = {"qwen3"},
                             .names = &kQwen3,
                             .defaults = {32, 4096, 32, 32, 22016, 32768, {}},
                             .theta = 10000.0,
                             .head_width = 128,
                             .window = WindowRule::by_use_sliding,
                             .window_keys = 4096},
                            {.name = "Gemma",
                             .types = {"gemma"},
                             .ggufs = {"gemma"},
                             .names = &kLlama,
                             .defaults = {28, 3072, 16, 16, 24576, 8192, {1}, 0, 0, 0, true},
                             .norm_plus_one = true,
                             .activation = Activation::gelu_tanh,
                             .theta = 10000.0,
                             .head_width = 256,
                             .scale_by_width = true},
                            {.name = "Gemma 2",
                             .types = {"gemma2"},
                             .ggufs = {"gemma2"},
                             .names = &kGemma2,
                             .defaults = {26, 2304, 8, 4, 9216, 8192, {1}, 50, 30, 256, true},
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
                             .defaults = {26, 2304, 8, 4, 9216, 131072, {1}, 0, 0, 256, true},
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
                             .defaults = {32, 3072, 32, 0, 8192, 4096, {32000}},
                             .epsilon = 1e-5,
                             .theta = 10000.0,
                             .window = WindowRule::all},
                            {.name = "GLM-4",
                             .types = {"glm4"},
                             .ggufs = {"glm4"},
                             .names = &kGlm4,
                             .defaults = {40, 4096, 32, 2, 13696, 131072, {151329, 151336, 151338}},
                             .epsilon = 1.5625e-7,
                             .theta = 10000.0,
                             .rotated = 0.5,
                             .pairs = RotaryPairs::neighbours,
                             .head_width = 128},
                            {.name = "GPT-NeoX",
                             .types = {"gpt_neox"},
                             .ggufs = {"gptneox"},
                             .names = &kNeoX,
                             .defaults = {44, 6144, 64, 0, 24576, 2048, {2}},
                             .grouped = false,
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
                             .defaults = {12, 768, 12, 0, 3072, 512, {}, 0, 0, 0, true},
                             .grouped = false,
                             .causal = false,
                             .norm = NormKind::layer,
                             .order = BlockOrder::post,
                             .activation = Activation::gelu,
                             .epsilon = 1e-12},
                            {.name = "RoBERTa",
                             .types = {"roberta", "xlm-roberta", "camembert"},
                             .names = &kRoberta,
                             .defaults = {12, 768, 12, 0, 3072, 512, {2}, 0, 0, 0, true},
                             .grouped = false,
                             .causal = false,
                             .norm = NormKind::layer,
                             .order = BlockOrder::post,
                             .activation = Activation::gelu,
                             .epsilon = 1e-12,
                             .is_roberta = true},
                            {.name = "ModernBERT",
                             .types = {"modernbert"},
                             .names = &kModernBert,
                             .defaults = {22, 768, 12, 0, 1152, 8192, {50282}, 0, 0, 0, true},
                             .grouped = false,
                             .causal = false,
                             .norm = NormKind::layer,
                             .activation = Activation::gelu,
                             .epsilon = 1e-5,
                             .theta = 160000.0,
                             .local_theta = 10000.0,
                             .scales_local = true,
                             .window = WindowRule::two_of_three,
                             .window_keys = 128,
                             .first_without_norm = true,
                             .head_activation = "classifier_activation"},
                            {.name = "ViT",
                             .types = {"vit"},
                             .names = &kVit,
                             .defaults = {12, 768, 12, 0, 3072, 0, {}},
                             .grouped = false,
                             .causal = false,
                             .norm = NormKind::layer,
                             .activation = Activation::gelu,
                             .epsilon = 1e-12}};

// Families of learned_checkpoint(), without and with rotary positions.
const Family kLearnedFamily = {.name = "Fovea",
                               .types = {"fovea"},
                               .names = &kLearned,
                               .grouped = false,
                               .norm = NormKind::layer,
                               .epsilon = 1e-5,
                               .optional_parts = true};
const Family kRotaryLearnedFamily = [] {
    Family family = kLearnedFamily;
    family.types = {"fovea_rotary"};
    family.theta = 10000.0;
    return family;
}();

template <size_t N>
bool has(const std::array<std::string_view, N>& names, std::string_view name) {
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const Family* family_of_type(std::string_view model_type) {
    for (const Family& family : kFamilies)
        if (has(family.types, model_type)) return &family;
    for (const Family* const family : {&kLearnedFamily, &kRotaryLearnedFamily})
        if (has(family->types, model_type)) return family;
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
