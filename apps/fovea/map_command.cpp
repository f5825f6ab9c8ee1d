#include "commands.hpp"

#include "attention_options.hpp"
#include "attention_tensors.hpp"
#include "output_file.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "standard_streams.hpp"

#include <fovea/files.hpp>
#include <fovea/files/attention_notes.hpp>
#include <fovea/inspect.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace fovea::app {
namespace {

constexpr OptionSpec kOwnOptions[] = {
    {"--preset", "NAME",
     "instead of a file, a long context with planted patterns: 4k, 16k, 32k, 64k, 128k, 1m"},
    {"--rows", "A:B", "queries A to B - 1; default all"},
    {"--keys", "A:B", "keys A to B - 1; default all"},
    {"--size", "WxH", "pixels; default one for each cell, at most 512 along either side"},
    {"--head", "N", "query head; default 0"},
    {"--entry", "N", "batch entry; default 0"},
    {"--reducer", "mass|max", "mass (default): what a row gives to a pixel's keys; max: the largest weight"},
    {"--colormap", "NAME", "viridis (default), magma, cividis, grey or blue-orange"},
    {"--color-scale", "log|linear", "how values are spread over the colors; default log"},
    {"--sampled", "", "one cell stands for each pixel: a preview"},
    {"--png", "FILE", "the picture, a pixel of it for each pixel"},
    {"--csv", "FILE", "its numbers"},
};

constexpr uint64_t kDefaultSide = 512;
// A logarithmic range spans at most this many decades below the largest number.
constexpr double kDecades = 6;

std::vector<OptionSpec> all_options() {
    std::vector<OptionSpec> specs(std::begin(kOwnOptions), std::end(kOwnOptions));
    const std::vector<OptionSpec> shared = attention_command_options(AttentionCommand::map);
    specs.insert(specs.end(), shared.begin(), shared.end());
    return specs;
}

void print_map_help(std::span<const OptionSpec> specs) {
    std::printf(
        "usage: fovea map IN.safetensors|--preset NAME [--rows A:B] [--keys A:B] [--size WxH] --png FILE "
        "[options]\n\n"
        "A picture of a rectangle of the attention weights, made from q, k and the rows' log-sum-exp: the "
        "matrix itself is\n"
        "never held. The file is one that `fovea attend` takes; with a tensor lse [B, Hq, Lq] (an output of "
        "attend) in it,\n"
        "the forward pass is not run again.\n\n");
    print_options(specs);
}

struct Job {
    AttentionCall call;
    LongContext preset;  // owns its values
    std::vector<float> lse;
    bool has_lse = false;
    FoveaMapTileDesc tile{};
    MapReducer reducer = MapReducer::mass;
    Colormap map = Colormap::viridis;
    ColorScale scale = ColorScale::logarithmic;
    EngineOptions options;
    uint64_t chunk = 0;  // with --shards
};

// "A:B" within [0, length].
Result<void> read_range(const Arguments& a, std::string_view name, uint64_t length, uint64_t& first,
                        uint64_t& count) {
    first = 0, count = length;
    if (!a.has(name)) return {};
    const std::vector<std::string_view> ends = split(a.text(name), ':');
    if (ends.size() != 2)
        return bad(name, std::string(name) + " is '" + std::string(a.text(name)) +
                             "'; it must be A:B, such as 0:64 for the first 64");
    const Result<int64_t> begin = parse_integer(ends[0], name), end = parse_integer(ends[1], name);
    if (!begin) return begin.error();
    if (!end) return end.error();
    if (*begin < 0 || *begin >= *end || uint64_t(*end) > length)
        return bad(name, std::string(name) + " is " + std::string(a.text(name)) +
                             "; it must be within 0:" + std::to_string(length));
    first = uint64_t(*begin), count = uint64_t(*end - *begin);
    return {};
}

Result<void> read_size(const Arguments& a, FoveaMapTileDesc& tile) {
    tile.width = uint32_t(std::min(tile.key_count, kDefaultSide));
    tile.height = uint32_t(std::min(tile.row_count, kDefaultSide));
    if (!a.has("--size")) return {};
    const std::vector<std::string_view> sides = split(a.text("--size"), 'x');
    if (sides.size() != 2)
        return bad("--size",
                   "--size is '" + std::string(a.text("--size")) + "'; it must be WxH, such as 512x512");
    const Result<int64_t> width = parse_integer(sides[0], "--size"),
                          height = parse_integer(sides[1], "--size");
    if (!width) return width.error();
    if (!height) return height.error();
    const auto fits = [](int64_t pixels, uint64_t cells) {
        return pixels >= 1 && uint64_t(pixels) <= cells && pixels <= FOVEA_TILE_MAX_SIDE;
    };
    if (!fits(*width, tile.key_count) || !fits(*height, tile.row_count))
        return bad("--size", "--size is " + std::string(a.text("--size")) + "; it must be at most " +
                                 std::to_string(std::min<uint64_t>(tile.key_count, FOVEA_TILE_MAX_SIDE)) +
                                 "x" +
                                 std::to_string(std::min<uint64_t>(tile.row_count, FOVEA_TILE_MAX_SIDE)) +
                                 " here: a pixel holds at least one key and one row, and a side has up to " +
                                 std::to_string(int(FOVEA_TILE_MAX_SIDE)) + " pixels");
    tile.width = uint32_t(*width), tile.height = uint32_t(*height);
    return {};
}

Result<void> read_choices(const Arguments& a, bool writes, Job& job) {
    const std::string_view reducer = a.text("--reducer"), scale = a.text("--color-scale"),
                           map = a.text("--colormap");
    if (reducer == "max")
        job.reducer = MapReducer::max;
    else if (!reducer.empty() && reducer != "mass")
        return bad("--reducer", "'" + std::string(reducer) + "' is not mass or max");
    if (scale == "linear")
        job.scale = ColorScale::linear;
    else if (!scale.empty() && scale != "log")
        return bad("--color-scale", "'" + std::string(scale) + "' is not log or linear");
    if (!map.empty()) {
        const std::optional<Colormap> found = colormap_from_name(map);
        if (!found)
            return bad("--colormap",
                       "'" + std::string(map) + "' is not viridis, magma, cividis, grey or blue-orange");
        job.map = *found;
    }
    if (!a.has("--png") && !a.has("--csv"))
        return bad("--png",
                   "--png and --csv are missing; give --png FILE for the picture, --csv FILE for its values, "
                   "or both");
    if (a.text("--png") == a.text("--csv"))
        return bad("--csv", "--csv and --png are both " + std::string(a.text("--csv")) + "; give two files");
    const std::vector<std::filesystem::path> inputs(a.positional().begin(), a.positional().end());
    for (const auto& [option, format] : {std::pair{"--png", ".png"}, std::pair{"--csv", ".csv"}})
        if (writes && a.has(option))
            if (Result<void> r = check_writable(a.text(option), format, inputs); !r) return r;
    return {};
}

Result<void> read_tile(const Arguments& a, Job& job) {
    FoveaMapTileDesc& tile = job.tile;
    const FoveaAttentionDesc& d = job.call.desc;
    tile.struct_size = sizeof tile;
    const Result<uint64_t> head = a.unsigned_integer("--head", 0), entry = a.unsigned_integer("--entry", 0);
    if (!head) return head.error();
    if (!entry) return entry.error();
    if (*head >= d.heads_q)
        return bad("--head", "--head is " + std::to_string(*head) + "; it must be below " +
                                 std::to_string(d.heads_q) + ", the number of query heads");
    if (*entry >= d.batch)
        return bad("--entry", "--entry is " + std::to_string(*entry) + "; it must be below " +
                                  std::to_string(d.batch) + ", the batch size");
    tile.first_head = uint32_t(*head), tile.head_count = 1, tile.batch = uint32_t(*entry);
    if (Result<void> r = read_range(a, "--rows", d.len_q, tile.first_row, tile.row_count); !r) return r;
    if (Result<void> r = read_range(a, "--keys", d.len_kv, tile.first_key, tile.key_count); !r) return r;
    if (Result<void> r = read_size(a, tile); !r) return r;
    tile.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    tile.sampled = a.has("--sampled") ? 1 : 0;
    return {};
}

Result<void> read_file(const Arguments& a, Job& job) {
    const Result<std::optional<bool>> rows_first = rows_first_option(a);
    if (!rows_first) return rows_first.error();
    const Result<TensorSet> file = load_tensors(std::filesystem::path(a.positional()[0]));
    if (!file) return file.error();
    if (Result<void> r = read_attention_tensors(*file, *rows_first, job.call); !r) return r;
    const Tensor* lse = file->find("lse");
    // Where the metadata say what call the lse is of, it is of no other.
    const Result<AttentionNotes> notes = attention_notes(*file);
    const std::string_view other = a.first_of({"--scale", "--causal", "--q-offset", "--window", "--softcap"});
    if (lse && notes && !notes->text.empty() && !other.empty()) {
        job.call.notes.push_back("lse: computed anew, as " + std::string(other) + " is given");
        lse = nullptr;
    }
    if (!lse) return {};
    Result<std::vector<float>> values = to_f32(*lse);
    if (!values) return values.error();
    const FoveaAttentionDesc& d = job.call.desc;
    const uint64_t rows = uint64_t{d.batch} * d.heads_q * d.len_q;
    if (values->size() != rows)
        return bad("tensor 'lse'", "tensor 'lse' has " + std::to_string(values->size()) +
                                       " elements; it must have " + std::to_string(rows) +
                                       ", one for each row of q");
    job.lse = std::move(*values);
    job.has_lse = true;
    return {};
}

Result<void> read_preset(const Arguments& a, Job& job) {
    Result<LongContext> preset = long_context(a.text("--preset"));
    if (!preset) return bad("--preset", "--" + preset.error().text);
    job.preset = std::move(*preset);
    job.call.desc = job.preset.call;
    job.call.desc.outputs = 0;
    const auto bind = [&](FoveaBinding binding, std::vector<float>& values) {
        job.call.bindings[binding] = {values.data(), values.size() * sizeof(float)};
    };
    bind(FOVEA_BIND_Q, job.preset.q);
    bind(FOVEA_BIND_K, job.preset.k);
    bind(FOVEA_BIND_V, job.preset.k);  // lse does not depend on it
    return {};
}

Result<RunReport> compute_lse(Engine& engine, Job& job) {
    FoveaAttentionDesc forward = job.call.desc;
    forward.outputs = FOVEA_OUTPUT_LSE;
    job.lse.resize(size_t(forward.batch) * forward.heads_q * forward.len_q);
    job.call.bindings[FOVEA_BIND_LSE] = {job.lse.data(), job.lse.size() * sizeof(float)};
    Progress progress("log-sum-exp of the rows");
    RunOptions run;
    run.progress = [&](double done) { return progress(done); };
    return engine.attention(forward, job.call.bindings, run);
}

struct Pixels {
    std::vector<uint64_t> mass;
    std::vector<float> max;
};

// Room for the pixels; lse is bound where there is one.
void bind_pixels(Job& job, Pixels& pixels) {
    const size_t count = size_t(job.tile.width) * job.tile.height;
    pixels.mass.resize(count), pixels.max.resize(count);
    HostBindings& bindings = job.call.bindings;
    if (!job.lse.empty()) bindings[FOVEA_BIND_LSE] = {job.lse.data(), job.lse.size() * sizeof(float)};
    bindings[FOVEA_BIND_TILE_MASS] = {pixels.mass.data(), count * sizeof(uint64_t)};
    bindings[FOVEA_BIND_TILE_MAX] = {pixels.max.data(), count * sizeof(float)};
}

Result<RunReport> compute_tile(Engine& engine, Job& job, Pixels& pixels) {
    bind_pixels(job, pixels);
    Progress progress("map");
    RunOptions run;
    run.progress = [&](double done) { return progress(done); };
    return engine.run_on_host(plan_map_tile(engine.properties(), job.call.desc, job.tile), job.call.bindings,
                              run);
}

ColorRange range_of(const Job& job, std::span<const float> values) {
    double largest = 0, smallest = 1e300;
    for (const float value : values) {
        if (!std::isfinite(value)) continue;
        largest = std::max(largest, double(value));
        if (value > 0) smallest = std::min(smallest, double(value));
    }
    if (largest == 0) return {0, 1, ColorScale::linear};
    if (job.scale == ColorScale::linear) return {0, largest, job.scale};
    return {std::max(std::min(smallest, largest / 10), largest * std::pow(10.0, -kDecades)), largest,
            job.scale};
}

Result<void> write_png(const std::string& path, const Job& job, std::span<const float> values,
                       const ColorRange& range) {
    const ColorTable table = color_table(job.map);
    std::vector<uint8_t> rgb;
    rgb.reserve(values.size() * 3);
    for (const float value : values) {
        const Rgb color = color_of(value, table, range);
        rgb.insert(rgb.end(), {color.r, color.g, color.b});
    }
    const Result<Tensor> image =
        make_tensor("map", FOVEA_U8, {job.tile.height, job.tile.width, 3}, std::as_bytes(std::span(rgb)));
    if (!image) return image.error();
    if (const Result<uint64_t> written = save_png(path, *image); !written) return written.error();
    return {};
}

Result<void> write_csv(const std::string& path, const Job& job, std::span<const float> values) {
    const Result<Tensor> table =
        make_tensor("map", FOVEA_F32, {job.tile.height, job.tile.width}, std::as_bytes(values));
    if (!table) return table.error();
    if (const Result<uint64_t> written = save_csv(path, *table); !written) return written.error();
    return {};
}

void print_summary(const Job& job, const RunReport* forward, const RunReport& report, const Pixels& pixels,
                   const ColorRange& range) {
    const FoveaMapTileDesc& t = job.tile;
    const FoveaAttentionDesc& d = job.call.desc;
    const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    std::printf("device: %s\nkernel: %s\n", report.device.c_str(), report.reason.c_str());
    std::printf("rows %llu:%llu, keys %llu:%llu of %llu x %llu, in %u x %u pixels%s\n", number(t.first_row),
                number(t.first_row + t.row_count), number(t.first_key), number(t.first_key + t.key_count),
                number(d.len_q), number(d.len_kv), t.width, t.height,
                t.sampled ? ", one cell of each (a preview)" : "");
    if (forward) std::printf("log-sum-exp: %.3f s (%s)\n", forward->seconds, forward->reason.c_str());
    for (const std::string& note : job.call.notes) std::printf("note: %s\n", without_controls(note).c_str());
    std::printf("map: %.3f s, slices: %llu, workspace: %llu bytes\n", report.seconds, number(report.slices),
                number(report.workspace_bytes));
    uint64_t invalid = 0;
    double mass = 0;
    for (const uint64_t units : pixels.mass) {
        invalid += units == FOVEA_TILE_INVALID;
        if (units != FOVEA_TILE_INVALID) mass += double(units) * FOVEA_TILE_UNIT;
    }
    if (!t.sampled) std::printf("mass of the rectangle: %.6g, from %llu rows\n", mass, number(t.row_count));
    if (invalid)
        std::printf("invalid pixels: %llu (inputs that are not finite, or an lse of another call)\n",
                    number(invalid));
    std::printf("colors: %.4g to %.4g, %s\n", range.low, range.high,
                range.scale == ColorScale::linear ? "linear" : "logarithmic");
}

// Everything that can be wrong before a device is opened; `writes` for the process that writes the picture.
Result<void> prepare(const Arguments& a, bool writes, Job& job) {
    const bool preset = a.has("--preset");
    if (a.positional().size() != (preset ? 0u : 1u))
        return preset ? bad("--preset", "--preset cannot be combined with a file; leave '" +
                                            printable_name(a.positional()[0], 400) + "' out")
               : a.positional().empty()
                   ? bad("input", "the input file is missing; give one, or a made-up context with --preset")
                   : wrong_input_files("map", a);
    if (preset && a.has("--layout")) return bad("--layout", "--layout cannot be combined with --preset");
    if (Result<void> r = read_choices(a, writes, job); !r) return r;
    const Result<EngineOptions> options = engine_options(a);
    if (!options) return options.error();
    job.options = *options;
    const Result<uint64_t> chunk = chunk_option(a);
    if (!chunk) return chunk.error();
    job.chunk = *chunk;
    if (Result<void> r = preset ? read_preset(a, job) : read_file(a, job); !r) return r;
    if (Result<void> r = apply_attention_options(a, AttentionCommand::map, job.call.desc); !r) return r;
    return read_tile(a, job);
}

Result<int> write(const Arguments& a, const Job& job, const RunReport* forward, const RunReport& report,
                  const Pixels& pixels) {
    const std::vector<float> values =
        job.reducer == MapReducer::max ? pixels.max : map_values(job.tile, job.call.desc.len_q, pixels.mass);
    const ColorRange range = range_of(job, values);
    const std::string png(a.text("--png")), csv(a.text("--csv"));
    {
        const HeldInterrupts held;
        if (!png.empty())
            if (Result<void> r = write_png(png, job, values, range); !r) return r.error();
        if (!csv.empty())
            if (Result<void> r = write_csv(csv, job, values); !r) return r.error();
    }
    print_summary(job, forward, report, pixels, range);
    for (const std::string& path : {png, csv})
        if (!path.empty()) std::printf("wrote: %s\n", path.c_str());
    return 0;
}

Result<int> map_alone(const Arguments& a) {
    Job job;
    if (Result<void> r = prepare(a, true, job); !r) return r.error();
    Result<Engine> engine = Engine::open(job.options);
    if (!engine) return engine.error();
    std::optional<RunReport> forward;
    if (!job.has_lse) {
        Result<RunReport> report = compute_lse(*engine, job);
        if (!report) return report.error();
        forward = std::move(*report);
    }
    Pixels pixels;
    const Result<RunReport> report = compute_tile(*engine, job, pixels);
    if (!report) return report.error();
    return write(a, job, forward ? &*forward : nullptr, *report, pixels);
}

// Every rank returns the same error, so that none waits for another; the first one says it.
Result<int> map_on(Ranks& ranks, const Arguments& a) {
    Job job;
    if (Result<void> r = ranks.agree(prepare(a, ranks.first(), job)); !r) return r.error();
    Result<Engine> engine = ranks.open_engine(job.options);
    if (!engine) return engine.error();
    Pixels pixels;
    bind_pixels(job, pixels);
    Progress progress("map");
    RunOptions run;
    if (ranks.first()) run.progress = [&](double done) { return progress(done); };
    const Result<RunReport> report = ranks.map_tile(*engine, job.call, job.tile, job.chunk, run);
    if (!report) return report.error();
    return ranks.first() ? write(a, job, nullptr, *report, pixels) : 0;
}

Result<int> map(const Arguments& a) { return a.has("--shards") ? on_every_rank(a, map_on) : map_alone(a); }

}  // namespace

int map_command(Words words) {
    const std::vector<OptionSpec> specs = all_options();
    return run_command(
        words, specs, [&] { print_map_help(specs); }, naming_options(map));
}

}  // namespace fovea::app
