// How a file's tensors become queries, keys and values: the guess, to be corrected.
#include "document/imported_file.hpp"
#include "panels/panels.hpp"
#include "texts/texts.hpp"

#include <imgui_stdlib.h>

#include <algorithm>

namespace fovea::visualizer {
namespace {

struct Sheet {
    PanelContext& ui;
    Settings next;
    bool changed = false;
    float width = 300;

    ImportMapping& mapping() { return next.mapping; }

    void tensor(const char* label, std::string& name, bool optional) {
        ImGui::SetNextItemWidth(width * ui.scale);
        if (!ImGui::BeginCombo(label, name.empty() ? "none" : printable_name(name, 60).c_str())) return;
        if (optional && ImGui::Selectable("none", name.empty())) name.clear(), changed = true;
        for (const Tensor& t : next.file->set.tensors) {
            const std::string text = printable_name(t.name, 60) + "   " + std::string(dtype_name(t.type)) +
                                     " " + format_shape(t.shape);
            if (!ImGui::Selectable(text.c_str(), t.name == name)) continue;
            name = t.name;
            next.mapping.layer = layer_in(name).value_or(next.mapping.layer);
            changed = true;
        }
        ImGui::EndCombo();
    }
    void number(const char* label, uint32_t& value, int low, int high) {
        ImGui::SetNextItemWidth(width * ui.scale);
        int edited = int(value);
        if (!ImGui::InputInt(label, &edited)) return;
        value = uint32_t(std::clamp(edited, low, high));
        changed = true;
    }
};

void draw_layout(Sheet& sheet) {
    ImportMapping& m = sheet.mapping();
    int layout = int(m.layout);
    const char* const layouts[] = {texts().sheet.heads_first, texts().sheet.tokens_first};
    ImGui::SetNextItemWidth(sheet.width * sheet.ui.scale);
    if (ImGui::Combo(texts().sheet.layout, &layout, layouts, 2))
        m.layout = TensorLayout(layout), sheet.changed = true;
}

}  // namespace

void draw_import_sheet(PanelContext& ui) {
    Workbench& bench = ui.bench;
    if (!bench.document.settings().file) {
        bench.window.dialog = Dialog::none;
        return;
    }
    Sheet sheet{ui, bench.document.settings()};
    ImportMapping& m = sheet.mapping();
    const ImportedFile& file = *sheet.next.file;
    soft_text(
        fill(texts().sheet.file, {printable_name(file.path, 70), std::to_string(file.set.tensors.size()),
                                  std::to_string(file.tokens.size())}));
    const char* const kinds[] = {texts().sheet.kind_qkv, texts().sheet.kind_fused, texts().sheet.kind_gpt2,
                                 texts().sheet.kind_llama, texts().sheet.kind_tables};
    int kind = int(m.kind);
    ImGui::SetNextItemWidth(sheet.width * ui.scale);
    if (ImGui::Combo(texts().sheet.contents, &kind, kinds, int(std::size(kinds))))
        m.kind = ImportKind(kind), sheet.changed = true;
    if (m.kind == ImportKind::qkv) {
        sheet.tensor("queries", m.q, false);
        sheet.tensor("keys", m.k, false);
        sheet.tensor("values", m.v, true);
        draw_layout(sheet);
        sheet.number(texts().sheet.heads_of_rows, m.heads, 1, 1024);
    } else if (m.kind == ImportKind::fused) {
        sheet.tensor("tensor", m.fused, false);
        sheet.number("heads", m.heads, 1, 1024);
        ImGui::SetNextItemWidth(sheet.width * ui.scale);
        constexpr const char* kOrders[] = {"qkv", "kqv", "vqk", "qvk", "kvq", "vkq"};
        int order = int(std::find(std::begin(kOrders), std::end(kOrders), m.order) - std::begin(kOrders)) % 6;
        if (ImGui::Combo("order", &order, kOrders, 6)) m.order = kOrders[order], sheet.changed = true;
    } else if (m.kind != ImportKind::tables) {
        sheet.number("layer", m.layer, 0, int(std::max(file.layers, 1u)) - 1);
        soft_text(texts().sheet.applied);
    }
    if ((m.kind == ImportKind::qkv || m.kind == ImportKind::fused) && layers_of(sheet.next).size() > 1)
        sheet.number("layer", m.layer, 0, int(file.layers) - 1);
    if (m.kind == ImportKind::qkv || m.kind == ImportKind::fused)
        sheet.changed |= check_box(ui, texts().sheet.rotate, &m.rotate);
    if (m.kind != ImportKind::tables) sheet.changed |= check_box(ui, "causal", &sheet.next.causal);
    if (sheet.changed) bench.document.change(sheet.next);
    ImGui::Separator();
    if (!bench.computation.problem().empty()) {
        ImGui::PushStyleColor(ImGuiCol_Text, palette(bench.window.theme).warning);
        ImGui::PushTextWrapPos(ImGui::GetCursorPosX() + 560 * ui.scale);
        ImGui::TextUnformatted(bench.computation.problem().c_str());
        ImGui::PopTextWrapPos();
        ImGui::PopStyleColor();
    } else if (!bench.preparing().empty() || !bench.computation.ready()) {
        ImGui::TextDisabled("%s \xe2\x80\xa6", bench.preparing().c_str());
    } else if (bench.window.centre == CentreTab::map && bench.map) {
        const LongHead& head = bench.map.head()->head();
        ImGui::TextUnformatted(
            fill(texts().sheet.map_shape,
                 {std::to_string(head.heads), format_count(bench.map.head()->rows()),
                  format_count(bench.map.head()->tokens()), std::to_string(head.call.dim_qk)})
                .c_str());
    } else {
        const FoveaAttentionDesc& d = bench.computation.run().desc();
        ImGui::TextUnformatted(fill(texts().sheet.shape, {std::to_string(d.heads_q),
                                                          std::to_string(d.heads_kv), std::to_string(d.len_q),
                                                          std::to_string(d.len_kv), std::to_string(d.dim_qk)})
                                   .c_str());
        if (const Stage* masked = bench.computation.find_stage(StageId::masked))
            soft_text(fill(texts().sheet.masked, {masked->formula}));
    }
    if (ImGui::Button(texts().sheet.done) ||
        (ImGui::IsKeyPressed(ImGuiKey_Enter, false) && !ImGui::IsAnyItemActive()))
        bench.window.dialog = Dialog::none;
    ImGui::SameLine();
    if (ImGui::Button(texts().sheet.undo)) bench.document.undo();
}

}  // namespace fovea::visualizer
