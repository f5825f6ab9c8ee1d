// The families of models: how each is put together and what its weights are called. A family is added by a
// row of the table in families.cpp (docs/reference/models.md says how).
#pragma once

#include <fovea/model/checkpoint_model.hpp>

namespace fovea {

// Weights' names without ".weight" and ".bias"; {} is the layer's number. Empty: the family has no such part.
struct WeightNames {
    // Possible prefixes of the names of embedding, blocks and final norm; the first for which the table
    // exists applies.
    std::array<std::string_view, 4> roots;
    std::string_view table, positions, types, table_norm;
    std::string_view attention_norm;
    std::string_view query, key, value, joint;  // `joint` in place of the three
    std::string_view attention_output, query_norm, key_norm, attention_output_norm;
    std::string_view feed_forward_norm;
    std::string_view up, gate, gate_up, down;  // `gate_up`: the rows of gate, then of up
    std::string_view feed_forward_output_norm;
    std::string_view final_norm;
    // For models that read pictures, in place of the table: the convolution that reads a patch, and the whole
    // names of the picture's own row and of the positions.
    std::string_view patches, picture_row, patch_positions;
    // Without a root:
    std::string_view unembedding, head_dense, head_norm, head_bias;
    // Ends of names that hold no weight: masks and tables that older versions saved.
    std::array<std::string_view, 4> ignored;
};

// The order of the rows of a fused QKV layer.
enum class JointRows { stacked, by_head };  // all queries, all keys, all values; q, k, v of head 0, of head 1

// Columns of a head's row that turn together: (n, n + half), or (2n, 2n + 1). GGUF files of Llama hold rows
// reordered for the latter.
enum class RotaryPairs { halves, neighbours_in_gguf, neighbours };

enum class WindowRule {
    none,
    all,            // every layer, where the configuration has a window
    even,           // layers 0, 2, ... (Gemma 2)
    five_of_six,    // all but layers 5, 11, ... (Gemma 3)
    two_of_three,   // all but layers 0, 3, ... (ModernBERT)
    by_use_sliding  // from max_window_layers on, where use_sliding_window is true (Qwen)
};

// Defaults of a family's configuration class in transformers, for keys that config.json leaves out.
struct FamilyDefaults {
    uint64_t layers = 0, width = 0, heads = 0;
    uint64_t kv_heads = 0;  // 0: as many as heads
    uint64_t hidden = 0;    // 0: four times the width
    uint64_t context = 0;
    std::array<std::optional<uint32_t>, 3> end_tokens;
    double softcap = 0, logit_softcap = 0, query_scalar = 0;  // the first two also of GGUF
    bool tied = false;  // the unembedding is the table if the files have a head but no separate matrix
};

struct Family {
    std::string_view name;
    std::array<std::string_view, 4> types;    // config.json's model_type
    std::array<std::string_view, 2> ggufs;    // GGUF's general.architecture
    const WeightNames* names;                 // names in safetensors
    const WeightNames* gguf_names = nullptr;  // names in GGUF; null: those of nearly all families
    FamilyDefaults defaults;
    bool grouped = true;  // the class has num_key_value_heads
    bool causal = true;
    NormKind norm = NormKind::rms;
    bool norm_plus_one = false;  // safetensors hold the norms' weights less 1 (Gemma)
    BlockOrder order = BlockOrder::pre;
    WeightLayout layout = WeightLayout::out_in;  // layout in safetensors
    JointRows joint = JointRows::stacked;
    Activation activation = Activation::silu;  // where the configuration says none
    double epsilon = 1e-6;
    std::optional<double> theta;  // rotary positions; where the configuration says none
    double local_theta = 0;       // theta of windowed layers if it differs
    bool scales_local = false;    // rope_scaling is for these, too
    double rotated = 1;           // share of a head's columns, where the configuration says none
    RotaryPairs pairs = RotaryPairs::halves;
    uint64_t head_width = 0;  // where the configuration says none; 0: width / heads
    WindowRule window = WindowRule::none;
    uint64_t window_keys = 0;          // where the configuration says none
    bool scale_by_width = false;       // the table's rows are multiplied by the square root of the width
    bool first_without_norm = false;   // layer 0 uses the embedding's norm and has no separate one
    bool optional_parts = false;       // norms and positions that the files lack are absent
    bool is_roberta = false;           // the first token has position pad_token_id + 1, the head has gelu
    std::string_view head_activation;  // the key of the prediction head's activation; else hidden_act
};

// Null where it is none of the table's.
const Family* family_of_type(std::string_view model_type);
const Family* family_of_gguf(std::string_view architecture);
// Returns the names of a family's weights in a GGUF file, or in safetensors.
const WeightNames& names_of(const Family& family, bool gguf);

// Family and configuration of a checkpoint. The error names the key.
struct KnownModel {
    const Family* family = nullptr;
    ModelConfig config;
};
Result<KnownModel> read_config(const Checkpoint& files);
// Fills `end_tokens` and `generation_settings`.
Result<void> read_generation(const Checkpoint& files, const Family& family, ModelConfig& config);

}  // namespace fovea
