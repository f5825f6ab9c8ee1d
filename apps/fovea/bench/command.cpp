#include "bench/median.hpp"
#include "commands.hpp"

#include "arguments.hpp"
#include "bench/cases.hpp"
#include "bench/peak.hpp"
#include "output_file.hpp"

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>
#include <fovea/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>

namespace fovea::app {
namespace {

constexpr OptionSpec kOptions[] = {
    {"--case", "NAMES", "only these, by comma: a-full, d-decode, ... (or the first letter)"},
    {"--threads", "N,N", "numbers of threads (default: 1 and as many as there are processors)"},
    {"--targets", "NAMES",
     "instruction sets, by comma (default: the best one; all: every one that runs here)"},
    {"--seconds", "S", "time for each row (default 1)"},
    {"--json", "FILE", "also writes the rows there"},
    {"--check", "FILE", "fails if a share lies more than 10% below the one that FILE has for its row"},
    {"--write-check", "FILE", "writes such a file"},
    {"--help", "", "this text"},
};

struct Row {
    std::string name, what, target, kernel;
    uint32_t threads = 1;
    BenchUnit unit = BenchUnit::peak;
    double seconds = 0;       // median
    double rate = 0;          // GFLOP/s, GB/s
    double ceiling = 0;       // peak in the same run and unit
    std::string ceiling_way;  // how the peak of reading was measured
    double share = 0;         // median of the rounds' shares
    double best = 0;          // the largest of them
    double extra_bytes = 0;   // growth of the process beyond its buffers
    double memory_bytes = 0;  // with them
    uint64_t workspace_bytes = 0;
    double products_share = 0;  // percentage of the multiply-add peak, if the row is limited by reading
    double forward_ratio = 0;   // for gradients: their time divided by the forward call's
};

// A decode case reads at least so much at a time: shorter than a turn of the scheduler, a call would be one
// worker's.
constexpr double kReadBytes = 1 << 27;

// Peak resident memory of this process in bytes since the last call of forget_peak; 0 where it is not known.
double peak_resident_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) * 1024;
    return 0;
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

class Bench {
  public:
    Bench(double seconds) : seconds_(seconds) {}

    Result<Row> run(const BenchCase& c, uint32_t target, uint32_t threads) {
        BenchPool pool(threads);
        forget_peak();
        const double before = peak_resident_bytes();
        Result<BenchRun> made = BenchRun::make(c, target, threads);
        if (!made) return made.error();
        BenchRun& run = *made;
        Row row = describe(c, run, target, threads);
        if (c.backward)
            if (Result<double> first = run.time_forward(pool, 1); !first) return first.error();
        // A browser's engine compiles what runs often a second time, better, while the first calls run.
        for (double warm_seconds = 0; warm_seconds < seconds_ / 4;) {
            const Result<double> warm = run.time(pool, 1);
            if (!warm) return warm.error();
            warm_seconds += std::max(*warm, 1e-6);
        }
        uint64_t calls = c.unit == BenchUnit::call ? 2000 : 1;
        if (c.unit == BenchUnit::read) calls = uint64_t(std::ceil(kReadBytes / bench_read_bytes(c)));
        row.memory_bytes = std::max(0.0, peak_resident_bytes() - before);
        row.extra_bytes = std::max(0.0, row.memory_bytes - double(run.buffer_bytes()));
        std::vector<double> times, rates, ratios, product_shares;
        Ceilings ceilings(c.unit == BenchUnit::read ? kReadWayCount : 1);
        double spent = 0;
        while ((spent < seconds_ && times.size() < 200) || times.size() < 5) {
            measure_ceilings(c, pool, target, run, calls, ceilings);
            Result<double> time = run.time(pool, calls);
            if (!time) return time.error();
            if (c.backward) {
                Result<double> forward = run.time_forward(pool, calls);
                if (!forward) return forward.error();
                ratios.push_back(*time / *forward);
                spent += *forward;
            }
            if (c.unit == BenchUnit::read) {
                const double peak = multiply_add_ceiling(pool, target);
                product_shares.push_back(peak > 0 ? bench_flops(c) / *time * 1e-9 / peak : 0);
            }
            const double work = c.unit == BenchUnit::read ? bench_read_bytes(c) : bench_flops(c);
            times.push_back(*time), rates.push_back(work / *time * 1e-9);
            spent += *time * double(calls);
        }
        finish(row, times, rates, ceilings);
        if (!ratios.empty()) row.forward_ratio = median(ratios);
        if (!product_shares.empty()) row.products_share = median(product_shares);
        return row;
    }

  private:
    static Row describe(const BenchCase& c, const BenchRun& run, uint32_t target, uint32_t threads) {
        const FoveaPlanInfo info = run.info();
        Row row;
        row.name = c.name, row.what = c.what, row.unit = c.unit, row.threads = threads;
        row.target = foveaCpuTargetName(target);
        row.kernel = kernel_name(info.kernel);
        row.workspace_bytes = info.workspace_bytes;
        return row;
    }

    // The results of each way to measure the limit, by round.
    using Ceilings = std::vector<std::vector<double>>;

    // The limit is that way which gave the most over all rounds; each share is against what that way gave
    // just before the case ran.
    static void finish(Row& row, const std::vector<double>& times, const std::vector<double>& rates,
                       const Ceilings& ceilings) {
        const auto best =
            std::max_element(ceilings.begin(), ceilings.end(),
                             [](const auto& a, const auto& b) { return median(a) < median(b); });
        std::vector<double> shares;
        for (size_t n = 0; n < rates.size(); ++n)
            shares.push_back((*best)[n] > 0 ? rates[n] / (*best)[n] : 0);
        row.seconds = median(times), row.rate = median(rates), row.ceiling = median(*best);
        row.share = median(shares), row.best = *std::max_element(shares.begin(), shares.end());
        if (row.unit == BenchUnit::read) {
            const ReadWay way = kReadWays[best - ceilings.begin()];
            row.ceiling_way = std::to_string(way.streams) + " streams, " +
                              (way.ahead ? "fetched ahead" : "as the processor fetches them");
        }
    }

    // Measured just before each round: a machine that others use changes its speed. Reading is measured on
    // the case's own K and V, or W: the same pages, as warm as the case finds them.
    static void measure_ceilings(const BenchCase& c, BenchPool& pool, uint32_t target, const BenchRun& run,
                                 uint64_t calls, Ceilings& to) {
        if (c.unit != BenchUnit::read) return to[0].push_back(multiply_add_ceiling(pool, target));
        const FoveaHostBuffer k = run.binding(FOVEA_BIND_K), v = run.binding(FOVEA_BIND_V),
                              w = run.binding(FOVEA_BIND_WEIGHT);
        const ReadRange caches[] = {{k.data, k.size_bytes}, {v.data, v.size_bytes}},
                        weight[] = {{w.data, w.size_bytes}};
        const std::span<const ReadRange> ranges = c.linear.rows ? std::span<const ReadRange>(weight) : caches;
        for (size_t way = 0; way < kReadWayCount; ++way)
            to[way].push_back(measure_read_gbps(pool, target, way, ranges.data(), ranges.size(), calls));
    }

    static double multiply_add_ceiling(BenchPool& pool, uint32_t target) {
        if (pool.workers() == 1) return measure_peak_gflops(target, 0.01);
        struct Job {
            uint32_t target;
            std::atomic<double> sum{0};
        } job{target};
        pool.run(
            pool.workers(),
            [](void* arg, uint32_t, uint32_t) {
                auto& j = *static_cast<Job*>(arg);
                j.sum.fetch_add(measure_peak_gflops(j.target, 0.01));
            },
            &job);
        return job.sum;
    }

    double seconds_;
};

const char* unit_name(BenchUnit unit) { return unit == BenchUnit::read ? "GB/s" : "GFLOP/s"; }

void print_header() {
    std::printf("%-13s %-32s %-8s %-7s %3s %11s %9s %-7s %7s %7s %10s\n", "case", "what", "target", "kernel",
                "thr", "median", "rate", "", "share", "best", "memory");
}

void print_row(const Row& r) {
    char time[32];
    if (r.seconds < 1e-4)
        std::snprintf(time, sizeof time, "%.3f us", r.seconds * 1e6);
    else
        std::snprintf(time, sizeof time, "%.3f ms", r.seconds * 1e3);
    std::printf("%-13s %-32s %-8s %-7s %3u %11s %9.2f %-7s %6.1f%% %6.1f%% %6.1f MiB", r.name.c_str(),
                r.what.c_str(), r.target.c_str(), r.kernel.c_str(), r.threads, time, r.rate,
                unit_name(r.unit), r.share * 100, r.best * 100, r.memory_bytes / (1 << 20));
    if (r.forward_ratio > 0) std::printf("  gradients: %.2f x the call", r.forward_ratio);
    if (r.products_share > 0) std::printf("  multiply-adds: %.0f%% of theirs", r.products_share * 100);
    std::printf("\n");
    std::fflush(stdout);
}

std::string to_json(const std::vector<Row>& rows) {
    std::ostringstream out;
    out << "{\"rows\": [";
    for (size_t n = 0; n < rows.size(); ++n) {
        const Row& r = rows[n];
        out << (n ? "," : "") << "\n  {\"case\": " << json_string(r.name)
            << ", \"what\": " << json_string(r.what) << ", \"target\": " << json_string(r.target)
            << ", \"kernel\": " << json_string(r.kernel) << ", \"threads\": " << r.threads
            << ", \"median_seconds\": " << json_number(r.seconds) << ", \"rate\": " << json_number(r.rate)
            << ", \"unit\": " << json_string(unit_name(r.unit)) << ", \"ceiling\": " << json_number(r.ceiling)
            << ", \"ceiling_way\": " << json_string(r.ceiling_way) << ", \"share\": " << json_number(r.share)
            << ", \"best_share\": " << json_number(r.best) << ", \"workspace_bytes\": " << r.workspace_bytes
            << ", \"extra_bytes\": " << json_number(r.extra_bytes)
            << ", \"memory_bytes\": " << json_number(r.memory_bytes);
        if (r.forward_ratio > 0) out << ", \"forward_ratio\": " << json_number(r.forward_ratio);
        if (r.products_share > 0) out << ", \"multiply_add_share\": " << json_number(r.products_share);
        out << "}";
    }
    out << "\n]}\n";
    return out.str();
}

// One row a line: target, threads, case, share.
std::string check_key(const Row& r) { return r.target + " " + std::to_string(r.threads) + " " + r.name; }

bool is_checked(const Row& r) { return r.unit != BenchUnit::call; }

Result<int> check_rows(const std::vector<Row>& rows, const std::string& file) {
    std::ifstream in(file);
    if (!in) return Error{FOVEA_IO_ERROR, file, printable_name(file, 400) + " cannot be read"};
    int lost = 0, compared = 0;
    for (std::string line; std::getline(in, line);) {
        const size_t space = line.rfind(' ');
        if (line.empty() || line[0] == '#' || space == line.npos) continue;
        const double stored = std::strtod(line.c_str() + space, nullptr);
        for (const Row& r : rows) {
            if (check_key(r) != line.substr(0, space)) continue;
            ++compared;
            if (r.share >= 0.9 * stored) continue;
            std::printf("lost: %s: %.1f%%, stored %.1f%%\n", check_key(r).c_str(), r.share * 100,
                        stored * 100);
            ++lost;
        }
    }
    if (compared == 0)
        return Error{FOVEA_INVALID_ARGUMENT, file,
                     printable_name(file, 400) +
                         " has none of the rows that were measured; write it with --write-check"};
    std::printf("%d rows compared, %d lost more than 10%%\n", compared, lost);
    return lost ? 1 : 0;
}

std::string check_text(const std::vector<Row>& rows) {
    std::string text =
        "# Shares of the peak that `fovea bench --check` holds a machine to: target, threads, case.\n";
    for (const Row& r : rows)
        if (is_checked(r)) text += check_key(r) + " " + json_number(std::floor(r.share * 1000) / 1000) + "\n";
    return text;
}

// Checked before minutes of work, not after them.
Result<void> check_files(const Arguments& a) {
    const std::filesystem::path inputs[] = {a.text("--check")};
    for (const std::string_view file : {a.text("--json"), a.text("--write-check")})
        if (!file.empty())
            if (Result<void> r = check_writable(file, {}, inputs); !r) return r;
    if (a.has("--check") && !std::ifstream{std::string(a.text("--check"))})
        return Error{FOVEA_IO_ERROR, "--check",
                     "--check is " + printable_name(a.text("--check"), 400) + ", which cannot be read"};
    return {};
}

struct Choice {
    std::vector<BenchCase> cases;
    std::vector<uint32_t> targets, threads;
    double seconds = 1;
};

bool names_case(std::string_view list, const BenchCase& c) {
    if (list.empty()) return true;
    for (const std::string_view name : split(list, ','))
        if (name == c.name || (name.size() == 1 && name[0] == c.name[0])) return true;
    return false;
}

Result<Choice> choose(const Arguments& arguments) {
    Choice choice;
    const std::vector<BenchCase> all_cases = cpu_bench_cases();
    std::vector<std::string> known;
    for (const BenchCase& c : all_cases) known.emplace_back(c.name);
    if (Result<void> r = check_list(arguments, "--case", known, true); !r) return r.error();
    for (const BenchCase& c : all_cases)
        if (names_case(arguments.text("--case"), c)) choice.cases.push_back(c);
    const TargetList here = runnable_cpu_targets();
    const std::string_view wanted = arguments.text("--targets");
    for (const uint32_t* id = here.ids; *id; ++id) {
        bool named = wanted == "all" || (wanted.empty() && id == here.ids);
        for (const std::string_view name : split(wanted, ',')) named |= name == foveaCpuTargetName(*id);
        if (named) choice.targets.push_back(*id);
    }
    known = {"all"};
    for (const uint32_t* id = here.ids; *id; ++id) known.emplace_back(foveaCpuTargetName(*id));
    if (Result<void> r = check_list(arguments, "--targets", known); !r) return r.error();
    const uint32_t processors = std::max(1u, std::thread::hardware_concurrency());
    if (!arguments.has("--threads")) {
        choice.threads = {1};
        if (processors > 1) choice.threads.push_back(processors);
    }
    for (const std::string_view text : split(arguments.text("--threads"), ',')) {
        if (text.empty()) continue;
        const Result<int64_t> count = parse_integer(text, "--threads");
        if (!count) return count.error();
        if (*count < 1 || *count > 1024)
            return Error{FOVEA_INVALID_ARGUMENT, "--threads",
                         "--threads has " + std::string(text) + "; it must be from 1 to 1024"};
        choice.threads.push_back(uint32_t(*count));
    }
    const Result<double> seconds = seconds_option(arguments, 1);
    if (!seconds) return seconds.error();
    choice.seconds = *seconds;
    return choice;
}

Result<std::vector<Row>> run_all(const Choice& choice) {
    std::vector<Row> rows;
    Bench bench(choice.seconds);
    print_header();
    for (const uint32_t target : choice.targets) {
        for (const BenchCase& c : choice.cases) {
            for (const uint32_t threads : choice.threads) {
                if (threads > 1 && c.unit != BenchUnit::peak && c.unit != BenchUnit::read) continue;
                Result<Row> row = bench.run(c, target, threads);
                if (!row) return row.error();
                print_row(*row);
                rows.push_back(std::move(*row));
            }
        }
    }
    return rows;
}

void print_usage() {
    std::printf(
        "usage: fovea bench [cpu] [options]\n\nAttention on the CPU. Work counts 4*B*H*Lq*Lkv*D FLOP, half "
        "of that "
        "for a causal call, and K and V, or the weight of one row, once.\nEach share is against the "
        "multiply-add peak or the read "
        "bandwidth "
        "measured just before, in the same process; rows that read say beside it how much of the "
        "multiply-add "
        "peak they reach, which limits them where it is the slower one.\n\n");
    print_options(kOptions);
}

Result<int> bench_cpu(const Arguments& a) {
    if (!a.positional().empty())
        return Error{FOVEA_INVALID_ARGUMENT, std::string(a.positional()[0]),
                     "suite is '" + printable_name(a.positional()[0], 40) +
                         "'; it must be cpu (`./dev bench vulkan` measures Vulkan devices)"};
    if (Result<void> r = check_files(a); !r) return r.error();
    const Result<Choice> choice = choose(a);
    if (!choice) return choice.error();
    const Result<std::vector<Row>> rows = run_all(*choice);
    if (!rows) return rows.error();
    if (a.has("--json"))
        if (Result<void> r = write_text_file(a.text("--json"), to_json(*rows)); !r) return r.error();
    if (a.has("--write-check"))
        if (Result<void> r = write_text_file(a.text("--write-check"), check_text(*rows)); !r)
            return r.error();
    return a.has("--check") ? check_rows(*rows, std::string(a.text("--check"))) : Result<int>(0);
}

}  // namespace

int bench_command(Words words) {
    if (!words.empty() && words[0] == "cpu") words = words.subspan(1);
    return run_command(words, kOptions, print_usage, bench_cpu);
}

}  // namespace fovea::app
