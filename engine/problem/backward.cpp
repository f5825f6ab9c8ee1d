#include "problem/backward.hpp"

#include "problem/abi_struct.hpp"
#include "problem/checked.hpp"

#include <algorithm>

namespace fovea {
namespace {

using GradientDesc = FoveaAttentionBackwardDesc;

constexpr uint32_t kRows = FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V;
constexpr uint32_t kKnown = kRows | FOVEA_GRAD_BIAS | FOVEA_GRAD_ALIBI | FOVEA_GRAD_SINKS;

FoveaResult check_choices(const GradientDesc& d, const Problem& p, FoveaDiag* diag) {
    if (d.gradients & ~kKnown)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "gradients", "gradients has unknown bits 0x%x",
                    d.gradients & ~kKnown);
    const uint32_t gradients = d.gradients ? d.gradients : kRows;
    if (d.accumulate & ~gradients)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "accumulate",
                    "accumulate has bits 0x%x that gradients, 0x%x, does not have", d.accumulate & ~gradients,
                    gradients);
    const struct {
        uint32_t bit;
        bool present;
        const char *name, *needs;
    } optional[] = {{FOVEA_GRAD_BIAS, p.bias.present, "FOVEA_GRAD_BIAS", "a bias"},
                    {FOVEA_GRAD_ALIBI, p.alibi, "FOVEA_GRAD_ALIBI", "FOVEA_FLAG_ALIBI"},
                    {FOVEA_GRAD_SINKS, p.sinks, "FOVEA_GRAD_SINKS", "FOVEA_FLAG_SINKS"}};
    for (const auto& o : optional)
        if ((gradients & o.bit) && !o.present)
            return fail(diag, FOVEA_INVALID_ARGUMENT, "gradients",
                        "gradients is 0x%x, but %s needs a call with %s", gradients, o.name, o.needs);
    if (d.has_lse_gradient > 1)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "has_lse_gradient",
                    "has_lse_gradient is %u; it must be 0 or 1", d.has_lse_gradient);
    if (d.reserved0 != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "reserved0", "reserved0 is %u; it must be 0", d.reserved0);
    const int kernel = enum_number(d.kernel);
    if (kernel < FOVEA_KERNEL_AUTO || kernel > FOVEA_KERNEL_REFERENCE)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "kernel", "kernel is %d; it must be a FoveaKernel", kernel);
    if (is_compressed(p.k_type) || is_compressed(p.v_type))
        return fail(diag, FOVEA_UNSUPPORTED, is_compressed(p.k_type) ? "k_type" : "v_type",
                    "gradients of a quantized KV cache are not supported");
    if (p.page_size)
        return fail(diag, FOVEA_UNSUPPORTED, "page_size",
                    "page_size is %u: gradients of a paged KV cache are not supported", p.page_size);
    return FOVEA_OK;
}

FoveaResult check_gradient_types(const GradientDesc& d, FoveaDiag* diag) {
    const struct {
        const char* name;
        int type;
    } types[] = {{"do_type", enum_number(d.do_type)},
                 {"dq_type", enum_number(d.dq_type)},
                 {"dk_type", enum_number(d.dk_type)},
                 {"dv_type", enum_number(d.dv_type)}};
    for (const auto& [name, type] : types)
        if (!is_float(type))
            return fail(diag, FOVEA_INVALID_ARGUMENT, name,
                        "%s is %d; it must be FOVEA_F32, FOVEA_F16 or FOVEA_BF16", name, type);
    return FOVEA_OK;
}

void bind(Problem& p, FoveaBinding binding, uint64_t bytes, bool output) {
    p.binding_mask |= binding_bit(binding);
    if (output) p.output_mask |= binding_bit(binding);
    p.binding_bytes[binding] = bytes;
}

// One tensor of rows like q or like k.
struct Rows {
    FoveaBinding binding;
    FoveaStrides& strides;
    FoveaDtype type;
    const char* name;
    bool of_queries;
    uint32_t dim;
    bool output;
    bool is_filled = false;  // strides are as make_problem() left them
};

FoveaResult bind_rows(Problem& p, const Rows& t, FoveaDiag* diag) {
    const int64_t packed = t.of_queries ? p.packed_rows_q : p.packed_rows_kv;
    const uint64_t batch = packed ? 1 : p.batch, heads = t.of_queries ? p.heads_q : p.heads_kv;
    const uint64_t rows = uint64_t(packed ? packed : t.of_queries ? p.len_q : p.len_kv);
    FoveaStrides& s = t.strides;
    if (!t.is_filled && packed && s.batch != 0 && s.batch != FOVEA_BROADCAST)
        return fail(diag, FOVEA_INVALID_ARGUMENT, t.name,
                    "%s.batch is %lld; packed rows need a batch stride of 0", t.name,
                    static_cast<long long>(s.batch));
    // Rows of several batch entries end to end are token by token unless strides say otherwise.
    if (!t.is_filled && packed && s.head == 0 && s.row == 0)
        s = FoveaStrides{0, int64_t(t.dim), int64_t(heads) * int64_t(t.dim)};
    if (!t.is_filled)
        if (FoveaResult r = fill_strides(s, {batch, heads, rows, t.dim}, t.name, diag)) return r;
    uint64_t bytes = 0;
    if (!spanned_bytes(s, batch, heads, rows, t.dim, t.type, bytes))
        return fail(diag, FOVEA_SIZE_OVERFLOW, t.name,
                    "the size of the tensor that %s describes does not fit 64 bits", t.name);
    if (t.output && !rows_are_disjoint(s, batch, heads, rows, t.dim))
        return fail(diag, FOVEA_INVALID_ARGUMENT, t.name, "%s is %lld, %lld, %lld: rows of %u overlap",
                    t.name, static_cast<long long>(s.batch), static_cast<long long>(s.head),
                    static_cast<long long>(s.row), t.dim);
    bind(p, t.binding, bytes, t.output);
    return FOVEA_OK;
}

FoveaResult bind_all(Problem& p, Backward& w, FoveaDiag* diag) {
    const Rows inputs[] = {{FOVEA_BIND_O, p.o, p.o_type, "o_strides", true, p.dim_v, false, true},
                           {FOVEA_BIND_DO, w.d_o, w.do_type, "do_strides", true, p.dim_v, false}};
    for (const Rows& t : inputs)
        if (FoveaResult r = bind_rows(p, t, diag)) return r;
    const struct {
        uint32_t gradient;
        Rows rows;
    } outputs[] = {{FOVEA_GRAD_Q, {FOVEA_BIND_DQ, w.dq, w.dq_type, "dq_strides", true, p.dim_qk, true}},
                   {FOVEA_GRAD_K, {FOVEA_BIND_DK, w.dk, w.dk_type, "dk_strides", false, p.dim_qk, true}},
                   {FOVEA_GRAD_V, {FOVEA_BIND_DV, w.dv, w.dv_type, "dv_strides", false, p.dim_v, true}}};
    for (const auto& o : outputs)
        if (w.wants(o.gradient))
            if (FoveaResult r = bind_rows(p, o.rows, diag)) return r;
    const Checked rows = Checked(p.batch) * p.heads_q * uint64_t(p.len_q) * 4;
    if (rows.overflow)
        return fail(diag, FOVEA_SIZE_OVERFLOW, "len_q", "the size of LSE does not fit 64 bits");
    bind(p, FOVEA_BIND_LSE, rows.value, false);
    if (w.lse_gradient) bind(p, FOVEA_BIND_DLSE, rows.value, false);
    if (w.wants(FOVEA_GRAD_BIAS)) {
        const Checked bytes =
            Checked(w.bias_batch) * w.bias_heads * uint64_t(w.bias_rows) * uint64_t(w.bias_keys) * 4;
        if (bytes.overflow)
            return fail(diag, FOVEA_SIZE_OVERFLOW, "bias.rows", "the size of DBIAS does not fit 64 bits");
        bind(p, FOVEA_BIND_DBIAS, bytes.value, true);
    }
    if (w.wants(FOVEA_GRAD_ALIBI)) bind(p, FOVEA_BIND_DALIBI, uint64_t{p.heads_q} * 4, true);
    if (w.wants(FOVEA_GRAD_SINKS)) bind(p, FOVEA_BIND_DSINKS, uint64_t{p.heads_q} * 4, true);
    return FOVEA_OK;
}

}  // namespace

BackwardParts parts_of(const Problem& p, const Backward& w) {
    BackwardParts parts{};
    if (w.wants(FOVEA_GRAD_Q)) parts.query_rows = uint64_t{p.batch} * p.heads_q * uint64_t(p.len_q);
    if (w.wants(FOVEA_GRAD_K | FOVEA_GRAD_V))
        parts.key_rows = uint64_t{p.batch} * p.heads_kv * uint64_t(p.len_kv);
    if (w.wants(FOVEA_GRAD_BIAS) && w.bias_keys > 0)
        parts.bias_rows = uint64_t{w.bias_batch} * w.bias_heads * uint64_t(w.bias_rows);
    if (w.wants(FOVEA_GRAD_ALIBI)) parts.slopes = p.heads_q;
    if (w.wants(FOVEA_GRAD_SINKS)) parts.sinks = p.heads_q;
    return parts;
}

PairFlops pair_flops(const Problem& p, const Backward& w) {
    const double score = 2.0 * p.dim_qk, value = 2.0 * p.dim_v;
    PairFlops flops{};
    flops.query_row = score + value + score;
    flops.key_row = score + (w.wants(FOVEA_GRAD_K) ? value + score : 0) + (w.wants(FOVEA_GRAD_V) ? value : 0);
    flops.bias_row = flops.slope = score + value;
    flops.sink_row = value;
    return flops;
}

double backward_flops(const Problem& p, const Backward& w, double pairs) {
    const BackwardParts parts = parts_of(p, w);
    const PairFlops flops = pair_flops(p, w);
    return pairs * ((parts.query_rows ? flops.query_row : 0) + (parts.key_rows ? flops.key_row : 0) +
                    (parts.bias_rows ? flops.bias_row : 0) + (parts.slopes ? flops.slope : 0)) +
           (parts.sinks ? flops.sink_row * p.batch * p.heads_q * double(p.len_q) : 0);
}

double flops_of_largest_part(const Problem& p, const Backward& w) {
    const BackwardParts parts = parts_of(p, w);
    const PairFlops flops = pair_flops(p, w);
    const double queries = double(p.len_q), keys = double(p.len_kv);
    double most = 0;
    if (parts.query_rows) most = std::max(most, flops.query_row * keys);
    if (parts.key_rows) most = std::max(most, flops.key_row * queries * p.group);
    if (parts.bias_rows) {
        const double pairs = double(p.batch) * p.heads_q * queries * keys;
        most = std::max(most, flops.bias_row * pairs / double(parts.bias_rows));
    }
    if (parts.slopes) most = std::max(most, flops.slope * p.batch * queries * keys);
    if (parts.sinks) most = std::max(most, flops.sink_row * p.batch * queries);
    return most;
}

FoveaResult make_backward(const FoveaAttentionBackwardDesc* desc, Problem& p, Backward& w, FoveaDiag* diag) {
    GradientDesc d;
    FoveaResult r;
    if ((r = read_struct(desc, d, "backward", diag))) return r;
    if ((r = check_choices(d, p, diag))) return r;
    if ((r = check_gradient_types(d, diag))) return r;
    w = Backward{};
    w.gradients = d.gradients ? d.gradients : kRows;
    w.accumulate = d.accumulate;
    w.lse_gradient = d.has_lse_gradient != 0;
    w.do_type = d.do_type, w.dq_type = d.dq_type, w.dk_type = d.dk_type, w.dv_type = d.dv_type;
    w.d_o = d.do_strides, w.dq = d.dq_strides, w.dk = d.dk_strides, w.dv = d.dv_strides;
    w.bias_batch = p.bias.batch, w.bias_heads = p.bias.heads;
    w.bias_rows = p.bias.rows, w.bias_keys = p.bias.keys;
    p.kernel = d.kernel;
    // The results of the forward call are inputs here, and its matrices nothing. The sinks are in lse.
    p.outputs = 0;
    if (!w.wants(FOVEA_GRAD_SINKS)) {
        p.sinks = false;
        p.binding_mask &= ~binding_bit(FOVEA_BIND_SINKS);
    }
    p.ignored_mask = p.output_mask | binding_bit(FOVEA_BIND_SINKS);
    p.binding_mask &= ~p.output_mask;
    p.output_mask = 0;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (!(p.binding_mask >> i & 1)) p.binding_bytes[i] = 0;
    r = bind_all(p, w, diag);
    p.ignored_mask &= ~p.binding_mask;
    return r;
}

}  // namespace fovea
