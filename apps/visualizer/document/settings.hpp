// Everything that the reader can change about the computation. A value: undo keeps copies of it.
#pragma once

#include <fovea/model/session.hpp>

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::visualizer {

struct ImportedFile;
struct OpenedModel;
}  // namespace fovea::visualizer
namespace fovea {
struct LearnedModel;
}
namespace fovea::visualizer {

// How a file's tensors become queries, keys and values. Names are those in the file.
enum class TensorLayout { heads_first, tokens_first };  // [(B,) H, L, D] or [(B,) L, H, D]
enum class ImportKind {
    qkv,    // three tensors
    fused,  // one tensor [L, 3 * H * D], [L, 3, H, D] or [3, H, L, D]; split in the order of `order`
    gpt2,   // weights of a GPT-2 layer, applied to the text
    llama,  // weights of a Llama layer, applied to the text
    tables  // tensors that are shown unchanged, next to the level's own
};
struct ImportMapping {
    ImportKind kind = ImportKind::tables;
    std::string q, k, v, fused;
    std::string order = "qkv";
    TensorLayout layout = TensorLayout::heads_first;
    uint32_t heads = 1;   // where the shape does not say it
    uint32_t layer = 0;   // layer of a model
    bool rotate = false;  // q and k are from before rotary embedding
    float divisor = 0;    // divisor of the scores; 0: the session's scale

    friend bool operator==(const ImportMapping&, const ImportMapping&) = default;
};

struct HeadPlace {
    uint32_t layer = 0, head = 0;
    friend auto operator<=>(const HeadPlace&, const HeadPlace&) = default;
};

// A change to a head of a published model: its context is multiplied, by 0 for ablation, or replaced by the
// head's context on another sentence with as many tokens.
struct HeadChange {
    HeadPlace at;
    float scale = 1;
    std::string patch;  // the other sentence; empty: none
    friend bool operator==(const HeadChange&, const HeadChange&) = default;
};

// A session and the file that its tensors come from. The session's keys of a view stay at their defaults
// here: they are ViewState's.
struct Settings : Session {
    std::shared_ptr<const ImportedFile> file;  // null: the level's own text
    ImportMapping mapping;
    std::shared_ptr<const OpenedModel> model;     // a published model in the place of the level's; null: none
    std::vector<HeadChange> changed;              // changed heads, ascending
    std::shared_ptr<const LearnedModel> learned;  // model of the task, trained here; null: the library's

    friend bool operator==(const Settings&, const Settings&) = default;
};

// Names of the enumerators as session files write them, and a precision as a person reads it: "float32".
std::string_view mask_pattern_name(MaskPattern pattern);
std::string_view precision_key(Precision precision);
std::string_view precision_name(Precision precision);
std::string_view tokenizer_name(Tokenizer tokenizer);
inline constexpr int kMaskPatternCount = 6, kPrecisionCount = 3, kTokenizerCount = 3;

// Queries, keys and values come from the settings' file, not from the level's text.
inline bool reads_tensors(const Settings& s) { return s.file && s.mapping.kind != ImportKind::tables; }
// True if a model of several layers replaces the level's; `mapping.layer` is the shown layer.
inline bool shows_model(const Settings& s) { return (s.model || !s.task.empty()) && !reads_tensors(s); }
// A published model whose own rules hide later keys: the settings' causal mask changes nothing of it.
bool is_causal_model(const Settings& s);
// The layers that can be shown, in rising order: of a model, or of a file that has some; else empty.
std::vector<uint32_t> shown_layers(const Settings& s);
// For a model: how many heads each layer has; what the head is called ("induction", empty: nothing is known
// of it), and whether it is switched off.
const LearnedModel& learned_of(const Settings& s);  // Requires settings with a task.
uint32_t heads_of_layer(const Settings& s);
std::string head_label(const Settings& s, HeadPlace head);
bool is_off(const Settings& s, HeadPlace head);
void toggle_head(Settings& s, HeadPlace head);
// For a published model: returns the change to a head, or sets another one.
HeadChange change_of(const Settings& s, HeadPlace head);
void change_head(Settings& s, HeadChange change);
// ", off", ", × 0.5", ", patched from “...”"; empty: the head is as it is.
std::string change_text(const Settings& s, HeadPlace head);
// The rules of the call: the settings', with the divisor of the file's scores.
AttentionRules rules_of(const Settings& s);
inline bool is_scaled(const Settings& s) { return s.scale != "none"; }

// The settings that the tutorials use at a level; the same with text, tokenizer and precision kept.
Settings level_settings(int level);
Settings level_settings(int level, const Settings& before);
// "Causal mask"
std::string level_name(int level);
// The level as it opens, on any text: nothing of it was set otherwise.
bool is_plain_level(const Settings& s);
// A model that learned a task, with what is to be seen of it first; theme and precision stay.
Settings task_settings(std::string_view task, const Settings& before = {});
// Returns settings for a published model on its own text, or on the text of `before` if that is a sentence.
Settings model_settings(std::shared_ptr<const OpenedModel> model, const Settings& before);
// Describes in a sentence or two what the shown layer of the model shows.
std::string model_lead(const Settings& s);
// "level 2" or "induction"
std::string subject_name(const Settings& s);
// Both are of one file, model, task or level.
bool same_subject(const Settings& a, const Settings& b);
// Describes the texts that may be typed: "letters a to z", "a sentence".
std::string text_hint(const Settings& s);
// True if the shown task's model reads its own tokens instead of words.
bool reads_no_words(const Settings& s);

// Switches dropout off, and on at the rate that it had.
void switch_dropout(Settings& s);
// Hides a key, or shows it again.
void toggle_key(Settings& settings, uint32_t key);

}  // namespace fovea::visualizer
