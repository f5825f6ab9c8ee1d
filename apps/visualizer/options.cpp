#include "run.hpp"

#include "data/session_file.hpp"
#include "panels/panel_table.hpp"
#include "texts/texts.hpp"

#include <arguments.hpp>
#include <fovea/model/learned.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

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

Error is_not(std::string_view option, std::string_view value, const std::string& expected) {
    return bad(option, "'" + std::string(value) + "' is not " + expected);
}

// The enumerator whose name is the value, of `count` that `name_of` names.
template <class E, class NameOf>
Result<void> read_choice(std::string_view option, std::string_view value, int count, NameOf name_of,
                         const char* expected, E& out) {
    for (int i = 0; i < count; ++i)
        if (value == name_of(E(i))) return out = E(i), Result<void>{};
    return is_not(option, value, expected);
}

Result<void> read_preset(Options& o, std::string_view name, std::string_view value) {
    const std::vector<std::string> tasks = learned_tasks();
    if (std::find(tasks.begin(), tasks.end(), value) != tasks.end())
        return o.task = std::string(value), Result<void>{};
    if (!value.starts_with("long-")) {
        if (read_number(value, o.level) && o.level >= 1 && o.level <= kLevelCount) return {};
        return is_not(name, value, "a level from 1 to 7 or a task: " + known_learned_tasks());
    }
    o.long_map = std::string(value.substr(5));
    for (const LongContextPreset& preset : long_context_presets())
        if (preset.name == o.long_map) return {};
    return is_not(name, value, "long-4k, -16k, -32k, -64k, -128k or -1m");
}

Result<void> read_device(Options& o, std::string_view name, std::string_view value) {
    o.on_cpu = value == "cpu" || value == "0";
    int number = 0;
    if (!o.on_cpu && (!read_number(value, number) || number < 1))
        return is_not(name, value, "cpu or a number of `fovea devices`");
    o.vulkan_device = o.on_cpu ? -1 : number - 1;
    return {};
}

Result<void> read_size(Options& o, std::string_view name, std::string_view value) {
    const size_t x = value.find('x');
    if (x == std::string_view::npos || !read_number(value.substr(0, x), o.width) ||
        !read_number(value.substr(x + 1), o.height) || o.width < 640 || o.height < 400 || o.width > 16384 ||
        o.height > 16384)
        return is_not(name, value, "WIDTHxHEIGHT from 640x400 to 16384x16384");
    o.has_size = true;
    return {};
}

Result<void> read_export(Options& o, std::string_view name, std::string_view value) {
    for (const char* extension : {".csv", ".npy", ".npz", ".svg", ".fovea"})
        if (value.ends_with(extension)) return o.export_path = std::string(value), Result<void>{};
    return bad(name, "'" + std::string(value) + "' does not end in .csv, .npy, .npz, .svg or .fovea");
}

using Read = Result<void> (*)(Options&, std::string_view name, std::string_view value);

// Setters for a switch, and for an option that is stored unchanged.
template <bool Options::*member>
Result<void> set(Options& o, std::string_view, std::string_view) {
    return o.*member = true, Result<void>{};
}
template <std::string Options::*member>
Result<void> keep(Options& o, std::string_view, std::string_view value) {
    return o.*member = std::string(value), Result<void>{};
}

struct Option {
    app::OptionSpec spec;
    Read read;
};
constexpr Option kOptions[] = {
    {{"--preset", "LEVEL",
      "a model that learned a task: {0} (default: induction); 1 without weights, 2 trainable (default where "
      "a text is given), 3 causal, 4 dropout, 5 stacked heads, 6 weight split, 7 GPT block; long-4k to "
      "long-1m: a long head as a map"},
     read_preset},
    {{"--text", "TEXT", "instead of the tutorials' sentence"},
     [](Options& o, std::string_view, std::string_view v) {
         return o.text = std::string(v), Result<void>{};
     }},
    {{"--tokens", "WHAT", "words (default), characters or bytes of the text"},
     [](Options& o, std::string_view n, std::string_view v) {
         return read_choice(n, v, kTokenizerCount, tokenizer_name, "words, characters or bytes", o.tokenizer);
     }},
    {{"--precision", "P",
      "f32 (default), f16 storage of q, k and v, or f16-inputs where the device can; A of "
      "--against stays float32"},
     [](Options& o, std::string_view n, std::string_view v) {
         return read_choice(n, v, kPrecisionCount, precision_key, "f32, f16 or f16-inputs", o.precision);
     }},
    {{"--stage", "NAME", "the stage shown first: inputs, queries, scores, masked, weights, context, ..."},
     keep<&Options::stage>},
    {{"--device", "cpu|N", "a device by its number in `fovea devices`; default: the best Vulkan device"},
     read_device},
    {{"--size", "WxH", "size of the layout; default 1600x960"}, read_size},
    {{"--scale", "S", "pixels for one unit of the layout; default 1"},
     [](Options& o, std::string_view n, std::string_view v) -> Result<void> {
         if (!read_number(v, o.scale) || !(o.scale >= 0.75f && o.scale <= 8))
             return bad(n, "--scale is " + std::string(v) +
                               "; it must be from 0.75 to 8, and at most 3 for a window");
         return {};
     }},
    {{"--theme", "dark|light", "default dark, or a window's of the run before"},
     [](Options& o, std::string_view n, std::string_view v) -> Result<void> {
         if (v != "dark" && v != "light") return is_not(n, v, "dark or light");
         o.theme = v == "dark" ? Theme::dark : Theme::light;
         return {};
     }},
    {{"--screenshot", "FILE.png", "draws one picture without a window"}, keep<&Options::screenshot>},
    {{"--part", "PART",
      "the picture is of the window (default), of the view in its middle, or of the matrix: all "
      "cells or those of --select"},
     [](Options& o, std::string_view n, std::string_view v) {
         return read_choice(
             n, v, kPicturePartCount, [](PicturePart part) { return kPictureParts[size_t(part)]; },
             "window, view or matrix", o.look.part);
     }},
    {{"--no-legend", "", "a matrix without title and color bar"},
     [](Options& o, std::string_view, std::string_view) { return o.look.legend = false, Result<void>{}; }},
    {{"--transparent", "", "nothing behind the view's or the matrix's cells and letters"},
     [](Options& o, std::string_view, std::string_view) {
         return o.look.transparent = true, Result<void>{};
     }},
    {{"--open", "FILE",
      "safetensors, npz, npy, csv, png, a session (.fovea), a model's folder or .gguf; or just FILE", true},
     [](Options& o, std::string_view, std::string_view v) {
         return o.files.emplace_back(v), Result<void>{};
     }},
    {{"--head", "N", "the head that is shown, counted from 0"},
     [](Options& o, std::string_view n, std::string_view v) -> Result<void> {
         uint32_t head = 0;
         if (!read_number(v, head) || head > 1023) return is_not(n, v, "a head from 0 to 1023");
         o.head = head;
         return {};
     }},
    {{"--pick", "R,C", "the cell that is shown: numbers or tokens"}, keep<&Options::pick>},
    {{"--select", "A:B,C:D", "only rows A to B - 1 and columns C to D - 1 are exported"},
     keep<&Options::select>},
    {{"--exact", "", "a picture of a map waits for every tile, not only for its preview"},
     set<&Options::exact>},
    {{"--tiles", "WHERE",
      "who computes a map's tiles: device, cpu or auto (default: the device if it is hardware)"},
     [](Options& o, std::string_view n, std::string_view v) {
         constexpr std::string_view kNames[] = {"auto", "device", "cpu"};
         return read_choice(
             n, v, 3, [&](TilesOn on) { return kNames[size_t(on)]; }, "auto, device or cpu", o.tiles_on);
     }},
    {{"--show", "PANEL", "{0} (tour again: its next step)", true},
     [](Options& o, std::string_view n, std::string_view v) -> Result<void> {
         if (WindowState any; !show_by_word(any, v)) return is_not(n, v, "one of: " + show_words());
         o.show.emplace_back(v);
         return {};
     }},
    {{"--export", "FILE",
      "the shown matrix as .csv, .npy or .svg, all heads as .npz, or the session as .fovea"},
     read_export},
    {{"--against", "WHAT", "keeps A of a comparison: a level, a file or session, or a sentence in quotes"},
     [](Options& o, std::string_view, std::string_view v) {
         o.against = std::string(v);
         return o.show.emplace_back("compare"), Result<void>{};
     }},
    {{"--compare", "HOW", "side, halves or difference"},
     [](Options& o, std::string_view n, std::string_view v) {
         constexpr std::string_view kNames[] = {"side", "halves", "difference"};
         return read_choice(
             n, v, 3, [&](CompareHow how) { return kNames[size_t(how)]; }, "side, halves or difference",
             o.how);
     }},
    {{"--describe", "", "says in words what the picture shows"}, set<&Options::describe>},
    {{"--print", "",
      "prints the shown stage, one row a line, and nothing else; as `fovea session FILE` does"},
     set<&Options::print>},
    {{"--follow", "FILE.txt",
      "keeps FILE as a description of what the window shows, for screen readers and scripts"},
     keep<&Options::follow>},
    {{"--memory-limit", "MIB", "no more device memory than this"},
     [](Options& o, std::string_view n, std::string_view v) -> Result<void> {
         uint64_t mebibytes = 0;
         if (!read_number(v, mebibytes) || mebibytes < 16 || mebibytes > 1u << 24)
             return is_not(n, v, "a number of MiB from 16 to 16777216");
         o.memory_limit_bytes = mebibytes << 20;
         return {};
     }},
    {{"--roof", "", "measures the device's roof for the GPU panel"}, set<&Options::roof>},
    {{"--validation", "", "runs under the Vulkan validation layer; any message is an error"},
     set<&Options::validation>},
    {{"--version", "", "the version"}, set<&Options::version>},
    {{"--help", "", "this text"}, set<&Options::help>},
};

std::vector<app::OptionSpec> specs() {
    std::vector<app::OptionSpec> all;
    for (const Option& option : kOptions) all.push_back(option.spec);
    return all;
}

// Breaks a text into lines of at most `width` characters; lines after the first begin with `indent` spaces.
std::string wrapped(const std::string& text, size_t width, size_t indent) {
    std::string out;
    size_t line = 0;
    for (const std::string_view word : app::split(text, ' ')) {
        const bool fits = line == 0 || line + 1 + word.size() <= width;
        if (!fits) out += "\n" + std::string(indent, ' ');
        if (fits && line > 0) out += ' ';
        line = fits ? line + (line > 0) + word.size() : word.size();
        out += word;
    }
    return out;
}

}  // namespace

std::string options_help() {
    constexpr size_t kIndent = 26, kWidth = 92;
    std::string text =
        "usage: fovea-visualizer [options] [FILE]\n\n"
        "Attention you can read. Without --screenshot, --export or --describe it opens a window.\n\n";
    for (const Option& option : kOptions) {
        std::string left = "  " + std::string(option.spec.name);
        if (!option.spec.value.empty()) left += " " + std::string(option.spec.value);
        left.resize(std::max(left.size() + 1, kIndent), ' ');
        const bool is_show = option.spec.name == "--show";
        const std::string help =
            fill(std::string(option.spec.help).c_str(), {is_show ? show_words() : known_learned_tasks()});
        text += left + wrapped(help, kWidth, kIndent) + "\n";
    }
    return text;
}

Result<void> apply_options_of_a(Workbench& bench, const Options& o) {
    int level = o.level;
    const bool is_level = o.against.size() == 1 && read_number(o.against, level);
    if (is_level && (level < 1 || level > kLevelCount))
        return bad("--against", "'" + o.against + "' is not a level from 1 to 7");
    Settings settings = level_settings(level);
    if (o.text) settings.text = *o.text;
    settings.tokenizer = o.tokenizer;
    const bool is_text = o.against.find(' ') != std::string::npos;
    if (is_text) settings.text = o.against;
    bench.document.change(settings);
    if (!is_level && !is_text && !open_any(bench, o.against) && bench.preparing().empty())
        return bad("--against", bench.problems.back().text);
    return {};
}

Result<void> apply_options(Workbench& bench, const Options& o) {
    bench.view.how = o.how;
    bench.map.compute_tiles_on(o.tiles_on);
    Settings settings = o.task.empty() ? level_settings(o.level) : task_settings(o.task);
    if (o.text) settings.text = *o.text;
    settings.tokenizer = o.tokenizer;
    settings.precision = o.precision;
    bench.document.change(settings);
    const Session first = level_session(o.level, o.task);
    bench.view.wanted_stage = stage_name(first.stage);
    if (!o.task.empty()) bench.show_first_sight(first);
    for (const std::string& file : o.files)
        if (!open_any(bench, file) && bench.preparing().empty())
            return Error{FOVEA_INVALID_ARGUMENT, "", bench.problems.back().text};
    if (o.theme) bench.window.theme = *o.theme;
    if (!o.long_map.empty()) bench.map.want_preset(o.long_map);
    if (!o.stage.empty()) bench.view.wanted_stage = o.stage;
    if (o.head) bench.show_head_number(*o.head);
    if (o.first_view) bench.window.centre = CentreTab::sentence;
    for (const std::string& word : o.show) (void)show_by_word(bench.window, word);
    return {};
}

Result<Options> parse_options(int argc, char** argv) {
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    const std::vector<app::OptionSpec> known = specs();
    const Result<app::Arguments> arguments = app::Arguments::parse(words, known);
    if (!arguments) return arguments.error();
    Options o;
    for (const std::string_view file : arguments->positional()) o.files.emplace_back(file);
    // Trained heads are shown first, unless an option asks for something else.
    const std::string_view others[] = {"--preset", "--text", "--open", "--tokens", "--against"};
    const bool asked = std::any_of(std::begin(others), std::end(others),
                                   [&](std::string_view name) { return arguments->has(name); });
    if (o.files.empty() && !asked) o.task = "induction", o.first_view = true;
    for (const auto& [name, value] : arguments->given()) {
        const Option* option =
            std::find_if(std::begin(kOptions), std::end(kOptions),
                         [name = name](const Option& one) { return one.spec.name == name; });
        if (Result<void> r = option->read(o, name, value); !r) return r.error();
    }
    if (!o.show.empty() || !o.stage.empty() || !o.pick.empty() || !o.select.empty() || o.roof)
        o.first_view = false;
    if (!o.headless() && o.scale > 3)
        return bad("--scale", "--scale is above 3; for a window it must be at most 3");
    return o;
}

}  // namespace fovea::visualizer
