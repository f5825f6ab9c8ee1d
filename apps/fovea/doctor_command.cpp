#include "arguments.hpp"
#include "commands.hpp"
#include "device_report.hpp"
#include "engine_options.hpp"
#include "output_file.hpp"

#include <fovea/files.hpp>
#include <fovea/runtime.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fovea::app {
namespace {

constexpr OptionSpec kDoctorOptions[] = {{"--out", "FILE", "writes the report to a file, too"},
                                         {"--help", "", "this text"}};

// The value after `key` and ':' or '=' in a file of the system's, without quotes; empty if there is none.
std::string value_of(const char* path, const std::string& key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(key)) continue;
        const size_t from = line.find_first_not_of(" \t:=\"", key.size());
        const size_t to = line.find_last_not_of(" \t\"");
        return from == std::string::npos ? std::string() : line.substr(from, to + 1 - from);
    }
    return {};
}

// A call whose results are known to the float64 reference.
struct SmallCall {
    static constexpr uint32_t kHeads = 2, kRows = 80, kSize = 64;
    std::vector<float> q = values(0.37), k = values(0.73), v = values(1.13), o = values(0);

    static std::vector<float> values(double step) {
        std::vector<float> list(size_t{kHeads} * kRows * kSize);
        for (size_t n = 0; n < list.size(); ++n) list[n] = float(std::sin(double(n) * step));
        return list;
    }

    Result<RunReport> run(const EngineOptions& options) {
        Result<Engine> engine = Engine::open(options);
        if (!engine) return engine.error();
        HostBindings bindings{};
        bindings[FOVEA_BIND_Q] = {q.data(), q.size() * sizeof(float)};
        bindings[FOVEA_BIND_K] = {k.data(), k.size() * sizeof(float)};
        bindings[FOVEA_BIND_V] = {v.data(), v.size() * sizeof(float)};
        bindings[FOVEA_BIND_O] = {o.data(), o.size() * sizeof(float)};
        return engine->attention(
            Attention().batch(1).heads(kHeads).lengths(kRows, kRows).dims(kSize).causal(), bindings);
    }
};

// One small call of attention on each device, compared with the reference. False if one is wrong.
Result<bool> print_calls(std::FILE* out, const Devices& devices) {
    SmallCall reference;
    EngineOptions options;
    options.backend = BackendChoice::reference;
    if (const Result<RunReport> r = reference.run(options); !r) return r.error();
    bool all = true;
    for (const DeviceInfo& device : devices.list) {
        if (!device.usable) continue;
        SmallCall call;
        options = {};
        options.device = int(device.number);
        options.check_folder = driver_check_folder();
        std::fprintf(out, "%u  ", device.number);
        const Result<RunReport> r = call.run(options);
        if (!r) {
            std::fprintf(out, "fails: %s\n", r.error().text.c_str());
            all = false;
            continue;
        }
        double worst = 0;
        for (size_t n = 0; n < call.o.size(); ++n)
            worst = std::max(
                worst, std::isfinite(call.o[n]) ? std::abs(double(call.o[n]) - reference.o[n]) : INFINITY);
        const bool right = worst <= 1e-5;
        all = all && right;
        std::fprintf(out, "%s: kernel %s, largest difference from the reference %.1e\n",
                     right ? "right" : "WRONG", kernel_name(r->kernel), worst);
    }
    return all;
}

// The system, the CPU, and what the Vulkan loader reads.
void print_machine(std::FILE* out) {
    std::fprintf(out, "fovea %d.%d.%d, binary interface %u\n", FOVEA_VERSION_MAJOR, FOVEA_VERSION_MINOR,
                 FOVEA_VERSION_PATCH, FOVEA_ABI_VERSION);
    const auto line = [&](const char* name, const std::string& value) {
        if (!value.empty()) std::fprintf(out, "%s: %s\n", name, value.c_str());
    };
    line("system", value_of("/etc/os-release", "PRETTY_NAME"));
    line("kernel", value_of("/proc/version", "Linux version"));
    line("CPU", value_of("/proc/cpuinfo", "model name"));
    line("memory", value_of("/proc/meminfo", "MemTotal"));
    line("memory available", value_of("/proc/meminfo", "MemAvailable"));
    const std::string kept = driver_check_folder();
    line("checks of drivers are kept in",
         kept.empty() ? "no folder: neither XDG_CACHE_HOME nor HOME is set" : kept);
    const std::pair<const char*, const char*> variables[] = {
        {"VK_DRIVER_FILES", std::getenv("VK_DRIVER_FILES")},
        {"VK_ICD_FILENAMES", std::getenv("VK_ICD_FILENAMES")},
        {"VK_LOADER_DRIVERS_SELECT", std::getenv("VK_LOADER_DRIVERS_SELECT")},
        {"VK_INSTANCE_LAYERS", std::getenv("VK_INSTANCE_LAYERS")},
        {"VK_LAYER_PATH", std::getenv("VK_LAYER_PATH")},
        {"MESA_VK_DEVICE_SELECT", std::getenv("MESA_VK_DEVICE_SELECT")},
    };
    for (const auto& [name, value] : variables)
        if (value) line(name, value);
    for (const char* folder :
         {"/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d"}) {
        std::error_code none;
        for (const auto& entry : std::filesystem::directory_iterator(folder, none))
            line("driver file", entry.path().string());
    }
}

Result<int> doctor(const Arguments& a) {
    if (!a.positional().empty())
        return Error{
            FOVEA_INVALID_ARGUMENT, std::string(a.positional()[0]),
            "doctor takes no argument, but '" + printable_name(a.positional()[0], 40) + "' is given"};
    if (a.has("--out"))
        if (Result<void> r = check_writable(a.text("--out")); !r) return r.error();
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> report(std::tmpfile(), std::fclose);
    if (!report) return Error{FOVEA_IO_ERROR, "", "no temporary file can be made for the report"};
    print_machine(report.get());
    std::fputs("\ndevices, with what each lacks:\n", report.get());
    const Devices devices = find_devices(true);
    print_devices(report.get(), devices);
    std::fputs("\na call of attention on each:\n", report.get());
    const Result<bool> calls = print_calls(report.get(), devices);
    if (!calls) return calls.error();
    const bool right = *calls && devices.all_right();
    std::fprintf(report.get(), "\n%s\n",
                 right ? "All that was tried works." : "Something does not work: see above.");
    std::string text(size_t(std::ftell(report.get())), ' ');
    std::rewind(report.get());
    text.resize(std::fread(text.data(), 1, text.size(), report.get()));
    std::fputs(text.c_str(), stdout);
    if (a.has("--out"))
        if (Result<void> r = write_text_file(a.text("--out"), text); !r) return r.error();
    return right ? 0 : 1;
}

void print_doctor_help() {
    std::printf(
        "usage: fovea doctor [--out FILE]\n\n"
        "Whether Fovea works on this machine: the system, each device with what it lacks, a check of each\n"
        "Vulkan driver, a call of attention on each device beside the reference. Attach the report to a "
        "bug.\n"
        "Exit code 1 if something does not work.\n\n");
    print_options(kDoctorOptions);
}

}  // namespace

int doctor_command(Words words) { return run_command(words, kDoctorOptions, print_doctor_help, doctor); }

}  // namespace fovea::app
