#include "describe.hpp"

#include "panels/panels.hpp"

namespace fovea::visualizer {

std::string describe(Session& session) {
    const Stage& stage = session.stage();
    std::string text = "level " + std::to_string(session.settings().level) + ", " +
                       std::string(level_name(session.settings().level)) + "; " +
                       std::to_string(session.tokens().size()) + " tokens:";
    for (const std::string& token : session.tokens()) text += " " + token;
    text += "\n" + stage.name + " = " + stage.formula + ", " + std::to_string(stage.heads) + " heads of " +
            std::to_string(stage.rows) + " x " + std::to_string(stage.columns) + "\n";
    if (!session.complete()) return text + "computing\n";
    const std::span<const float> values = stage.head_values(session.view.head);
    text += print_tensor(F32Tensor({stage.rows, stage.columns}, {values.begin(), values.end()})) + "\n";
    if (!session.derivation()) return text;
    DerivationStyle style;
    const std::string query = token_label(session, uint64_t(session.view.picked_row)),
                      key = token_label(session, uint64_t(session.view.picked_column));
    style.query_token = query;
    style.key_token = key;
    return text + derivation_text(*session.derivation(), style) + "\n";
}

}  // namespace fovea::visualizer
