#include "runtime/backend.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <memory>

// The file, one field on each line; "#" begins a comment:
//
//   fovea tuning 1
//   device llvmpipe (LLVM 19.1.7, 256 bits)
//   driver llvmpipe: Mesa 26.1.6 ...
//   mask_map auto
//   flash_tile rows 1 dim_v 64: 1 rows 16 threads 1 column_quads
//
// A class of calls that has no line keeps the planner's own tile.
namespace fovea {
namespace {

constexpr std::string_view kMagic = "fovea tuning 1";
constexpr size_t kMaxBytes = 1 << 16;
// See FOVEA_TILE_CLASS_COUNT.
constexpr const char* kRowNames[] = {"1", "4", "more"};
constexpr const char* kDimNames[] = {"64", "128", "more"};
constexpr const char* kMapNames[] = {"auto", "never", "always"};

Error bad(std::string field, size_t line, const std::string& text) {
    return Error{FOVEA_INVALID_ARGUMENT, std::move(field), "line " + std::to_string(line) + ": " + text};
}

// Cuts `prefix` off the front of `text`.
bool take(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

bool take_number(std::string_view& text, uint32_t& value) {
    const std::from_chars_result r = std::from_chars(text.data(), text.data() + text.size(), value);
    if (r.ec != std::errc()) return false;
    text.remove_prefix(size_t(r.ptr - text.data()));
    return true;
}

template <size_t N>
bool take_name(std::string_view& text, const char* const (&names)[N], uint32_t& index) {
    for (index = 0; index < N; ++index)
        if (take(text, names[index])) return true;
    return false;
}

// "rows 1 dim_v 64: 1 rows 16 threads 1 column_quads"
Result<void> read_tile(std::string_view text, size_t line, Tuning& tuning) {
    const std::string all(text);
    uint32_t rows = 0, dims = 0;
    FoveaFlashTile tile{};
    if (!take(text, "rows ") || !take_name(text, kRowNames, rows) || !take(text, " dim_v ") ||
        !take_name(text, kDimNames, dims) || !take(text, ": ") || !take_number(text, tile.rows) ||
        !take(text, " rows ") || !take_number(text, tile.threads) || !take(text, " threads ") ||
        !take_number(text, tile.column_quads) || text != " column_quads")
        return bad("flash_tile", line,
                   "'" + all + "' is not 'rows 1|4|more dim_v 64|128|more: N rows N threads N column_quads'");
    FoveaFlashTile& to = tuning.flash_tiles[3 * rows + dims];
    if (to.rows) return bad("flash_tile", line, "this class of calls has a second tile; give it one");
    if (tile.rows == 0) return bad("flash_tile", line, "rows is 0; it must be at least 1");
    to = tile;
    return {};
}

Result<void> read_line(std::string_view text, size_t line, Tuning& tuning) {
    if (take(text, "device ")) {
        tuning.device = text;
    } else if (take(text, "driver ")) {
        tuning.driver = text;
    } else if (take(text, "mask_map ")) {
        uint32_t map = 0;
        if (!take_name(text, kMapNames, map) || !text.empty())
            return bad("mask_map", line, "'" + std::string(text) + "' is not auto, never or always");
        tuning.mask_map = FoveaMaskMap(map);
    } else if (take(text, "flash_tile ")) {
        return read_tile(text, line, tuning);
    } else {
        return bad(std::string(text.substr(0, text.find(' '))), line,
                   "'" + std::string(text.substr(0, 40)) +
                       "' does not begin with device, driver, mask_map or flash_tile");
    }
    return {};
}

}  // namespace

FoveaMaskMap mask_map_worth(const MaskMapTimes& t) {
    constexpr double kMinGain = 0.05;  // less is noise
    const double saved = t.blocks_without - t.blocks_with, cost = t.random_with - t.random_without;
    return saved < kMinGain * t.blocks_without || cost > saved ? FOVEA_MASK_MAP_NEVER : FOVEA_MASK_MAP_AUTO;
}

std::string tuning_text(const Tuning& tuning) {
    std::string out = std::string(kMagic) + "\ndevice " + tuning.device + "\ndriver " + tuning.driver +
                      "\nmask_map " + kMapNames[tuning.mask_map] + "\n";
    for (size_t i = 0; i < std::size(tuning.flash_tiles); ++i) {
        const FoveaFlashTile& t = tuning.flash_tiles[i];
        if (!t.rows) continue;
        out += std::string("flash_tile rows ") + kRowNames[i / 3] + " dim_v " + kDimNames[i % 3] + ": " +
               std::to_string(t.rows) + " rows " + std::to_string(t.threads) + " threads " +
               std::to_string(t.column_quads) + " column_quads\n";
    }
    return out;
}

Result<Tuning> read_tuning(std::string_view text) {
    Tuning tuning;
    size_t line = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        std::string_view words = text.substr(at, end - at);
        at = end + 1;
        ++line;
        if (words.ends_with('\r')) words.remove_suffix(1);
        if (line == 1) {
            if (words != kMagic)
                return bad("version", line,
                           "'" + std::string(words.substr(0, 40)) + "' is not '" + std::string(kMagic) +
                               "'; give a file that `./dev bench tune` wrote");
            continue;
        }
        if (words.empty() || words[0] == '#') continue;
        if (Result<void> r = read_line(words, line, tuning); !r) return r.error();
    }
    if (line == 0) return bad("version", 1, "the file is empty; give one that `./dev bench tune` wrote");
    if (tuning.device.empty()) return bad("device", line, "the file ends without its line 'device NAME'");
    if (tuning.driver.empty()) return bad("driver", line, "the file ends without its line 'driver NAME'");
    return tuning;
}

Result<void> apply_tuning(const Tuning& tuning, DeviceInfo& device) {
    if (device.properties.backend != FOVEA_BACKEND_VULKAN)
        return Error{FOVEA_INVALID_ARGUMENT, "tuning.device",
                     "a tuning needs a Vulkan device, and this is " + device.name + "; leave the tuning out"};
    if (tuning.device != device.name)
        return Error{FOVEA_INVALID_ARGUMENT, "tuning.device",
                     "the tuning was measured on '" + tuning.device + "', and this device is '" +
                         device.name + "'; measure it with `./dev bench tune`"};
    if (tuning.driver != device.driver)
        return Error{FOVEA_INVALID_ARGUMENT, "tuning.driver",
                     "the tuning was measured with the driver '" + tuning.driver + "', and this one is '" +
                         device.driver + "'; measure it with `./dev bench tune`"};
    std::copy(std::begin(tuning.flash_tiles), std::end(tuning.flash_tiles), device.properties.flash_tiles);
    device.properties.mask_map = tuning.mask_map;
    // The planner decides which tiles are possible.
    FoveaAttentionDesc desc = foveaAttentionDesc();
    desc.batch = desc.heads_q = desc.heads_kv = desc.dim_qk = desc.dim_v = 1;
    desc.len_q = desc.len_kv = 1;
    Diag diag;
    if (foveaCheckAttention(&device.properties, &desc, &diag) != FOVEA_OK) return diag.error();
    return {};
}

namespace runtime {

Result<void> tune_from_file(const std::string& file, DeviceInfo& device) {
    const auto in_file = [&](Error error) {
        error.text = file + ": " + error.text;
        return error;
    };
    // No stream of C++, because libfovea_runtime.so holds its own C++ library: every locale would come with
    // it.
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rb"), std::fclose);
    std::string text(kMaxBytes + 1, '\0');
    if (in) text.resize(std::fread(text.data(), 1, text.size(), in.get()));
    if (!in || std::ferror(in.get()) != 0)
        return Error{FOVEA_IO_ERROR, "tuning_file", file + " cannot be read"};
    if (text.size() > kMaxBytes)
        return Error{FOVEA_IO_ERROR, "tuning_file", file + " has more than 64 KiB, the limit of a tuning"};
    const Result<Tuning> tuning = read_tuning(text);
    if (!tuning) return in_file(tuning.error());
    if (Result<void> r = apply_tuning(*tuning, device); !r) return in_file(r.error());
    return {};
}

}  // namespace runtime
}  // namespace fovea
