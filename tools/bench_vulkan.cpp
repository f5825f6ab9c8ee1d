// Attention on a Vulkan device, measured against what the device reaches in the same process.
#include "arguments.hpp"
#include "bench/median.hpp"
#include "ceiling.hpp"
#include "engine_options.hpp"
#include "output_file.hpp"

#include <fovea/files/json.hpp>
#include <fovea/runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <random>

namespace fovea::app {
namespace {

constexpr OptionSpec kOptions[] = {
    {"--device", "N|NAME", "a device by its number in `fovea devices`, or by a part of its name"},
    {"--suite", "NAMES", "by comma: prefill, decode, fused, window, splits, mask (default: all)"},
    {"--longest", "L",
     "leave out cases with more keys (default: 2048, of decode 32768, on a software driver)"},
    {"--seconds", "S", "time for each row (default 0.5)"},
    {"--tuning", "FILE", "what `./dev bench tune` measured on this device"},
    {"--precision", "f32|f16-inputs",
     "f16-inputs: inputs of products may be rounded to float16 (default: f32)"},
    {"--json", "FILE", "also writes the rows there"},
    {"--help", "", "this text"},
};

constexpr size_t kFewestRounds = 3;
// Time for a row including the limits that are measured with it, in multiples of --seconds.
constexpr double kMaxLimits = 20;

enum class MaskKind { none, random, blocks };

struct Case {
    std::string suite, name;
    uint32_t heads_q, heads_kv;
    uint64_t len_q, len_kv;
    uint32_t dim;
    FoveaDtype type;
    bool causal;
    int64_t window;  // keys to the left; -1: none
    FoveaKernel kernel;
    bool one_core;  // planned for a device of one core: keys are not split
    bool reads;     // the limit is reading k and v, not arithmetic
    MaskKind mask = MaskKind::none;
    FoveaMaskMap map = FOVEA_MASK_MAP_AUTO;
};

struct Row {
    Case c;
    std::string kernel;
    double seconds = 0, rate = 0, ceiling = 0;  // GFLOP/s, or GB/s
    uint64_t device_bytes = 0, slices = 0;
};

Case prefill(uint64_t len, uint32_t heads_q, uint32_t heads_kv, uint32_t dim, FoveaDtype type, bool causal) {
    const std::string shape = std::to_string(heads_q) + "/" + std::to_string(heads_kv) + " heads, D " +
                              std::to_string(dim) + (type == FOVEA_F16 ? ", f16" : "") +
                              (causal ? ", causal" : "");
    return {"prefill", shape,  heads_q, heads_kv,          len,   len,  dim,
            type,      causal, -1,      FOVEA_KERNEL_AUTO, false, false};
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const uint64_t len : {512, 1024, 2048, 4096, 8192, 16384}) {
        cases.push_back(prefill(len, 12, 12, 64, FOVEA_F32, false));
        cases.push_back(prefill(len, 12, 12, 64, FOVEA_F32, true));
        cases.push_back(prefill(len, 12, 12, 64, FOVEA_F16, false));
        cases.push_back(prefill(len, 16, 4, 128, FOVEA_F32, true));
    }
    for (const uint64_t len : {8192, 32768, 131072})
        for (const FoveaDtype type : {FOVEA_F32, FOVEA_F16})
            cases.push_back({"decode", type == FOVEA_F16 ? "32/8 heads, D 128, f16" : "32/8 heads, D 128", 32,
                             8, 1, len, 128, type, false, -1, FOVEA_KERNEL_AUTO, false, true});
    for (const uint64_t len : {512, 2048, 4096})
        for (const FoveaKernel kernel : {FOVEA_KERNEL_STAGED, FOVEA_KERNEL_FLASH})
            cases.push_back({"fused", kernel_name(kernel), 4, 4, len, len, 64, FOVEA_F32, false, -1, kernel,
                             false, false});
    for (const uint64_t len : {2048, 8192}) {
        cases.push_back(
            {"window", "full", 4, 4, len, len, 64, FOVEA_F32, false, -1, FOVEA_KERNEL_FLASH, false, false});
        cases.push_back({"window", "256 to the left, causal", 4, 4, len, len, 64, FOVEA_F32, true, 256,
                         FOVEA_KERNEL_FLASH, false, false});
    }
    for (const MaskKind mask : {MaskKind::random, MaskKind::blocks})
        for (const FoveaMaskMap map : {FOVEA_MASK_MAP_NEVER, FOVEA_MASK_MAP_ALWAYS})
            cases.push_back({"mask",
                             std::string(mask == MaskKind::random ? "half of all keys" : "1 of 4 blocks") +
                                 (map == FOVEA_MASK_MAP_ALWAYS ? ", map" : ", no map"),
                             4, 4, 2048, 2048, 64, FOVEA_F32, false, -1, FOVEA_KERNEL_FLASH, false, false,
                             mask, map});
    for (const bool one_core : {false, true})
        cases.push_back({"splits", one_core ? "one for all keys" : "as planned", 1, 1, 1, 32768, 128,
                         FOVEA_F32, false, -1, FOVEA_KERNEL_FLASH, one_core, true});
    return cases;
}

FoveaAttentionDesc describe(const Case& c, FoveaPrecision precision) {
    Attention call;
    call.desc.precision = precision;
    call.batch(1).heads(c.heads_q, c.heads_kv).lengths(c.len_q, c.len_kv).dims(c.dim).kernel(c.kernel);
    call.types(c.type);
    if (c.causal) call.causal(Align::bottom_right);
    if (c.window >= 0) {
        call.desc.flags |= FOVEA_FLAG_WINDOW;
        call.desc.window_left = c.window, call.desc.window_right = -1;
    }
    if (c.mask != MaskKind::none) call.desc.mask.present = 1, call.desc.mask.type = FOVEA_U8;
    return call.desc;
}

// 4*B*H*Lq*Lkv*D, half of it where causal; in a window the keys that are seen.
double work_of(const Case& c) {
    const double each = c.dim * double(c.type == FOVEA_F16 ? 2 : 4);
    if (c.reads) return 2 * double(c.heads_kv) * double(c.len_kv) * each;
    const double keys = c.window >= 0 ? std::min(double(c.len_kv), double(c.window + 1))
                                      : double(c.len_kv) * (c.causal ? 0.5 : 1);
    return 4.0 * c.heads_q * double(c.len_q) * keys * c.dim;
}

class Bench {
  public:
    Bench(Engine& engine, DeviceCeiling& ceiling, double seconds, FoveaPrecision precision)
        : engine_(engine), ceiling_(ceiling), seconds_(seconds), precision_(precision) {}

    Result<Row> run(const Case& c) {
        FoveaDeviceProperties properties = engine_.properties();
        // The benefit of splits is visible only in the elapsed time.
        const bool software = properties.device_class == FOVEA_CLASS_CPU && c.suite != "splits";
        if (c.one_core) properties.core_count = 1;
        if (c.map != FOVEA_MASK_MAP_AUTO) properties.mask_map = c.map;
        Result<Plan> plan = plan_attention(properties, describe(c, precision_));
        if (!plan) return plan.error();
        const FoveaPlanInfo info = plan->info();
        std::vector<DeviceBuffer> kept;
        kept.reserve(FOVEA_BIND_COUNT);
        DeviceBuffer* buffers[FOVEA_BIND_COUNT] = {};
        Row row;
        row.c = c;
        row.kernel = kernel_name(info.kernel);
        row.slices = info.slice_count;
        row.device_bytes = info.workspace_bytes;
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.binding_mask >> i & 1)) continue;
            Result<DeviceBuffer> buffer = engine_.buffer(info.binding_bytes[i]);
            if (!buffer) return buffer.error();
            const Result<void> filled = i == FOVEA_BIND_MASK ? fill_mask(*buffer, c) : fill(*buffer, c.type);
            if (!filled) return filled.error();
            row.device_bytes += info.binding_bytes[i];
            kept.push_back(std::move(*buffer));
            buffers[i] = &kept.back();
        }
        RunOptions options;
        options.timeout_seconds = 300;
        if (Result<RunReport> warm = engine_.run(*plan, buffers, options); !warm) return warm.error();
        std::vector<double> times, ceilings;
        // If a call takes no time (with an emulated GPU), measuring the limits would take all of it.
        const double began = bench_now(false);
        const auto is_late = [&] { return bench_now(false) - began > kMaxLimits * seconds_; };
        for (double spent = 0; (spent < seconds_ && !is_late()) || times.size() < kFewestRounds;) {
            const Result<double> limit = c.reads ? ceiling_.gigabytes_per_second(0.05) : ceiling_.gflops(0.2);
            if (!limit) return limit.error();
            const double begin = bench_now(software);
            if (Result<RunReport> r = engine_.run(*plan, buffers, options); !r) return r.error();
            times.push_back(bench_now(software) - begin), ceilings.push_back(*limit);
            spent += times.back();
        }
        row.seconds = median(times);
        row.rate = work_of(c) / row.seconds * 1e-9;
        row.ceiling = median(ceilings);
        return row;
    }

  private:
    // Numbers between -1 and 1, of either type.
    static Result<void> fill(DeviceBuffer& buffer, FoveaDtype type) {
        std::mt19937 random(5);
        std::vector<uint32_t> words(buffer.size_bytes() / 4);
        for (uint32_t& word : words) {
            const uint32_t bits = random();
            word =
                type == FOVEA_F16 ? (bits & 0x83ff83ffu) | 0x38003800u : (bits & 0x807fffffu) | 0x3f000000u;
        }
        return buffer.upload(std::as_bytes(std::span(words)));
    }

    // For all heads: every second key at random, or one of four blocks of 128 x 128.
    static Result<void> fill_mask(DeviceBuffer& buffer, const Case& c) {
        std::mt19937 random(6);
        std::vector<uint8_t> shown(buffer.size_bytes());
        for (uint64_t n = 0; n < shown.size(); ++n) {
            const uint64_t i = n / c.len_kv / 128, j = n % c.len_kv / 128;
            shown[n] = c.mask == MaskKind::random ? random() >> 31 : (i * 3 + j) % 4 == 0;
        }
        return buffer.upload(std::as_bytes(std::span(shown)));
    }

    Engine& engine_;
    DeviceCeiling& ceiling_;
    double seconds_;
    FoveaPrecision precision_;
};

void print_row(const Row& r) {
    const char* unit = r.c.reads ? "GB/s" : "GFLOP/s";
    std::printf("%-8s %-28s %6llu x %-6llu %-14s %10.3f ms %9.2f %-7s %5.1f%% of %8.1f %8.1f MiB %6llu\n",
                r.c.suite.c_str(), r.c.name.c_str(), static_cast<unsigned long long>(r.c.len_q),
                static_cast<unsigned long long>(r.c.len_kv), r.kernel.c_str(), r.seconds * 1e3, r.rate, unit,
                r.rate / r.ceiling * 100, r.ceiling, double(r.device_bytes) / (1 << 20),
                static_cast<unsigned long long>(r.slices));
    std::fflush(stdout);
}

std::string to_json(const DeviceInfo& device, const std::vector<Row>& rows) {
    std::string out = "{\"device\": " + json_string(device.name) +
                      ", \"driver\": " + json_string(device.driver) + ", \"rows\": [";
    for (const Row& r : rows) {
        out += &r == rows.data() ? "\n  " : ",\n  ";
        out += "{\"suite\": " + json_string(r.c.suite) + ", \"case\": " + json_string(r.c.name) +
               ", \"heads_q\": " + std::to_string(r.c.heads_q) +
               ", \"heads_kv\": " + std::to_string(r.c.heads_kv) + ", \"dim\": " + std::to_string(r.c.dim) +
               ", \"type\": " + json_string(r.c.type == FOVEA_F16 ? "f16" : "f32") +
               ", \"causal\": " + (r.c.causal ? "true" : "false") +
               ", \"window\": " + std::to_string(r.c.window) +
               ", \"masked\": " + (r.c.mask == MaskKind::none ? "false" : "true") +
               ", \"len_q\": " + std::to_string(r.c.len_q) + ", \"len_kv\": " + std::to_string(r.c.len_kv) +
               ", \"kernel\": " + json_string(r.kernel) + ", \"median_seconds\": " + json_number(r.seconds) +
               ", \"rate\": " + json_number(r.rate) +
               ", \"unit\": " + json_string(r.c.reads ? "GB/s" : "GFLOP/s") +
               ", \"ceiling\": " + json_number(r.ceiling) +
               ", \"device_bytes\": " + std::to_string(r.device_bytes) +
               ", \"slices\": " + std::to_string(r.slices) + "}";
    }
    return out + "\n]}\n";
}

struct Choice {
    EngineOptions engine;
    std::string_view suites;
    double seconds = 0.5;
    FoveaPrecision precision = FOVEA_PRECISION_F32;
    uint64_t longest = 0;  // 0: as the device's class allows
};

Result<Choice> choose(const Arguments& a) {
    Choice choice;
    Result<EngineOptions> engine = engine_options(a);
    if (!engine) return engine.error();
    choice.engine = std::move(*engine);
    choice.engine.backend = BackendChoice::vulkan;
    const std::vector<Case> cases = all_cases();
    std::vector<std::string> known;
    for (const Case& c : cases)
        if (std::find(known.begin(), known.end(), c.suite) == known.end()) known.emplace_back(c.suite);
    if (Result<void> r = check_list(a, "--suite", known); !r) return r.error();
    choice.suites = a.text("--suite");
    const std::string_view precision = a.text("--precision");
    if (precision == "f16-inputs")
        choice.precision = FOVEA_PRECISION_F16_INPUTS;
    else if (a.has("--precision") && precision != "f32")
        return Error{FOVEA_INVALID_ARGUMENT, "--precision",
                     "'" + std::string(precision) + "' is not f32 or f16-inputs"};
    const Result<double> seconds = seconds_option(a, choice.seconds);
    if (!seconds) return seconds.error();
    const Result<uint64_t> longest = a.unsigned_integer("--longest", 0);
    if (!longest) return longest.error();
    choice.seconds = *seconds, choice.longest = *longest;
    return choice;
}

bool is_chosen(const Choice& choice, const Case& c, bool software) {
    const uint64_t longest = choice.longest ? choice.longest
                             : !software    ? UINT64_MAX
                             : c.reads      ? 32768
                                            : 2048;
    if (c.len_kv > longest) return false;
    if (choice.suites.empty()) return true;
    for (const std::string_view name : split(choice.suites, ','))
        if (name == c.suite) return true;
    return false;
}

Result<int> run_all(const Choice& choice, const Arguments& a) {
    const std::vector<Case> cases = all_cases();
    if (std::none_of(cases.begin(), cases.end(), [&](const Case& c) { return is_chosen(choice, c, false); }))
        return Error{FOVEA_INVALID_ARGUMENT, "--longest",
                     "--longest is " + std::string(a.text("--longest")) +
                         ", below the keys of every case; give a larger number"};
    Result<Engine> engine = Engine::open(choice.engine);
    if (!engine) return engine.error();
    Result<DeviceCeiling> ceiling = DeviceCeiling::open(engine->device().number);
    if (!ceiling) return ceiling.error();
    std::printf("%s, %s\n", engine->device().name.c_str(), engine->device().driver.c_str());
    std::printf("%-8s %-28s %15s %-14s %13s %9s %-7s %-18s %12s %6s\n", "suite", "case", "Lq x Lkv", "kernel",
                "median", "rate", "", "share of ceiling", "memory", "slices");
    Bench bench(*engine, *ceiling, choice.seconds, choice.precision);
    std::vector<Row> rows;
    const bool software = engine->properties().device_class == FOVEA_CLASS_CPU;
    for (const Case& c : cases) {
        if (!is_chosen(choice, c, software)) continue;
        Result<Row> row = bench.run(c);
        if (!row) return row.error();
        print_row(*row);
        rows.push_back(std::move(*row));
    }
    if (!a.has("--json")) return 0;
    if (Result<void> r = write_text_file(a.text("--json"), to_json(engine->device(), rows)); !r)
        return r.error();
    return 0;
}

void print_help() {
    std::printf(
        "usage: fovea_bench_vulkan [options]\n\n"
        "Attention on one Vulkan device. Work counts 4*B*H*Lq*Lkv*D FLOP, half of that for a causal call\n"
        "and only the keys that are seen in a window, all keys under a mask; of decode the bytes of K and\n"
        "V, once. Each share is against the float32 multiply-adds or the copied bytes (read and written)\n"
        "per second of kernels that do nothing else, measured just before in the same process. Of a\n"
        "software driver all times are processor time, of all threads together. Clocks are the driver's\n"
        "choice: compare shares, not times.\n\n");
    print_options(kOptions);
}

Result<int> bench_vulkan(const Arguments& a) {
    if (!a.positional().empty())
        return Error{
            FOVEA_INVALID_ARGUMENT, std::string(a.positional()[0]),
            "fovea_bench_vulkan takes no argument, but '" + std::string(a.positional()[0]) + "' is given"};
    const std::filesystem::path inputs[] = {a.text("--tuning")};
    if (a.has("--json"))
        if (Result<void> r = check_writable(a.text("--json"), {}, inputs); !r) return r.error();
    const Result<Choice> choice = choose(a);
    if (!choice) return choice.error();
    return run_all(*choice, a);
}

}  // namespace
}  // namespace fovea::app

int main(int argc, char** argv) {
    using namespace fovea::app;
    return run_command(std::vector<std::string_view>(argv + 1, argv + argc), kOptions, print_help,
                       bench_vulkan);
}
