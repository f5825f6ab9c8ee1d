// Holds the code that drivers' compilers make of the kernels to a table.
#include "codegen.hpp"
#include "arguments.hpp"
#include "output_file.hpp"

#include <fovea/files/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace fovea::app {
namespace {

constexpr OptionSpec kOptions[] = {
    {"--device", "NAMES",
     "GPUs that are not there, by comma: the scripts of the build folder's gpus/ (amd-navi31, ...)"},
    {"--case", "NAMES", "only these, by comma: whole names or how they begin (prefill, decode-d128, ...)"},
    {"--gate", "", "only the cases that --check compares"},
    {"--json", "FILE", "also writes the rows there, as a list"},
    {"--check", "FILE",
     "fails where a row of --gate has become worse than FILE has it; runs under validation"},
    {"--write", "FILE", "renews the rows of these devices in FILE"},
    {"--name", "NAME", "what to call the device of this process in the rows (default: as its driver does)"},
    {"--help", "", "this text"},
};

struct Row {
    std::string device, name;
    std::string refusal;  // error of the planner; then there is no report
    PipelineReport report;
};

bool is_chosen(const Arguments& a, const CodegenCase& c) {
    if ((a.has("--gate") || a.has("--check") || a.has("--write")) && !c.gate) return false;
    if (!a.has("--case")) return true;
    for (const std::string_view name : split(a.text("--case"), ','))
        if (!name.empty() && c.name.substr(0, name.size()) == name) return true;
    return false;
}

void print_header() {
    std::printf("%-26s %-26s %4s %3s %5s %6s %8s %7s %4s %6s %9s  %s\n", "case", "kernel", "thr", "sub",
                "regs", "spills", "scratch", "shared", "occ", "instr", "cycles",
                "loop: share (matrix fused dual other | shared global barriers)");
}

void print_row(const Row& row) {
    if (!row.refusal.empty()) {
        std::printf("%-26s refused: %s\n", row.name.c_str(), row.refusal.c_str());
        return;
    }
    const PipelineReport& r = row.report;
    const auto n = [](uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf("%-26s %-26s %4u %3u %5llu %6llu %8llu %7llu %4llu %6llu %9llu", row.name.c_str(),
                r.kernel.c_str(), r.threads, r.subgroup, n(r.registers), n(r.spills), n(r.scratch_bytes),
                n(r.shared_bytes), n(r.occupancy), n(r.instructions), n(r.cycles));
    const LoopMix& m = r.mix;
    if (r.has_mix && m.issue_cycles > 0)
        std::printf("  %4.1f%% (%.0f %.0f %.0f %.0f | %.0f %.0f %.0f)", m.share() * 100, m.matrix, m.fused,
                    m.dual, m.vector, m.shared, m.global, m.barriers);
    std::printf("\n");
    std::fflush(stdout);
}

std::string json_row(const Row& row) {
    const PipelineReport& r = row.report;
    std::string out = "{\"device\": " + json_string(row.device) + ", \"case\": " + json_string(row.name);
    if (!row.refusal.empty()) return out + ", \"refusal\": " + json_string(row.refusal) + "}";
    const auto field = [&](const char* name, uint64_t value) {
        out += std::string(", \"") + name + "\": " + std::to_string(value);
    };
    out += ", \"kernel\": " + json_string(r.kernel);
    field("threads", r.threads), field("subgroup", r.subgroup), field("registers", r.registers);
    field("spills", r.spills), field("scratch_bytes", r.scratch_bytes), field("shared_bytes", r.shared_bytes);
    field("occupancy", r.occupancy), field("instructions", r.instructions), field("cycles", r.cycles);
    const LoopMix& m = r.mix;
    const bool mix = r.has_mix && m.issue_cycles > 0;
    out += ", \"unit_share\": " + (mix ? json_number(m.share()) : std::string("null")) + ", \"loop\": ";
    if (!mix) return out + "null}";
    return out + "{\"matrix\": " + json_number(m.matrix) + ", \"fused\": " + json_number(m.fused) +
           ", \"dual\": " + json_number(m.dual) + ", \"vector\": " + json_number(m.vector) +
           ", \"shared\": " + json_number(m.shared) + ", \"global\": " + json_number(m.global) +
           ", \"barriers\": " + json_number(m.barriers) + "}}";
}

std::string json_list(const std::vector<std::string>& rows) {
    std::string out = "[";
    for (const std::string& row : rows) out += (&row == rows.data() ? "\n  " : ",\n  ") + row;
    return out + "\n]\n";
}

// ---- the table that --check compares with
// -------------------------------------------------------------------------

// One line for each pipeline: device, case, kernel; then spills, scratch bytes, occupancy, instructions, or
// "refused".
std::string table_key(const Row& row, size_t nth) {
    return row.device + " " + row.name + " " + std::to_string(nth);
}

std::string table_line(const Row& row, size_t nth) {
    if (!row.refusal.empty()) return table_key(row, nth) + " refused";
    const PipelineReport& r = row.report;
    return table_key(row, nth) + " " + r.kernel + " " + std::to_string(r.spills) + " " +
           std::to_string(r.scratch_bytes) + " " + std::to_string(r.occupancy) + " " +
           std::to_string(r.instructions);
}

struct Kept {
    std::string kernel;
    double spills = 0, scratch_bytes = 0, occupancy = 0, instructions = 0;
};

constexpr double kTolerance = 0.05;

// Returns what has become worse than in the table; empty: nothing.
std::string worse_than(const Row& row, const Kept& kept) {
    if (kept.kernel == "refused") return {};
    if (!row.refusal.empty()) return "its plan is refused: " + row.refusal;
    const PipelineReport& r = row.report;
    const auto compare = [](const char* what, double is, double was) {
        char text[96];
        std::snprintf(text, sizeof text, "%s %.0f, the table has %.0f", what, is, was);
        return std::string(text);
    };
    if (double(r.spills) > kept.spills) return compare("spills", double(r.spills), kept.spills);
    if (double(r.scratch_bytes) > kept.scratch_bytes)
        return compare("scratch bytes", double(r.scratch_bytes), kept.scratch_bytes);
    if (double(r.occupancy) < kept.occupancy * (1 - kTolerance))
        return compare("occupancy", double(r.occupancy), kept.occupancy);
    if (double(r.instructions) > kept.instructions * (1 + kTolerance))
        return compare("instructions", double(r.instructions), kept.instructions);
    return {};
}

// The pipelines of a case are numbered, as some kernels come twice.
std::vector<size_t> numbers_of(const std::vector<Row>& rows) {
    std::vector<size_t> numbers;
    std::map<std::string, size_t> seen;
    for (const Row& row : rows) numbers.push_back(seen[row.name]++);
    return numbers;
}

Result<int> check_rows(const std::vector<Row>& rows, const std::string& file) {
    std::ifstream in(file);
    if (!in) return Error{FOVEA_IO_ERROR, file, "cannot be read"};
    std::map<std::string, Kept> table;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        std::istringstream words(line);
        std::string device, name, nth;
        Kept kept;
        words >> device >> name >> nth >> kept.kernel >> kept.spills >> kept.scratch_bytes >>
            kept.occupancy >> kept.instructions;
        table[device + " " + name + " " + nth] = kept;
    }
    int lost = 0;
    const std::vector<size_t> numbers = numbers_of(rows);
    for (size_t n = 0; n < rows.size(); ++n) {
        const std::string key = table_key(rows[n], numbers[n]);
        const auto kept = table.find(key);
        const std::string why = kept == table.end() ? "the table has no such row; --write adds it"
                                                    : worse_than(rows[n], kept->second);
        if (why.empty()) continue;
        std::printf("worse: %s (%s): %s\n", key.c_str(), rows[n].report.kernel.c_str(), why.c_str());
        ++lost;
    }
    std::printf("%zu pipelines compared with %s, %d worse\n", rows.size(), file.c_str(), lost);
    return lost ? 1 : 0;
}

Result<void> renew_table(const std::vector<Row>& rows, const std::string& file) {
    std::vector<std::string> lines;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        const auto is_of = [&](const Row& row) {
            return line.substr(0, row.device.size() + 1) == row.device + " ";
        };
        if (!line.empty() && line[0] != '#' && std::none_of(rows.begin(), rows.end(), is_of))
            lines.push_back(line);
    }
    const std::vector<size_t> numbers = numbers_of(rows);
    for (size_t n = 0; n < rows.size(); ++n) lines.push_back(table_line(rows[n], numbers[n]));
    std::stable_sort(lines.begin(), lines.end(), [](const std::string& a, const std::string& b) {
        return a.substr(0, a.find(' ')) < b.substr(0, b.find(' '));
    });
    std::string text =
        "# What real GPUs' compilers make of typical calls, held by `fovea_codegen --check`: device, "
        "case, number of\n"
        "# the pipeline; kernel, registers spilled, scratch bytes, occupancy, instructions. Written by "
        "--write.\n";
    for (const std::string& line : lines) text += line + "\n";
    return write_text_file(file, text);
}

// ---- one device of this process
// -----------------------------------------------------------------------------------

Result<std::vector<Row>> compile_all(const Arguments& a, CodegenDevice& device, const std::string& name) {
    std::vector<Row> rows;
    const bool mix = !a.has("--check");
    for (const CodegenCase& c : codegen_cases()) {
        if (!is_chosen(a, c)) continue;
        const Result<Plan> plan = c.plan(device.properties());
        if (!plan) {
            rows.push_back({name, c.name, plan.error().text, {}});
            print_row(rows.back());
            continue;
        }
        std::vector<FoveaDispatch> dispatches(plan->info().dispatches_per_slice);
        uint32_t count = uint32_t(dispatches.size());
        Diag diag;
        if (foveaGetDispatches(plan->get(), 0, dispatches.data(), &count, &diag) != FOVEA_OK)
            return diag.error();
        for (uint32_t n = 0; n < count; ++n) {
            Result<PipelineReport> report = device.compile(dispatches[n], c.dim, mix);
            if (!report) return report.error();
            rows.push_back({name, c.name, {}, std::move(*report)});
            print_row(rows.back());
        }
    }
    return rows;
}

Result<int> run_here(const Arguments& a) {
    Result<CodegenDevice> device = CodegenDevice::open(1, a.has("--check"));
    if (!device) return device.error();
    const std::string name = a.has("--name") ? std::string(a.text("--name")) : device->name();
    if (name.find(' ') != name.npos && (a.has("--check") || a.has("--write")))
        return Error{FOVEA_INVALID_ARGUMENT, "--name", "--name is '" + name + "'; it must not have a space"};
    std::printf("%s (%s)\n", name.c_str(), device->name().c_str());
    print_header();
    const Result<std::vector<Row>> rows = compile_all(a, *device, name);
    if (!rows) return rows.error();
    if (rows->empty())
        return Error{FOVEA_INVALID_ARGUMENT, "--case",
                     "--case is '" + std::string(a.text("--case")) + "', which no case begins with"};
    std::vector<std::string> lines;
    for (const Row& row : *rows) lines.push_back(json_row(row));
    if (a.has("--json"))
        if (Result<void> r = write_text_file(a.text("--json"), json_list(lines)); !r) return r.error();
    if (a.has("--write"))
        if (Result<void> r = renew_table(*rows, std::string(a.text("--write"))); !r) return r.error();
    if (!a.has("--check")) return 0;
    const std::vector<std::string> messages = device->take_messages();
    for (const std::string& message : messages) std::printf("validation: %s\n", message.c_str());
    const Result<int> lost = check_rows(*rows, std::string(a.text("--check")));
    if (!lost) return lost.error();
    return *lost != 0 || !messages.empty() ? 1 : 0;
}

// ---- GPUs that are not there: each needs a process, whose driver is told of it before it starts
// --------------------

std::string shell_word(std::string_view text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

Result<int> run_on(const Arguments& a, std::string_view device, std::vector<std::string>& json) {
    std::error_code ignored;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const std::filesystem::path folder = self.parent_path().parent_path() / "gpus", script = folder / device;
    const bool plain = !device.empty() && device.find('/') == device.npos && device[0] != '.';
    if (!plain || !std::filesystem::is_regular_file(script, ignored)) {
        std::string names;
        for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
            names += (names.empty() ? "" : ", ") + entry.path().filename().string();
        return Error{FOVEA_INVALID_ARGUMENT, "--device",
                     "no GPU '" + std::string(device) + "' in " + folder.string() +
                         (names.empty() ? "; ./dev setup makes them" : "; there are: " + names)};
    }
    const std::string rows = a.has("--json") ? std::string(a.text("--json")) + "." + std::string(device) : "";
    std::string command =
        shell_word(script.string()) + " " + shell_word(self.string()) + " --name " + shell_word(device);
    for (const char* option : {"--case", "--check", "--write"})
        if (a.has(option)) command += std::string(" ") + option + " " + shell_word(a.text(option));
    if (a.has("--gate")) command += " --gate";
    if (!rows.empty()) command += " --json " + shell_word(rows);
    std::fflush(stdout);
    const int status = std::system(command.c_str());
    if (!rows.empty()) {
        std::ifstream in(rows);
        for (std::string line; std::getline(in, line);) {
            if (line.size() < 3) continue;  // the list's brackets
            line = line.substr(2);
            if (line.back() == ',') line.pop_back();
            json.push_back(line);
        }
        in.close();
        std::filesystem::remove(rows, ignored);
    }
    return status == 0 ? 0 : 1;
}

Result<int> compare(const Arguments& a) {
    if (!a.positional().empty())
        return Error{
            FOVEA_INVALID_ARGUMENT, std::string(a.positional()[0]),
            "fovea_codegen takes no argument, but '" + std::string(a.positional()[0]) + "' is given"};
    if (a.has("--device") && a.has("--name"))
        return Error{FOVEA_INVALID_ARGUMENT, "--name",
                     "--name cannot be combined with --device, which names each"};
    const std::filesystem::path inputs[] = {a.text("--check"), a.text("--write")};
    if (a.has("--json"))
        if (Result<void> r = check_writable(a.text("--json"), {}, inputs); !r) return r.error();
    if (a.has("--write"))  // rows of this file are renewed
        if (Result<void> r = check_writable(a.text("--write")); !r) return r.error();
    if (!a.has("--device")) return run_here(a);
    int failed = 0;
    std::vector<std::string> json;
    for (const std::string_view device : split(a.text("--device"), ',')) {
        const Result<int> r = run_on(a, device, json);
        if (!r) return r.error();
        failed |= *r;
    }
    if (a.has("--json"))
        if (Result<void> r = write_text_file(a.text("--json"), json_list(json)); !r) return r.error();
    return failed;
}

void print_help() {
    std::printf(
        "usage: fovea_codegen [options]\n\n"
        "What a Vulkan driver's compiler makes of the pipelines of typical calls, planned for that device as "
        "for any\n"
        "host: registers, spills to memory, shared memory, occupancy (subgroups that a SIMD, core or SM "
        "holds),\n"
        "instructions, the compiler's own estimate of cycles; of AMD the instructions of the main loop and "
        "the share of\n"
        "the unit's rate (matrices, else multiply-adds) that this mix allows at best. Nothing is run or "
        "timed.\n\n");
    print_options(kOptions);
}

}  // namespace
}  // namespace fovea::app

int main(int argc, char** argv) {
    using namespace fovea::app;
    return run_command(std::vector<std::string_view>(argv + 1, argv + argc), kOptions, print_help, compare);
}
