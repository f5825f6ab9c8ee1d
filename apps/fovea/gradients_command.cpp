// fovea gradients: the forward call for o and lse, then its gradients.
#include "attention_options.hpp"
#include "attention_tensors.hpp"
#include "commands.hpp"
#include "output_file.hpp"
#include "progress.hpp"
#include "ranks.hpp"
#include "run_report.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace fovea::app {
namespace {

struct GradientName {
    std::string_view name;
    uint32_t gradient;
    FoveaBinding binding;
};
constexpr GradientName kGradients[] = {
    {"dq", FOVEA_GRAD_Q, FOVEA_BIND_DQ},
    {"dk", FOVEA_GRAD_K, FOVEA_BIND_DK},
    {"dv", FOVEA_GRAD_V, FOVEA_BIND_DV},
    {"dbias", FOVEA_GRAD_BIAS, FOVEA_BIND_DBIAS},
    {"dalibi", FOVEA_GRAD_ALIBI, FOVEA_BIND_DALIBI},
    {"dsinks", FOVEA_GRAD_SINKS, FOVEA_BIND_DSINKS},
};
constexpr uint32_t kAlways = FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V;

void print_gradients_help(std::span<const OptionSpec> specs) {
    std::printf(
        "usage: fovea gradients IN.safetensors --out OUT.safetensors [options]\n\n"
        "Gradients of the attention call that `fovea attend` computes from the same file and options. Reads "
        "what attend reads,\n"
        "and in addition:\n"
        "  do          the gradient of o, in o's shape and layout; needed\n"
        "  dlse        [B, Hq, Lq]: the gradient of lse; none: zero\n"
        "Writes dq, dk and dv with the shapes and types of q, k and v, and what --gradients asks for as f32: "
        "dbias with "
        "the shape of\n"
        "the bias (or of a float mask), dalibi [Hq], dsinks [Hq]. o and lse are computed first. "
        "Unsupported inputs are rejected as in attend.\n\n");
    print_options(specs);
}

// The shape of o in the file's own rank and layout, and without its last axis that of lse.
std::vector<uint64_t> row_shape(const AttentionCall& call, bool of_lse) {
    const FoveaAttentionDesc& d = call.desc;
    std::vector<uint64_t> shape;
    if (call.rank == 4) shape.push_back(d.batch);
    if (call.rank >= 3) shape.push_back(d.heads_q);
    shape.push_back(d.len_q);
    if (of_lse) return shape;
    if (call.rows_first && call.rank >= 3) std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    shape.push_back(d.dim_v);
    return shape;
}

Result<void> read_upstream(const TensorSet& file, AttentionCall& call, FoveaAttentionBackwardDesc& backward) {
    const Tensor* d_o = file.find("do");
    if (!d_o)
        return bad("tensor 'do'", "tensor 'do' " + file.why_missing("do") +
                                      "; gradients need the gradient of o under this name");
    const std::vector<uint64_t> shape = row_shape(call, false);
    if (d_o->shape != shape)
        return bad("tensor 'do'", "tensor 'do' has shape " + format_shape(d_o->shape) +
                                      "; it must be that of o, " + format_shape(shape));
    const Result<FoveaDtype> type = keep_float(call, FOVEA_BIND_DO, *d_o);
    if (!type) return type.error();
    backward.do_type = *type;
    backward.do_strides = call.desc.o_strides;
    const Tensor* d_lse = file.find("dlse");
    if (!d_lse) return {};
    const std::vector<uint64_t> rows = row_shape(call, true);
    if (d_lse->shape != rows)
        return bad("tensor 'dlse'", "tensor 'dlse' has shape " + format_shape(d_lse->shape) +
                                        "; it must be that of lse, " + format_shape(rows));
    backward.has_lse_gradient = 1;
    return keep_as_f32(call, FOVEA_BIND_DLSE, *d_lse);
}

Result<void> apply_gradients_option(const Arguments& a, const FoveaAttentionDesc& call,
                                    FoveaAttentionBackwardDesc& backward) {
    backward.gradients = kAlways;
    if (!a.has("--gradients")) return {};
    for (const std::string_view name : split(a.text("--gradients"), ',')) {
        uint32_t gradient = 0;
        for (const GradientName& known : kGradients)
            if (known.name == name && !(known.gradient & kAlways)) gradient = known.gradient;
        if (!gradient)
            return bad("--gradients", "'" + std::string(name) + "' is not one of dbias,dalibi,dsinks");
        backward.gradients |= gradient;
    }
    const auto without = [&](uint32_t gradient, bool given, const char* why) {
        return (backward.gradients & gradient) && !given ? bad("--gradients", why) : Result<void>();
    };
    if (Result<void> r =
            without(FOVEA_GRAD_BIAS, call.bias.present,
                    "--gradients has dbias, but the file has neither a bias nor a mask of a float type");
        !r)
        return r;
    if (Result<void> r = without(FOVEA_GRAD_ALIBI, call.flags & FOVEA_FLAG_ALIBI,
                                 "--gradients has dalibi, but the file has no tensor alibi");
        !r)
        return r;
    return without(FOVEA_GRAD_SINKS, call.flags & FOVEA_FLAG_SINKS,
                   "--gradients has dsinks, but the file has no tensor sinks");
}

Result<void> allocate_gradients(AttentionCall& call, const FoveaAttentionBackwardDesc& backward) {
    const Result<FoveaDeviceProperties> properties = cpu_properties(1);
    if (!properties) return properties.error();
    FoveaAttentionBackwardDesc sizes = backward;  // any plan knows the sizes of the bindings
    sizes.kernel = FOVEA_KERNEL_PLAIN;
    const Result<Plan> plan = plan_attention_backward(*properties, call.desc, sizes);
    if (!plan) return plan.error();
    const FoveaPlanInfo info = plan->info();
    for (const GradientName& g : kGradients) {
        if (!(info.output_mask >> g.binding & 1)) continue;
        if (Result<void> r =
                allocate_result(call, g.binding, info.binding_bytes[g.binding], "--gradients", g.name);
            !r)
            return r;
    }
    return {};
}

// The tensor that became the bias of the call: `bias`, or a float `mask`.
const Tensor* bias_tensor(const TensorSet& file) {
    for (const char* name : {"bias", "mask"}) {
        const Tensor* t = file.find(name);
        if (t && t->type != FOVEA_BOOL && t->type != FOVEA_U8) return t;
    }
    return nullptr;
}

Result<TensorSet> gradient_tensors(const TensorSet& file, const AttentionCall& call, uint32_t gradients) {
    TensorSet set;
    for (const GradientName& g : kGradients) {
        if (!(gradients & g.gradient)) continue;
        const FoveaAttentionDesc& d = call.desc;
        FoveaDtype type = FOVEA_F32;
        std::vector<uint64_t> shape{d.heads_q};
        if (g.gradient & kAlways) {
            const FoveaDtype types[] = {d.q_type, d.k_type, d.v_type};
            const size_t n = g.gradient == FOVEA_GRAD_Q ? 0 : g.gradient == FOVEA_GRAD_K ? 1 : 2;
            type = types[n];
            shape = file.find(g.name.substr(1))->shape;
        } else if (g.gradient == FOVEA_GRAD_BIAS) {
            shape = bias_tensor(file)->shape;
        }
        const FoveaHostBuffer& buffer = call.bindings[g.binding];
        Result<Tensor> tensor =
            make_tensor(std::string(g.name), element_type_of(type), shape,
                        {static_cast<const std::byte*>(buffer.data), size_t(buffer.size_bytes)});
        if (!tensor) return tensor.error();
        set.tensors.push_back(std::move(*tensor));
    }
    return set;
}

// o and lse, which the gradients are made from: in float64 or plain float32 where those are asked for.
Result<void> run_forward(Engine& engine, AttentionCall& call, FoveaKernel kernel) {
    FoveaAttentionDesc forward = call.desc;
    forward.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    forward.kernel = is_oracle(kernel) ? kernel : FOVEA_KERNEL_AUTO;
    // Without the inputs of the gradients: a run rejects a binding that its plan does not have.
    HostBindings bindings;
    std::copy(std::begin(call.bindings), std::end(call.bindings), std::begin(bindings));
    for (uint32_t binding = FOVEA_BIND_DO; binding <= FOVEA_BIND_DLSE; ++binding) bindings[binding] = {};
    const Result<RunReport> report = engine.attention(forward, bindings);
    if (!report) return report.error();
    return {};
}

struct Gradients {
    std::string out;
    EngineOptions options;
    uint64_t chunk = 0;
    TensorSet file;
    AttentionCall call;
    FoveaAttentionBackwardDesc backward = attention_backward();
};

// `writes`: this process writes the file.
Result<void> prepare(const Arguments& a, bool writes, Gradients& to) {
    if (a.positional().size() != 1) return wrong_input_files("gradients", a);
    to.out = a.text("--out");
    if (to.out.empty())
        return bad("--out", "--out is missing; give the file for the gradients, as in --out OUT.safetensors");
    const Result<std::optional<bool>> rows_first = rows_first_option(a);
    if (!rows_first) return rows_first.error();
    Result<EngineOptions> options = engine_options(a);
    if (!options) return options.error();
    to.options = *options;
    to.options.validation = a.has("--validation");
    const Result<uint64_t> chunk = chunk_option(a);
    if (!chunk) return chunk.error();
    to.chunk = *chunk;

    Result<TensorSet> file = load_tensors(std::filesystem::path(a.positional()[0]));
    if (!file) return file.error();
    to.file = std::move(*file);
    AttentionCall& call = to.call;
    FoveaAttentionBackwardDesc& backward = to.backward;
    if (Result<void> r = read_attention_tensors(to.file, *rows_first, call); !r) return r.error();
    if (Result<void> r = read_upstream(to.file, call, backward); !r) return r.error();
    note_unused_tensors(to.file, call, {"do", "dlse"});
    if (Result<void> r = apply_attention_options(a, AttentionCommand::gradients, call.desc); !r)
        return r.error();
    if (Result<void> r = apply_gradients_option(a, call.desc, backward); !r) return r.error();
    backward.kernel = call.desc.kernel;
    call.desc.kernel = FOVEA_KERNEL_AUTO;
    call.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    backward.dq_type = call.desc.q_type, backward.dk_type = call.desc.k_type,
    backward.dv_type = call.desc.v_type;
    backward.dq_strides = call.desc.q_strides, backward.dk_strides = call.desc.k_strides,
    backward.dv_strides = call.desc.v_strides;
    // o stays float32 between the two calls, whatever the types of the file.
    call.desc.o_type = FOVEA_F32;
    if (Result<void> r = allocate_outputs(call); !r) return r.error();
    if (Result<void> r = allocate_gradients(call, backward); !r) return r.error();
    const std::filesystem::path inputs[] = {a.positional()[0]};
    return writes ? check_writable(to.out, ".safetensors", inputs) : Result<void>();
}

Result<int> write(Gradients& of, Engine& engine, const RunReport& report, bool as_json) {
    if (Result<void> r = refuse_messages(engine); !r) return r.error();
    return finish_run(report, of.call, gradient_tensors(of.file, of.call, of.backward.gradients), of.out,
                      as_json);
}

Result<int> gradients_alone(const Arguments& a) {
    Gradients of;
    if (Result<void> r = prepare(a, true, of); !r) return r.error();
    Result<Engine> engine = open_engine(of.options);
    if (!engine) return engine.error();
    if (Result<void> r = run_forward(*engine, of.call, of.backward.kernel); !r) return r.error();
    Progress progress("gradients");
    RunOptions run;
    run.progress = [&](double done) { return progress(done); };
    const Result<RunReport> report = engine->run_on_host(
        plan_attention_backward(engine->properties(), of.call.desc, of.backward), of.call.bindings, run);
    if (!report) return report.error();
    return write(of, *engine, *report, a.has("--json"));
}

// Every rank returns the same error, so that none waits for another; the first one says it.
Result<int> gradients_on(Ranks& ranks, const Arguments& a) {
    Gradients of;
    if (Result<void> r = ranks.agree(prepare(a, ranks.first(), of)); !r) return r.error();
    Result<Engine> engine = ranks.open_engine(of.options);
    if (!engine) return engine.error();
    Progress progress("gradients");
    RunOptions run;
    if (ranks.first()) run.progress = [&](double done) { return progress(done); };
    const Result<RunReport> report = ranks.gradients(*engine, of.call, of.backward, of.chunk, run);
    if (!report) return report.error();
    return ranks.first() ? write(of, *engine, *report, a.has("--json")) : 0;
}

Result<int> gradients(const Arguments& a) {
    return a.has("--shards") ? on_every_rank(a, gradients_on) : gradients_alone(a);
}

}  // namespace

int gradients_command(Words words) {
    const std::vector<OptionSpec> specs = attention_command_options(AttentionCommand::gradients);
    return run_command(
        words, specs, [&] { print_gradients_help(specs); }, naming_options(gradients));
}

}  // namespace fovea::app
