#include "model/attention_inputs.hpp"

#include "problem/half.hpp"

#include <fovea/inspect.hpp>

#include <cmath>
#include <cstring>
#include <string>

namespace fovea::visualizer {
namespace {

// Scores, masked scores and weights are each kept whole up to here.
constexpr uint64_t kMostCells = 24u << 20;
constexpr float kBeyondHalf = 65520;  // from here on float16 rounds to infinity

template <class T>
void own(AttentionInputs& in, FoveaBinding binding, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    in.bytes[binding] = in.owned.emplace_back(bytes.begin(), bytes.end());
}

void store(AttentionInputs& in, FoveaBinding binding, const F32Tensor& tensor, bool as_half) {
    if (!as_half) {
        in.bytes[binding] = std::as_bytes(std::span(tensor.values));
        return;
    }
    std::vector<uint16_t> halves(tensor.values.size());
    for (size_t i = 0; i < halves.size(); ++i) halves[i] = float_to_half(tensor.values[i]);
    own(in, binding, halves);
}

// What the settings hide and, where they have no pattern of their own, what the file hides; and what the file
// adds to the scores.
void add_masks(AttentionInputs& in, const CallExtras& extras, bool masked_by_file,
               std::vector<uint8_t> cells) {
    FoveaAttentionDesc& d = in.desc;
    const uint64_t chosen = cells.size();
    if (!extras.mask.empty() && masked_by_file) {
        d.mask.heads = uint32_t(extras.mask_heads);
        if (chosen == 0) {
            cells = extras.mask;
            d.mask.rows = extras.mask_rows;
        } else {
            const uint64_t heads = extras.mask_heads, rows = extras.mask_rows, keys = d.len_kv;
            std::vector<uint8_t> both(heads * chosen);
            for (size_t i = 0; i < both.size(); ++i) {
                const uint64_t row = rows == 1 ? 0 : i / keys % rows;
                both[i] = cells[i % chosen] & extras.mask[(i / chosen * rows + row) * keys + i % keys];
            }
            cells = std::move(both);
        }
    }
    if (!cells.empty()) {
        d.mask.present = 1;
        d.mask.type = FOVEA_U8;
        own(in, FOVEA_BIND_MASK, cells);
    }
    if (!extras.bias.empty()) {
        d.bias.present = 1;
        d.bias.type = FOVEA_F32;
        d.bias.heads = uint32_t(extras.bias_heads), d.bias.rows = extras.bias_rows;
        own(in, FOVEA_BIND_BIAS, extras.bias);
    }
    if (!extras.sinks.empty()) {
        d.flags |= FOVEA_FLAG_SINKS;
        own(in, FOVEA_BIND_SINKS, extras.sinks);
    }
}

Result<void> round_values(F32Tensor& tensor, const char* name) {
    for (float& value : tensor.values) {
        if (std::isfinite(value) && std::abs(value) >= kBeyondHalf)
            return Error{FOVEA_INVALID_ARGUMENT, "precision",
                         std::string(name) + " hold " + format_number(double(value), 6) +
                             ", and float16 ends at 65,504"};
        value = half_to_float(float_to_half(value));
    }
    return {};
}

}  // namespace

// The slope that ALiBi gives head h of n, for n a power of two: 2^(-8 (h + 1) / n).
float alibi_slope(const CallExtras& extras, uint32_t head, uint64_t heads) {
    return head < extras.alibi.size() ? extras.alibi[head]
                                      : float(std::exp2(-8.0 * double(head + 1) / double(heads)));
}

bool fits_matrices(const Projected& p) { return p.q.shape[1] * p.q.shape[2] * p.k.shape[2] <= kMostCells; }

Result<void> round_to_precision(Projected& p, const Settings& s) {
    if (s.precision == Precision::f32) return {};
    for (const auto& [tensor, name] : {std::pair{&p.q, "queries"}, {&p.k, "keys"}, {&p.v, "values"}})
        if (Result<void> r = round_values(*tensor, name); !r) return r;
    for (HostStage& stage : p.stages)
        if (stage.name == "queries" || stage.name == "keys" || stage.name == "values")
            if (Result<void> r = round_values(stage.tensor, stage.name.c_str()); !r) return r;
    return {};
}

Result<AttentionInputs> attention_inputs(const Projected& p, const Settings& s) {
    const Shape &q = p.q.shape, &k = p.k.shape;
    if (!fits_matrices(p))
        return Error{FOVEA_UNSUPPORTED, "length",
                     std::to_string(q[1]) + " heads of " + format_count(q[2]) + " x " + format_count(k[2]) +
                         " weights are above the " + format_count(kMostCells) + " that are kept as matrices"};
    AttentionInputs in;
    FoveaAttentionDesc& d = in.desc;
    d.batch = 1;
    d.heads_q = uint32_t(q[1]), d.heads_kv = uint32_t(k[1]);
    d.len_q = q[2], d.len_kv = k[2];
    d.dim_qk = uint32_t(q[3]), d.dim_v = uint32_t(p.v.shape[3]);
    d.scale = 1 / (p.divisor * s.temperature);
    d.softcap = s.softcap;
    if (s.causal) d.flags |= FOVEA_FLAG_CAUSAL;
    if (s.windowed) {
        d.flags |= FOVEA_FLAG_WINDOW;
        d.window_left = s.window_left, d.window_right = s.window_right;
    }
    const bool as_half = s.precision != Precision::f32;
    if (as_half) d.q_type = d.k_type = d.v_type = FOVEA_F16;
    store(in, FOVEA_BIND_Q, p.q, as_half);
    store(in, FOVEA_BIND_K, p.k, as_half);
    store(in, FOVEA_BIND_V, p.v, as_half);
    if (s.alibi) {
        d.flags |= FOVEA_FLAG_ALIBI;
        std::vector<float> slopes;
        for (uint32_t head = 0; head < d.heads_q; ++head)
            slopes.push_back(alibi_slope(p.extras, head, d.heads_q));
        own(in, FOVEA_BIND_ALIBI, slopes);
    }
    add_masks(in, p.extras, s.pattern == MaskPattern::none, mask_cells(s, q[2], k[2]));
    if (s.dropout && s.dropout_p > 0) {
        // The mask that PyTorch's native dropout draws after manual_seed: the digits of the reader's
        // notebook.
        d.dropout_p = s.dropout_p;
        std::vector<uint8_t> keep(q[1] * q[2] * k[2]);
        TorchGenerator random(s.dropout_seed);
        random.keep_mask_native(keep, s.dropout_p);
        d.keep.present = 1;
        d.keep.type = FOVEA_U8;
        d.keep.heads = d.heads_q;
        own(in, FOVEA_BIND_KEEP, keep);
    }
    return in;
}

}  // namespace fovea::visualizer
