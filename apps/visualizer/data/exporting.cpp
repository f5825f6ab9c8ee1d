#include "data/exporting.hpp"

#include "data/session_file.hpp"
#include "data/text_file.hpp"
#include "matrix/coloring.hpp"
#include "texts/texts.hpp"

#include <fovea/files.hpp>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <filesystem>

#include "xml_text.hpp"

namespace fovea::visualizer {
namespace {

// A drawing with more cells than this is too large to be useful.
constexpr uint64_t kMaxSvgSide = 256;

Result<Tensor> shown_matrix(const Workbench& bench) {
    const Stage& stage = *bench.shown().stage;
    const CellRect cells = shown_cells(bench);
    const std::span<const float> values = stage.head_values(bench.shown().head);
    std::vector<float> chosen;
    for (int row = cells.row_begin; row <= cells.row_last; ++row) {
        const auto from = values.begin() + ptrdiff_t(uint64_t(row) * stage.columns);
        chosen.insert(chosen.end(), from + cells.column_begin, from + cells.column_last + 1);
    }
    return make_tensor(stage.name, {cells.rows(), cells.columns()}, std::move(chosen));
}

Result<void> export_csv(const Workbench& bench, const std::string& path) {
    const Stage& stage = *bench.shown().stage;
    const Result<Tensor> table = shown_matrix(bench);
    if (!table) return table.error();
    std::vector<std::string> columns;
    const CellRect cells = shown_cells(bench);
    for (auto i = uint64_t(cells.column_begin); i <= uint64_t(cells.column_last); ++i)
        columns.push_back(stage.over_keys ? std::to_string(i) + " " + token_label(bench, i)
                                          : stage.name + " " + std::to_string(i));
    std::vector<std::string> rows;
    for (auto i = uint64_t(cells.row_begin); i <= uint64_t(cells.row_last); ++i)
        rows.push_back(stage.row_tokens ? std::to_string(i) + " " + token_label(bench, i)
                                        : "row " + std::to_string(i));
    if (const Result<uint64_t> saved = save_csv(path, *table, columns, rows); !saved) return saved.error();
    return {};
}

// Every head of the shown stage in one array, and of what is over keys their mean.
Result<void> export_heads(const Workbench& bench, const std::string& path) {
    const Stage& stage = *bench.shown().stage;
    TensorSet set;
    Result<Tensor> all = make_tensor(stage.name, {stage.heads, stage.rows, stage.columns},
                                     std::vector<float>(stage.values.begin(), stage.values.end()));
    if (!all) return all.error();
    set.tensors.push_back(std::move(*all));
    if (stage.over_keys) {
        std::vector<float> mean(stage.rows * stage.columns);
        for (uint32_t head = 0; head < stage.heads; ++head)
            for (size_t cell = 0; cell < mean.size(); ++cell) mean[cell] += stage.head_values(head)[cell];
        for (float& value : mean) value /= float(stage.heads);
        Result<Tensor> made = make_tensor(stage.name + "_mean", {stage.rows, stage.columns}, std::move(mean));
        if (!made) return made.error();
        set.tensors.push_back(std::move(*made));
    }
    if (const Result<uint64_t> saved = save_npz(path, set); !saved) return saved.error();
    return {};
}

void append(std::string& out, const char* format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    out += line;
}

void svg_labels(const Workbench& bench, const CellRect& cells, double cell, double left, double top,
                std::string& out) {
    const auto first_row = uint64_t(cells.row_begin), first_column = uint64_t(cells.column_begin);
    for (uint64_t i = first_row; i < first_row + cells.rows(); ++i)
        out += "<text x=\"" + format_number(left - 6, 6) + "\" y=\"" +
               format_number(top + (double(i - first_row) + 0.5) * cell + 4, 6) + "\" text-anchor=\"end\">" +
               app::xml_text(row_name(bench, i)) + "</text>\n";
    for (uint64_t j = first_column; j < first_column + cells.columns(); ++j) {
        const std::string x = format_number(left + (double(j - first_column) + 0.5) * cell, 6),
                          y = format_number(top - 6, 6);
        out += "<text x=\"" + x + "\" y=\"" + y + "\" transform=\"rotate(-45 " + x + " " + y + ")\">" +
               app::xml_text(column_name(bench, j)) + "</text>\n";
    }
}

// Vector cells with their values, labels and a title: for papers.
Result<void> export_svg(const Workbench& bench, const std::string& path) {
    const Stage& stage = *bench.shown().stage;
    const uint32_t head = bench.shown().head;
    const CellRect cells = shown_cells(bench);
    const uint64_t rows = cells.rows(), columns = cells.columns();
    if (rows > kMaxSvgSide || columns > kMaxSvgSide)
        return Error{FOVEA_UNSUPPORTED, "svg",
                     "the matrix has " + std::to_string(rows) + " x " + std::to_string(columns) +
                         " cells; an .svg holds at most " + std::to_string(kMaxSvgSide) +
                         " per side: export .png or .npy"};
    const std::span<const float> values = stage.head_values(head);
    const Coloring coloring = coloring_of(bench.view.colors, stage.ranges.at(head));
    const ColorTable table = color_table(coloring.map);
    const bool digits = columns <= 24 && rows <= 24;
    const double cell = digits ? 48 : std::max(4.0, 768.0 / double(std::max(rows, columns)));
    const double left = 110, top = 110;
    std::string out;
    append(out,
           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
           "font-family=\"Inter, DejaVu Sans, sans-serif\" font-size=\"11\">\n",
           left + cell * double(columns) + 60, top + cell * double(rows) + 20);
    out +=
        "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#f2f3f5\"/><rect "
        "width=\"1.5\" "
        "height=\"6\" fill=\"#c3c8d1\"/></pattern><pattern id=\"dropped\" width=\"6\" height=\"6\" "
        "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(-45)\"><rect width=\"6\" height=\"6\" "
        "fill=\"#f2f3f5\"/><rect width=\"1.5\" height=\"6\" fill=\"#8b93a1\"/></pattern></defs>\n<text "
        "x=\"12\" y=\"22\" font-size=\"15\">" +
        app::xml_text(stage.name + ", head " + std::to_string(head)) + "</text>\n";
    for (uint64_t row = 0; row < rows; ++row) {
        for (uint64_t column = 0; column < columns; ++column) {
            const double x = left + double(column) * cell, y = top + double(row) * cell;
            const uint64_t i = row + uint64_t(cells.row_begin), j = column + uint64_t(cells.column_begin);
            const float value = values[i * stage.columns + j];
            const bool hidden = stage.hidden(head, i, j);
            if (hidden || stage.dropped(head, i, j)) {
                append(out,
                       "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"url(#%s)\"/>\n", x,
                       y, cell, cell, hidden ? "hatch" : "dropped");
                continue;
            }
            const Rgb c = color_for(coloring, table, value), ink = text_color_on(c);
            append(out,
                   "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%02x%02x%02x\"/>\n", x,
                   y, cell, cell, c.r, c.g, c.b);
            if (digits)
                append(
                    out,
                    "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\" fill=\"#%02x%02x%02x\">%s</text>\n",
                    x + cell / 2, y + cell / 2 + 4, ink.r, ink.g, ink.b, format_fixed(value, 4).c_str());
        }
    }
    if (cell >= 9) svg_labels(bench, cells, cell, left, top, out);
    return write_text_file(path, out + "</svg>\n");
}

}  // namespace

Result<void> export_file(const Workbench& bench, const std::string& path) {
    if (path.ends_with(".fovea")) return save_session(bench, path);
    std::error_code error;
    if (const auto& file = bench.document.settings().file;
        file && std::filesystem::equivalent(path, file->path, error))
        return Error{FOVEA_INVALID_ARGUMENT, "export",
                     "'" + path + "' is the file that is open; give another name"};
    if (!bench.computation.complete())
        return Error{FOVEA_UNSUPPORTED, "export",
                     "the matrix is still being computed; export it when the computation is complete"};
    // The shown view has no matrix, and the values of another one would be mistaken for it.
    if (bench.window.centre == CentreTab::map && bench.map)
        return Error{
            FOVEA_UNSUPPORTED, "export",
            "a map stores no matrix, so its values cannot be exported; export .png, or copy the picked cell"};
    if (path.ends_with(".csv")) return export_csv(bench, path);
    if (path.ends_with(".svg")) return export_svg(bench, path);
    if (path.ends_with(".npy")) {
        const Result<Tensor> matrix = shown_matrix(bench);
        if (!matrix) return matrix.error();
        if (const Result<uint64_t> saved = save_npy(path, *matrix); !saved) return saved.error();
        return {};
    }
    if (path.ends_with(".npz")) return export_heads(bench, path);
    return Error{FOVEA_INVALID_ARGUMENT, "export",
                 "'" + path + "' does not end in .csv, .npy, .npz, .svg, .png or .fovea"};
}

void save_shown(Workbench& bench, const std::string& path) {
    if (path.ends_with(".png")) {
        bench.window.wanted_picture = path;
        return;
    }
    const Result<void> saved = export_file(bench, path);
    const std::string left_out = path.ends_with(".fovea") ? session_left_out(bench) : "";
    if (saved && !left_out.empty())
        return bench.window.tell(fill(texts().files.saved_without, {path, left_out}));
    if (saved) return bench.window.tell_done(fill(texts().files.saved, {path}));
    bench.problems.report(saved.error().field, saved.error().text, true);
    bench.window.show(BottomTab::problems);
}

}  // namespace fovea::visualizer
