#include "document/cell_inputs.hpp"

#include <algorithm>
#include <initializer_list>

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

}  // namespace fovea::visualizer
