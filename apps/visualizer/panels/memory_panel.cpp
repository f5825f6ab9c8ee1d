// Lists the owners of the device's memory.
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <algorithm>

namespace fovea::visualizer {

void draw_memory_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    const AttentionRun& run = bench.computation.run();
    struct Row {
        const char* what;
        uint64_t size_bytes;
    };
    uint64_t host = 0;
    for (const Stage& stage : bench.computation.stages())
        host += stage.over_keys || stage.id == StageId::context ? 0 : stage.buffer->size_bytes();
    uint64_t locked = 0;
    for (const LockedMatrix& one : bench.past.locked()) locked += one.result->size_bytes();
    const Row rows[] = {
        {texts().memory.inputs, run.input_bytes()},
        {texts().memory.outputs, run.output_bytes()},
        {texts().memory.workspace, run.workspace_bytes()},
        {texts().memory.display, host},
        {texts().memory.saved, bench.past.kept() ? bench.past.kept()->result->size_bytes() : 0},
        {texts().memory.locked, locked},
        {texts().memory.grid, bench.computation.grid_bytes()},
        {texts().memory.tiles, bench.map.buffers() ? bench.map.buffers()->size_bytes() : 0}};
    uint64_t total = 0;
    for (const Row& row : rows) total += row.size_bytes;
    const Palette& colors = palette(bench.window.theme);
    for (const Row& row : rows) {
        if (row.size_bytes == 0 && &row >= &rows[4]) continue;
        const ImVec2 at = ImGui::GetCursorScreenPos();
        const float height = ImGui::GetTextLineHeight(), label = 230 * ui.scale;
        // The bar gets the width that the number leaves.
        const float number = ImGui::CalcTextSize("1023 MiB").x + 24 * ui.scale;
        const float room =
            std::clamp(ImGui::GetContentRegionMax().x - label - number, 40 * ui.scale, 260 * ui.scale);
        ImGui::TextUnformatted(row.what);
        ImDrawList& draw = *ImGui::GetWindowDrawList();
        draw.AddRectFilled({at.x + label, at.y + 2 * ui.scale},
                           {at.x + label + room, at.y + height - 2 * ui.scale}, colors.raised, 2 * ui.scale);
        draw.AddRectFilled(
            {at.x + label, at.y + 2 * ui.scale},
            {at.x + label +
                 std::max(room * float(double(row.size_bytes) / double(std::max<uint64_t>(total, 1))), 1.0f),
             at.y + height - 2 * ui.scale},
            colors.accent, 2 * ui.scale);
        ImGui::SameLine(label + room + 24 * ui.scale);
        ImGui::TextUnformatted(format_bytes(row.size_bytes).c_str());
    }
    const DeviceMemory memory = bench.computation.device().memory();
    soft_text(fill(texts().memory.total, {format_bytes(total), format_bytes(memory.used_bytes),
                                          format_bytes(memory.budget_bytes)}));
}

}  // namespace fovea::visualizer
