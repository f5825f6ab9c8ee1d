#include "options.hpp"

#include "data/exporting.hpp"

#include <charconv>
#include <cstdio>
#include <string_view>

namespace fovea::visualizer {
namespace {

Error bad(std::string_view option, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, std::string(option), std::move(text)};
}

template <class T>
bool read_number(std::string_view text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
}

struct Panel {
    const char* name;
    void (*open)(UiState& ui);
};
constexpr Panel kPanels[] = {
    {"matrix", [](UiState& ui) { ui.centre = CentreTab::matrix; }},
    {"compare", [](UiState& ui) { ui.centre = CentreTab::compare; }},
    {"mask", [](UiState& ui) { ui.centre = CentreTab::mask; }},
    {"map", [](UiState& ui) { ui.centre = CentreTab::map; }},
    {"layers", [](UiState& ui) { ui.centre = CentreTab::layers; }},
    {"heads", [](UiState& ui) { ui.bottom = BottomTab::heads; }},
    {"gpu", [](UiState& ui) { ui.bottom = BottomTab::gpu; }},
    {"memory", [](UiState& ui) { ui.bottom = BottomTab::memory; }},
    {"problems", [](UiState& ui) { ui.bottom = BottomTab::problems; }},
    {"swapped", [](UiState& ui) { ui.layout.mirrored = true; }},
    {"middle",
     [](UiState& ui) { ui.layout.left_shown = ui.layout.right_shown = ui.layout.bottom_shown = false; }},
    {"keys", [](UiState& ui) { ui.open_dialog(Dialog::help); }},
    {"tour", [](UiState& ui) { ui.tour_step = ui.tour_step % kTourSteps + 1; }},
    {"lines", [](UiState& ui) { ui.token_lines = true; }},
    {"palette", [](UiState& ui) { ui.open_dialog(Dialog::palette); }},
    {"open", [](UiState& ui) { ui.open_dialog(Dialog::open); }},
    {"export", [](UiState& ui) { ui.open_dialog(Dialog::save); }},
    {"go-to", [](UiState& ui) { ui.open_dialog(Dialog::go_to); }},
    {"import", [](UiState& ui) { ui.open_dialog(Dialog::import_sheet); }},
};

const Panel* find_panel(std::string_view name) {
    for (const Panel& panel : kPanels)
        if (name == panel.name) return &panel;
    return nullptr;
}

std::optional<CompareHow> find_how(std::string_view name) {
    if (name == "side") return CompareHow::side;
    if (name == "halves") return CompareHow::triangle;
    if (name == "difference") return CompareHow::difference;
    return {};
}

std::string panel_names() {
    std::string names;
    for (const Panel& panel : kPanels) names += std::string(names.empty() ? "" : ", ") + panel.name;
    return names;
}

Result<void> apply(Options& o, std::string_view name, std::string_view value) {
    if (name == "--preset") {
        if (value.starts_with("long-")) {
            o.long_map = std::string(value.substr(5));
            for (const LongContextPreset& preset : long_context_presets())
                if (preset.name == o.long_map) return {};
            return bad(name, "'" + std::string(value) + "' is not long-4k, -16k, -32k, -64k, -128k or -1m");
        }
        if (!read_number(value, o.level) || o.level < 1 || o.level > kLevelCount)
            return bad(name, "'" + std::string(value) + "' is not a level from 1 to 7");
    } else if (name == "--text") {
        o.text = std::string(value);
    } else if (name == "--tokens") {
        for (int i = 0; i < kTokenizerCount; ++i)
            if (value == tokenizer_name(Tokenizer(i))) return o.tokenizer = Tokenizer(i), Result<void>{};
        return bad(name, "'" + std::string(value) + "' is not words, characters or bytes");
    } else if (name == "--precision") {
        for (int i = 0; i < kPrecisionCount; ++i)
            if (value == precision_key(Precision(i))) return o.precision = Precision(i), Result<void>{};
        return bad(name, "'" + std::string(value) + "' is not f32, f16 or f16-products");
    } else if (name == "--device") {
        o.on_cpu = value == "cpu" || value == "0";
        int number = 0;
        if (!o.on_cpu && (!read_number(value, number) || number < 1))
            return bad(name, "'" + std::string(value) + "' is not cpu or a number of `fovea devices`");
        o.vulkan_device = o.on_cpu ? -1 : number - 1;
    } else if (name == "--size") {
        const size_t x = value.find('x');
        if (x == std::string_view::npos || !read_number(value.substr(0, x), o.width) ||
            !read_number(value.substr(x + 1), o.height) || o.width < 640 || o.height < 400 ||
            o.width > 16384 || o.height > 16384)
            return bad(name, "'" + std::string(value) + "' is not WIDTHxHEIGHT from 640x400 to 16384x16384");
        o.has_size = true;
    } else if (name == "--scale") {
        if (!read_number(value, o.scale) || !(o.scale >= 0.75f && o.scale <= 8))
            return bad(name, "must be from 0.75 to 8, and at most 3 for a window");
    } else if (name == "--theme") {
        if (value != "dark" && value != "light")
            return bad(name, "'" + std::string(value) + "' is not dark or light");
        o.theme = value == "dark" ? Theme::dark : Theme::light;
    } else if (name == "--part") {
        for (int i = 0; i < kPicturePartCount; ++i)
            if (value == kPictureParts[i]) return o.look.part = PicturePart(i), Result<void>{};
        return bad(name, "'" + std::string(value) + "' is not window, view or matrix");
    } else if (name == "--stage") {
        o.stage = std::string(value);
    } else if (name == "--screenshot") {
        o.screenshot = std::string(value);
    } else if (name == "--follow") {
        o.follow = std::string(value);
    } else if (name == "--open") {
        o.files.emplace_back(value);
    } else if (name == "--select") {
        o.select = std::string(value);
    } else if (name == "--pick") {
        o.pick = std::string(value);
    } else if (name == "--head") {
        if (!read_number(value, o.head) || o.head < 1 || o.head > 1024)
            return bad(name, "'" + std::string(value) + "' is not a head from 1 to 1024");
    } else if (name == "--show") {
        if (!find_panel(value))
            return bad(name, "'" + std::string(value) + "' is not one of: " + panel_names());
        o.show.emplace_back(value);
    } else if (name == "--against") {
        o.against = std::string(value);
        o.show.emplace_back("compare");
    } else if (name == "--tiles") {
        if (value != "auto" && value != "device" && value != "cpu")
            return bad(name, "'" + std::string(value) + "' is not auto, device or cpu");
        o.tiles_on = value == "device" ? TilesOn::device
                     : value == "cpu"  ? TilesOn::processor
                                       : TilesOn::automatic;
    } else if (name == "--memory-limit") {
        uint64_t mebibytes = 0;
        if (!read_number(value, mebibytes) || mebibytes < 16 || mebibytes > 1u << 24)
            return bad(name, "'" + std::string(value) + "' is not a number of MiB from 16 to 16777216");
        o.memory_limit_bytes = mebibytes << 20;
    } else if (name == "--compare") {
        if (!find_how(value))
            return bad(name, "'" + std::string(value) + "' is not side, halves or difference");
        o.how = *find_how(value);
    } else if (name == "--export") {
        const size_t dot = value.rfind('.');
        const std::string_view extension = dot == std::string_view::npos ? "" : value.substr(dot);
        if (extension != ".csv" && extension != ".npy" && extension != ".svg" && extension != ".fovea")
            return bad(name, "'" + std::string(value) + "' does not end in .csv, .npy, .svg or .fovea");
        o.export_path = std::string(value);
    } else {
        return bad(name, "no such option; --help lists them");
    }
    return {};
}

}  // namespace

const char* options_help() {
    return "usage: fovea-visualizer [options] [FILE]\n\n"
           "Attention you can read. Without --screenshot, --export or --describe it opens a window.\n\n"
           "  --preset LEVEL          1 without weights, 2 trainable (default), 3 causal, 4 dropout, 5 "
           "stacked heads,\n"
           "                          6 split heads, 7 GPT block; long-4k to long-1m: a long head as a "
           "map\n"
           "  --text TEXT             instead of the tutorials' sentence\n"
           "  --tokens WHAT           words (default), characters or bytes of the text\n"
           "  --precision P           f32 (default), f16 storage of q, k and v, or f16-products where the "
           "device can;\n"
           "                          A of --against stays float32\n"
           "  --stage NAME            the stage shown first: inputs, queries, scores, masked, weights, "
           "context, ...\n"
           "  --device cpu|N          a device by its number in `fovea devices`; default: the best Vulkan "
           "device\n"
           "  --size WxH --scale S    size of the layout and pixels for one unit of it; default 1600x960 and "
           "1\n"
           "  --theme dark|light\n"
           "  --screenshot FILE.png   draws one picture without a window\n"
           "  --part PART             of the window (default), of the view in its middle, or of the matrix: "
           "all "
           "cells\n"
           "                          or those of --select, with --no-legend without title and colour bar\n"
           "  --transparent           nothing behind the view's or the matrix's cells and letters\n"
           "  --open FILE             safetensors, npz, npy, csv, png or a session (.fovea); or just FILE\n"
           "  --head N  --pick R,C    the head and the cell shown: numbers or tokens\n"
           "  --select A:B,C:D        only rows A to B and columns C to D are exported, ends included\n"
           "  --exact                 a picture of a map waits for every tile, not only for its preview\n"
           "  --tiles WHERE           who computes a map's tiles: device, cpu or auto (default: the device "
           "if it "
           "is\n"
           "                          hardware)\n"
           "  --show PANEL            matrix, compare, mask, map, layers, heads, gpu, memory, problems, "
           "swapped, middle,\n"
           "                          keys, tour (again: its next step), lines, palette, open, export, "
           "go-to, "
           "import\n"
           "  --export FILE           the shown matrix as .csv, .npy or .svg, or the session as .fovea\n"
           "  --against WHAT          keeps A of a comparison: a level, a file or session, or a sentence in "
           "quotes\n"
           "  --compare HOW           side, halves or difference\n"
           "  --describe              says in words what the picture shows\n"
           "  --follow FILE.txt       keeps FILE as a description of what the window shows, for screen "
           "readers "
           "and scripts\n"
           "  --memory-limit MIB      no more device memory than this\n"
           "  --roof                  measures the device's roof for the GPU panel\n"
           "  --validation            runs under the Vulkan validation layer; any message is an error\n";
}

Result<void> apply_options_of_a(Session& session, const Options& o) {
    int level = o.level;
    const bool is_level = o.against.size() == 1 && read_number(o.against, level);
    if (is_level && (level < 1 || level > kLevelCount))
        return bad("--against", "'" + o.against + "' is not a level from 1 to 7");
    Settings settings = level_settings(level);
    if (o.text) settings.text = *o.text;
    settings.tokenizer = o.tokenizer;
    const bool is_text = o.against.find(' ') != std::string::npos;
    if (is_text) settings.text = o.against;
    session.change(settings);
    if (!is_level && !is_text && !open_any(session, o.against) && session.preparing().empty())
        return bad("--against", session.problems.back().text);
    return {};
}

Result<void> apply_options(Session& session, const Options& o) {
    if (o.theme) session.theme = *o.theme;
    session.view.how = o.how;
    session.compute_tiles_on(o.tiles_on);
    Settings settings = level_settings(o.level);
    if (o.text) settings.text = *o.text;
    settings.tokenizer = o.tokenizer;
    settings.precision = o.precision;
    session.change(settings);
    for (const std::string& file : o.files)
        if (!open_any(session, file) && session.preparing().empty())
            return Error{FOVEA_INVALID_ARGUMENT, "", session.problems.back().text};
    if (!o.long_map.empty()) session.open_long_preset(o.long_map);
    if (!o.stage.empty()) session.wanted_stage = o.stage;
    if (o.head > 1) session.view.head = o.head - 1;
    for (const std::string& name : o.show) find_panel(name)->open(session.ui);
    return {};
}

Result<Options> parse_options(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--help" || word == "-h") {
            o.help = true;
        } else if (word == "--version") {
            o.version = true;
        } else if (word == "--describe") {
            o.describe = true;
        } else if (word == "--exact") {
            o.exact = true;
        } else if (word == "--transparent") {
            o.look.transparent = true;
        } else if (word == "--no-legend") {
            o.look.legend = false;
        } else if (word == "--roof") {
            o.roof = true;
        } else if (word == "--validation") {
            o.validation = true;
        } else if (!word.empty() && word[0] != '-') {
            o.files.emplace_back(word);
        } else if (i + 1 >= argc) {
            return bad(word, word.substr(0, 2) == "--" ? "no such option, or it needs a value"
                                                       : "no such option; --help lists them");
        } else if (Result<void> r = apply(o, word, argv[++i]); !r) {
            return r.error();
        }
    }
    if (!o.headless() && o.scale > 3) return bad("--scale", "must be at most 3 for a window");
    return o;
}

}  // namespace fovea::visualizer
