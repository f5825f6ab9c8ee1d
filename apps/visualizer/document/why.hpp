// Why a model's head gives a cell its score: what wrote to the query's and to the key's row of the stream.
#pragma once

#include "document/projected.hpp"

#include <fovea/inspect/writers.hpp>

namespace fovea::visualizer {

// Splits a score of what is shown: of the settings' model in the run, or of the source's where there is no
// run. The cell's layer has the reader's rules. Safe from any thread: it makes its own traces.
Result<ScoreWriters> writers_of(const std::shared_ptr<const OpenedModel>& model,
                                const std::shared_ptr<const PromptRun>& run, const SessionModel& source,
                                const LayerCell& cell);

}  // namespace fovea::visualizer
