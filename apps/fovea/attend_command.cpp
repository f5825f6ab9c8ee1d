#include "attention_options.hpp"
#include "attention_tensors.hpp"
#include "commands.hpp"
#include "json.hpp"
#include "progress.hpp"

#include <cstdio>
#include <filesystem>

namespace fovea::app {
namespace {

constexpr OptionSpec kOwnOptions[] = {
    {"--out", "FILE", "where the outputs go (safetensors); needed"},
    {"--layout", "bhld|blhd", "axes of q, k, v in the file; default bhld"},
    {"--validation", "", "Vulkan: run under the validation layer and fail on any message"},
    {"--json", "", "say what ran as JSON"},
    {"--help", "", "this text"},
};

std::vector<OptionSpec> all_options() {
    std::vector<OptionSpec> specs(std::begin(kOwnOptions), std::end(kOwnOptions));
    specs.insert(specs.end(), attention_option_specs().begin(), attention_option_specs().end());
    specs.insert(specs.end(), engine_option_specs().begin(), engine_option_specs().end());
    return specs;
}

void print_help(std::span<const OptionSpec> specs) {
    std::printf(
        "usage: fovea attend IN.safetensors --out OUT.safetensors [options]\n\n"
        "Attention of the tensors q [B, Hq, Lq, D], k [B, Hkv, Lkv, D], v [B, Hkv, Lkv, Dv] (f32 or f16; "
        "rank 3 has no batch\n"
        "axis, rank 2 neither batch nor heads) and, where present:\n"
        "  mask        bool or u8: visible where not zero; f32 or f16: added to the scores. Rank 2 to 4, "
        "axes of 1 broadcast,\n"
        "              the last axis may be shorter than Lkv (the tail is hidden)\n"
        "  bias        f32 or f16, added to the scores, beside a boolean mask\n"
        "  keep        bool or u8: the dropout mask, instead of the one by counters\n"
        "  sinks       [Hq]: one more logit for each row, that carries no value\n"
        "  alibi       [Hq]: slopes; slope * (key - position of the query) is added\n"
        "  kv_lengths, q_lengths   i32 or i64 [B]: keys and queries of each batch entry\n"
        "Other file types that are read: npz, with the same names. Results have the rank and layout of "
        "q.\n\n");
    print_options(specs);
}

void print_report(const RunReport& report, const AttentionCall& call, const std::string& out) {
    std::printf("device: %s\nkernel: %s (%s)\n", report.device.c_str(), kernel_name(report.kernel),
                report.reason.c_str());
    std::printf("slices: %llu, workspace: %llu bytes, time: %.3f ms\n",
                static_cast<unsigned long long>(report.slices),
                static_cast<unsigned long long>(report.workspace_bytes), 1e3 * report.seconds);
    for (const std::string& note : call.notes) std::printf("note: %s\n", note.c_str());
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

Result<void> attend(const Arguments& a) {
    if (a.positional().size() != 1)
        return Error{FOVEA_INVALID_ARGUMENT, "IN.safetensors",
                     "attend takes one input file; `fovea attend --help` says more"};
    if (a.text("--out").empty())
        return Error{FOVEA_INVALID_ARGUMENT, "--out", "is needed: where the outputs go"};
    const std::string_view layout = a.text("--layout");
    if (!layout.empty() && layout != "bhld" && layout != "blhd")
        return Error{FOVEA_INVALID_ARGUMENT, "--layout", "'" + std::string(layout) + "' is not bhld or blhd"};
    Result<EngineOptions> options = engine_options(a);
    if (!options) return options.error();
    options->validation = a.has("--validation");

    const Result<TensorSet> file = load_tensors(std::filesystem::path(a.positional()[0]));
    if (!file) return file.error();
    AttentionCall call;
    if (Result<void> r = read_attention_tensors(*file, layout == "blhd", call); !r) return r;
    if (Result<void> r = apply_attention_options(a, call.desc); !r) return r;
    if (Result<void> r = allocate_outputs(call); !r) return r;

    Result<Engine> engine = Engine::open(*options);
    if (!engine) return engine.error();
    Progress progress("attention");
    RunOptions run;
    run.progress = [&](double done) { return progress(done); };
    const Result<RunReport> report = engine->attention(call.desc, call.bindings, run);
    if (!report) return report.error();
    const std::vector<std::string> messages = engine->take_messages();
    if (!messages.empty())
        return Error{FOVEA_VULKAN_ERROR, "validation",
                     std::to_string(messages.size()) + " messages, the first: " + messages[0]};

    const Result<TensorSet> outputs = output_tensors(call);
    if (!outputs) return outputs.error();
    const std::string out(a.text("--out"));
    if (const Result<uint64_t> written = save_safetensors(out, *outputs); !written) return written.error();
    if (a.has("--json"))
        print_json(*report, call, out);
    else
        print_report(*report, call, out);
    return {};
}

}  // namespace

int attend_command(Words words) {
    const std::vector<OptionSpec> specs = all_options();
    const Result<Arguments> arguments = Arguments::parse(words, specs);
    if (!arguments) return refuse(arguments.error());
    if (arguments->has("--help")) {
        print_help(specs);
        return 0;
    }
    if (const Result<void> r = attend(*arguments); !r) return refuse(r.error());
    return 0;
}

}  // namespace fovea::app
