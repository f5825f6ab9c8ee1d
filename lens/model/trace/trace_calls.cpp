// The attention calls of a traced layer: its masks, its bindings, and the matrices of one head.
#include <fovea/model/torch_random.hpp>

#include <algorithm>
#include <cmath>

#include "model/trace/trace_impl.hpp"
#include "model/transformer_parts.hpp"

namespace fovea {
namespace {

F32Tensor without_batch(F32Tensor t) {
    Shape shape(t.shape.begin() + 1, t.shape.end());
    return reshaped(std::move(t), std::move(shape));
}

template <class T>
std::vector<std::byte> bytes_of(std::span<const T> values) {
    const auto bytes = std::as_bytes(values);
    // Masks of bytes are read in whole words.
    std::vector<std::byte> out((bytes.size() + 3) / 4 * 4);
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return out;
}

std::vector<std::byte> stored(const float* first, size_t count, bool as_half) {
    if (!as_half) return bytes_of(std::span(first, count));
    std::vector<uint16_t> halves(count);
    for (size_t i = 0; i < count; ++i) halves[i] = foveaFloatToHalf(first[i]);
    return bytes_of(std::span<const uint16_t>(halves));
}

}  // namespace

std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> PreparedAttention::bindings() const {
    std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> buffers{};
    for (size_t i = 0; i < buffers.size(); ++i)
        if (!inputs[i].empty()) buffers[i] = {const_cast<std::byte*>(inputs[i].data()), inputs[i].size()};
    return buffers;
}

// ---- masks ----

std::vector<uint8_t> Trace::Impl::file_cells(uint32_t n, uint32_t head) const {
    const CallExtras& e = extras(n);
    const uint64_t columns = keys(n);
    std::vector<uint8_t> cells(rows() * columns, 1);
    if (!has_file_mask(n)) return cells;
    const uint8_t* const from = &e.mask[(e.mask_heads > 1 ? head : 0) * e.mask_rows * columns];
    for (uint64_t i = 0; i < rows(); ++i)
        std::copy_n(from + (e.mask_rows > 1 ? i * columns : 0), columns, &cells[i * columns]);
    return cells;
}

// Pattern, hidden keys and the file's mask; with `all_rules` causal and window, too.
std::vector<uint8_t> Trace::Impl::shown_cells(uint32_t n, uint32_t head, bool all_rules) const {
    std::vector<uint8_t> cells = file_cells(n, head);
    const std::vector<uint8_t> chosen =
        all_rules ? visible_cells(rules(n), rows(), keys(n)) : mask_cells(rules(n), rows(), keys(n));
    for (size_t i = 0; i < chosen.size(); ++i) cells[i] &= chosen[i];
    return cells;
}

std::vector<float> Trace::Impl::slopes(uint32_t n) const {
    std::vector<float> all;
    const uint32_t heads = block(n).attention.heads;
    for (uint32_t h = 0; h < heads; ++h)
        all.push_back(h < extras(n).alibi.size() ? extras(n).alibi[h] : alibi_slope(h, heads));
    return all;
}

Result<void> Trace::Impl::draw_keep(uint32_t n) {
    Layer& l = layers_[n];
    if (l.kept) return {};
    Result<std::vector<uint8_t>> drawn = keep_mask(rules(n), block(n).attention.heads, rows(), keys(n));
    if (!drawn) return drawn.error();
    l.keep = std::move(*drawn);
    l.kept = true;
    return {};
}

// ---- calls ----

Result<PreparedAttention> Trace::Impl::prepare(uint32_t n, uint32_t first, uint32_t count, bool as_half,
                                               bool with_keep) {
    if (Result<void> r = project(n); !r) return r.error();
    Layer& l = layers_[n];
    const AttentionPart& a = block(n).attention;
    const uint32_t group = a.heads / a.kv_heads;
    const uint32_t first_kv = first / group, kv = count == 1 ? 1 : count / group;
    PreparedAttention out;
    FoveaAttentionDesc& d = out.call;
    d.batch = 1;
    d.heads_q = count, d.heads_kv = kv;
    d.len_q = rows(), d.len_kv = keys(n);
    d.dim_qk = uint32_t(l.q.shape[2]), d.dim_v = uint32_t(l.v.shape[2]);
    apply_rules(rules(n), d);
    if (as_half) d.q_type = d.k_type = d.v_type = FOVEA_F16;
    const auto store = [&](FoveaBinding binding, const F32Tensor& t, uint32_t from, uint32_t heads) {
        const uint64_t size = t.shape[1] * t.shape[2];
        out.inputs[binding] = stored(t.values.data() + from * size, heads * size, as_half);
    };
    store(FOVEA_BIND_Q, l.q, first, count), store(FOVEA_BIND_K, l.k, first_kv, kv),
        store(FOVEA_BIND_V, l.v, first_kv, kv);
    const auto own = [&]<class T>(FoveaBinding binding, const std::vector<T>& values) {
        out.inputs[binding] = bytes_of(std::span<const T>(values));
    };
    if (rules(n).alibi) {
        const std::vector<float> all = slopes(n);
        own(FOVEA_BIND_ALIBI, std::vector<float>(all.begin() + first, all.begin() + first + count));
    }
    const CallExtras& e = extras(n);
    const bool each_head = has_file_mask(n) && e.mask_heads > 1;
    const bool cells =
        has_file_mask(n) || rules(n).pattern != MaskPattern::none || !rules(n).hidden_keys.empty();
    if (cells && !masks_after(n)) {
        d.mask.present = 1, d.mask.type = FOVEA_U8, d.mask.heads = each_head ? count : 1;
        std::vector<uint8_t> all;
        for (uint32_t h = first; h < first + d.mask.heads; ++h) {
            const std::vector<uint8_t> one = shown_cells(n, h, false);
            all.insert(all.end(), one.begin(), one.end());
        }
        own(FOVEA_BIND_MASK, all);
    }
    if (!e.bias.empty()) {
        const uint64_t size = e.bias_rows * d.len_kv, from = e.bias_heads > 1 ? first * size : 0;
        d.bias.present = 1, d.bias.type = FOVEA_F32;
        d.bias.heads = e.bias_heads > 1 ? count : 1, d.bias.rows = e.bias_rows;
        own(FOVEA_BIND_BIAS, std::vector<float>(e.bias.begin() + int64_t(from),
                                                e.bias.begin() + int64_t(from + d.bias.heads * size)));
    }
    if (!e.sinks.empty()) {
        d.flags |= FOVEA_FLAG_SINKS;
        own(FOVEA_BIND_SINKS, std::vector<float>(e.sinks.begin() + first, e.sinks.begin() + first + count));
    }
    if (with_keep && drops(n)) {
        if (Result<void> r = draw_keep(n); !r) return r.error();
        const uint64_t size = d.len_q * d.len_kv;
        d.dropout_mask.present = 1, d.dropout_mask.type = FOVEA_U8, d.dropout_mask.heads = count;
        d.dropout_p = float(rules(n).dropout_p);
        own(FOVEA_BIND_DROPOUT_MASK, std::vector<uint8_t>(l.keep.begin() + int64_t(first * size),
                                                          l.keep.begin() + int64_t((first + count) * size)));
    }
    return out;
}

Result<AttentionResult> Trace::Impl::call(uint32_t n, uint32_t first, uint32_t count, uint32_t outputs,
                                          bool unscaled, bool kept) {
    Result<PreparedAttention> made = prepare(n, first, count, false, kept);
    if (!made) return made.error();
    FoveaAttentionDesc& d = made->call;
    d.outputs = outputs;
    if (unscaled) d.scale = 1.0f, d.softcap = 0.0f;
    std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> bindings = made->bindings();
    AttentionResult result;
    const Shape matrix = {1, count, d.len_q, d.len_kv};
    const std::tuple<uint32_t, FoveaBinding, F32Tensor*, Shape> all[] = {
        {FOVEA_OUTPUT_O, FOVEA_BIND_O, &result.o, {1, count, d.len_q, d.dim_v}},
        {FOVEA_OUTPUT_LSE, FOVEA_BIND_LSE, &result.lse, {1, count, d.len_q}},
        {FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES, &result.scores, matrix},
        {FOVEA_OUTPUT_CAPPED, FOVEA_BIND_CAPPED, &result.capped, matrix},
        {FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED, &result.masked, matrix},
        {FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS, &result.weights, matrix}};
    for (const auto& [bit, binding, to, shape] : all) {
        if (!(outputs & bit)) continue;
        *to = F32Tensor(shape);
        bindings[binding] = {to->values.data(), to->values.size() * 4};
    }
    if (strict_) {
        const ScoreScale scale = unscaled ? ScoreScale{} : score_scale(rules(n), head_width(n));
        if (Result<void> r = attend_strictly(d, bindings.data(), scale, kept ? rules(n).dropout_p : 0.0); !r)
            return r.error();
        return result;
    }
    if (Result<void> r = engine().attention(d, bindings.data()); !r) return r.error();
    if (reason_.empty() || (outputs & FOVEA_OUTPUT_O)) reason_ = engine().reason();
    return result;
}

// ---- the matrices of one head ----

Result<void> Trace::Impl::head_matrices(uint32_t n, uint32_t head) {
    Layer& l = layers_[n];
    if (l.head == head) return {};
    l.head.reset();
    const auto plain = [](F32Tensor t) { return without_batch(without_batch(std::move(t))); };
    Result<AttentionResult> raw = call(n, head, 1, FOVEA_OUTPUT_SCORES, true, false);
    if (!raw) return raw.error();
    l.scores = plain(std::move(raw->scores));
    Result<AttentionResult> made = call(
        n, head, 1, FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED | FOVEA_OUTPUT_MASKED | FOVEA_OUTPUT_WEIGHTS,
        false, false);
    if (!made) return made.error();
    l.scaled = plain(std::move(made->scores));
    l.capped = plain(std::move(made->capped));
    l.masked = plain(std::move(made->masked));
    l.weights = plain(std::move(made->weights));
    if (masks_after(n)) renormalise(n, head, l);
    if (drops(n)) {
        if (Result<void> r = draw_keep(n); !r) return r;
        drop(n, head, l);
    }
    l.head = head;
    return {};
}

// The other route to a mask: weights of hidden keys become 0, and each row is divided by its sum.
void Trace::Impl::renormalise(uint32_t n, uint32_t head, Layer& l) const {
    l.weights_all = l.weights;
    const std::vector<uint8_t> cells = shown_cells(n, head, true);
    for (size_t i = 0; i < cells.size(); ++i)
        if (!cells[i]) l.weights.values[i] = 0.0f;
    l.masked_weights = l.weights;
    l.row_sums = F32Tensor({rows(), 1});
    for (uint64_t i = 0; i < rows(); ++i) {
        const float sum = l.row_sums.values[i] = strict::sum(l.weights.row(i));
        for (float& weight : l.weights.row(i))
            if (sum > 0) weight /= sum;
    }
}

void Trace::Impl::drop(uint32_t n, uint32_t head, Layer& l) const {
    l.dropped = l.weights;
    const uint8_t* const keep = &l.keep[head * l.weights.values.size()];
    for (size_t i = 0; i < l.dropped.values.size(); ++i)
        l.dropped.values[i] *= dropout_factor(keep[i] ? 1 : 0, rules(n).dropout_p);
}

// ---- contexts and what follows ----

// If the mask comes after the softmax, no call gives the weights; the contexts are computed as their products
// with the values.
Result<void> Trace::Impl::attend_by_weights(uint32_t n) {
    Layer& l = layers_[n];
    const AttentionPart& a = block(n).attention;
    const uint64_t width = l.v.shape[2];
    for (uint32_t h = 0; h < a.heads; ++h) {
        if (Result<void> r = head_matrices(n, h); !r) return r;
        const F32Tensor& weights = drops(n) ? l.dropped : l.weights;
        const F32Tensor v = matrix_of(l.v, h / (a.heads / a.kv_heads));
        for (uint64_t i = 0; i < rows(); ++i) {
            const auto out = l.context.row(i).subspan(h * width, width);
            std::fill(out.begin(), out.end(), 0.0f);
            for (uint64_t j = 0; j < keys(n); ++j) {
                const float weight = weights.row(i)[j];
                for (size_t c = 0; weight != 0.0f && c < out.size(); ++c) {
                    const float product = weight * v.row(j)[c];
                    out[c] += product;
                }
            }
        }
    }
    return {};
}

Result<void> Trace::Impl::attend(uint32_t n) {
    Layer& l = layers_[n];
    if (l.attended) return {};
    if (Result<void> r = project(n); !r) return r;
    const AttentionPart& a = block(n).attention;
    const uint64_t width = l.v.shape[2];
    constexpr uint32_t kOutputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    l.context = F32Tensor({rows(), a.heads * width});
    l.lse = F32Tensor({a.heads, rows(), 1});
    Result<AttentionResult> made = call(n, 0, a.heads, kOutputs, false, !masks_after(n));
    if (!made) return made.error();
    for (uint64_t h = 0; h < a.heads; ++h)
        for (uint64_t i = 0; i < rows(); ++i) {
            const auto from = made->o.row(h * rows() + i);
            std::copy(from.begin(), from.end(), l.context.row(i).begin() + int64_t(h * width));
        }
    l.lse.values = std::move(made->lse.values);
    if (masks_after(n))
        if (Result<void> r = attend_by_weights(n); !r) return r;
    l.attended = true;
    return {};
}

}  // namespace fovea
