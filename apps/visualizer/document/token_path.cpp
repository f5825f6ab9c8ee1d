#include "document/token_path.hpp"

#include "document/cell_inputs.hpp"

#include <algorithm>
#include <optional>
#include <span>

namespace fovea::visualizer {
namespace {

// A column of stages. With `first_of` it has one matrix: the first stage that the layer has.
struct Column {
    std::vector<StageId> stages;
    bool first_of = false;
};

std::span<const Column> columns() {
    static const std::vector<Column> kAll = {{{StageId::inputs, StageId::normed}, true},
                                             {{StageId::queries, StageId::keys, StageId::values}},
                                             {{StageId::scores}},
                                             {{StageId::masked, StageId::capped, StageId::scaled}, true},
                                             {{StageId::dropped, StageId::weights}, true},
                                             {{StageId::context}},
                                             {{StageId::output}},
                                             {{StageId::probabilities}}};
    return kAll;
}

// The tokens that the picked cell is about.
struct About {
    std::optional<uint64_t> asks, answers;
};

About about(const Stage& picked, uint64_t row, uint64_t column) {
    if (picked.over_keys) return {row, column};
    if (!picked.row_tokens) return {};
    if (picked.id == StageId::keys || picked.id == StageId::values) return {{}, row};
    return {row, {}};
}

CellRect row_of(const Stage& stage, uint64_t row) { return {int(row), int(row), 0, int(stage.columns) - 1}; }

// A context's columns are its heads', side by side.
CellRect of_head(const Stage& context, uint64_t row, uint32_t head, uint64_t heads) {
    const uint64_t width = context.columns / heads;
    return {int(row), int(row), int(head * width), int((head + 1) * width) - 1};
}

std::vector<CellRect> cells_of(const Stage& stage, const About& tokens, uint32_t head, uint64_t heads) {
    std::vector<CellRect> all;
    const auto add = [&](CellRect cells) {
        if (cells.within(stage.rows, stage.columns)) all.push_back(cells);
    };
    const auto& [asks, answers] = tokens;
    if (stage.over_keys) {
        if (asks && answers)
            add({int(*asks), int(*asks), int(*answers), int(*answers)});
        else if (asks)
            add(row_of(stage, *asks));
        else if (answers)
            add({0, int(stage.rows) - 1, int(*answers), int(*answers)});
        return all;
    }
    const bool of_both = stage.id == StageId::inputs || stage.id == StageId::normed;
    const bool of_answer = stage.id == StageId::keys || stage.id == StageId::values;
    if (asks && !of_answer)
        add(stage.id == StageId::context ? of_head(stage, *asks, head, heads) : row_of(stage, *asks));
    if (answers && (of_answer || (of_both && answers != asks))) add(row_of(stage, *answers));
    return all;
}

}  // namespace

std::vector<PathMatrix> token_path(const AttentionResult& of, const Stage& picked, uint32_t head,
                                   uint64_t row, uint64_t column) {
    const About tokens = about(picked, row, column);
    const Stage *const weights = of.find_stage(StageId::weights), *const values_of =
                                                                      of.find_stage(StageId::values);
    const uint64_t heads = weights ? weights->heads : 1;
    // A number of the context is of one head, and of one column of its values.
    const bool of_context = picked.id == StageId::context;
    if (of_context) head = uint32_t(column / (picked.columns / heads));
    std::vector<PathMatrix> path;
    size_t at = 0;
    for (const Column& one : columns()) {
        const size_t before = path.size();
        for (const StageId id : one.stages) {
            const Stage* const stage = of.find_stage(id);
            if (!stage || (one.first_of && path.size() > before)) continue;
            PathMatrix matrix{stage, std::min(shared_head(*stage, head, heads), uint32_t(stage->heads) - 1),
                              at};
            // The picked cell itself, if it is not a pair's.
            if (stage == &picked && !stage->over_keys)
                matrix.cells = {{int(row), int(row), int(column), int(column)}};
            else if (of_context && stage == values_of)
                matrix.cells = {
                    {0, int(stage->rows) - 1, int(column % stage->columns), int(column % stage->columns)}};
            else
                matrix.cells = cells_of(*stage, tokens, head, heads);
            path.push_back(std::move(matrix));
        }
        if (path.size() > before) ++at;
    }
    // Computes each matrix from the column before. Exceptions are scores, computed from queries and keys, and
    // the context, which also needs values.
    const auto place = [&](StageId id) {
        return size_t(
            std::find_if(path.begin(), path.end(), [&](const PathMatrix& m) { return m.stage->id == id; }) -
            path.begin());
    };
    const size_t none = path.size(), values = place(StageId::values);
    for (size_t i = 0; i < path.size(); ++i) {
        const std::optional<StageId> id = path[i].stage->id;
        for (size_t j = 0; j < i; ++j)
            if (path[j].column + 1 == path[i].column && !(j == values && id != StageId::context))
                path[i].from.push_back(j);
        if (id == StageId::context && std::count(path[i].from.begin(), path[i].from.end(), values) == 0)
            path[i].from.push_back(values != none ? values : 0);
    }
    return path;
}

std::string path_text(const std::vector<PathMatrix>& path) {
    std::string text;
    for (const PathMatrix& matrix : path)
        for (const CellRect& cells : matrix.cells)
            text += (text.empty() ? "" : "; ") + input_text({matrix.stage, matrix.head, cells});
    return text;
}

}  // namespace fovea::visualizer
