#include "attention_options.hpp"
#include <fovea/dtype.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace fovea::app {
namespace {

constexpr unsigned bit(AttentionCommand command) { return 1u << unsigned(command); }
constexpr unsigned kAttend = bit(AttentionCommand::attend), kExplain = bit(AttentionCommand::explain),
                   kGradients = bit(AttentionCommand::gradients), kBoth = kAttend | kExplain,
                   kMap = bit(AttentionCommand::map), kFiles = kAttend | kGradients,
                   kAll = kBoth | kGradients | kMap;

struct AttentionOption {
    unsigned commands;
    OptionSpec spec;
};
constexpr std::string_view kKernels =
                               "auto, staged, flash, flash_coopmat, flash_coopmat2, decode, plain, reference",
                           kGradientKernels = "auto, flash, plain, reference",
                           kMapKernels = "auto, plain, reference";
constexpr std::string_view kernels_of(AttentionCommand command) {
    return command == AttentionCommand::gradients ? kGradientKernels
           : command == AttentionCommand::map     ? kMapKernels
                                                  : kKernels;
}
constexpr AttentionOption kAttentionOptions[] = {
    {kFiles, {"--out", "FILE", "where the outputs go (safetensors); needed"}},
    {kExplain, {"--batch", "B", "without a file: batch size; default 1"}},
    {kExplain, {"--heads", "HQ[,HKV]", "query heads and key/value heads; default 1"}},
    {kExplain, {"--lengths", "LQ[,LKV]", "queries and keys"}},
    {kExplain, {"--dims", "D[,DV]", "head sizes"}},
    {kExplain, {"--type", "f32|f16|bf16", "storage of q, k, v, o"}},
    {kBoth,
     {"--cache-type", "f32|f16|bf16|f8_e4m3|f8_e5m2|q8_0|q4_0",
      "KV cache type: k and v are rounded to it first; default the type of the tensors"}},
    {kBoth,
     {"--cache-rotation", "",
      "with --cache-type q8_0 or q4_0: rows are rotated before, so that outlier channels cost less"}},
    {kAll, {"--layout", "bhld|blhd", "axes of q, k, v; default what the file's metadata say, else bhld"}},
    {kFiles, {"--validation", "", "Vulkan: run under the validation layer and fail on any message"}},
    {kFiles, {"--json", "", "say what ran as JSON"}},
    {kBoth, {"--kernel", "K", kKernels}},
    {kGradients, {"--kernel", "K", kGradientKernels}},
    {kMap, {"--kernel", "K", kMapKernels}},
    {kAll, {"--scale", "S", "multiplies q.k; default what the file's metadata say, else 1/sqrt(D)"}},
    {kAll,
     {"--causal", "none|top-left|bottom-right",
      "masks keys after the query; how queries and keys are aligned"}},
    {kAll,
     {"--q-offset", "N",
      "query 0 is at key N (may be negative); window and ALiBi need it or --causal where lengths differ"}},
    {kAll,
     {"--window", "L,R", "only L keys before and R after the query's position are visible; -1: unbounded"}},
    {kAll, {"--softcap", "C", "scores become C * tanh(score / C)"}},
    {kAll, {"--dropout", "P", "drop weights with probability P, by counters from --seed"}},
    {kAll, {"--seed", "N", "seed of the dropout mask; default 0"}},
    {kBoth, {"--outputs", "LIST", "of o,lse,scores,capped,masked,weights,row_stats; default o"}},
    {kGradients, {"--gradients", "LIST", "of dbias,dalibi,dsinks: written in addition to dq, dk and dv"}},
    {kBoth,
     {"--precision", "f32|f16-inputs|bf16-inputs",
      "type that inputs of products may be rounded to; accumulation stays float32"}},
    {kAll, {"--workspace", "BYTES", "limit of scratch memory; default 64 MiB"}},
    {kAll,
     {"--slice-cost", "FLOPS",
      "most that one slice may cost (the CPU has a smallest slice); default by device"}},
};
constexpr AttentionOption kShardOptions[] = {
    {kFiles | kMap,
     {"--shards", "", "under mpirun: its processes share the call; any number of them gives the same bits"}},
    {kFiles | kMap,
     {"--chunk", "ROWS", "with --shards: rows of queries and keys of one engine call; default 512"}},
};
constexpr OptionSpec kHelp{"--help", "", "this text"};

constexpr std::pair<std::string_view, std::string_view> kOptionOfField[] = {
    {"scale", "--scale"},
    {"q_offset", "--q-offset"},
    {"window_left", "--window LEFT"},
    {"window_right", "--window RIGHT"},
    {"softcap", "--softcap"},
    {"dropout_p", "--dropout"},
    {"outputs", "--outputs"},
    {"precision", "--precision"},
    {"kernel", "--kernel"},
    {"device", "--device"},
    {"workspace_limit", "--workspace"},
    {"max_slice_cost", "--slice-cost"},
};

constexpr OutputName kOutputs[] = {
    {"o", FOVEA_OUTPUT_O, FOVEA_BIND_O},
    {"lse", FOVEA_OUTPUT_LSE, FOVEA_BIND_LSE},
    {"scores", FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES},
    {"capped", FOVEA_OUTPUT_CAPPED, FOVEA_BIND_CAPPED},
    {"masked", FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED},
    {"weights", FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS},
    {"row_stats", FOVEA_OUTPUT_ROW_STATS, FOVEA_BIND_ROW_STATS},
};

Result<void> apply_positions(const Arguments& a, FoveaAttentionDesc& desc) {
    if (a.has("--causal")) {
        const std::string_view causal = a.text("--causal");
        if (causal == "top-left" || causal == "bottom-right") {
            desc.flags |= FOVEA_FLAG_CAUSAL;
            desc.align = causal == "top-left" ? FOVEA_ALIGN_TOP_LEFT : FOVEA_ALIGN_BOTTOM_RIGHT;
        } else if (causal == "none") {  // whatever the file says
            desc.flags &= ~uint32_t{FOVEA_FLAG_CAUSAL};
            desc.align = foveaAttentionDesc().align;
        } else {
            return bad("--causal", "'" + std::string(causal) + "' is not none, top-left or bottom-right");
        }
    }
    if (a.has("--q-offset")) {
        const Result<int64_t> offset = a.integer("--q-offset", 0);
        if (!offset) return offset.error();
        if (a.text("--causal") == "bottom-right")
            return bad(
                "--q-offset",
                "--q-offset and --causal bottom-right both set the position of query 0; give one of them");
        desc.align = FOVEA_ALIGN_OFFSET;
        desc.q_offset = *offset;
    }
    if (a.has("--window")) {
        const std::vector<std::string_view> sides = split(a.text("--window"), ',');
        if (sides.size() != 2)
            return bad("--window", "--window is '" + std::string(a.text("--window")) +
                                       "'; it must be LEFT,RIGHT, such as 128,0 (-1 for no bound)");
        const Result<int64_t> left = parse_integer(sides[0], "--window"),
                              right = parse_integer(sides[1], "--window");
        if (!left) return left.error();
        if (!right) return right.error();
        desc.flags |= FOVEA_FLAG_WINDOW;
        desc.window_left = *left;
        desc.window_right = *right;
    }
    return {};
}

Result<void> apply_outputs(const Arguments& a, FoveaAttentionDesc& desc) {
    if (!a.has("--outputs")) return {};
    for (const std::string_view name : split(a.text("--outputs"), ',')) {
        uint32_t bit = 0;
        for (const OutputName& output : kOutputs)
            if (output.name == name) bit = output.output;
        if (!bit)
            return bad("--outputs", "'" + std::string(name) +
                                        "' is not one of o,lse,scores,capped,masked,weights,row_stats");
        desc.outputs |= bit;
    }
    return {};
}

// As float32. Rounded to 0, a number would mean that there is none.
Result<double> float_option(const Arguments& a, std::string_view name) {
    const Result<double> number = a.number(name, 0);
    if (number && *number != 0 && float(*number) == 0)
        return bad(name, std::string(name) + " is " + std::string(a.text(name)) +
                             ", which float32 rounds to 0; give a larger number");
    return number;
}

Result<void> apply_numbers(const Arguments& a, FoveaAttentionDesc& desc) {
    const Result<double> scale = float_option(a, "--scale"), softcap = float_option(a, "--softcap"),
                         dropout = float_option(a, "--dropout"), cost = a.number("--slice-cost", 0);
    const Result<uint64_t> seed = a.unsigned_integer("--seed", 0),
                           workspace = a.unsigned_integer("--workspace", 0);
    for (const Result<double>* r : {&scale, &softcap, &dropout, &cost})
        if (!*r) return r->error();
    for (const Result<uint64_t>* r : {&seed, &workspace})
        if (!*r) return r->error();
    if (a.has("--scale") && *scale == 0)
        return bad("--scale",
                   "--scale is 0, which would make every weight the same; leave it out for 1/sqrt(D)");
    if (a.has("--seed") && !a.has("--dropout"))
        return bad("--seed", "--seed needs --dropout; give both or neither");
    if (a.has("--scale")) desc.scale = float(*scale);
    if (a.has("--softcap")) desc.softcap = float(*softcap);
    desc.dropout_p = float(*dropout);
    desc.dropout_seed = *seed;
    desc.max_slice_cost = *cost;
    desc.workspace_limit = *workspace;
    return {};
}

}  // namespace

Error wrong_input_files(std::string_view command, const Arguments& a) {
    const std::string name(command);
    return Error{FOVEA_INVALID_ARGUMENT, "input",
                 a.positional().empty()
                     ? "the input file is missing; give it, as in `fovea " + name + " IN.safetensors`"
                     : name + " takes one input file, but " + std::to_string(a.positional().size()) +
                           " are given; the second is '" + std::string(a.positional()[1]) + "'"};
}

std::function<Result<int>(const Arguments&)> naming_options(Result<int> (*command)(const Arguments&)) {
    return [command](const Arguments& arguments) {
        Result<int> result = command(arguments);
        if (result) return result;
        Error error = result.error();
        for (const auto& [field, option] : kOptionOfField) {
            if (error.field != field) continue;
            if (error.text.starts_with(error.field + " ")) error.text.replace(0, field.size(), option);
            error.field = option;
            break;
        }
        return Result<int>(std::move(error));
    };
}

std::vector<OptionSpec> attention_command_options(AttentionCommand command) {
    std::vector<OptionSpec> specs;
    for (const AttentionOption& option : kAttentionOptions)
        if (option.commands >> unsigned(command) & 1) specs.push_back(option.spec);
    for (const AttentionOption& option : kShardOptions)
        if (option.commands >> unsigned(command) & 1) specs.push_back(option.spec);
    specs.insert(specs.end(), engine_option_specs().begin(), engine_option_specs().end());
    specs.push_back(kHelp);
    return specs;
}

std::span<const OutputName> output_names() { return kOutputs; }

Result<void> apply_attention_options(const Arguments& a, AttentionCommand command, FoveaAttentionDesc& desc) {
    if (Result<void> r = apply_positions(a, desc); !r) return r;
    if (Result<void> r = apply_outputs(a, desc); !r) return r;
    if (Result<void> r = apply_numbers(a, desc); !r) return r;
    if (a.has("--kernel")) {
        const std::string known = ", " + std::string(kernels_of(command)) + ", ";
        if (known.find(", " + std::string(a.text("--kernel")) + ", ") == std::string::npos)
            return bad("--kernel", "'" + std::string(a.text("--kernel")) + "' is not one of " +
                                       std::string(kernels_of(command)));
        const Result<FoveaKernel> kernel = kernel_from_name(a.text("--kernel"));
        if (!kernel) return kernel.error();
        if (a.text("--backend") == "reference" && *kernel != FOVEA_KERNEL_AUTO &&
            *kernel != FOVEA_KERNEL_REFERENCE)
            return bad("--kernel", "--kernel is " + std::string(a.text("--kernel")) +
                                       "; with --backend reference it must be auto or reference");
        desc.kernel = *kernel;
    }
    const std::string_view precision = a.text("--precision");
    if (precision == "f16-inputs")
        desc.precision = FOVEA_PRECISION_F16_INPUTS;
    else if (precision == "bf16-inputs")
        desc.precision = FOVEA_PRECISION_BF16_INPUTS;
    else if (!precision.empty() && precision != "f32")
        return bad("--precision", "'" + std::string(precision) + "' is not f32, f16-inputs or bf16-inputs");
    return {};
}

Result<uint64_t> chunk_option(const Arguments& a) {
    if (a.has("--chunk") && !a.has("--shards"))
        return bad("--chunk", "--chunk needs --shards; give both or neither");
    return a.unsigned_integer("--chunk", 512);
}

Result<std::optional<CacheType>> cache_type_option(const Arguments& a) {
    const std::string_view name = a.text("--cache-type");
    const bool rotated = a.has("--cache-rotation");
    if (rotated && name != "q8_0" && name != "q4_0")
        return bad("--cache-rotation", name.empty()
                                           ? "--cache-rotation needs --cache-type q8_0 or q4_0"
                                           : "--cache-rotation cannot be combined with --cache-type " +
                                                 std::string(name) + "; it needs q8_0 or q4_0");
    if (name.empty()) return std::optional<CacheType>();
    std::string known;
    for (const DtypeInfo& info : kDtypes) {
        if (!(info.uses & (kUseNumbers | kUseCache))) continue;
        if (name == info.name) return std::optional(CacheType{info.type, rotated});
        known += (known.empty() ? "" : ", ") + std::string(info.name);
    }
    return bad("--cache-type", "'" + std::string(name) + "' is not one of " + known);
}

Result<std::optional<bool>> rows_first_option(const Arguments& a) {
    const std::string_view layout = a.text("--layout");
    if (!a.has("--layout")) return std::optional<bool>();
    if (layout == "bhld" || layout == "blhd") return std::optional(layout == "blhd");
    return bad("--layout", "'" + std::string(layout) + "' is not bhld or blhd");
}

}  // namespace fovea::app
