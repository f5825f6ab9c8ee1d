// The shown page: a session, its model and its trace, and the cells that a reader asks about.
#pragma once

#include <fovea/inspect.hpp>
#include <fovea/inspect/writers.hpp>
#include <fovea/model/learned.hpp>
#include <fovea/model/next_tokens.hpp>
#include <fovea/model/trace.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::web {

// The keys of a session that the page has no control for.
SessionReader page_reader();

struct PageStage {
    TraceStage about;
    F32Tensor values;  // [rows, columns], or [heads, rows, columns] where heads have one each
};

class Page {
  public:
    // `address` is a session that read_address reads; `tensors`, unless null, replace its text. Weights drawn
    // for `previous`, unless null, are reused. `runner` is borrowed. A session with a task shows `learned`.
    static Result<Page> open(std::string_view address, std::shared_ptr<const SessionTensors> tensors,
                             std::shared_ptr<const LearnedModel> learned, Runner& runner,
                             const Page* previous);

    const Session& session() const { return model_.session; }
    const std::vector<Token>& tokens() const { return model_.input.tokens; }
    const std::vector<SessionNote>& notes() const {
        return notes_;
    }  // the requests that were changed or not followed
    const Trace& trace() const { return trace_; }
    const LearnedModel* learned() const { return model_.learned.get(); }  // for a session with a task
    // Over all layers: heads are counted layer by layer.
    uint32_t heads() const { return trace_.layers() * trace_.heads(); }
    // The layer whose stages are shown: that of the session's head.
    uint32_t layer() const { return std::min(session().head, heads() - 1) / trace_.heads(); }
    // Returns the model's predictions after each token, the most likely ones of its vocabulary first. Empty
    // without an unembedding.
    Result<std::vector<std::vector<NextToken>>> said();

    // The stages that all heads of the layer share, or that show one head: computed now, and of one head
    // only.
    Result<std::vector<PageStage>> shared_stages();
    Result<std::vector<PageStage>> head_stages(uint32_t head);
    // The weights of one head as they multiply the values.
    Result<F32Tensor> final_weights(uint32_t head);
    // Returns every step of one weight. If the mask comes after the softmax, these are the steps of the
    // equivalent other route.
    Result<Derivation> derive(const Cell& cell);
    // Splits a score of a model that learned by what earlier parts wrote.
    Result<ScoreWriters> why(const Cell& cell);

  private:
    Page(SessionModel model, Trace trace) : model_(std::move(model)), trace_(std::move(trace)) {}

    SessionModel model_;
    Trace trace_;
    std::vector<SessionNote> notes_;
    std::optional<PreparedAttention> prepared_;
    uint32_t prepared_layer_ = 0;
};

}  // namespace fovea::web
