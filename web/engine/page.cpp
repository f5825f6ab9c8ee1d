#include "page.hpp"

#include <algorithm>
#include <utility>

namespace fovea::web {
namespace {

// How many of the tokens that may come next a reader sees.
constexpr size_t kMaxSaid = 5;

// Matrices of queries and keys, and what belongs to one of them.
bool shows_one_head(const TraceStage& stage) {
    return stage_text(stage.id).pairs || stage.id == StageId::row_sums;
}

}  // namespace

SessionReader page_reader() {
    static const std::vector<std::string_view> kUnseen = [] {
        std::vector<std::string_view> keys;
        for (const SessionKey& key : session_keys())
            if (key.group == "desktop") keys.push_back(key.key);
        return keys;
    }();
    return {"this page", kUnseen};
}

Result<Page> Page::open(std::string_view address, std::shared_ptr<const SessionTensors> tensors,
                        std::shared_ptr<const LearnedModel> learned, Runner& runner, const Page* previous) {
    Result<ReadSession> read = read_address(address, page_reader());
    if (!read) return read.error();
    read->session.tensors = std::move(tensors);
    Result<SessionModel> model =
        session_model(read->session, previous ? &previous->model_ : nullptr, std::move(learned));
    if (!model) return model.error();
    TraceOptions options;
    options.engine = &runner;
    Result<Trace> trace = Trace::open(model->model, model->input, options);
    if (!trace) return trace.error();
    Page page(std::move(*model), std::move(*trace));
    page.notes_ = std::move(read->notes);
    page.notes_.insert(page.notes_.end(), page.model_.notes.begin(), page.model_.notes.end());
    return page;
}

Result<std::vector<PageStage>> Page::shared_stages() {
    std::vector<PageStage> all;
    for (TraceStage& stage : trace_.stages(layer())) {
        if (shows_one_head(stage)) continue;
        Result<F32Tensor> values = trace_.whole_stage(stage.id, layer());
        if (!values) return values.error();
        all.push_back({std::move(stage), std::move(*values)});
    }
    return all;
}

Result<std::vector<PageStage>> Page::head_stages(uint32_t head) {
    std::vector<PageStage> all;
    const uint32_t of = head / trace_.heads();
    for (TraceStage& stage : trace_.stages(of)) {
        if (!shows_one_head(stage)) continue;
        Result<F32Tensor> values = trace_.stage(stage.id, head % trace_.heads(), of);
        if (!values) return values.error();
        all.push_back({std::move(stage), std::move(*values)});
    }
    return all;
}

Result<F32Tensor> Page::final_weights(uint32_t head) {
    return trace_.stage(session().dropout_p > 0 ? StageId::dropped : StageId::weights, head % trace_.heads(),
                        head / trace_.heads());
}

Result<std::vector<std::vector<NextToken>>> Page::said() {
    std::vector<std::vector<NextToken>> all;
    if (!is_present(trace_.model().unembedding)) return all;
    const Result<F32Tensor> logits = trace_.stage(StageId::logits, 0, trace_.layers() - 1);
    if (!logits) return logits.error();
    for (uint64_t row = 0; row < logits->rows(); ++row) {
        Result<std::vector<NextToken>> next = next_tokens(logits->row(row), kMaxSaid);
        if (!next) return next.error();
        all.push_back(std::move(*next));
    }
    return all;
}

Result<ScoreWriters> Page::why(const Cell& cell) {
    const std::vector<std::string>& words = trace_.model().vocabulary;
    std::vector<uint32_t> ids;
    for (const Token& token : tokens())
        ids.push_back(uint32_t(std::find(words.begin(), words.end(), token.text) - words.begin()));
    return score_writers(trace_, ids,
                         {cell.head / trace_.heads(), cell.head % trace_.heads(), cell.query, cell.key});
}

Result<Derivation> Page::derive(const Cell& cell) {
    const uint32_t layer = cell.head / trace_.heads();
    if (!prepared_ || prepared_layer_ != layer) {
        prepared_layer_ = layer;
        if (session().route == MaskRoute::before) {
            Result<PreparedAttention> made = trace_.prepare(layer);
            if (!made) return made.error();
            prepared_ = std::move(*made);
        } else {
            auto model = std::make_shared<Model>(trace_.model());
            for (Block& block : model->blocks) block.attention.rules.route = MaskRoute::before;
            Result<Trace> other = Trace::open(std::move(model), trace_.input());
            if (!other) return other.error();
            Result<PreparedAttention> made = other->prepare(layer);
            if (!made) return made.error();
            prepared_ = std::move(*made);
        }
    }
    Cell within = cell;
    within.head = cell.head % trace_.heads();
    return derive_cell(prepared_->call, prepared_->bindings().data(), within);
}

}  // namespace fovea::web
