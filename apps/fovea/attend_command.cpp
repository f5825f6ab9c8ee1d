#include "attention_options.hpp"
#include "attention_tensors.hpp"
#include "commands.hpp"
#include "output_file.hpp"
#include "progress.hpp"
#include "run_report.hpp"

#include <cstdio>
#include <filesystem>

namespace fovea::app {
namespace {

// What the library refuses by name, and where the field comes from here. tests/commands holds this to the
// fields of FoveaAttentionDesc.
struct Refusal {
    const char *fields, *limit;
};
constexpr Refusal kRefusals[] = {
    {"batch, heads_q, heads_kv", "from the shapes: 1 or more, heads_q a multiple of heads_kv, 2^30 in all"},
    {"dim_qk, dim_v", "from the shapes: 1 to 65536"},
    {"len_q, len_kv", "from the shapes: 0 to 2^30"},
    {"q_type, k_type, v_type, o_type", "f32 or f16; bf16 and f64 are converted"},
    {"q_strides, k_strides, v_strides, o_strides", "from shapes and --layout: at most 2^62 bytes each"},
    {"mask, bias, keep", "mask and keep of booleans; axes of 1 or of full extent; at most len_kv keys"},
    {"align, q_offset", "--causal, --q-offset: within +-2^30"},
    {"window_left, window_right", "--window: -1 (unbounded) or more"},
    {"scale, softcap", "finite; softcap not negative"},
    {"dropout_p", "0 or more, below 1; any dropout_seed"},
    {"outputs, precision, kernel", "of the names above; a kernel that cannot run this says why"},
    {"max_slice_cost", "--slice-cost: finite; on Vulkan enough for the smallest slice"},
    {"workspace_limit", "--workspace: enough for the smallest slice"},
    {"in the library only", "struct_size, flags, dropout_offset, packed_rows_q, packed_rows_kv, page_size,"},
    {"", "page_count, block_table_pages; reserved0 and reserved1 must be 0"},
};

void print_refusals() {
    std::printf("\nRefused with exit code 2 and one line that names the field, its value and the limit:\n");
    for (const Refusal& refusal : kRefusals) std::printf("  %-42s %s\n", refusal.fields, refusal.limit);
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
    print_refusals();
}

Result<int> attend(const Arguments& a) {
    if (a.positional().size() != 1)
        return Error{FOVEA_INVALID_ARGUMENT, "IN.safetensors",
                     "attend takes one input file; `fovea attend --help` says more"};
    const std::string out(a.text("--out"));
    if (out.empty()) return Error{FOVEA_INVALID_ARGUMENT, "--out", "is needed: where the outputs go"};
    const Result<bool> rows_first = rows_first_option(a);
    if (!rows_first) return rows_first.error();
    Result<EngineOptions> options = engine_options(a);
    if (!options) return options.error();
    options->validation = a.has("--validation");

    const Result<TensorSet> file = load_tensors(std::filesystem::path(a.positional()[0]));
    if (!file) return file.error();
    AttentionCall call;
    if (Result<void> r = read_attention_tensors(*file, *rows_first, call); !r) return r.error();
    note_unused_tensors(*file, call);
    if (Result<void> r = apply_attention_options(a, call.desc); !r) return r.error();
    if (Result<void> r = allocate_outputs(call); !r) return r.error();
    if (Result<void> r = check_writable(out); !r) return r.error();

    Result<Engine> engine = open_engine(*options);
    if (!engine) return engine.error();
    Progress progress("attention");
    RunOptions run;
    run.progress = [&](double done) { return progress(done); };
    const Result<RunReport> report = engine->attention(call.desc, call.bindings, run);
    if (!report) return report.error();
    if (Result<void> r = refuse_messages(*engine); !r) return r.error();
    return finish_run(*report, call, output_tensors(call), out, a.has("--json"));
}

}  // namespace

int attend_command(Words words) {
    const std::vector<OptionSpec> specs = attention_command_options(AttentionCommand::attend);
    return run_command(
        words, specs, [&] { print_help(specs); }, attend);
}

}  // namespace fovea::app
