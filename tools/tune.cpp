// Measures the tiles of the kernel flash on a Vulkan device and writes down those that beat the planner's.
#include "arguments.hpp"
#include "bench/median.hpp"
#include "ceiling.hpp"
#include "engine_options.hpp"
#include "output_file.hpp"

#include <fovea/files/json.hpp>
#include <fovea/runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <random>

namespace fovea::app {
namespace {

constexpr OptionSpec kOptions[] = {
    {"--out", "FILE", "the file to write, for --tuning"},
    {"--device", "N|NAME", "a device by its number in `fovea devices`, or by a part of its name"},
    {"--dims", "N,N", "only the classes of calls that these value widths belong to (default: 64,128,256)"},
    {"--seconds", "S", "time for each class of calls (default 3)"},
    {"--json", "FILE", "also writes all that was measured there"},
    {"--help", "", "this text"},
};

// Gain over the planner's own tile that is worth writing down: less is noise.
constexpr double kMinGain = 0.05;
constexpr int kFewestRounds = 3;

struct Measured {
    size_t tile_class;
    FoveaFlashTile tile;  // all zero: the planner's own
    std::string work;
    double seconds;  // median
    bool chosen;
};

// A call of each class: enough work to fill the device, little enough to measure every tile some times.
FoveaAttentionDesc call_of(size_t tile_class, bool software) {
    constexpr uint32_t dims[] = {64, 128, 256};
    Attention call;
    call.batch(1).dims(dims[tile_class % 3]).kernel(FOVEA_KERNEL_FLASH);
    const uint64_t keys = software ? 2048 : 16384;
    if (tile_class / 3 == 0) call.heads(8).lengths(1, keys);
    if (tile_class / 3 == 1) call.heads(32, 8).lengths(1, keys);
    if (tile_class / 3 == 2)
        call.heads(software ? 2 : 16).lengths(software ? 256 : 2048, software ? 512 : 2048);
    return call.desc;
}

// The masks for which the map of a mask is measured, one for all heads: every second key at random, so that
// there is nothing to skip, or one of four blocks of 128 x 128.
enum class MaskKind { random, blocks };
constexpr const char* kMaskNames[] = {"every second key", "1 of 4 blocks"};

FoveaAttentionDesc masked_call(bool software) {
    FoveaAttentionDesc desc = Attention()
                                  .batch(1)
                                  .dims(64)
                                  .heads(software ? 2 : 16)
                                  .lengths(software ? 512 : 4096, software ? 1024 : 4096)
                                  .kernel(FOVEA_KERNEL_FLASH)
                                  .desc;
    desc.mask.present = 1;
    desc.mask.type = FOVEA_U8;
    return desc;
}

// The planner's own first. No tile of which most threads would hold no column.
std::vector<FoveaFlashTile> candidates(size_t tile_class, uint32_t dim_v) {
    const std::vector<uint32_t> rows[] = {{1}, {4}, {4, 8}};
    std::vector<FoveaFlashTile> tiles = {{}};
    for (const uint32_t r : rows[tile_class / 3])
        for (const uint32_t threads : {8u, 16u, 32u})
            for (const uint32_t quads : {1u, 2u})
                if (quads == 1 || 4 * threads < dim_v) tiles.push_back({r, threads, quads});
    return tiles;
}

class Tuner {
  public:
    Tuner(Engine& engine, double seconds) : engine_(engine), seconds_(seconds) {}

    // Measures all candidates of a class in interleaved runs; the best one last, with `chosen` set if it is
    // worth it.
    Result<std::vector<Measured>> tune(size_t tile_class) {
        const bool software = engine_.properties().device_class == FOVEA_CLASS_CPU;
        const FoveaAttentionDesc desc = call_of(tile_class, software);
        std::vector<Plan> plans;
        std::vector<Measured> rows;
        for (const FoveaFlashTile& tile : candidates(tile_class, desc.dim_v)) {
            FoveaDeviceProperties properties = engine_.properties();
            properties.flash_tiles[tile_class] = tile;
            Result<Plan> plan = plan_attention(properties, desc);
            if (!plan) return plan.error();
            plans.push_back(std::move(*plan));
            rows.push_back({tile_class, tile, describe(desc), 0, false});
        }
        if (Result<void> r = make_buffers(plans[0].info()); !r) return r.error();
        const Result<std::vector<double>> medians = time_by_turns(plans, software);
        if (!medians) return medians.error();
        for (size_t n = 0; n < rows.size(); ++n) rows[n].seconds = (*medians)[n];
        auto best = std::min_element(rows.begin(), rows.end(), [](const Measured& a, const Measured& b) {
            return a.seconds < b.seconds;
        });
        if (best->seconds > (1 - kMinGain) * rows[0].seconds) best = rows.begin();
        best->chosen = true;
        return rows;
    }

    // Seconds of a masked call without and with the map of its mask, for both kinds of masks.
    Result<MaskMapTimes> time_map(std::vector<std::string>& work) {
        const bool software = engine_.properties().device_class == FOVEA_CLASS_CPU;
        const FoveaAttentionDesc desc = masked_call(software);
        std::vector<Plan> plans;
        for (const FoveaMaskMap map : {FOVEA_MASK_MAP_NEVER, FOVEA_MASK_MAP_ALWAYS}) {
            FoveaDeviceProperties properties = engine_.properties();
            properties.mask_map = map;
            Result<Plan> plan = plan_attention(properties, desc);
            if (!plan) return plan.error();
            plans.push_back(std::move(*plan));
        }
        if (Result<void> r = make_buffers(plans[0].info()); !r) return r.error();
        double medians[2][2];
        for (const MaskKind kind : {MaskKind::random, MaskKind::blocks}) {
            if (Result<void> r = fill_mask(desc, kind); !r) return r.error();
            const Result<std::vector<double>> both = time_by_turns(plans, software);
            if (!both) return both.error();
            std::copy(both->begin(), both->end(), medians[int(kind)]);
            work.push_back(describe(desc) + ", mask of " + kMaskNames[int(kind)]);
        }
        return MaskMapTimes{medians[0][0], medians[0][1], medians[1][0], medians[1][1]};
    }

  private:
    // Medians of all plans, each run once before the clock.
    Result<std::vector<double>> time_by_turns(const std::vector<Plan>& plans, bool software) {
        std::vector<std::vector<double>> times(plans.size());
        for (const Plan& plan : plans)
            if (Result<double> warm = time(plan, software); !warm) return warm.error();
        double spent = 0;
        for (int round = 0; round < kFewestRounds || spent < seconds_; ++round) {
            for (size_t n = 0; n < plans.size(); ++n) {
                const Result<double> t = time(plans[n], software);
                if (!t) return t.error();
                times[n].push_back(*t);
                spent += *t;
            }
        }
        std::vector<double> medians;
        for (const std::vector<double>& each : times) medians.push_back(median(each));
        return medians;
    }

    Result<void> fill_mask(const FoveaAttentionDesc& desc, MaskKind kind) {
        std::mt19937 random(6);
        std::vector<uint8_t> shown(buffers_[FOVEA_BIND_MASK]->size_bytes());
        for (uint64_t n = 0; n < shown.size(); ++n) {
            const uint64_t i = n / desc.len_kv / 128, j = n % desc.len_kv / 128;
            shown[n] = kind == MaskKind::random ? random() >> 31 : (i * 3 + j) % 4 == 0;
        }
        return buffers_[FOVEA_BIND_MASK]->upload(std::as_bytes(std::span(shown)));
    }

    static std::string describe(const FoveaAttentionDesc& d) {
        return std::to_string(d.heads_q) + "/" + std::to_string(d.heads_kv) + " heads, " +
               std::to_string(d.len_q) + " x " + std::to_string(d.len_kv) + ", D " + std::to_string(d.dim_v);
    }

    Result<void> make_buffers(const FoveaPlanInfo& info) {
        kept_.clear();
        kept_.reserve(FOVEA_BIND_COUNT);
        std::fill(std::begin(buffers_), std::end(buffers_), nullptr);
        std::mt19937 random(5);
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.binding_mask >> i & 1)) continue;
            Result<DeviceBuffer> buffer = engine_.buffer(info.binding_bytes[i]);
            if (!buffer) return buffer.error();
            std::vector<float> values(buffer->size_bytes() / 4);
            for (float& x : values) x = float(random() >> 8) / float(1 << 23) - 1;
            if (Result<void> r = buffer->upload(std::as_bytes(std::span(values))); !r) return r;
            kept_.push_back(std::move(*buffer));
            buffers_[i] = &kept_.back();
        }
        return {};
    }

    // Returns a software driver's CPU time, else the time of the device's clock if it has one.
    Result<double> time(const Plan& plan, bool software) {
        const double begin = bench_now(software);
        const Result<RunReport> report = engine_.run(plan, buffers_);
        if (!report) return report.error();
        const double all = bench_now(software) - begin;
        return software || report->device_seconds == 0 ? all : report->device_seconds;
    }

    Engine& engine_;
    double seconds_;
    std::vector<DeviceBuffer> kept_;
    DeviceBuffer* buffers_[FOVEA_BIND_COUNT] = {};
};

std::string tile_text(const FoveaFlashTile& t) {
    if (!t.rows) return "the planner's own";
    return std::to_string(t.rows) + " rows, " + std::to_string(t.threads) + " threads, " +
           std::to_string(t.column_quads) + (t.column_quads == 1 ? " quad" : " quads");
}

std::string to_json(const Tuning& tuning, const std::vector<Measured>& rows, const MaskMapTimes& map) {
    std::string out = "{\"device\": " + json_string(tuning.device) +
                      ", \"driver\": " + json_string(tuning.driver) + ", \"rows\": [";
    for (const Measured& r : rows) {
        out += &r == rows.data() ? "\n  " : ",\n  ";
        out += "{\"class\": " + std::to_string(r.tile_class) + ", \"work\": " + json_string(r.work) +
               ", \"rows\": " + std::to_string(r.tile.rows) +
               ", \"threads\": " + std::to_string(r.tile.threads) +
               ", \"column_quads\": " + std::to_string(r.tile.column_quads) +
               ", \"median_seconds\": " + json_number(r.seconds) +
               ", \"chosen\": " + (r.chosen ? "true" : "false") + "}";
    }
    return out + "\n], \"mask_map\": {\"random_without_seconds\": " + json_number(map.random_without) +
           ", \"random_with_seconds\": " + json_number(map.random_with) +
           ", \"blocks_without_seconds\": " + json_number(map.blocks_without) +
           ", \"blocks_with_seconds\": " + json_number(map.blocks_with) +
           ", \"never\": " + (tuning.mask_map == FOVEA_MASK_MAP_NEVER ? "true" : "false") + "}}\n";
}

Result<std::vector<bool>> chosen_dims(const Arguments& a) {
    std::vector<bool> chosen(3, !a.has("--dims"));
    for (const std::string_view text : split(a.text("--dims"), ',')) {
        if (text.empty()) continue;
        const Result<int64_t> dim = parse_integer(text, "--dims");
        if (!dim) return dim.error();
        if (*dim < 1)
            return Error{FOVEA_INVALID_ARGUMENT, "--dims",
                         "--dims has " + std::string(text) + "; it must be at least 1"};
        chosen[*dim <= 64 ? 0 : *dim <= 128 ? 1 : 2] = true;
    }
    return chosen;
}

Result<int> tune(const Arguments& a) {
    if (!a.positional().empty())
        return Error{FOVEA_INVALID_ARGUMENT, std::string(a.positional()[0]),
                     "fovea_tune takes no argument, but '" + std::string(a.positional()[0]) + "' is given"};
    if (!a.has("--out"))
        return Error{FOVEA_INVALID_ARGUMENT, "--out", "--out is missing; give the file to write"};
    const std::filesystem::path inputs[] = {a.text("--tuning")};
    for (const std::string_view file : {a.text("--out"), a.text("--json")})
        if (!file.empty())
            if (Result<void> r = check_writable(file, {}, inputs); !r) return r.error();
    const Result<double> seconds = seconds_option(a, 3);
    if (!seconds) return seconds.error();
    const Result<std::vector<bool>> dims = chosen_dims(a);
    if (!dims) return dims.error();
    Result<EngineOptions> options = engine_options(a);
    if (!options) return options.error();
    options->backend = BackendChoice::vulkan;
    Result<Engine> engine = Engine::open(*options);
    if (!engine) return engine.error();
    Tuning tuning{engine->device().name, engine->device().driver, {}, FOVEA_MASK_MAP_AUTO};
    std::printf("%s, %s\n", tuning.device.c_str(), tuning.driver.c_str());
    Tuner tuner(*engine, *seconds);
    std::vector<Measured> all;
    for (size_t tile_class = 0; tile_class < FOVEA_TILE_CLASS_COUNT; ++tile_class) {
        if (!(*dims)[tile_class % 3]) continue;
        const Result<std::vector<Measured>> rows = tuner.tune(tile_class);
        if (!rows) return rows.error();
        for (const Measured& r : *rows) {
            std::printf("%-34s %-30s %10.3f ms %5.2f%s\n", r.work.c_str(), tile_text(r.tile).c_str(),
                        r.seconds * 1e3, r.seconds / (*rows)[0].seconds, r.chosen ? "  <- chosen" : "");
            if (r.chosen) tuning.flash_tiles[tile_class] = r.tile;
            all.push_back(r);
        }
        std::fflush(stdout);
    }
    std::vector<std::string> work;
    const Result<MaskMapTimes> map = tuner.time_map(work);
    if (!map) return map.error();
    tuning.mask_map = mask_map_worth(*map);
    const double times[2][2] = {{map->random_without, map->random_with},
                                {map->blocks_without, map->blocks_with}};
    for (int kind = 0; kind < 2; ++kind)
        std::printf("%s: %.3f ms without the map, %.3f ms with it\n", work[kind].c_str(),
                    times[kind][0] * 1e3, times[kind][1] * 1e3);
    std::printf("the map of a mask: %s\n",
                tuning.mask_map == FOVEA_MASK_MAP_NEVER ? "never" : "where it is likely to pay");
    if (a.has("--json"))
        if (Result<void> r = write_text_file(a.text("--json"), to_json(tuning, all, *map)); !r)
            return r.error();
    if (Result<void> r = write_text_file(a.text("--out"), tuning_text(tuning)); !r) return r.error();
    return 0;
}

void print_help() {
    std::printf(
        "usage: fovea_tune --out FILE [options]\n\n"
        "Measures the tiles that the kernel flash can have on one Vulkan device, for each class of calls, by "
        "turns,\n"
        "and writes down those that save 5%% or more over the planner's own, and whether the map of a mask "
        "pays. Of\n"
        "a software driver all times are processor time. The file is for this device and driver alone: give "
        "it to\n"
        "the other commands as --tuning FILE.\n\n");
    print_options(kOptions);
}

}  // namespace
}  // namespace fovea::app

int main(int argc, char** argv) {
    using namespace fovea::app;
    return run_command(std::vector<std::string_view>(argv + 1, argv + argc), kOptions, print_help, tune);
}
