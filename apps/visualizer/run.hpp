// The program: its command line; a window; or pictures, numbers and descriptions without one.
#pragma once

#include "document/workbench.hpp"

#include <fovea/fovea.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fovea::visualizer {

struct Options {
    int level = 2;
    std::string task;         // a model that learned it, in the place of the level
    bool first_view = false;  // nothing is asked for: the sentence of trained heads
    std::optional<std::string> text;
    Tokenizer tokenizer = Tokenizer::words;
    Precision precision = Precision::f32;
    bool on_cpu = false;
    int vulkan_device = -1;  // the n-th Vulkan device as `fovea devices` numbers them, minus 1; -1: the best
    uint32_t width = 1600, height = 960;  // units of the layout; pixels are these times scale
    bool has_size = false;                // asked for; a window has else that of the run before
    float scale = 1;
    std::optional<Theme> theme;      // none: dark, or a window's of the run before
    std::string stage;               // shown first; empty: weights
    PictureLook look;                // look of the screenshot, except its scale
    std::string screenshot;          // a PNG file: draw one picture without a window and end
    std::string export_path;         // the shown matrix or the session, by the extension
    std::vector<std::string> files;  // opened in this order
    std::vector<std::string> show;   // panels: see options_help
    TilesOn tiles_on = TilesOn::automatic;
    std::string against;   // kept as A of the comparison: see options_help
    std::string long_map;  // "128k": a long head as a map
    CompareHow how = CompareHow::side;
    bool exact = false;            // pictures of a map wait for every tile
    std::string pick;              // "3, 1" or "journey, step"
    std::string select;            // "0:2,1:3": rows and columns of an export, ends included
    std::optional<uint32_t> head;  // none: the session's, or the first
    bool describe = false;         // print a description of the picture
    bool print = false;            // the shown stage as text, and nothing else
    std::string follow;            // a file that is kept as a description of what the window shows
    bool roof = false;             // measured before the picture
    bool validation = false;
    uint64_t memory_limit_bytes = 0;  // limit of device memory; 0: the driver's own
    bool help = false, version = false;

    bool headless() const { return !screenshot.empty() || !export_path.empty() || describe || print; }
};

// The same for what --against names, to be computed and kept before.
Result<void> apply_options_of_a(Workbench& bench, const Options& options);
// A session for these options: level, text, files, panels, pick. Problems with files are errors here.
Result<void> apply_options(Workbench& bench, const Options& options);

Result<Options> parse_options(int argc, char** argv);
std::string options_help();

Result<void> run_window(const Options& options);
Result<void> run_headless(const Options& options);

// Computes what --against names and keeps it as A of the comparison; nothing where it names nothing.
Result<void> keep_a(GpuDevice& device, Workbench& bench, const Options& options);

// Describes a picture or window as text, for scripts, tests and screen readers: level, tokens, the shown
// stage's numbers and the picked cell's derivation.
std::string describe(Workbench& bench);

}  // namespace fovea::visualizer
