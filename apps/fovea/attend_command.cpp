#include "attention_options.hpp"
#include "attention_tensors.hpp"
#include "commands.hpp"
#include "output_file.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "run_report.hpp"

#include <cstdio>
#include <filesystem>

namespace fovea::app {
namespace {

// Fields that the library rejects, and the options that set them. tests/commands compares this list with the
// fields of FoveaAttentionDesc.
struct Refusal {
    const char *fields, *limit;
};
constexpr Refusal kRefusals[] = {
    {"batch, heads_q, heads_kv", "from the shapes: 1 or more, heads_q a multiple of heads_kv, 2^30 in all"},
    {"dim_qk, dim_v", "from the shapes: 1 to 65536"},
    {"len_q, len_kv", "from the shapes: 0 to 2^30"},
    {"q_type, k_type, v_type, o_type", "f32, f16 or bf16; f64 is converted to f32; k and v: --cache-type"},
    {"q_strides, k_strides, v_strides, o_strides", "from shapes and --layout: at most 2^62 bytes each"},
    {"mask, bias, dropout_mask",
     "dropout_mask of booleans, bias of floats; axes of 1 or of full extent; keys: at most len_kv, not 1 of "
     "several"},
    {"align, q_offset", "--causal, --q-offset: within +-2^30"},
    {"window_left, window_right", "--window: -1 (unbounded) or more"},
    {"scale, softcap", "finite; softcap not negative"},
    {"dropout_p", "0 or more, below 1; any dropout_seed"},
    {"outputs, precision, kernel",
     "of the names above; a kernel that cannot run this says why. scores, capped, masked, weights of a "
     "quantized cache: on the CPU only"},
    {"max_slice_cost", "--slice-cost: finite; on Vulkan enough for the smallest slice"},
    {"workspace_limit", "--workspace: enough for the smallest slice"},
    {"in the library only", "struct_size, flags, dropout_offset, packed_rows_q, packed_rows_kv, page_size,"},
    {"",
     "page_count, block_table_pages, first_query, first_key, first_batch_head; reserved0 and reserved1 must "
     "be 0"},
};

void print_refusals() {
    std::printf("\nRefused with exit code 2 and one line that names the field, its value and the limit:\n");
    for (const Refusal& refusal : kRefusals) std::printf("  %-42s %s\n", refusal.fields, refusal.limit);
}

void print_attend_help(std::span<const OptionSpec> specs) {
    std::printf(
        "usage: fovea attend IN.safetensors --out OUT.safetensors [options]\n\n"
        "Attention of the tensors q [B, Hq, Lq, D], k [B, Hkv, Lkv, D], v [B, Hkv, Lkv, Dv] (f32, f16 or "
        "bf16; rank 3 has no batch\n"
        "axis, rank 2 neither batch nor heads) and, where present:\n"
        "  mask        bool or u8: visible where not zero; a float type: added to the scores. Rank 2 to 4, "
        "axes of 1 broadcast\n"
        "              except the last, which may be shorter than Lkv (the rest is masked)\n"
        "  bias        f32, f16 or bf16, added to the scores, also with a boolean mask\n"
        "  dropout_mask  bool or u8: 1 keeps a weight; instead of random dropout\n"
        "  sinks       [Hq]: one more logit for each row, that carries no value\n"
        "  alibi       [Hq]: slopes; slope * (key - position of the query) is added\n"
        "  kv_lengths, q_lengths   i32 or i64 [B]: keys and queries of each batch entry\n"
        "Other file types that are read: npz, with the same names. o has the rank, layout and type of q (f32 "
        "where that is f64). The\n"
        "others are f32, of the axes [B, Hq, Lq] that q has: lse; scores, capped, masked and weights with "
        "Lkv "
        "behind; row_stats with 4:\n"
        "the largest weight, the entropy in nats, the first key of that weight (-1 where none is seen), the "
        "keys seen.\n\n");
    print_options(specs);
    print_refusals();
}

struct Attend {
    std::string out;
    EngineOptions options;
    AttentionCall call;
    uint64_t chunk = 0;
};

// `writes`: this process writes the file.
Result<void> prepare(const Arguments& a, bool writes, Attend& to) {
    if (a.positional().size() != 1) return wrong_input_files("attend", a);
    to.out = a.text("--out");
    if (to.out.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "--out",
                     "--out is missing; give the file for the outputs, as in --out OUT.safetensors"};
    const Result<std::optional<bool>> rows_first = rows_first_option(a);
    if (!rows_first) return rows_first.error();
    Result<EngineOptions> options = engine_options(a);
    if (!options) return options.error();
    to.options = *options;
    to.options.validation = a.has("--validation");
    const Result<uint64_t> chunk = chunk_option(a);
    if (!chunk) return chunk.error();
    to.chunk = *chunk;
    if (a.has("--cache-type") && a.has("--shards"))
        return Error{FOVEA_INVALID_ARGUMENT, "--cache-type",
                     "--cache-type cannot be combined with --shards; leave one of them out"};

    const Result<TensorSet> file = load_tensors(std::filesystem::path(a.positional()[0]));
    if (!file) return file.error();
    if (Result<void> r = read_attention_tensors(*file, *rows_first, to.call); !r) return r.error();
    note_unused_tensors(*file, to.call);
    if (Result<void> r = apply_attention_options(a, AttentionCommand::attend, to.call.desc); !r)
        return r.error();
    if (Result<void> r = allocate_outputs(to.call); !r) return r.error();
    const std::filesystem::path inputs[] = {a.positional()[0]};
    return writes ? check_writable(to.out, ".safetensors", inputs) : Result<void>();
}

Result<int> write(Attend& attend, Engine& engine, const RunReport& report, bool as_json) {
    if (Result<void> r = refuse_messages(engine); !r) return r.error();
    return finish_run(report, attend.call, output_tensors(attend.call), attend.out, as_json);
}

Result<int> attend_alone(const Arguments& a) {
    Attend to;
    if (Result<void> r = prepare(a, true, to); !r) return r.error();
    Result<Engine> engine = open_engine(to.options);
    if (!engine) return engine.error();
    const Result<std::optional<CacheType>> cache = cache_type_option(a);
    if (!cache) return cache.error();
    if (*cache)
        if (Result<void> r = cache_keys_and_values(to.call, (*cache)->type, (*cache)->rotated, *engine); !r)
            return r.error();
    Progress progress("attention");
    RunOptions run;
    run.progress = [&](double done) { return progress(done); };
    const Result<RunReport> report = engine->attention(to.call.desc, to.call.bindings, run);
    if (!report) return report.error();
    return write(to, *engine, *report, a.has("--json"));
}

// Every rank returns the same error, so that none waits for another; the first one says it.
Result<int> attend_on(Ranks& ranks, const Arguments& a) {
    Attend to;
    if (Result<void> r = ranks.agree(prepare(a, ranks.first(), to)); !r) return r.error();
    Result<Engine> engine = ranks.open_engine(to.options);
    if (!engine) return engine.error();
    Progress progress("attention");
    RunOptions run;
    if (ranks.first()) run.progress = [&](double done) { return progress(done); };
    const Result<RunReport> report = ranks.attention(*engine, to.call, to.chunk, run);
    if (!report) return report.error();
    return ranks.first() ? write(to, *engine, *report, a.has("--json")) : 0;
}

Result<int> attend(const Arguments& a) {
    return a.has("--shards") ? on_every_rank(a, attend_on) : attend_alone(a);
}

}  // namespace

int attend_command(Words words) {
    const std::vector<OptionSpec> specs = attention_command_options(AttentionCommand::attend);
    return run_command(
        words, specs, [&] { print_attend_help(specs); }, naming_options(attend));
}

}  // namespace fovea::app
