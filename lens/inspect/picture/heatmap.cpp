#include <fovea/files.hpp>
#include <fovea/inspect/format.hpp>
#include <fovea/inspect/heatmap.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "inspect/picture/canvas.hpp"
#include "inspect/picture/sentence.hpp"

namespace fovea {
namespace {

using picture::Anchor;
using picture::Box;
using picture::Canvas;
using picture::Font;
using picture::Point;

constexpr uint64_t kMaxCells = 2048;  // along one side
constexpr double kMargin = 28, kPanelGap = 36, kLabelGap = 8, kBarGap = 18, kBarWidth = 12, kTickGap = 6;
constexpr double kTitleSize = 21, kSubtitleSize = 13, kPanelTitleSize = 14, kLabelSize = 13, kTickSize = 11;
constexpr double kTickDistance = 60;
constexpr double kMatrixSide = 420;  // preferred size of a matrix, with these limits for its cells:
constexpr double kMaxCell = 64, kMinCell = 1;
constexpr double kCellWithGap = 10;  // smaller cells touch
constexpr double kCellWithDigits = 30, kCellWithLabel = 15;

constexpr double kWordSize = 36, kArcs = 120, kWordsGap = 26, kLargeTitle = 30,
                 kWordGap = 1.6;                        // with a sentence
constexpr float kLeastArc = 0.03f, kLeastShare = 0.1f;  // weights that have an arc, and a number on it

struct Palette {
    Rgb background, text, faint, hidden, hatch, accent, mark;
};
constexpr Palette kLight = {{255, 255, 255}, {27, 31, 36},  {106, 115, 125}, {243, 245, 247},
                            {212, 218, 224}, {22, 98, 214}, {214, 96, 0}};
constexpr Palette kDark = {{13, 17, 23}, {230, 237, 243}, {139, 148, 158}, {22, 27, 34},
                           {52, 60, 69}, {86, 156, 255},  {255, 176, 84}};

struct Fonts {
    Font regular, bold;
};

// One panel with everything that its drawing needs, in units of the layout.
struct Plot {
    const HeatmapPanel* panel = nullptr;
    uint64_t rows = 0, columns = 0;
    double cell = 0;
    Colormap map = Colormap::viridis;
    ColorTable table;
    ColorRange range;
    std::vector<std::pair<double, std::string>> ticks;  // place on the bar, text
    double row_label_width = 0, column_label_height = 0, tick_width = 0, title_height = 0;
    bool columns_turned = false;
    int decimals = -1;  // decimals in the cells; -1: none are drawn
    double digit_size = 0;

    double left() const { return row_label_width + kLabelGap; }
    double top() const { return title_height + column_label_height + kLabelGap; }
    double matrix_width() const { return cell * static_cast<double>(columns); }
    double matrix_height() const { return cell * static_cast<double>(rows); }
    double width() const { return left() + matrix_width() + kBarGap + kBarWidth + kTickGap + tick_width; }
    double height() const { return top() + matrix_height(); }
};

bool is_hidden(const HeatmapPanel& panel, size_t index) {
    if (!panel.hidden.empty() && panel.hidden[index] != 0) return true;
    return panel.values.values[index] == -std::numeric_limits<float>::infinity();
}

std::vector<float> shown_values(const HeatmapPanel& panel) {
    std::vector<float> values;
    for (size_t i = 0; i < panel.values.values.size(); ++i) {
        if (!is_hidden(panel, i)) values.push_back(panel.values.values[i]);
    }
    return values;
}

Result<void> check_panel(const HeatmapPanel& panel, size_t index) {
    const auto wrong = [&](const char* field, const std::string& text) {
        const std::string name = "panels[" + std::to_string(index) + "]." + field;
        return Error{FOVEA_INVALID_ARGUMENT, name, name + " " + text};
    };
    const Shape& shape = panel.values.shape;
    if (shape.size() != 2)
        return wrong("values", "has shape " + format_shape(shape) + "; it must be [rows, columns]");
    for (const uint64_t size : shape) {
        if (size == 0 || size > kMaxCells) {
            return wrong("values", "has shape " + format_shape(shape) + "; each side must be 1 to 2048");
        }
    }
    const auto count = [&](const char* field, size_t given, size_t needed) -> Result<void> {
        if (given == 0 || given == needed) return {};
        return wrong(
            field, "has " + std::to_string(given) + " elements; the matrix needs " + std::to_string(needed));
    };
    for (const Result<void>& ok : {count("row_labels", panel.row_labels.size(), shape[0]),
                                   count("column_labels", panel.column_labels.size(), shape[1]),
                                   count("hidden", panel.hidden.size(), panel.values.values.size())}) {
        if (!ok) return ok;
    }
    return {};
}

// Round values within the range, about `count` of them.
std::vector<double> tick_values(const ColorRange& range, double count) {
    std::vector<double> values;
    if (range.scale == ColorScale::logarithmic && range.low > 0.0 && range.high > range.low) {
        for (double power = std::ceil(std::log10(range.low) - 1e-9); power <= std::log10(range.high) + 1e-9;
             ++power) {
            values.push_back(std::pow(10.0, power));
        }
        return values;
    }
    const double low = range.value_at(0.0), high = range.value_at(1.0);
    if (!(high > low)) return {low};
    const double rough = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10.0 * power;
    for (const double nice : {5.0, 2.0, 1.0}) {
        if (nice * power >= rough * 0.75) step = nice * power;
    }
    for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i)
        values.push_back(i * step);
    return values;
}

double widest(const Font& font, const std::vector<std::string>& texts, double size) {
    double width = 0.0;
    for (const std::string& text : texts) width = std::max(width, font.width(text, size));
    return width;
}

std::vector<std::string> labels_or_numbers(const std::vector<std::string>& labels, uint64_t count) {
    if (!labels.empty()) return labels;
    std::vector<std::string> numbers;
    for (uint64_t i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
    return numbers;
}

std::string digits_of(float value, int decimals) {
    return std::isfinite(value) ? format_fixed(value, decimals) : format_number(value);
}

// As many decimals as fit into the cells, four at most: the tutorials print four.
void choose_digits(Plot& plot, const Font& font) {
    if (plot.cell < kCellWithDigits) return;
    plot.digit_size = std::clamp(plot.cell * 0.235, 9.0, 15.0);
    const std::vector<float> values = shown_values(*plot.panel);
    for (int decimals = 4; decimals >= 1 && plot.decimals < 0; --decimals) {
        const bool fits = std::all_of(values.begin(), values.end(), [&](float value) {
            return font.width(digits_of(value, decimals), plot.digit_size) <= plot.cell * 0.86;
        });
        if (fits) plot.decimals = decimals;
    }
}

Plot plan_panel(const HeatmapPanel& panel, const HeatmapStyle& style, const Fonts& fonts) {
    Plot plot;
    plot.panel = &panel;
    plot.rows = panel.values.shape[0];
    plot.columns = panel.values.shape[1];
    plot.cell =
        std::clamp(kMatrixSide / static_cast<double>(std::max(plot.rows, plot.columns)), kMinCell, kMaxCell);
    if (plot.cell > kCellWithGap) plot.cell = std::floor(plot.cell);
    plot.range = panel.range.value_or(fitted_range(shown_values(panel)));
    const bool is_signed = plot.range.scale == ColorScale::symmetric;
    plot.map = style.map.value_or(is_signed ? Colormap::blue_orange : Colormap::viridis);
    plot.table = color_table(plot.map);
    for (const double value :
         tick_values(plot.range, std::clamp(plot.matrix_height() / kTickDistance, 2.0, 4.0))) {
        plot.ticks.emplace_back(plot.range.place(value), format_number(value, 3));
        plot.tick_width = std::max(plot.tick_width, fonts.regular.width(plot.ticks.back().second, kTickSize));
    }
    plot.title_height = panel.title.empty() ? 0.0 : kPanelTitleSize + 16;

    const bool every_label = plot.cell >= kCellWithLabel;
    const auto rows =
        labels_or_numbers(every_label ? panel.row_labels : std::vector<std::string>(), plot.rows);
    const auto columns =
        labels_or_numbers(every_label ? panel.column_labels : std::vector<std::string>(), plot.columns);
    plot.row_label_width =
        widest(fonts.regular, rows, kLabelSize) + kTickSize + 8;  // and the caption's column
    const double column_width = widest(fonts.regular, columns, kLabelSize);
    plot.columns_turned = every_label && column_width > plot.cell - 6;
    plot.column_label_height =
        (plot.columns_turned ? column_width * 0.71 + kLabelSize : kLabelSize) + kTickSize + 8;
    choose_digits(plot, fonts.regular);
    return plot;
}

void draw_cells(Canvas& canvas, const Plot& plot, Point origin, const Palette& palette, const Font& font) {
    const double gap = plot.cell >= kCellWithGap ? std::min(2.0, plot.cell * 0.06) : 0.0;
    const double radius = plot.cell >= 20 ? std::min(5.0, plot.cell * 0.09) : 0.0;
    for (uint64_t i = 0; i < plot.rows; ++i) {
        for (uint64_t j = 0; j < plot.columns; ++j) {
            const Box box{origin.x + plot.cell * static_cast<double>(j) + gap / 2,
                          origin.y + plot.cell * static_cast<double>(i) + gap / 2, plot.cell - gap,
                          plot.cell - gap};
            const size_t index = i * plot.columns + j;
            if (is_hidden(*plot.panel, index)) {
                canvas.fill(box, radius, palette.hidden);
                if (plot.cell >= kCellWithGap) canvas.hatch(box, radius, 6, palette.hatch);
                continue;
            }
            const float value = plot.panel->values.values[index];
            const Rgb color = color_of(value, plot.table, plot.range);
            canvas.fill(box, radius, color);
            if (plot.decimals < 0) continue;
            const Point centre{box.x + box.width / 2,
                               box.y + box.height / 2 + font.cap_height(plot.digit_size) / 2};
            canvas.text(font, digits_of(value, plot.decimals), plot.digit_size, centre, Anchor::centre,
                        text_color_on(color));
        }
    }
}

// Every label, or numbers at round steps where the cells are too small for all.
void draw_labels(Canvas& canvas, const Plot& plot, Point origin, const Palette& palette, const Font& font) {
    const bool every_label = plot.cell >= kCellWithLabel;
    uint64_t step = 1;
    for (uint64_t nice = 1; !every_label && static_cast<double>(step) * plot.cell < 44; nice *= 10) {
        for (const uint64_t factor : {1, 2, 5}) {
            if (static_cast<double>(step) * plot.cell < 44) step = nice * factor;
        }
    }
    const auto text_of = [&](const std::vector<std::string>& labels, uint64_t index) {
        return every_label && !labels.empty() ? labels[index] : std::to_string(index);
    };
    const double drop = font.cap_height(kLabelSize) / 2;
    for (uint64_t i = 0; i < plot.rows; i += step) {
        const Point at{origin.x - kLabelGap, origin.y + plot.cell * (static_cast<double>(i) + 0.5) + drop};
        canvas.text(font, text_of(plot.panel->row_labels, i), kLabelSize, at, Anchor::right, palette.text);
    }
    for (uint64_t j = 0; j < plot.columns; j += step) {
        const double x = origin.x + plot.cell * (static_cast<double>(j) + 0.5);
        const std::string text = text_of(plot.panel->column_labels, j);
        if (plot.columns_turned) {
            canvas.text(font, text, kLabelSize, {x + 3, origin.y - kLabelGap}, Anchor::left, palette.text,
                        -45);
        } else {
            canvas.text(font, text, kLabelSize, {x, origin.y - kLabelGap}, Anchor::centre, palette.text);
        }
    }
}

void draw_bar(Canvas& canvas, const Plot& plot, Point origin, const Palette& palette, const Font& font) {
    const double x = origin.x + plot.matrix_width() + kBarGap, height = plot.matrix_height();
    for (size_t i = 0; i < plot.table.size(); ++i) {
        // From the top, each step a little over the next, so that no seam shows.
        const double from = height * static_cast<double>(i) / static_cast<double>(plot.table.size());
        canvas.fill({x, origin.y + from, kBarWidth, std::min(height - from, height / 256 + 1)}, 0,
                    plot.table[plot.table.size() - 1 - i]);
    }
    for (const auto& [place, text] : plot.ticks) {
        const double y = origin.y + height * (1.0 - place);
        canvas.fill({x + kBarWidth, y - 0.5, 3, 1}, 0, palette.faint);
        canvas.text(font, text, kTickSize, {x + kBarWidth + kTickGap, y + font.cap_height(kTickSize) / 2},
                    Anchor::left, palette.faint);
    }
}

void draw_panel(Canvas& canvas, const Plot& plot, Point at, const Palette& palette, const Fonts& fonts) {
    const Point origin{at.x + plot.left(), at.y + plot.top()};
    if (!plot.panel->title.empty()) {
        canvas.text(fonts.bold, plot.panel->title, kPanelTitleSize, {origin.x, at.y + kPanelTitleSize},
                    Anchor::left, palette.text);
    }
    const double middle_y = origin.y + plot.matrix_height() / 2,
                 middle_x = origin.x + plot.matrix_width() / 2;
    canvas.text(fonts.regular, plot.panel->column_caption, kTickSize,
                {middle_x, at.y + plot.title_height + kTickSize - 2}, Anchor::centre, palette.faint);
    canvas.text(fonts.regular, plot.panel->row_caption, kTickSize, {at.x + kTickSize - 2, middle_y},
                Anchor::centre, palette.faint, -90);
    draw_cells(canvas, plot, origin, palette, fonts.regular);
    draw_labels(canvas, plot, origin, palette, fonts.regular);
    draw_bar(canvas, plot, origin, palette, fonts.regular);
}

Result<Fonts> open_fonts(const HeatmapStyle& style) {
    using picture::usual_font_paths;
    Result<Font> regular =
        Font::open_first(style.font_path.empty() ? usual_font_paths(false) : std::vector{style.font_path});
    if (!regular) return regular.error();
    std::vector<std::string> bold_paths = usual_font_paths(true);
    if (!style.bold_font_path.empty()) {
        bold_paths = {style.bold_font_path};
    } else if (!style.font_path.empty()) {
        bold_paths = {style.font_path};
    } else {
        bold_paths.push_back(regular->path());
    }
    Result<Font> bold = Font::open_first(bold_paths);
    if (!bold) return bold.error();
    return Fonts{std::move(*regular), std::move(*bold)};
}

Result<void> check(const std::vector<HeatmapPanel>& panels, const HeatmapStyle& style) {
    if (panels.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "panels", "panels is empty; there is nothing to draw"};
    if (!(style.pixel_ratio >= 0.5 && style.pixel_ratio <= 4.0)) {
        return Error{FOVEA_INVALID_ARGUMENT, "pixel_ratio",
                     "pixel_ratio is " + format_number(style.pixel_ratio) + "; it must be 0.5 to 4"};
    }
    if (style.panels_per_row == 0) {
        return Error{FOVEA_INVALID_ARGUMENT, "panels_per_row", "panels_per_row is 0; it must be at least 1"};
    }
    for (size_t i = 0; i < panels.size(); ++i) {
        if (Result<void> ok = check_panel(panels[i], i); !ok) return ok;
    }
    return {};
}

// Panels in rows; each place is as large as the largest panel.
struct Grid {
    double panel_width = 0, panel_height = 0, heading = 0, width = 0, height = 0;
    size_t per_row = 1;

    Point place(size_t index) const {
        return {kMargin + static_cast<double>(index % per_row) * (panel_width + kPanelGap),
                kMargin + heading + static_cast<double>(index / per_row) * (panel_height + kPanelGap)};
    }
};

Grid lay_out(const std::vector<Plot>& plots, const HeatmapStyle& style, const Fonts& fonts, bool sentence) {
    Grid grid;
    for (const Plot& plot : plots) {
        grid.panel_width = std::max(grid.panel_width, plot.width());
        grid.panel_height = std::max(grid.panel_height, plot.height());
    }
    const double title_size = sentence ? kLargeTitle : kTitleSize;
    if (!style.title.empty()) grid.heading += title_size + 10;
    if (!style.subtitle.empty()) grid.heading += kSubtitleSize + 10;
    if (grid.heading > 0) grid.heading += 10;
    if (sentence) grid.heading += kArcs + kWordSize + kWordsGap;
    grid.per_row = std::min<size_t>(style.panels_per_row, plots.size());
    const auto lines = static_cast<double>((plots.size() + grid.per_row - 1) / grid.per_row);
    const auto per_row = static_cast<double>(grid.per_row);
    const double panels = per_row * grid.panel_width + (per_row - 1) * kPanelGap;
    const double words = std::max(fonts.bold.width(style.title, title_size),
                                  fonts.regular.width(style.subtitle, kSubtitleSize));
    grid.width = std::max(panels, words) + 2 * kMargin;
    grid.height = lines * grid.panel_height + (lines - 1) * kPanelGap + grid.heading + 2 * kMargin;
    return grid;
}

bool is_special(const std::string& token) { return token.size() > 2 && token.front() == '<'; }

Rgb mixed(Rgb a, Rgb b, double share) {
    const auto channel = [&](uint8_t from, uint8_t to) {
        return uint8_t(std::lround(from + (to - from) * share));
    };
    return {channel(a.r, b.r), channel(a.g, b.g), channel(a.b, b.b)};
}

// The tokens in the largest type in which they fit, and arcs from the query's to those that it looks at.
void draw_sentence(Canvas& canvas, const picture::Sentence& sentence, double top, double width,
                   const Palette& palette, const Fonts& fonts) {
    const size_t count = sentence.tokens.size();
    std::vector<double> widths(count);
    const auto size_of = [&](size_t n, double size) {
        return is_special(sentence.tokens[n]) ? std::min(size, kLabelSize) : size;
    };
    double size = kWordSize, all = 0;
    const auto gap_of = [&](size_t n) {
        return n < sentence.starts.size() && sentence.starts[n] ? kWordGap * size : 0;
    };
    for (; size > 6; size -= 2) {
        all = 0;
        for (size_t n = 0; n < count; ++n) {
            widths[n] = fonts.bold.width(sentence.tokens[n], size_of(n, size)) + 0.5 * size;
            all += widths[n] + gap_of(n);
        }
        if (all <= width) break;
    }
    const double more = std::min((width - all) / double(count), 1.2 * size), foot = top + kArcs;
    std::vector<double> middles;
    double x = kMargin;
    for (size_t n = 0; n < count; ++n) {
        x += gap_of(n);
        middles.push_back(x + (widths[n] + more) / 2), x += widths[n] + more;
    }
    for (size_t n = 0; n < count; ++n) {
        const float weight = n < sentence.weights.size() ? sentence.weights[n] : 0.0f;
        const Rgb ink = n == sentence.query     ? palette.accent
                        : weight >= kLeastShare ? palette.text
                        : n > sentence.query    ? palette.hatch
                                                : palette.faint;
        canvas.text(fonts.bold, sentence.tokens[n], size_of(n, size), {middles[n], foot + kWordSize},
                    Anchor::centre, ink);
        if (!(weight >= kLeastArc)) continue;
        const double from = middles[sentence.query], to = middles[n], wide = std::fabs(from - to);
        const double tall = std::min(kArcs - 26, 0.3 * kArcs + 0.25 * wide), loop = wide == 0 ? size / 2 : 0;
        const double handle = foot - tall / 0.75;  // as a Bezier's top is lower
        const Rgb color = mixed(palette.background, palette.accent, 0.3 + 0.7 * double(weight));
        canvas.curve({from, foot}, {from - loop, handle}, {to + loop, handle}, {to, foot},
                     1 + 6 * double(weight), color);
        if (weight >= kLeastShare)
            canvas.text(weight >= 0.5f ? fonts.bold : fonts.regular,
                        format_fixed(100 * double(weight), 0) + " %", weight >= 0.5f ? 16 : kLabelSize,
                        {(from + to) / 2, foot - tall - 8}, Anchor::centre,
                        weight >= 0.5f ? palette.accent : palette.faint);
    }
}

// A frame around the stripe, and its words on masked cells above its upper end.
void draw_highlight(Canvas& canvas, const Plot& plot, Point at, const picture::Highlight& of,
                    const Palette& palette, const Fonts& fonts) {
    const Point origin{at.x + plot.left(), at.y + plot.top()};
    const auto middle = [&](uint32_t n) {
        return Point{origin.x + plot.cell * (double(of.stripe.column) + double(n) * of.stripe.step + 0.5),
                     origin.y + plot.cell * (double(of.stripe.row + n) + 0.5)};
    };
    const Point from = middle(0);
    canvas.capsule(from, middle(of.stripe.length - 1), 0.75 * plot.cell, 2.5, palette.mark);
    const double right = origin.x + plot.matrix_width() - 8;
    const double width = fonts.bold.width(of.text, kLabelSize), left = right - width - 8;
    // A cell away from the diagonal, below which nothing is masked.
    const double lowest = origin.y + left - 6 - origin.x - 2 * plot.cell;
    const double y = std::max(std::min(from.y - 3 * plot.cell, lowest), origin.y + 12);
    canvas.fill({left - 6, y - 12, width + 12, 24}, 5, palette.background);
    canvas.text(fonts.bold, of.text, kLabelSize, {left, y + fonts.bold.cap_height(kLabelSize) / 2},
                Anchor::left, palette.mark);
}

Result<RgbaImage> render(const std::vector<HeatmapPanel>& panels, const HeatmapStyle& style,
                         const picture::Sentence* sentence,
                         const std::vector<std::optional<picture::Highlight>>& highlights) {
    if (Result<void> ok = check(panels, style); !ok) return ok.error();
    const Result<Fonts> fonts = open_fonts(style);
    if (!fonts) return fonts.error();
    std::vector<Plot> plots;
    for (const HeatmapPanel& panel : panels) plots.push_back(plan_panel(panel, style, *fonts));
    const Grid grid = lay_out(plots, style, *fonts, sentence != nullptr);
    constexpr double kMaxPixels = 32768;
    if (std::max(grid.width, grid.height) * style.pixel_ratio > kMaxPixels) {
        return Error{FOVEA_LIMIT_EXCEEDED, "panels",
                     "the picture would be " + format_number(grid.width * style.pixel_ratio, 6) + " by " +
                         format_number(grid.height * style.pixel_ratio, 6) +
                         " pixels; the limit is 32768 a side"};
    }
    const Palette& palette = style.dark ? kDark : kLight;
    Canvas canvas(grid.width, grid.height, style.pixel_ratio, palette.background);
    const double title_size = sentence ? kLargeTitle : kTitleSize;
    double baseline = kMargin + title_size - 3;
    if (!style.title.empty()) {
        canvas.text(fonts->bold, style.title, title_size, {kMargin, baseline}, Anchor::left, palette.text);
        baseline += kSubtitleSize + 10;
    }
    canvas.text(fonts->regular, style.subtitle, kSubtitleSize, {kMargin, baseline}, Anchor::left,
                palette.faint);
    if (sentence)
        draw_sentence(canvas, *sentence, kMargin + grid.heading - kArcs - kWordSize - kWordsGap,
                      grid.width - 2 * kMargin, palette, *fonts);
    for (size_t i = 0; i < plots.size(); ++i) {
        draw_panel(canvas, plots[i], grid.place(i), palette, *fonts);
        if (i < highlights.size() && highlights[i])
            draw_highlight(canvas, plots[i], grid.place(i), *highlights[i], palette, *fonts);
    }
    return canvas.take();
}

}  // namespace

Result<RgbaImage> render_heatmaps(const std::vector<HeatmapPanel>& panels, const HeatmapStyle& style) {
    return render(panels, style, nullptr, {});
}

Result<RgbaImage> picture::render_sentence(const Sentence& sentence, const std::vector<HeatmapPanel>& panels,
                                           const std::vector<std::optional<Highlight>>& highlights,
                                           const HeatmapStyle& style) {
    return render(panels, style, &sentence, highlights);
}

}  // namespace fovea
