// Everything that a reader can set, as one value: what is computed (sentence, level, weights, masks, ...) and
// how it is looked at. A session is a .fovea file, the part of an address after '#', or made here; it is
// read, written and checked in this one place, for every program. docs/reference/sessions.md has the
// format; lens/model/tables/session.json is its table of keys: type, limits, defaults and meaning of each.
//
// Reading ignores nothing in silence: notes report values that were not used. A key that the table does not
// have is such a note and is not written again. Nothing here keeps state; all functions are safe from any
// thread.
#pragma once

#include <fovea/model/f32_tensor.hpp>
#include <fovea/model/rules.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Levels are numbered from 1.
inline constexpr int kLevelCount = 7;

// In the order of the choices in the table of keys.
enum class WeightInit { none, rand, linear };
enum class Tokenizer { words, characters, bytes };
// A tensor that the reader provides: [heads, tokens, width] in the session, or the path of its file.
struct SessionTensor {
    Shape shape;                // the shape of `values`
    std::vector<float> values;  // empty: in a file
    std::string path, name,
        sha256;  // relative to the session file; the tensor's name there; of the whole file, or empty
    friend bool operator==(const SessionTensor&, const SessionTensor&) = default;
};
struct SessionTensors {
    SessionTensor q, k, v;  // v may be missing: neither values nor path
    // Labels of the queries and keys, one for each; if empty, they are numbered.
    std::vector<std::string> tokens;
    friend bool operator==(const SessionTensors&, const SessionTensors&) = default;
};

// The stages of a layer, in the order of the computation.
enum class StageId : uint8_t {
    inputs,
    normed,
    w_query,
    w_key,
    w_value,
    queries,
    keys,
    values,
    scores,
    scaled,
    capped,
    masked,
    weights_all,
    masked_weights,
    row_sums,
    weights,
    keep,
    dropped,
    context,
    lse,
    w_output,
    output,
    attended,
    ff_normed,
    ff_hidden,
    ff_output,
    block,
    final,
    logits,
    probabilities
};
// The name by which sessions and users call a stage: "w_query".
const std::string& stage_name(StageId id);
std::optional<StageId> stage_from_name(std::string_view name);

// A cell of inputs, w_query, w_key, w_value or w_output that holds the reader's own number, in place of a
// word's or of a weight's.
struct CellEdit {
    StageId stage = StageId::inputs;
    uint32_t row = 0, column = 0;  // a cell of the shown stage
    double value = 0;
    friend bool operator==(const CellEdit&, const CellEdit&) = default;
};

// Everything that a reader can set.
struct Session : AttentionRules {
    // The model, level and text to compute, apart from the rules.
    int level = 2;
    std::string text = "Your journey starts with one step";
    Tokenizer tokenizer = Tokenizer::words;
    uint32_t length = 0;  // level 7: the tokens repeated to so many; 0: as typed
    WeightInit init = WeightInit::rand;
    uint64_t seed = 123;
    uint32_t heads = 1, kv_heads = 1;
    bool rope = false;
    std::vector<CellEdit> edits;                    // by stage, row and column; one for a cell
    std::shared_ptr<const SessionTensors> tensors;  // shown in place of the text; null: none
    // A trained model that replaces the level's layer; then only the rules of the level apply. Empty: none.
    std::string task;
    uint32_t heads_off = 0;  // bits of its ablated heads, layer by layer
    // A published model that the visualizer shows in place of the level's layer; empty: none. It has the
    // folder or file, relative to the session file, and its fingerprint. Each changed head has a line "LAYER
    // HEAD SCALE" or "LAYER HEAD from TEXT". session_model() rejects such a session.
    std::string published, published_sha256, changed_heads;

    // How it is looked at. None of it changes a number.
    StageId stage = StageId::weights;
    uint32_t head = 0;             // counted across layers if the model has several
    uint32_t row = 1, column = 2;  // the picked cell
    std::string colormap = "auto";
    bool logarithmic = false;
    std::string low, high;  // numbers; empty: those of the values
    bool table = false;
    int32_t compared_head = -1;
    std::string compare_how = "side";
    std::string view, zoom;
    uint32_t step = 0;     // step of the level's story(), from 1; 0: none
    std::string training;  // the run in view: task, seed, step, heads that are off, sequence; empty: none
    // The desktop program's own.
    int32_t spread = 0;
    bool pinned = false;
    double dropout_rate = 0.5;  // to which its switch returns
    std::string import_kind, import_fused, import_order = "qkv";
    bool import_tokens_first = false, import_rotates = false;
    uint32_t import_heads = 1, import_layer = 0;
    double import_divisor = 0;

    std::vector<Session> kept;    // A of a comparison: none or one
    std::vector<Session> locked;  // the matrices of tabs

    friend bool operator==(const Session&, const Session&) = default;
};

// A level's own session. `level` is 1 to kLevelCount. With a task, the task's own session: apart from `level`
// it does not depend on the level. A task that the table does not have changes nothing.
Session level_session(int level, std::string_view task = {});

// Explains why a key's value was not used, or which program ignores it. `text` is a whole sentence.
struct SessionNote {
    std::string key, text;
    friend bool operator==(const SessionNote&, const SessionNote&) = default;
};
struct ReadSession {
    Session session;
    std::vector<SessionNote> notes;
};
// The program that reads. It cannot show `unseen` keys: each that is given and is not the level's own value
// is noted.
struct SessionReader {
    std::string_view program;  // "this page", "the window"
    std::span<const std::string_view> unseen;
};

// Reads a .fovea file. Rejects text that is not JSON or not a session, other versions, and tensors whose data
// do not fit their shapes. Everything else gives a session.
Result<ReadSession> read_session(std::string_view json, const SessionReader& reader = {});
// Reads the part of an address after '#', which may be empty: "v=1&level=3&text=The+cat+sat". Rejects other
// versions.
Result<ReadSession> read_address(std::string_view fragment, const SessionReader& reader = {});

// Returns the text of a .fovea file, ending in a line feed. It has every key of the table, and those tensors
// that are embedded or stored in a file.
std::string write_session(const Session& session);
// "v=1&level=3&...": what differs from the level's own values, without tensors, `kept` and `locked`.
std::string write_address(const Session& session);

// ---- the tables that programs share ----

// The texts that describe a stage.
struct StageText {
    std::string name, label, formula, transposed,
        about;               // `transposed`: the formula where weights are [out, in]
    bool is_signed = false;  // values on both sides of 0
    bool pairs = false;      // rows are queries, columns keys
    bool sums = false;       // sums of rows mean something
    // Shown where the model has no such stage: the first of these that it has.
    std::vector<StageId> nearest;
};
std::span<const StageText> stage_table();  // by StageId
const StageText& stage_text(StageId id);

// The texts that describe a level.
struct LevelText {
    std::string name, term, title, lead;  // `lead` is HTML; `term` as a phrase: "trainable weights"
    std::vector<std::string> lessons;     // worked examples with these numbers
};
const LevelText& level_text(int level);

// A condition on the value of a session's key.
struct StoryCheck {
    enum class Kind { is, is_not, least, most } kind = Kind::is;
    std::string key, value;
};
// A step of the walk through a level: what to read, the cells it is about, one thing to do, and what is seen
// then.
struct StoryStep {
    std::string title, text, instruction, sight;
    Session shown;                            // the level's own with the keys of the step
    std::array<uint32_t, 4> mark = {};        // first row, first column, last row, last column
    std::vector<StoryCheck> checks;           // all of them: it was done
    bool done(const Session& session) const;  // whatever else the reader has changed
};
// In their order: the walk through a level, or through a task, for which the level is where one comes back
// to. Empty where there is none, and where the library holds no stories: in the page's engine.
std::vector<StoryStep> story(int level, std::string_view task = {});

// A row of the table of keys.
struct SessionKey {
    std::string key, type, group, about;  // as docs/reference/sessions.md has them
    double low = 0, high = 0;             // for integers and numbers
    std::vector<std::string> choices;     // for choices
};
// In the order in which they are written.
std::span<const SessionKey> session_keys();

}  // namespace fovea
