#include "gradients/gradient_case.hpp"

#include "support/case_generator.hpp"
#include "support/cpu_device.hpp"
#include "support/cpu_executor.hpp"
#include "support/number_types.hpp"
#include "support/random.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace fovea::test {
namespace {

enum Stream : uint64_t { d_o_stream = 101, d_lse_stream, old_stream, poison_stream, draw_stream };

// Strides of a tensor of rows in one of the layouts that a caller may have.
FoveaStrides draw_strides(Random& random, const FoveaAttentionDesc& d, bool queries, uint32_t dim,
                          bool may_coincide) {
    const bool packed = queries ? d.packed_rows_q > 0 : d.packed_rows_kv > 0;
    const auto heads = int64_t(queries ? d.heads_q : d.heads_kv);
    const auto rows =
        int64_t(packed ? (queries ? d.packed_rows_q : d.packed_rows_kv) : (queries ? d.len_q : d.len_kv));
    const int64_t gap = int64_t(random.below(3)), row = int64_t(dim) + gap;
    FoveaStrides s{};
    switch (random.below(4)) {
        case 0:
            return s;
        case 1:
            s = {heads * rows * row, rows * row, row};
            break;
        case 2:
            s = {heads * rows * row, row, heads * row};
            break;
        default:
            if (!may_coincide) return s;
            // An upstream gradient that was broadcast over heads or rows.
            s = random.chance(0.5) ? FoveaStrides{rows * row, FOVEA_BROADCAST, row}
                                   : FoveaStrides{heads * row, row, FOVEA_BROADCAST};
            if (random.chance(0.2)) s = {FOVEA_BROADCAST, FOVEA_BROADCAST, FOVEA_BROADCAST};
    }
    if (packed) s.batch = 0;
    return s;
}

class Inputs {
  public:
    Inputs(const GradientCase& g, Unused unused) : g_(g), c_(g.c), d_(g.c.desc), unused_(unused) {}

    Tensors make(const FoveaPlanInfo& info, const Tensors& forward) {
        Tensors t = forward;
        for (const FoveaBinding binding : {FOVEA_BIND_O, FOVEA_BIND_LSE, FOVEA_BIND_DO, FOVEA_BIND_DLSE}) {
            t[binding].assign(size_t(info.binding_bytes[binding]), std::byte{0});
            if (info.binding_bytes[binding]) spoil(t[binding], type_of(binding), binding);
        }
        if (!(info.binding_mask >> FOVEA_BIND_SINKS & 1)) t[FOVEA_BIND_SINKS].clear();
        const FoveaStrides d_o = do_strides();
        for (uint32_t b = 0; b < d_.batch; ++b)
            for (uint32_t h = 0; h < d_.heads_q; ++h)
                for (int64_t i = 0; i < entry_of(c_, b).q_length; ++i) write_row(t, d_o, b, h, i);
        // Initial values of gradients that are added to.
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!(info.output_mask >> i & 1) || !adds(FoveaBinding(i))) continue;
            t[i].resize(size_t(info.binding_bytes[i]));
            const FoveaDtype type = type_of(FoveaBinding(i));
            for (size_t n = 0; n < t[i].size() / dtype_bytes(type); ++n)
                write_float(t[i], type, int64_t(n), bell(hash(c_.seed, old_stream, i, n)));
        }
        return t;
    }

    FoveaStrides do_strides() const {
        const FoveaStrides& s = g_.backward.do_strides;
        if (d_.packed_rows_q && s.head == 0 && s.row == 0)
            return {0, int64_t(d_.dim_v), int64_t(d_.heads_q) * d_.dim_v};
        return filled(s, d_.heads_q, d_.packed_rows_q ? d_.packed_rows_q : d_.len_q, d_.dim_v);
    }

  private:
    FoveaDtype type_of(FoveaBinding binding) const {
        switch (binding) {
            case FOVEA_BIND_O:
                return d_.o_type;
            case FOVEA_BIND_DO:
                return g_.backward.do_type;
            case FOVEA_BIND_DQ:
                return g_.backward.dq_type;
            case FOVEA_BIND_DK:
                return g_.backward.dk_type;
            case FOVEA_BIND_DV:
                return g_.backward.dv_type;
            default:
                return FOVEA_F32;
        }
    }
    bool adds(FoveaBinding binding) const {
        const uint32_t bits[] = {FOVEA_GRAD_Q,    FOVEA_GRAD_K,     FOVEA_GRAD_V,
                                 FOVEA_GRAD_BIAS, FOVEA_GRAD_ALIBI, FOVEA_GRAD_SINKS};
        return binding >= FOVEA_BIND_DQ && binding <= FOVEA_BIND_DSINKS &&
               (g_.backward.accumulate & bits[binding - FOVEA_BIND_DQ]);
    }
    void spoil(Bytes& bytes, FoveaDtype type, FoveaBinding binding) {
        if (unused_ == Unused::zero) return;
        for (size_t n = 0; n < bytes.size() / dtype_bytes(type); ++n) {
            const float poisons[] = {NAN, INFINITY, -INFINITY, largest_number(type)};
            write_float(bytes, type, int64_t(n), poisons[hash(c_.seed, poison_stream, binding, n) % 4]);
        }
    }
    void write_row(Tensors& t, const FoveaStrides& d_o, uint32_t b, uint32_t h, int64_t i) {
        const auto row = int64_t((size_t(b) * d_.heads_q + h) * d_.len_q + size_t(i));
        const bool empty = sees_nothing(c_, b, h, i);
        write_float(t[FOVEA_BIND_LSE], FOVEA_F32, row,
                    read_float(g_.forward.plain[FOVEA_BIND_LSE], FOVEA_F32, row));
        const int64_t o = query_element(c_, o_strides(c_), b, h, i);
        for (uint32_t n = 0; n < d_.dim_v; ++n) {
            // If float16 cannot represent o, its gradients are not finite in any precision.
            const float value = read_float(g_.forward.plain[FOVEA_BIND_O], d_.o_type, o + n);
            write_float(t[FOVEA_BIND_O], d_.o_type, o + n, std::clamp(value, -60000.0f, 60000.0f));
        }
        const bool has_sink = d_.flags & FOVEA_FLAG_SINKS;
        if (g_.backward.has_lse_gradient && (!empty || has_sink))
            write_float(t[FOVEA_BIND_DLSE], FOVEA_F32, row, bell(hash(c_.seed, d_lse_stream, row)));
        if (empty) return;
        const int64_t first = query_element(c_, d_o, b, h, i);
        for (uint32_t n = 0; n < d_.dim_v; ++n)
            write_float(t[FOVEA_BIND_DO], g_.backward.do_type, first + n,
                        bell(hash(c_.seed, d_o_stream, first + n)));
    }

    const GradientCase& g_;
    const Case& c_;
    const FoveaAttentionDesc& d_;
    Unused unused_;
};

}  // namespace

bool keys_overlap(const Case& c) {
    if (!c.desc.packed_rows_kv) return false;
    for (uint32_t a = 0; a < c.desc.batch; ++a)
        for (uint32_t b = 0; b < a; ++b) {
            const Entry x = entry_of(c, a), y = entry_of(c, b);
            if (x.kv_start < y.kv_start + y.kv_length && y.kv_start < x.kv_start + x.kv_length) return true;
        }
    return false;
}

Case forward_case(uint64_t seed, double flops) {
    CaseLimits limits;
    limits.flops = flops;
    Case c = generate_case(seed, limits);
    while (c.desc.page_size) c = generate_case(++seed, limits);
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    c.desc.precision = FOVEA_PRECISION_F32;
    return c;
}

FoveaAttentionBackwardDesc draw_backward(const Case& c) {
    const FoveaAttentionDesc& d = c.desc;
    Random random(hash(c.seed, draw_stream));
    uint32_t all = FOVEA_GRAD_Q;
    if (!keys_overlap(c)) all |= FOVEA_GRAD_K | FOVEA_GRAD_V;
    if (d.bias.present) all |= FOVEA_GRAD_BIAS;
    if (d.flags & FOVEA_FLAG_ALIBI) all |= FOVEA_GRAD_ALIBI;
    if (d.flags & FOVEA_FLAG_SINKS) all |= FOVEA_GRAD_SINKS;
    FoveaAttentionBackwardDesc backward = attention_backward(all);
    if (random.chance(0.2)) backward.gradients &= uint32_t(random.next()) | FOVEA_GRAD_Q;
    if (random.chance(0.3)) backward.accumulate = backward.gradients & uint32_t(random.next());
    backward.has_lse_gradient = random.chance(0.5);
    const auto type = [&] {
        const bool narrow = random.chance(0.3);
        return !narrow ? FOVEA_F32 : random.chance(0.5) ? FOVEA_F16 : FOVEA_BF16;
    };
    backward.do_type = type(), backward.dq_type = type(), backward.dk_type = type(),
    backward.dv_type = type();
    backward.do_strides = draw_strides(random, d, true, d.dim_v, true);
    backward.dq_strides = draw_strides(random, d, true, d.dim_qk, false);
    backward.dk_strides = draw_strides(random, d, false, d.dim_qk, false);
    backward.dv_strides = draw_strides(random, d, false, d.dim_v, false);
    return backward;
}

Result<GradientCase> prepare_gradients(Case c, const FoveaAttentionBackwardDesc& backward) {
    Result<PreparedCase> prepared = prepare(std::move(c));
    if (!prepared) return prepared.error();
    GradientCase g;
    g.c = std::move(prepared->c);
    g.backward = backward;
    g.forward = std::move(prepared->oracle);
    FoveaAttentionBackwardDesc sizes = backward;
    sizes.kernel = FOVEA_KERNEL_REFERENCE;
    Result<Plan> plan = plan_attention_backward(cpu_device(1), g.c.desc, sizes);
    if (!plan) return plan.error();
    g.clean = Inputs(g, Unused::zero).make(plan->info(), prepared->clean);
    g.poisoned = Inputs(g, Unused::poison).make(plan->info(), prepared->poisoned);
    // One plan for both, so that a share of a batch is not cut by a budget.
    FoveaAttentionDesc whole = g.c.desc;
    whole.max_slice_cost = 0;
    const auto reference = make_cpu_executor("reference", {FOVEA_KERNEL_REFERENCE, false, 0});
    const auto plain = make_cpu_executor("plain", {FOVEA_KERNEL_PLAIN, false, 0});
    Outcome outcome = plain->run_backward(whole, backward, g.clean);
    if (!outcome.ran()) return Error{outcome.code, "plain", outcome.text, 0};
    g.plain = std::move(outcome.outputs);
    // In float32, whatever the types asked for, with the same numbers to add to.
    sizes.dq_type = sizes.dk_type = sizes.dv_type = FOVEA_F32;
    Tensors inputs = g.clean;
    const struct {
        FoveaBinding binding;
        FoveaDtype type;
    } halves[] = {{FOVEA_BIND_DQ, backward.dq_type},
                  {FOVEA_BIND_DK, backward.dk_type},
                  {FOVEA_BIND_DV, backward.dv_type}};
    for (const auto& [binding, type] : halves) {
        if (type == FOVEA_F32 || inputs[binding].empty()) continue;
        Bytes wide(inputs[binding].size() * 2);
        for (size_t n = 0; n < wide.size() / 4; ++n)
            write_float(wide, FOVEA_F32, int64_t(n), read_float(inputs[binding], type, int64_t(n)));
        inputs[binding] = std::move(wide);
    }
    outcome = reference->run_backward(whole, sizes, inputs);
    if (!outcome.ran()) return Error{outcome.code, "reference", outcome.text, 0};
    g.exact = std::move(outcome.outputs);
    return g;
}

Result<GradientCase> prepare_gradients(uint64_t seed, double flops) {
    Case c = forward_case(seed, flops);
    const FoveaAttentionBackwardDesc backward = draw_backward(c);
    return prepare_gradients(std::move(c), backward);
}

std::string describe_gradients(const GradientCase& g) {
    char text[120];
    snprintf(text, sizeof text, " gradients=0x%x accumulate=0x%x dlse=%u types=%d%d%d%d",
             g.backward.gradients, g.backward.accumulate, g.backward.has_lse_gradient, g.backward.do_type,
             g.backward.dq_type, g.backward.dk_type, g.backward.dv_type);
    return describe(g.c) + text;
}

std::string gradient_replay(uint64_t seed, const std::string& executor) {
    char text[120];
    snprintf(text, sizeof text, "fovea_test_gradients --case 0x%016llx --on %s",
             static_cast<unsigned long long>(seed), executor.c_str());
    return text;
}

CaseReport run_gradients(Executor& executor, const GradientCase& g, const std::string& replay) {
    CaseReport report;
    const auto failed = [&](const std::string& text) {
        report.kind = CaseReport::Kind::failed;
        report.text = text + "\n  " + describe_gradients(g) + "\n  replay: " + replay;
        return report;
    };
    ExecuteOptions options;
    options.workers = 1 + uint32_t(g.c.seed % 3);
    FoveaAttentionDesc whole = g.c.desc;
    whole.max_slice_cost = 0;
    Outcome outcome = executor.run_backward(whole, g.backward, g.poisoned, options);
    report.kernel = outcome.kernel;
    if (outcome.kind == Outcome::Kind::refused) {
        report.kind = CaseReport::Kind::refused;
        report.text = outcome.text;
        report.code = outcome.code;
        return report;
    }
    if (!outcome.ran()) return failed(outcome.text);
    const GradientVerdict verdict = judge_gradients(g, outcome.outputs);
    report.worst_share = verdict.worst_share;
    if (!verdict.ok) return failed(verdict.text);
    if (hash(g.c.seed, 91) % 3 == 0 && !g.backward.accumulate) {
        // Other inputs in the unused slots, small slices in a random order, some of them twice.
        FoveaAttentionDesc cut = g.c.desc;
        cut.max_slice_cost = 2e4;
        options.workers = 1 + options.workers % 3;
        options.shuffle_seed = g.c.seed | 1;
        Outcome twin = executor.run_backward(cut, g.backward, g.clean, options);
        while (twin.code == FOVEA_LIMIT_EXCEEDED && twin.text.rfind("max_slice_cost", 0) == 0 &&
               cut.max_slice_cost < 1e12) {
            cut.max_slice_cost *= 4;
            twin = executor.run_backward(cut, g.backward, g.clean, options);
        }
        if (!twin.ran()) return failed("in slices: " + twin.text);
        if (const std::string where = first_difference(outcome.outputs, twin.outputs); !where.empty())
            return failed("poison in unused slots, slices or workers changed " + where);
    }
    report.kind = CaseReport::Kind::passed;
    return report;
}

}  // namespace fovea::test
