#include "attention_options.hpp"
#include "attention_tensors.hpp"
#include "commands.hpp"
#include "standard_streams.hpp"

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>

#include <cstdio>
#include <filesystem>

namespace fovea::app {
namespace {

constexpr uint64_t kMaxLength = uint64_t{1} << 30;  // as fovea.h has it

struct Pair {
    uint64_t first, second;
};

// "8" is {8, 8}, "8,2" is {8, 2}.
Result<Pair> pair_option(const Arguments& a, std::string_view name, uint64_t fallback, uint64_t limit) {
    if (!a.has(name)) return Pair{fallback, fallback};
    const std::vector<std::string_view> parts = split(a.text(name), ',');
    uint64_t values[2] = {};
    if (parts.size() > 2)
        return Error{FOVEA_INVALID_ARGUMENT, std::string(name),
                     std::string(name) + " is '" + std::string(a.text(name)) +
                         "'; it must be one or two integers, such as 8 or 8,2"};
    for (size_t i = 0; i < parts.size(); ++i) {
        const Result<int64_t> value = parse_integer(parts[i], name);
        if (!value) return value.error();
        if (*value < 0 || uint64_t(*value) > limit)
            return Error{FOVEA_INVALID_ARGUMENT, std::string(name),
                         std::string(name) + " has " + std::to_string(*value) + "; it must be from 0 to " +
                             std::to_string(limit)};
        values[i] = uint64_t(*value);
    }
    return Pair{values[0], parts.size() == 2 ? values[1] : values[0]};
}

Result<void> shapes_from_options(const Arguments& a, FoveaAttentionDesc& d) {
    const Result<Pair> batch = pair_option(a, "--batch", 1, UINT32_MAX),
                       heads = pair_option(a, "--heads", 1, UINT32_MAX),
                       lengths = pair_option(a, "--lengths", 0, kMaxLength),
                       dims = pair_option(a, "--dims", 64, UINT32_MAX);
    for (const Result<Pair>* r : {&batch, &heads, &lengths, &dims})
        if (!*r) return r->error();
    if (!a.has("--lengths"))
        return Error{FOVEA_INVALID_ARGUMENT, "input",
                     "explain needs a file or --lengths; give one of them, such as --lengths 1,4096 (1 "
                     "query, 4096 keys)"};
    d.batch = uint32_t(batch->first);
    d.heads_q = uint32_t(heads->first), d.heads_kv = uint32_t(heads->second);
    d.len_q = lengths->first, d.len_kv = lengths->second;
    d.dim_qk = uint32_t(dims->first), d.dim_v = uint32_t(dims->second);
    const std::string_view type = a.text("--type");
    if (type == "f16")
        d.q_type = d.k_type = d.v_type = d.o_type = FOVEA_F16;
    else if (type == "bf16")
        d.q_type = d.k_type = d.v_type = d.o_type = FOVEA_BF16;
    else if (!type.empty() && type != "f32")
        return Error{FOVEA_INVALID_ARGUMENT, "--type", "'" + std::string(type) + "' is not f32, f16 or bf16"};
    return {};
}

Result<int> explain(const Arguments& a) {
    FoveaAttentionDesc desc = foveaAttentionDesc();
    AttentionCall call;
    if (a.positional().size() > 1)
        return Error{
            FOVEA_INVALID_ARGUMENT, std::string(a.positional()[1]),
            "explain takes one file at most; the second is '" + printable_name(a.positional()[1], 400) + "'"};
    const Result<std::optional<bool>> rows_first = rows_first_option(a);
    if (!rows_first) return rows_first.error();
    if (!a.positional().empty()) {
        const std::string_view shape = a.first_of({"--batch", "--heads", "--lengths", "--dims", "--type"});
        if (!shape.empty())
            return Error{FOVEA_INVALID_ARGUMENT, std::string(shape),
                         std::string(shape) +
                             " cannot be combined with a file, which has shapes and types of its own"};
        const Result<TensorSet> file = load_tensors(std::filesystem::path(a.positional()[0]));
        if (!file) return file.error();
        if (Result<void> r = read_attention_tensors(*file, *rows_first, call); !r) return r.error();
        desc = call.desc;
    } else if (Result<void> r = shapes_from_options(a, desc); !r) {
        return r.error();
    }
    if (Result<void> r = apply_attention_options(a, AttentionCommand::explain, desc); !r) return r.error();
    const Result<std::optional<CacheType>> cache = cache_type_option(a);
    if (!cache) return cache.error();
    if (*cache) {
        desc.k_type = desc.v_type = (*cache)->type;
        if ((*cache)->rotated) desc.flags |= FOVEA_FLAG_ROTATED_CACHE;
    }
    const Result<EngineOptions> options = engine_options(a);
    if (!options) return options.error();
    Result<Engine> engine = Engine::open(*options);
    if (!engine) return engine.error();
    const Result<Plan> plan = plan_attention(engine->properties(), desc);
    if (!plan) return plan.error();
    // The plan's words begin with the kernel's name.
    std::printf("device: %s\nwhy this device: %s\nkernel: %s", engine->device().name.c_str(),
                engine->reason().c_str(), plan->explain().c_str());
    for (const std::string& note : call.notes) std::printf("note: %s\n", without_controls(note).c_str());
    return 0;
}

void print_explain_help(std::span<const OptionSpec> specs) {
    std::printf(
        "usage: fovea explain IN.safetensors [options]\n"
        "       fovea explain --lengths LQ,LKV [--batch B --heads HQ,HKV --dims D,DV --type T] [options]\n\n"
        "The plan of an attention call: kernel, reasons, tiles, slices, workspace. Runs nothing.\n\n");
    print_options(specs);
}

}  // namespace

int explain_command(Words words) {
    const std::vector<OptionSpec> specs = attention_command_options(AttentionCommand::explain);
    return run_command(
        words, specs, [&] { print_explain_help(specs); }, naming_options(explain));
}

}  // namespace fovea::app
