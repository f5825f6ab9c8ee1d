// The worked examples of five attention tutorials: 44 lessons, every number that the tutorials print (133
// tables, their repetitions counted) and every value in between, computed from seeds and inputs on any
// backend.
//
//   auto lesson = fovea::find_lesson("t1-08-causal-weights");
//   auto run = fovea::run_lesson(*lesson);
//   for (const auto& stage : run->stages) puts(stage.printed.c_str());
#pragma once

#include <fovea/inspect/format.hpp>
#include <fovea/model/trace.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

// A table as the tutorial prints it.
struct PrintedTable {
    std::string label;   // the label that the tutorial prints
    std::string tensor;  // the stage that it shows
    uint32_t times = 1;
    Notation notation = Notation::fixed;
    std::string note;                   // an oddity of the text, or empty
    std::vector<std::string> elements;  // row-major, digit for digit
};

// One call of the generator, in the order of `Lesson::draws`.
struct Draw {
    enum class Kind { manual_seed, rand, randn, linear_weight, linear_bias, dropout, skip };
    Kind kind = Kind::skip;
    std::string tensor;  // the tensor that receives the values; empty for manual_seed, dropout and skip
    Shape shape;         // the shape of the tensor or of the dropout mask
    uint64_t value = 0;  // the seed, the words to skip, or a bias's fan_in
    double drop_probability = 0.0;
};

struct LessonConfig {  // The options of the recipe.
    ScoreScale scale;
    std::string scale_rule;  // "sqrt(d_out)"
    bool masks_first = false;
    WeightLayout weight_layout = WeightLayout::out_in;
    uint64_t batch = 0;  // copies of the given inputs; 0: they are used as they are, without a batch
    uint64_t heads = 1, query = 0, points = 0, context_length = 0;
    double dropout_p = 0.0;
    std::string printed_variant;  // for dropout masks: "native" or "mkl", the generator of the tutorial's
                                  // machine
    std::string normalise;        // for context_of_one: "sum" or "softmax"
    std::string result;           // a name that the tutorial gives the contexts; empty: "context"
    bool shows_zeros = false;     // the tutorial prints its empty result vector
};

struct Lesson {            // a worked example of a tutorial
    std::string name;      // "t1-08-causal-weights"
    std::string title;     // one line
    std::string tutorial;  // the tutorial's own title
    // 1 without weights, 2 trainable, 3 causal, 4 dropout, 5 stacked heads, 6 split, 7 GPT.
    uint32_t level = 1;
    std::string about;
    std::vector<std::string> notes;   // oddities of the text
    std::vector<std::string> tokens;  // empty where the input is random
    std::string recipe;
    LessonConfig config;
    std::vector<Draw> draws;
    std::vector<std::pair<std::string, F32Tensor>> given;
    std::vector<PrintedTable> tables;
};

struct LessonStage {      // one result on the way
    std::string name;     // "scores", "head0.weights"
    std::string formula;  // "scores = queries keys^T"
    F32Tensor tensor;
    bool boolean = false;
    std::string printed;                // "tensor([[0.9995, ...]])", as PyTorch prints it
    std::vector<size_t> table_indices;  // the lesson's tables that show this stage
};

struct LessonRun {        // a lesson computed
    std::string backend;  // "strict", or the runner's name
    std::vector<LessonStage> stages;

    const LessonStage* find(std::string_view name) const;
};

// All 44, by name. Parsed from data within the library at each call.
std::vector<Lesson> list_lessons();
// Finds a lesson by full name, by short name ("t1-08") or by level ("3" gives the lesson of that level). The
// error lists similar names.
Result<Lesson> find_lesson(std::string_view name_or_level);

// Computes every stage from seeds and inputs: in strict float32, or attention and projections by `engine`
// where there is one (borrowed for the call); random numbers, masks and plain divisions are strict always.
Result<LessonRun> run_lesson(const Lesson& lesson, Runner* engine = nullptr);

// True if the stage prints digit for digit as in the tutorial.
bool prints_as(const PrintedTable& table, const F32Tensor& tensor);

// The values that PyTorch 1.13.1 gives for the lesson on its plain path, by stage.
std::vector<std::pair<std::string, F32Tensor>> recorded_tensors(const Lesson& lesson);

// How far the run is from the tutorial and from the recorded tensors.
struct LessonCheck {
    uint32_t tables = 0, tables_exact = 0;     // repetitions in the text counted
    uint32_t tables_within_unit = 0;           // tables that differ by at most one unit of the last printed
                                               // digit
    uint32_t tensors = 0, tensors_within = 0;  // |a - b| <= 2e-6 * max(1, |b|), -inf equal
    double largest_difference = 0.0;           // |a - b| / max(1, |b|) over all tensors
    // One line each, for tables that are not exact and tensors that are not within.
    std::vector<std::string> failures;

    void add(const LessonCheck& other);
};
LessonCheck check_lesson(const Lesson& lesson, const LessonRun& run);  // against the text

// The largest |a - b| over the stages of two runs of one lesson, and where; infinite where only one is -inf.
struct RunDifference {
    double largest = 0.0;
    std::string stage;
};
RunDifference compare_runs(const LessonRun& a, const LessonRun& b);

}  // namespace fovea
