#include "run_report.hpp"
#include "output_file.hpp"
#include "standard_streams.hpp"

#include <fovea/files/json.hpp>

#include <cstdio>

namespace fovea::app {
namespace {

void print_report(const RunReport& report, const AttentionCall& call, const std::string& out) {
    // The reason begins with the kernel's name.
    std::printf("device: %s\nkernel: %s\n", report.device.c_str(), report.reason.c_str());
    std::printf("slices: %llu, workspace: %llu bytes, time: %.3f ms\n",
                static_cast<unsigned long long>(report.slices),
                static_cast<unsigned long long>(report.workspace_bytes), 1e3 * report.seconds);
    for (const std::string& note : call.notes) std::printf("note: %s\n", without_controls(note).c_str());
    std::printf("wrote: %s\n", out.c_str());
}

void print_json(const RunReport& report, const AttentionCall& call, const std::string& out) {
    std::printf(
        "{\"device\": %s, \"backend\": \"%s\", \"kernel\": \"%s\", \"reason\": %s, \"slices\": %llu, "
        "\"workspace_bytes\": "
        "%llu, \"seconds\": %s, \"device_seconds\": %s, \"notes\": [",
        json_string(report.device).c_str(), report.backend == FOVEA_BACKEND_CPU ? "cpu" : "vulkan",
        kernel_name(report.kernel), json_string(report.reason).c_str(),
        static_cast<unsigned long long>(report.slices),
        static_cast<unsigned long long>(report.workspace_bytes), json_number(report.seconds).c_str(),
        json_number(report.device_seconds).c_str());
    for (size_t i = 0; i < call.notes.size(); ++i)
        std::printf("%s%s", i ? ", " : "", json_string(call.notes[i]).c_str());
    std::printf("], \"out\": %s}\n", json_string(out).c_str());
}

}  // namespace

Result<Engine> open_engine(const EngineOptions& options) {
    Result<Engine> engine = Engine::open(options);
    if (engine && options.validation && !engine->is_vulkan())
        return Error{FOVEA_INVALID_ARGUMENT, "--validation",
                     "--validation needs a Vulkan device, and the device is " + engine->device().name +
                         "; add --backend vulkan"};
    return engine;
}

Result<void> refuse_messages(Engine& engine) {
    const std::vector<std::string> messages = engine.take_messages();
    if (messages.empty()) return {};
    return Error{FOVEA_VULKAN_ERROR, "validation",
                 "the Vulkan validation layer reported " + std::to_string(messages.size()) +
                     (messages.size() == 1 ? " message: " : " messages; the first is: ") + messages[0]};
}

Result<int> finish_run(const RunReport& report, const AttentionCall& call, const Result<TensorSet>& outputs,
                       const std::string& out, bool as_json) {
    if (!outputs) return outputs.error();
    {
        const HeldInterrupts held;
        if (const Result<uint64_t> written = save_safetensors(out, *outputs); !written)
            return written.error();
    }
    if (as_json)
        print_json(report, call, out);
    else
        print_report(report, call, out);
    return 0;
}

}  // namespace fovea::app
