// Everything that the reader can change about the computation. A value: undo keeps copies of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::visualizer {

struct ImportedFile;

inline constexpr int kLevelCount = 7;

// Masks beside causal and window, which the engine knows by itself. As in session files: padding hides the
// last third of the keys, prefix shows the first third to all and is causal behind it, strided shows every
// second key back, block shows blocks of two tokens.
enum class MaskPattern { none, padding, prefix, strided, block, painted };
inline constexpr int kMaskPatternCount = 6;
std::string_view mask_pattern_name(MaskPattern pattern);

// How a file's tensors become queries, keys and values. Names are those in the file.
enum class TensorLayout { heads_first, tokens_first };  // [(B,) H, L, D] or [(B,) L, H, D]
enum class ImportKind {
    qkv,    // three tensors
    fused,  // one tensor [L, 3 * H * D], [L, 3, H, D] or [3, H, L, D]; split in the order of `order`
    gpt2,   // weights of a GPT-2 layer, applied to the text
    llama,  // weights of a Llama layer, applied to the text
    tables  // nothing of these: its tensors are shown as they are, beside the level's own
};
struct ImportMapping {
    ImportKind kind = ImportKind::tables;
    std::string q, k, v, fused;
    std::string order = "qkv";
    TensorLayout layout = TensorLayout::heads_first;
    uint32_t heads = 1;   // where the shape does not say it
    uint32_t layer = 0;   // of a model
    bool rotate = false;  // q and k are from before rotary embedding
    float divisor = 0;    // of the scores; 0: the square root of the head's width

    friend bool operator==(const ImportMapping&, const ImportMapping&) = default;
};

// How q, k and v are stored and multiplied. Products of float16 factors are what cooperative matrices do;
// their sums stay float32.
enum class Precision { f32, f16_storage, f16_products };
inline constexpr int kPrecisionCount = 3;
// "float32"; and as sessions and options write it: "f32"
std::string_view precision_name(Precision precision);
std::string_view precision_key(Precision precision);

// What is a token of the text.
enum class Tokenizer { words, characters, bytes };
inline constexpr int kTokenizerCount = 3;
std::string_view tokenizer_name(Tokenizer tokenizer);

struct Settings {
    int level = 2;  // 1 without weights, 2 trainable, 3 causal, 4 dropout, 5 stacked heads, 6 split heads, 7
                    // GPT block
    std::string text = "Your journey starts with one step";
    Tokenizer tokenizer = Tokenizer::words;
    int length = 0;  // level 7: the tokens are repeated to so many tokens; 0: as typed
    uint64_t weight_seed = 123;
    int kv_heads = 0;    // level 7: key/value heads; 0: as many as query heads
    bool rope = false;   // levels 5 to 7, where heads have an even width
    bool scaled = true;  // scores / sqrt(head size); otherwise as they are
    float temperature = 1;
    bool causal = false;
    bool windowed = false;
    int window_left = 2, window_right = 0;
    MaskPattern pattern = MaskPattern::none;
    std::vector<uint8_t>
        painted;  // a cell each, row by row, 1 is visible; another size counts as all visible
    // Keys that no query sees, in rising order: the weights of the others add up to 1 without them.
    std::vector<uint32_t> hidden_keys;
    float softcap = 0;
    bool dropout = false;
    float dropout_p = 0.5f;
    uint64_t dropout_seed = 123;
    bool alibi = false;
    Precision precision = Precision::f32;
    std::shared_ptr<const ImportedFile> file;  // null: the level's own text
    ImportMapping mapping;

    friend bool operator==(const Settings&, const Settings&) = default;
};

// Queries, keys and values come from the settings' file, not from the level's text.
inline bool reads_tensors(const Settings& s) { return s.file && s.mapping.kind != ImportKind::tables; }

// "trainable weights", and the settings that the tutorials use at that level.
std::string_view level_name(int level);
Settings level_settings(int level);
// The same with text, tokenizer and precision kept.
Settings level_settings(int level, const Settings& before);

// Hides a key, or shows it again.
void toggle_key(Settings& settings, uint32_t key);

// Whether the pattern lets the query see the key; of a painted mask, whose cells are rows x keys or, on a
// longer square, a share of it each.
bool pattern_shows(const Settings& settings, uint64_t row, uint64_t key, uint64_t rows, uint64_t keys);
// Pattern and hidden keys as cells, 1 is visible; empty where there is none.
std::vector<uint8_t> mask_cells(const Settings& settings, uint64_t rows, uint64_t keys);

}  // namespace fovea::visualizer
