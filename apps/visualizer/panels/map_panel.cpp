// A long head as a map: wheel zooms, drag pans, each tile sampled at once and exact soon after.
#include "panels/canvas.hpp"
#include "panels/keys.hpp"
#include "texts/texts.hpp"

#include <fovea/runtime.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fovea::visualizer {
namespace {

constexpr float kAxis = 96, kMapLegend = 74, kMax = 72;  // axes' room; pixels for a cell at most
constexpr float kMapDigitsFrom = 46;                     // a cell's pixels

struct MapFrame {
    ImVec2 at, size;
    double cells_a_pixel;  // in pixels of the layout
    double first_row, first_key;
};

MapFrame lay_out(PanelContext& ui, ImVec2 at, ImVec2 size) {
    const LongMap& map = *ui.bench.map.head();
    MapPlace& place = ui.bench.map.place;
    const double rows = double(map.rows()), keys = double(map.tokens());
    const double fit = std::max(rows / double(size.y), keys / double(size.x));
    place.cells_a_pixel =
        place.cells_a_pixel > 0 ? std::clamp(place.cells_a_pixel, 1.0 / double(kMax * ui.scale), fit) : 0;
    MapFrame f{at, size, place.cells_a_pixel > 0 ? place.cells_a_pixel : fit, 0, 0};
    const auto keep = [](double centre, double visible, double all) {
        return visible >= all ? (all - visible) / 2 : std::clamp(centre - visible / 2, 0.0, all - visible);
    };
    if (place.cells_a_pixel <= 0) place.row = rows / 2, place.key = keys / 2;
    f.first_row = keep(place.row, double(size.y) * f.cells_a_pixel, rows);
    f.first_key = keep(place.key, double(size.x) * f.cells_a_pixel, keys);
    place.row = f.first_row + double(size.y) * f.cells_a_pixel / 2;
    place.key = f.first_key + double(size.x) * f.cells_a_pixel / 2;
    return f;
}

bool mouse_over(const MapFrame& f) {
    const ImVec2 at = ImGui::GetIO().MousePos;
    return at.x >= f.at.x && at.y >= f.at.y && at.x < f.at.x + f.size.x && at.y < f.at.y + f.size.y;
}

void handle_mouse(PanelContext& ui, const MapFrame& f) {
    MapPlace& place = ui.bench.map.place;
    const LongMap& map = *ui.bench.map.head();
    const ImGuiIO& io = ImGui::GetIO();
    ImGui::SetCursorScreenPos(f.at);
    ImGui::InvisibleButton("map", f.size);
    const double key = f.first_key + double(io.MousePos.x - f.at.x) * f.cells_a_pixel,
                 row = f.first_row + double(io.MousePos.y - f.at.y) * f.cells_a_pixel;
    if (ImGui::IsItemHovered() && io.MouseWheel != 0) {
        place.cells_a_pixel = f.cells_a_pixel * std::pow(1.2, double(-io.MouseWheel));
        place.key = key - double(io.MousePos.x - f.at.x - f.size.x / 2) * place.cells_a_pixel;
        place.row = row - double(io.MousePos.y - f.at.y - f.size.y / 2) * place.cells_a_pixel;
        return;
    }
    if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 4)) {
        place.cells_a_pixel = f.cells_a_pixel;
        place.key -= double(io.MouseDelta.x) * f.cells_a_pixel;
        place.row -= double(io.MouseDelta.y) * f.cells_a_pixel;
        return;
    }
    const bool inside = key >= 0 && row >= 0 && key < double(map.tokens()) && row < double(map.rows());
    // A click picks: each pick is a row computed anew in float32.
    if (inside && ImGui::IsItemDeactivated() && io.MouseDragMaxDistanceSqr[0] < 16)
        pick_behind_pixel(ui.bench, row, key);
}

// Even weight has the same color at every level: a pixel of more keys holds more mass.
Coloring colors_of(uint32_t level, uint64_t keys, MapReducer reducer) {
    const double even = 2.0 / double(keys) * (reducer == MapReducer::mass ? std::exp2(double(level)) : 1);
    Coloring c;
    c.map = Colormap::magma;
    c.spread = Spread::logarithmic;
    c.low = even * 0.05;
    c.high = std::min(even * 2000, 1.0);
    if (c.high < c.low * 10) c.high = c.low * 10;
    return c;
}

// Sets the values from which the shader computes a tile's mass, as map_values() does.
void add_mass(MatrixView& v, const MapTiles& tiles, const MapTileId& id) {
    const uint64_t side = uint64_t{1} << id.level, first = uint64_t(id.y) * kMapTileSide * side;
    const uint64_t rows_left = tiles.extent().rows - std::min(first, tiles.extent().rows);
    v.flags |= MATRIX_FLAG_MASS;
    v.mass_unit = float(FOVEA_TILE_UNIT / (id.sampled ? 1.0 : double(side)));
    v.ragged_row = UINT32_MAX;
    v.mass_spread = id.sampled ? float(side) : 1;
    if (id.sampled || rows_left % side == 0 || rows_left / side >= kMapTileSide) return;
    v.ragged_row = uint32_t(rows_left / side);
    v.ragged_mass_unit = float(FOVEA_TILE_UNIT / double(rows_left % side));
}

void draw_piece(PanelContext& ui, const MapFrame& f, const MapPiece& piece) {
    Workbench& bench = ui.bench;
    const MapReducer reducer = bench.map.place.largest ? MapReducer::max : MapReducer::mass;
    const GpuBuffer* buffer = bench.map.buffers()->get(piece, reducer);
    if (!buffer) return;
    const ImGuiIO& io = ImGui::GetIO();
    const double sx = double(io.DisplayFramebufferScale.x), sy = double(io.DisplayFramebufferScale.y);
    const double x0 = double(f.at.x) + (piece.target.first_key - f.first_key) / f.cells_a_pixel,
                 y0 = double(f.at.y) + (piece.target.first_row - f.first_row) / f.cells_a_pixel,
                 width = piece.target.keys / f.cells_a_pixel, height = piece.target.rows / f.cells_a_pixel;
    const double left = std::max(x0, double(f.at.x)), top = std::max(y0, double(f.at.y));
    // A tile may reach past the last key and the last query: there is nothing to be seen.
    const LongMap& map = *bench.map.head();
    const double end_x = double(f.at.x) + (double(map.tokens()) - f.first_key) / f.cells_a_pixel,
                 end_y = double(f.at.y) + (double(map.rows()) - f.first_row) / f.cells_a_pixel;
    const double right = std::min({x0 + width, double(f.at.x + f.size.x), end_x}),
                 bottom = std::min({y0 + height, double(f.at.y + f.size.y), end_y});
    if (right <= left || bottom <= top) return;
    const double cell_x = width / piece.source_width, cell_y = height / piece.source_height;
    const Coloring coloring = colors_of(piece.id.level, bench.map.head()->tokens(), reducer);
    MatrixView v{};
    v.left = float(left * sx), v.top = float(top * sy);
    v.width = float((right - left) * sx), v.height = float((bottom - top) * sy);
    v.origin_x = float((x0 - piece.source_x * cell_x) * sx),
    v.origin_y = float((y0 - piece.source_y * cell_y) * sy);
    v.cell_width = float(cell_x * sx), v.cell_height = float(cell_y * sy);
    v.row_stride = v.columns = v.rows = kMapTileSide;
    v.range_low = float(coloring.low), v.range_high = float(coloring.high);
    v.flags = MATRIX_FLAG_LOG | MATRIX_FLAG_WHOLE;
    if (reducer == MapReducer::mass) add_mass(v, bench.map.head()->tiles(), piece.id);
    v.colormap = uint32_t(std::find(kColormaps.begin(), kColormaps.end(), coloring.map) - kColormaps.begin());
    v.picked_row = v.picked_column = -1;
    ui.matrices.add(*ImGui::GetWindowDrawList(), *buffer, v);
}

// Frames exact tiles. They are brighter than previews, which have one cell of each pixel, so an edge between
// them is not a feature of the head.
void draw_tile_frames(PanelContext& ui, const MapFrame& f) {
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.PushClipRect(f.at, {f.at.x + f.size.x, f.at.y + f.size.y}, true);
    for (const MapRect& r : exact_among_previews(ui.bench.map.head()->tiles())) {
        const ImVec2 low{f.at.x + float((r.first_key - f.first_key) / f.cells_a_pixel),
                         f.at.y + float((r.first_row - f.first_row) / f.cells_a_pixel)};
        const ImVec2 high{low.x + float(r.keys / f.cells_a_pixel), low.y + float(r.rows / f.cells_a_pixel)};
        draw.AddRect(low, high, ui.colors().accent, 0, 0, ui.scale);
    }
    draw.PopClipRect();
}

// A line below the reading: how much of what the view needs is there.
void draw_share(PanelContext& ui, ImVec2 at, float width) {
    const double share = map_share(*ui.bench.map.head());
    if (share >= 1) return;
    const Palette& colors = ui.colors();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float height = 3 * ui.scale;
    draw.AddRectFilled(at, {at.x + width, at.y + height}, colors.raised, height / 2);
    if (share > 0)
        draw.AddRectFilled(at, {at.x + width * float(share), at.y + height}, colors.warning, height / 2);
}

// Query i is at key i, and no key after it is visible.
bool is_causal(const LongMap& map) {
    const FoveaAttentionDesc& call = map.head().call;
    return (call.flags & FOVEA_FLAG_CAUSAL) && call.len_q == call.len_kv;
}

// A causally masked cell is not a weight of 0, so it does not get a color of the map. A pixel with several
// cells is colored if at least one of them is visible.
void draw_hidden(PanelContext& ui, const MapFrame& f) {
    const LongMap& map = *ui.bench.map.head();
    if (!is_causal(map)) return;
    const ImU32 ground = ui.colors().matrix_ground;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const auto place = [&f](double row, double key) {
        return ImVec2(f.at.x + float((key - f.first_key) / f.cells_a_pixel),
                      f.at.y + float((row - f.first_row) / f.cells_a_pixel));
    };
    const double end = double(map.tokens());
    draw.PushClipRect(f.at, {f.at.x + f.size.x, f.at.y + f.size.y}, true);
    if (f.cells_a_pixel < 0.5) {
        const double last = std::min(f.first_row + double(f.size.y) * f.cells_a_pixel, double(map.rows()));
        for (double row = std::max(0.0, std::floor(f.first_row)); row < last; ++row)
            draw.AddRectFilled(place(row, row + 1), place(row + 1, end), ground);
    } else {
        const double pixel = 2 * std::exp2(std::ceil(std::log2(f.cells_a_pixel)));
        draw.AddTriangleFilled(place(0, pixel), place(0, end), place(end - pixel, end), ground);
    }
    draw.PopClipRect();
}

// The weight of each cell that is large enough for digits; what the causal mask hides is hatched.
void draw_digits(PanelContext& ui, const MapFrame& f) {
    const float cell = float(1 / f.cells_a_pixel);
    if (cell < kMapDigitsFrom * ui.scale) return;
    Workbench& bench = ui.bench;
    MapTiles& tiles = bench.map.head()->tiles();
    const bool causal = is_causal(*bench.map.head());
    const Palette& colors = palette(bench.window.theme);
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    ImFont* font = ui.fonts.small;
    draw.PushClipRect(f.at, {f.at.x + f.size.x, f.at.y + f.size.y}, true);
    for (const MapPiece& piece : tiles.pieces()) {
        if (piece.id.level != 0 || !piece.pixels) continue;
        const std::vector<float> values = map_values(tiles, piece.id, *piece.pixels, MapReducer::mass);
        const Coloring coloring = colors_of(0, bench.map.head()->tokens(), MapReducer::mass);
        const ColorTable table = color_table(coloring.map);
        const MapRect cells = tiles.cells_of(piece.id), &seen = piece.target;
        const auto end_row = std::min(seen.first_row + seen.rows, double(bench.map.head()->rows())),
                   end_key = std::min(seen.first_key + seen.keys, double(bench.map.head()->tokens()));
        for (double row = std::floor(seen.first_row); row < end_row; ++row)
            for (double key = std::floor(seen.first_key); key < end_key; ++key) {
                const auto at = size_t((row - cells.first_row) * kMapTileSide + key - cells.first_key);
                if (at >= values.size()) continue;
                const ImVec2 low = {f.at.x + float((key - f.first_key) / f.cells_a_pixel),
                                    f.at.y + float((row - f.first_row) / f.cells_a_pixel)};
                if (causal && key > row) {
                    draw.AddLine({low.x, low.y + cell}, {low.x + cell, low.y}, colors.hatch, ui.scale);
                    continue;
                }
                const std::string text = format_value(values[at], 3);
                const Rgb ink = text_color_on(color_for(coloring, table, values[at]));
                const ImVec2 size = font->CalcTextSizeA(font->FontSize, 1e6f, 0, text.c_str());
                draw_text(font,
                          {std::floor(low.x + (cell - size.x) / 2), std::floor(low.y + (cell - size.y) / 2)},
                          IM_COL32(ink.r, ink.g, ink.b, 255), text);
            }
    }
    draw.PopClipRect();
}

void draw_axes(PanelContext& ui, const MapFrame& f) {
    const Palette& colors = ui.colors();
    const LongMap& map = *ui.bench.map.head();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    ImFont* font = ui.fonts.small;
    const double wanted = 96 * double(ui.scale) * f.cells_a_pixel;
    double step = std::pow(10, std::floor(std::log10(wanted)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0})
        if (step * factor >= wanted) {
            step *= factor;
            break;
        }
    step = std::max(step, 1.0);
    // Next to the matrix if it is smaller than its room.
    const float left = std::max(f.at.x, f.at.x - float(f.first_key / f.cells_a_pixel)),
                top = std::max(f.at.y, f.at.y - float(f.first_row / f.cells_a_pixel));
    for (double key = std::ceil(std::max(f.first_key, 0.0) / step) * step; key < double(map.tokens());
         key += step) {
        const float x = f.at.x + float((key + 0.5 - f.first_key) / f.cells_a_pixel);
        if (x > f.at.x + f.size.x) break;
        const std::string label = format_count(uint64_t(key));
        const float width = text_width(font, label);
        draw_text(font, {x - width / 2, top - font->FontSize - 8 * ui.scale}, colors.text_soft, label);
        draw.AddLine({x, top - 5 * ui.scale}, {x, top}, colors.mark);
    }
    for (double row = std::ceil(std::max(f.first_row, 0.0) / step) * step; row < double(map.rows());
         row += step) {
        const float y = f.at.y + float((row + 0.5 - f.first_row) / f.cells_a_pixel);
        if (y > f.at.y + f.size.y) break;
        const std::string label = format_count(uint64_t(row));
        const float width = text_width(font, label);
        draw_text(font, {left - width - 9 * ui.scale, y - font->FontSize / 2}, colors.text_soft, label);
        draw.AddLine({left - 5 * ui.scale, y}, {left, y}, colors.mark);
    }
    // Which side is which.
    const char* const sides = "query \xe2\x86\x93  key \xe2\x86\x92";
    const float width = text_width(font, sides);
    draw_text(font, {left - width - 9 * ui.scale, top - font->FontSize - 8 * ui.scale}, colors.text_soft,
              sides);
}

void draw_pick(PanelContext& ui, const MapFrame& f) {
    const MapPlace& place = ui.bench.map.place;
    const Palette& colors = ui.colors();
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.PushClipRect(f.at, {f.at.x + f.size.x, f.at.y + f.size.y}, true);
    const float side = std::max(float(1 / f.cells_a_pixel), 1.0f);
    // As far as the matrix goes, which may be smaller than its room.
    const LongMap& map = *ui.bench.map.head();
    const auto at_key = [&f](double key) { return f.at.x + float((key - f.first_key) / f.cells_a_pixel); };
    const auto at_row = [&f](double row) { return f.at.y + float((row - f.first_row) / f.cells_a_pixel); };
    const float x = at_key(double(place.picked_key)), y = at_row(double(place.picked_row));
    const ImU32 soft = (colors.accent & 0x00ffffff) | 0x70000000;
    // Through the middle of what is small; on both sides of cells that have digits.
    const bool beside = side >= kMapDigitsFrom * ui.scale;
    for (const float share : {beside ? 0.0f : 0.5f, beside ? 1.0f : 0.5f}) {
        const float across = y + share * side, down = x + share * side;
        draw.AddLine({at_key(0), across}, {at_key(double(map.tokens())), across}, soft, ui.scale);
        draw.AddLine({down, at_row(0)}, {down, at_row(double(map.rows()))}, soft, ui.scale);
        if (!beside) break;
    }
    const float gap = 3 * ui.scale;
    draw.AddRect({x - gap, y - gap}, {x + side + gap, y + side + gap}, colors.accent, 2 * ui.scale, 0,
                 2 * ui.scale);
    draw.PopClipRect();
}

// Chooses a head where the file has several.
void draw_head_combo(PanelContext& ui) {
    const LongHead& shown = ui.bench.map.head()->head();
    if (shown.heads < 2) return;
    ImGui::SameLine(0, 8 * ui.scale);
    ImGui::SetNextItemWidth(104 * ui.scale);
    if (!ImGui::BeginCombo("##head", fill(texts().map.head, {std::to_string(shown.head)}).c_str())) return;
    for (uint32_t i = 0; i < shown.heads; ++i)
        if (ImGui::Selectable(fill(texts().map.head, {std::to_string(i)}).c_str(), i == shown.head))
            ui.bench.map.show_head(i);
    ImGui::EndCombo();
}

void draw_map_controls(PanelContext& ui) {
    Workbench& bench = ui.bench;
    ImGui::SetNextItemWidth(150 * ui.scale);
    if (ImGui::BeginCombo("##long", bench.map ? bench.map.head()->name().c_str() : texts().map.choose)) {
        for (const LongContextPreset& preset : long_context_presets())
            if (ImGui::Selectable(std::string(preset.title).c_str(),
                                  bench.map && bench.map.head()->name() == preset.name))
                bench.map.want_preset(preset.name);
        ImGui::EndCombo();
    }
    if (!bench.map) return;
    draw_head_combo(ui);
    ImGui::SameLine(0, 8 * ui.scale);
    int reducer = bench.map.place.largest;
    const char* const reducers[] = {texts().map.mass, texts().map.largest};
    if (tabs(ui, reducers, reducer)) bench.map.place.largest = reducer == 1;
    ImGui::SameLine(0, 8 * ui.scale);
    if (ImGui::Button(texts().map.fit)) bench.map.place.cells_a_pixel = 0;
    constexpr float kRoomForJumps = 740;
    if (ImGui::GetWindowWidth() >= kRoomForJumps * ui.scale) {
        const auto jump = [&](const char* label, ImGuiKey key, const char* hint) {
            ImGui::SameLine(0, 6 * ui.scale);
            if (ImGui::Button(label)) run_key(bench, {key, shift});
            tooltip(hint);
        };
        jump(texts().map.digits, ImGuiKey_I, texts().map.digits_hint);
        jump(texts().map.peak, ImGuiKey_M, texts().map.peak_hint);
        jump(texts().map.next_peak, ImGuiKey_P, texts().map.next_peak_hint);
    }
    ImGui::SameLine(0, 16 * ui.scale);
    int place = bench.map.head()->on_device() ? 0 : 1;
    const char* const places[] = {texts().map.device, texts().map.cpu};
    if (tabs(ui, places, place))
        bench.map.compute_tiles_on(place == 0 ? TilesOn::device : TilesOn::processor);
    tooltip(fill(texts().map.tiles, {bench.map.head()->where()}));
}

// How true the picture is, and what the pixel under the mouse says; without a mouse, the pick's.
void draw_reading(PanelContext& ui, double row, double key) {
    Workbench& bench = ui.bench;
    const MapProgress progress = bench.map.head()->tiles().progress();
    const Palette& colors = palette(bench.window.theme);
    const bool exact = progress.quality == MapQuality::exact;
    const std::string quality =
        exact ? texts().map.exact
              : fill(texts().map.exact_tiles,
                     {progress.quality == MapQuality::empty ? texts().map.computing : texts().map.sampled,
                      std::to_string(progress.exact), std::to_string(progress.needed)}) +
                    (progress.exact ? " (framed)" : "") +
                    (bench.map.head()->waits() ? texts().map.compiling : "");
    ImGui::PushFont(ui.fonts.small);
    colored_text(exact ? colors.accent : colors.warning, quality);
    if (const std::string pixel = map_pixel_text(bench, row, key); !pixel.empty()) {
        ImGui::SameLine(0, 14 * ui.scale);
        soft_text(pixel);
    }
    ImGui::PopFont();
}

// Draws the legend of the colors of the view's own level.
void draw_legend(PanelContext& ui, const MapFrame& f) {
    Workbench& bench = ui.bench;
    // Next to the cells, which may be narrower than their room.
    const float end = f.at.x + float((double(bench.map.head()->tokens()) - f.first_key) / f.cells_a_pixel);
    const float s = ui.scale, x = std::min(f.at.x + f.size.x, end) + 14 * s, width = 12 * s;
    const float height = std::min(f.size.y, 320 * s), y = f.at.y + (f.size.y - height) / 2;
    const bool largest = bench.map.place.largest;
    const uint32_t level = bench.map.head()->tiles().progress().level;
    const Coloring c =
        colors_of(level, bench.map.head()->tokens(), largest ? MapReducer::max : MapReducer::mass);
    // The range is one for all maps of that length: a pixel may be beyond it.
    draw_color_bar(ui, c, {x, y, width, height}, 2, {.above = true});
    ImFont* small = ui.fonts.small;
    const char* what = largest ? texts().map.largest : texts().map.mass;
    draw_text(small, {x, y - small->FontSize - 6 * s}, palette(bench.window.theme).text_soft, what);
}

struct PixelFound {
    MapTileId id;
    size_t at = 0;   // in the tile's pixels
    MapBlock block;  // block of cells
    const MapPixels* pixels = nullptr;
};

// The drawn pixel that holds a place of the map, in cells.
std::optional<PixelFound> pixel_at(Workbench& bench, double row, double key) {
    MapTiles& tiles = bench.map.head()->tiles();
    const uint64_t rows = bench.map.head()->rows(), keys = bench.map.head()->tokens();
    std::optional<PixelFound> found;
    if (!(row >= 0 && key >= 0 && row < double(rows) && key < double(keys))) return found;
    for (const MapPiece& piece : tiles.pieces()) {
        const MapRect& r = piece.target;
        if (row < r.first_row || key < r.first_key || row >= r.first_row + r.rows ||
            key >= r.first_key + r.keys)
            continue;
        const MapRect cells = tiles.cells_of(piece.id);
        const double side = cells.keys / kMapTileSide;
        const auto x = uint64_t((key - cells.first_key) / side), y = uint64_t((row - cells.first_row) / side);
        if (x >= kMapTileSide || y >= kMapTileSide) continue;
        PixelFound p{piece.id, size_t(y * kMapTileSide + x), {}, piece.pixels};
        p.block.first_row = uint64_t(cells.first_row + double(y) * side);
        p.block.first_key = uint64_t(cells.first_key + double(x) * side);
        p.block.rows = std::min(uint64_t(side), rows - p.block.first_row);
        p.block.keys = std::min(uint64_t(side), keys - p.block.first_key);
        found = p;
    }
    return found;
}

}  // namespace

std::vector<MapRect> exact_among_previews(MapTiles& tiles) {
    std::vector<MapRect> exact;
    if (tiles.progress().quality == MapQuality::exact) return exact;
    for (const MapPiece& piece : tiles.pieces())
        if (piece.exact) exact.push_back(piece.target);
    return exact;
}

double map_share(LongMap& map) {
    const MapProgress progress = map.tiles().progress();
    if (progress.quality == MapQuality::exact) return 1;
    // A preview waits for the sums of the rows in the middle of its pixels.
    const double side = std::exp2(double(progress.level));
    const double previewed = std::ceil(std::min(map.tiles().view().rect.rows, double(map.rows())) / side);
    const double sums = std::min(map.rows_known() * double(map.rows()) / std::max(previewed, 1.0), 1.0);
    const double tiles = progress.needed ? double(progress.exact) / progress.needed : 0;
    return progress.quality == MapQuality::empty ? sums / 2 : (1 + tiles) / 2;
}

std::string map_pixel_text(Workbench& bench, double row, double key) {
    const std::optional<PixelFound> p = pixel_at(bench, row, key);
    if (!p || !p->pixels || p->at >= p->pixels->mass.size()) return {};
    const auto reducer = bench.map.place.largest ? MapReducer::max : MapReducer::mass;
    const std::vector<float> values = map_values(bench.map.head()->tiles(), p->id, *p->pixels, reducer);
    const std::string value = format_value(values[p->at], 4);
    if (p->block.rows == 1 && p->block.keys == 1)
        return fill(texts().map.cell,
                    {format_count(p->block.first_row), format_count(p->block.first_key), value});
    const auto range = [](uint64_t first, uint64_t count) {
        return fill(texts().map.range, {format_count(first), format_count(first + count - 1)});
    };
    return fill(bench.map.place.largest ? texts().map.block_largest : texts().map.block_mass,
                {range(p->block.first_row, p->block.rows), range(p->block.first_key, p->block.keys), value,
                 p->id.sampled ? texts().map.of_middle : texts().map.of_all});
}

void pick_behind_pixel(Workbench& bench, double row, double key) {
    MapPlace& place = bench.map.place;
    const std::optional<PixelFound> p = pixel_at(bench, row, key);
    if (p && !p->id.sampled && (p->block.rows > 1 || p->block.keys > 1)) {
        bench.map.pick_largest(p->block);
        return;
    }
    if (p && p->id.sampled) {
        row = double(p->block.first_row + p->block.rows / 2),
        key = double(p->block.first_key + p->block.keys / 2);
    }
    place.picked_row = uint64_t(row), place.picked_key = uint64_t(key);
}

void pick_on_map(Workbench& bench, uint64_t row, uint64_t key) {
    MapPlace& place = bench.map.place;
    place.picked_row = row, place.picked_key = key;
    const MapRect& seen = bench.map.head()->tiles().view().rect;
    const auto y = double(row), x = double(key);
    if (y < seen.first_row || y >= seen.first_row + seen.rows) place.row = y;
    if (x < seen.first_key || x >= seen.first_key + seen.keys) place.key = x;
}

void draw_map_panel(PanelContext& ui) {
    Workbench& bench = ui.bench;
    draw_map_controls(ui);
    if (bench.map.is_coming()) {
        soft_text(texts().map.coming);
        return;
    }
    if (!bench.map) {
        soft_paragraph(texts().map.empty);
        return;
    }
    if (!bench.map.head()->problem().empty()) ImGui::TextUnformatted(bench.map.head()->problem().c_str());
    if (!bench.map.head()->head().left_out.empty()) {
        colored_text(palette(bench.window.theme).warning, bench.map.head()->head().left_out);
    }
    const float s = ui.scale;
    const ImVec2 line = ImGui::GetCursorPos();
    ImGui::Dummy({0, ui.fonts.small->FontSize + 5 * s});
    const ImVec2 cursor = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
    draw_share(ui, {cursor.x, cursor.y - 5 * s}, room.x);
    const MapFrame f =
        lay_out(ui, {cursor.x + kAxis * s, cursor.y + 26 * s},
                {std::max(room.x - (kAxis + kMapLegend) * s, 64.0f), std::max(room.y - 30 * s, 64.0f)});
    handle_mouse(ui, f);
    const ImGuiIO& io = ImGui::GetIO();
    MapView view;
    view.rect = {f.first_row, f.first_key, double(f.size.y) * f.cells_a_pixel,
                 double(f.size.x) * f.cells_a_pixel};
    view.width = uint32_t(f.size.x * io.DisplayFramebufferScale.x);
    view.height = uint32_t(f.size.y * io.DisplayFramebufferScale.y);
    bench.map.head()->tiles().set_view(view);
    for (const MapPiece& piece : bench.map.head()->tiles().pieces()) draw_piece(ui, f, piece);
    draw_hidden(ui, f);
    draw_tile_frames(ui, f);
    draw_axes(ui, f);
    draw_digits(ui, f);
    draw_pick(ui, f);
    draw_legend(ui, f);
    const bool hovered = mouse_over(f) && ImGui::IsWindowHovered();
    ImGui::SetCursorPos(line);
    draw_reading(ui,
                 hovered ? f.first_row + double(io.MousePos.y - f.at.y) * f.cells_a_pixel
                         : double(bench.map.place.picked_row),
                 hovered ? f.first_key + double(io.MousePos.x - f.at.x) * f.cells_a_pixel
                         : double(bench.map.place.picked_key));
}

}  // namespace fovea::visualizer
