#include "document/why.hpp"

#include "document/opened_model.hpp"

#include <algorithm>

namespace fovea::visualizer {

Result<ScoreWriters> writers_of(const std::shared_ptr<const OpenedModel>& model,
                                const std::shared_ptr<const PromptRun>& run, const SessionModel& source,
                                const LayerCell& cell) {
    Result<Trace> trace = Trace::open(source.model, source.input);
    if (!trace) return trace.error();
    if (run) {
        const std::unique_ptr<Runner> engine = make_model_runner();
        ModelRunOptions options;
        options.trace.engine = engine.get();
        options.changes = run->changes();
        return score_writers(model->weights, run->prompt().ids, *trace, cell, options);
    }
    const std::vector<std::string>& words = source.model->vocabulary;
    std::vector<uint32_t> ids;
    for (const Token& token : source.input.tokens)
        ids.push_back(uint32_t(std::find(words.begin(), words.end(), token.text) - words.begin()));
    return score_writers(*trace, ids, cell);
}

}  // namespace fovea::visualizer
