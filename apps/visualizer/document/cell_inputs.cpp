#include "document/cell_inputs.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>

namespace fovea::visualizer {
namespace {

// Collects cells of the stages that the result has; a stage that it lacks adds nothing.
struct Inputs {
    const AttentionResult& of;
    std::vector<CellInput> all;

    const Stage* first(std::initializer_list<StageId> ids) const {
        for (const StageId id : ids)
            if (const Stage* const found = of.find_stage(id)) return found;
        return nullptr;
    }
    void rect(const Stage* stage, uint64_t head, CellRect cells) {
        if (stage && head < stage->heads && cells.within(stage->rows, stage->columns))
            all.push_back({stage, uint32_t(head), cells});
    }
    void row(const Stage* stage, uint64_t head, uint64_t row) {
        if (stage) rect(stage, head, {int(row), int(row), 0, int(stage->columns) - 1});
    }
    void column(const Stage* stage, uint64_t head, uint64_t column) {
        if (stage) rect(stage, head, {0, int(stage->rows) - 1, int(column), int(column)});
    }
    void cell(const Stage* stage, uint64_t head, uint64_t row, uint64_t column) {
        if (stage) rect(stage, head, {int(row), int(row), int(column), int(column)});
    }
    // Adds the cells of a layer's matrix for one of its outputs.
    void output(StageId id, const Linear& layer, uint64_t output) {
        const Stage* const matrix = of.find_stage(id);
        layer.layout == WeightLayout::out_in ? row(matrix, 0, output) : column(matrix, 0, output);
    }
};

// The row of scores that a softmax reads: the last of those that there are.
const Stage* scores_of(const Inputs& in) {
    return in.first({StageId::masked, StageId::capped, StageId::scaled, StageId::scores});
}

// A matrix of queries and keys.
void of_pairs(Inputs& in, const Stage& stage, uint32_t head, uint64_t row, uint64_t column) {
    const std::optional<StageId> id = stage.id;
    constexpr StageId kScores[] = {StageId::scores, StageId::scaled, StageId::capped, StageId::masked};
    if (const auto at = std::find(std::begin(kScores), std::end(kScores), id); at != std::end(kScores)) {
        for (auto before = at; before != std::begin(kScores);)
            if (const Stage* const from = in.of.find_stage(*--before))
                return in.cell(from, head, row, column);
        const Stage* const q = in.first({StageId::queries, StageId::inputs});
        const Stage* const k = in.first({StageId::keys, StageId::inputs});
        if (!q || !k) return;
        in.row(q, shared_head(*q, head, stage.heads), row);
        in.row(k, shared_head(*k, head, stage.heads), column);
    } else if (id == StageId::weights_all ||
               (id == StageId::weights && !in.of.find_stage(StageId::masked_weights))) {
        in.row(scores_of(in), head, row);
    } else if (id == StageId::weights) {
        in.cell(in.of.find_stage(StageId::masked_weights), head, row, column);
        in.cell(in.of.find_stage(StageId::row_sums), head, row, 0);
    } else if (id == StageId::masked_weights) {
        in.cell(in.of.find_stage(StageId::weights_all), head, row, column);
    } else if (id == StageId::dropped) {
        in.cell(in.of.find_stage(StageId::weights), head, row, column);
        in.cell(in.of.find_stage(StageId::keep), head, row, column);
    }
}

// Adds the inputs between attention's output and the model's predictions. The order of the parts is that of
// finish_block() in lens/model/block_run.cpp; whole rows are added if a norm reads all of them.
void of_block(Inputs& in, StageId id, uint64_t row, uint64_t column) {
    const Block& b = in.of.projected.block();
    const bool post = b.order == BlockOrder::post;
    const auto added = [&](const Stage* x, const Stage* part, const Norm& behind) {
        in.rect(x, 0,
                CellRect{int(row), int(row), post ? 0 : int(column),
                         post && x ? int(x->columns) - 1 : int(column)});
        post || behind.kind != NormKind::none ? in.row(part, 0, row) : in.cell(part, 0, row, column);
    };
    const Stage* const x = in.of.find_stage(StageId::inputs);
    const Stage* const sum = in.first({StageId::attended, StageId::output});
    const Stage* const read = b.order == BlockOrder::parallel ? x : sum;
    const Stage* const last =
        in.first({StageId::block, StageId::ff_output, StageId::attended, StageId::output});
    if (id == StageId::normed) in.row(x, 0, row);
    if (id == StageId::attended) added(x, in.of.find_stage(StageId::output), b.attention_output_norm);
    if (id == StageId::ff_normed) in.row(read, 0, row);
    if (id == StageId::ff_hidden)
        in.row(in.of.find_stage(StageId::ff_normed) ? in.of.find_stage(StageId::ff_normed) : read, 0, row);
    if (id == StageId::ff_output) in.row(in.of.find_stage(StageId::ff_hidden), 0, row);
    if (id == StageId::block) added(sum, in.of.find_stage(StageId::ff_output), b.feed_forward_output_norm);
    if (id == StageId::final) in.row(last, 0, row);
    if (id == StageId::logits)
        in.row(in.of.find_stage(StageId::final) ? in.of.find_stage(StageId::final) : last, 0, row);
    if (id == StageId::probabilities) in.row(in.of.find_stage(StageId::logits), 0, row);
}

}  // namespace

uint32_t shared_head(const Stage& stage, uint64_t head, uint64_t heads) {
    return uint32_t(stage.heads >= heads ? head : head / (heads / stage.heads));
}

std::vector<CellInput> cell_inputs(const AttentionResult& of, const Stage& stage, uint32_t head, uint64_t row,
                                   uint64_t column) {
    Inputs in{of, {}};
    const std::optional<StageId> id = stage.id;
    if (row >= stage.rows || column >= stage.columns) return {};
    if (stage.of_heads) {
        constexpr uint64_t kMaxLit = 4;  // thumbnails of heads next to the value
        const Stage* const weights = of.find_stage(StageId::weights);
        for (uint32_t n = 0; n < std::min(weights->heads, kMaxLit); ++n) in.cell(weights, n, row, column);
        return in.all;
    }
    if (stage.over_keys) {
        of_pairs(in, stage, head, row, column);
    } else if (id == StageId::row_sums) {
        in.row(of.find_stage(StageId::masked_weights), head, row);
    } else if (id == StageId::lse) {
        in.row(scores_of(in), head, row);
    } else if (id == StageId::context) {
        const Stage* const weights = in.first({StageId::dropped, StageId::weights});
        const Stage* const values = in.first({StageId::values, StageId::inputs});
        if (!weights || !values) return {};
        const uint64_t of_head = column / values->columns;
        in.row(weights, of_head, row);
        in.column(values, shared_head(*values, of_head, weights->heads), column % values->columns);
    } else if (of.projected.source) {  // a file's queries, keys and values are as they are
        const AttentionPart& part = of.projected.block().attention;
        const uint64_t output = uint64_t(head) * stage.columns + column;
        const Stage* const x = in.first({StageId::normed, StageId::inputs});
        if (id == StageId::queries) in.row(x, 0, row), in.output(StageId::w_query, part.query, output);
        if (id == StageId::keys) in.row(x, 0, row), in.output(StageId::w_key, part.key, output);
        if (id == StageId::values) in.row(x, 0, row), in.output(StageId::w_value, part.value, output);
        if (id == StageId::output)
            in.row(of.find_stage(StageId::context), 0, row),
                in.output(StageId::w_output, part.output, column);
        if (id) of_block(in, *id, row, column);
    }
    return in.all;
}

std::string input_text(const CellInput& input) {
    const CellRect& c = input.cells;
    const std::string of_head =
        input.stage->heads > 1 ? ", head " + std::to_string(input.head) : std::string();
    const bool row = c.rows() == 1, column = c.columns() == 1;
    if (row && column)
        return input.stage->name + "[" + std::to_string(c.row_begin) + ", " + std::to_string(c.column_begin) +
               "]" + of_head;
    return (row ? "row " + std::to_string(c.row_begin) : "column " + std::to_string(c.column_begin)) +
           " of " + input.stage->name + of_head;
}

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
