#include "output_file.hpp"

#include <fovea/files.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace fovea::app {
namespace {

constexpr std::array kHeldSignals = {
    SIGINT,
    SIGTERM,
#if defined(SIGHUP)
    SIGHUP,
#endif
};

using Handler = void (*)(int);
std::array<Handler, kHeldSignals.size()> g_previous_handlers;
volatile std::sig_atomic_t g_arrived;
int g_held = 0;

void remember(int signal) { g_arrived = signal; }

Error cannot(std::string_view path, const std::string& why) {
    return Error{FOVEA_IO_ERROR, std::string(path), printable_name(path, 400) + " cannot be written: " + why};
}

// Replaces "No such file", which says nothing to whoever asks for a new one.
Error cannot(std::string_view path, int code) {
    return cannot(path, code == ENOENT ? "its folder does not exist; create it, or give another name"
                                       : std::string(std::strerror(code)));
}

// Returns an unused name in the same folder: the mode "x" below rejects an existing file.
std::string temporary_name(std::string_view path) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return std::string(path) + "." + std::to_string(now) + ".unfinished";
}

}  // namespace

bool HeldInterrupts::arrived() const { return g_arrived != 0; }

HeldInterrupts::HeldInterrupts() {
    if (g_held++ > 0) return;
    g_arrived = 0;
    for (size_t i = 0; i < kHeldSignals.size(); ++i) {
        g_previous_handlers[i] = std::signal(kHeldSignals[i], remember);
        // Started with nohup, say: what was ignored stays ignored.
        if (g_previous_handlers[i] == SIG_IGN) std::signal(kHeldSignals[i], SIG_IGN);
    }
}

HeldInterrupts::~HeldInterrupts() {
    if (--g_held > 0) return;
    for (size_t i = 0; i < kHeldSignals.size(); ++i)
        if (g_previous_handlers[i] != SIG_ERR) std::signal(kHeldSignals[i], g_previous_handlers[i]);
    if (g_arrived) std::raise(g_arrived);
}

Result<void> check_writable(std::string_view path, std::string_view format,
                            std::span<const std::filesystem::path> inputs) {
    std::error_code code;
    const std::filesystem::path file(path);
    if (path == "-")
        return Error{FOVEA_UNSUPPORTED, "output",
                     "writing to standard output (-) is not supported; give a file name (./- for a file of "
                     "that name)"};
    for (const std::filesystem::path& input : inputs)
        if (std::filesystem::equivalent(file, input, code))
            return cannot(path,
                          "it is the input " + printable_name(input.string(), 400) + "; give another file");
    const std::string extension = file.extension().string();
    for (const std::string_view other : {".safetensors", ".gguf", ".npy", ".npz", ".csv", ".png"})
        if (!format.empty() && other != format && extension == other)
            return Error{FOVEA_INVALID_ARGUMENT, std::string(path),
                         printable_name(path, 400) + " ends in " + extension +
                             ", but the file is written as " + std::string(format.substr(1)) +
                             "; give a name that ends in " + std::string(format)};
    const auto status = std::filesystem::status(file, code);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        return cannot(path, "it exists and is not a regular file");
    const std::string temporary = temporary_name(path);
    const HeldInterrupts held;
    errno = 0;
    std::FILE* made = std::fopen(temporary.c_str(), "wbx");
    if (!made) return cannot(path, errno);
    std::fclose(made);
    std::filesystem::remove(temporary, code);
    return {};
}

Result<void> write_text_file(std::string_view path, std::string_view text) {
    if (Result<void> r = check_writable(path); !r) return r;
    const HeldInterrupts held;
    const std::string temporary = temporary_name(path);
    std::error_code code;
    errno = 0;
    std::FILE* file = std::fopen(temporary.c_str(), "wbx");
    if (!file) return cannot(path, errno);
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const bool closed = std::fclose(file) == 0;
    const std::string why = std::strerror(errno);
    if (written && closed) {
        std::filesystem::rename(temporary, std::filesystem::path(path), code);
        if (!code) return {};
    }
    const std::string reason = code ? code.message() : why;
    std::filesystem::remove(temporary, code);
    return cannot(path, reason);
}

}  // namespace fovea::app
