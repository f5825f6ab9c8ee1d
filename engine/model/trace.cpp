#include <fovea/model/trace.hpp>

#include <fovea/model/strict.hpp>
#include <fovea/model/torch_random.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

#include "model/block_run.hpp"
#include "model/strict_attention.hpp"
#include "model/transformer_parts.hpp"

namespace fovea {
namespace {

constexpr float kBeyondHalf = 65520.0f;  // from here on float16 rounds to infinity

Error wrong(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

// What a call gave; the rest is left empty. Matrices are [1, heads, rows, keys].
struct AttentionResult {
    F32Tensor o, lse, scores, capped, masked, weights;
};

// One of [heads, rows, columns].
F32Tensor matrix_of(const F32Tensor& all, uint64_t index) {
    const uint64_t size = all.shape[1] * all.shape[2];
    const auto first = all.values.begin() + int64_t(index * size);
    return F32Tensor({all.shape[1], all.shape[2]}, {first, first + int64_t(size)});
}

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

Result<void> round_to_half(F32Tensor& tensor, const char* name) {
    for (float& value : tensor.values) {
        if (std::isfinite(value) && std::abs(value) >= kBeyondHalf) {
            char text[96];
            std::snprintf(text, sizeof text, "%s hold %g, and float16 ends at 65504", name, double(value));
            return wrong("precision", text);
        }
        value = foveaHalfToFloat(foveaFloatToHalf(value));
    }
    return {};
}

// Multiplications of the whole computation.
double products_of(const Model& model, const ModelInput& input) {
    const auto of = [](const Linear& l) {
        return is_present(l) ? double(l.d_in()) * double(l.d_out()) : 0.0;
    };
    const auto rows = double(input.q.values.empty() ? input.x.rows() : input.q.shape[1]);
    const auto keys = double(!input.q.values.empty()        ? input.k.shape[1]
                             : !input.memory.values.empty() ? input.memory.rows()
                                                            : input.x.rows());
    double sum = 0, width = double(input.x.columns());
    for (const Block& b : model.blocks) {
        const AttentionPart& a = b.attention;
        const bool given = &b == &model.blocks[0] && !input.q.values.empty();
        const double head = given                 ? double(input.q.shape[2])
                            : is_present(a.query) ? double(a.query.d_out()) / a.heads
                                                  : width;
        sum += rows * (of(a.query) + of(a.key) + of(a.value) + of(a.output));
        sum += rows * keys * a.heads * 2 * head;
        sum += rows * (of(b.feed_forward.up) + of(b.feed_forward.gate) + of(b.feed_forward.down));
        if (is_present(a.output)) width = double(a.output.d_out());
    }
    return sum + rows * of(model.unembedding);
}

std::string number_text(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

// "√d·2": what scores are divided by.
std::string divisor_text(const AttentionRules& rules) {
    std::string text = rules.scale == "auto" ? "√d" : rules.scale == "none" ? "" : rules.scale;
    if (rules.temperature == 1) return text;
    return text.empty() ? number_text(rules.temperature)
                        : "(" + text + "·" + number_text(rules.temperature) + ")";
}

}  // namespace

std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> PreparedAttention::bindings() const {
    std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> buffers{};
    for (size_t i = 0; i < buffers.size(); ++i)
        if (!inputs[i].empty()) buffers[i] = {const_cast<std::byte*>(inputs[i].data()), inputs[i].size()};
    return buffers;
}

class Trace::Impl {
  public:
    Impl(std::shared_ptr<const Model> model, ModelInput input, const TraceOptions& options)
        : model_(std::move(model)),
          input_(std::move(input)),
          layers_(model_->blocks.size()),
          engine_(options.engine) {
        const bool few = products_of(*model_, input_) <= double(kStrictProducts);
        strict_ =
            options.arithmetic == Arithmetic::strict || (options.arithmetic == Arithmetic::by_size && few);
    }

    Result<F32Tensor> stage(std::string_view id, uint32_t head, uint32_t n);
    std::vector<TraceStage> stages(uint32_t n) const;
    Result<PreparedAttention> prepare(uint32_t n, uint32_t first, uint32_t count, bool as_half,
                                      bool with_keep);

    const Model& model() const { return *model_; }
    const ModelInput& input() const { return input_; }
    bool is_strict() const { return strict_; }
    std::string arithmetic() const { return strict_ ? "plain float32" : reason_; }
    uint64_t rows() const { return given() ? input_.q.shape[1] : input_.x.rows(); }
    uint64_t keys(uint32_t n) const { return n > 0 ? rows() : given() ? input_.k.shape[1] : memory().rows(); }
    const Block& block(uint32_t n) const { return model_->blocks[n]; }
    Result<void> project(uint32_t n);
    Result<void> supply(uint32_t n, F32Tensor context);

  private:
    struct Layer {
        bool projected = false, attended = false, finished = false;
        F32Tensor normed, q, k, v;  // heads: [heads, tokens, width]
        std::vector<uint8_t> keep;  // [heads, rows, keys]
        bool kept = false;          // `keep` was drawn, empty or not
        F32Tensor context, lse;     // [rows, heads * width], [heads, rows, 1]
        BlockEnd end;
        // The matrices of one head.
        std::optional<uint32_t> head;
        F32Tensor scores, scaled, capped, masked, weights_all, masked_weights, row_sums, weights, dropped;
    };

    bool given() const { return !input_.q.values.empty(); }
    const F32Tensor& memory() const { return input_.memory.values.empty() ? input_.x : input_.memory; }
    bool is_given(uint32_t n) const { return given() && n == 0; }
    const AttentionRules& rules(uint32_t n) const { return block(n).attention.rules; }
    const CallExtras& extras(uint32_t n) const {
        static const CallExtras kNone;
        return n == 0 ? input_.extras : kNone;
    }
    bool has_values(uint32_t n) const { return !is_given(n) || !input_.v.values.empty(); }
    bool projects(uint32_t n) const { return !is_given(n) && is_present(block(n).attention.query); }
    uint64_t head_width(uint32_t n) const {
        if (is_given(n)) return input_.q.shape[2];
        const AttentionPart& a = block(n).attention;
        return is_present(a.query) ? a.query.d_out() / a.heads : width_before(n);
    }
    uint64_t value_width(uint32_t n) const {
        if (is_given(n)) return has_values(n) ? input_.v.shape[2] : 1;
        const AttentionPart& a = block(n).attention;
        return is_present(a.value) ? a.value.d_out() / a.kv_heads : width_before(n);
    }
    uint64_t output_width(uint32_t n) const {
        const AttentionPart& a = block(n).attention;
        return is_present(a.output) ? a.output.d_out() : value_width(n) * a.heads;
    }
    uint64_t width_before(uint32_t n) const { return n == 0 ? input_.x.columns() : width_behind(n - 1); }
    uint64_t width_behind(uint32_t n) const {
        const Linear& down = block(n).feed_forward.down;
        return is_present(block(n).feed_forward.up) ? down.d_out() : output_width(n);
    }
    bool has_file_mask(uint32_t n) const {
        return !extras(n).mask.empty() && rules(n).pattern == MaskPattern::none;
    }
    bool has_bias(uint32_t n) const { return rules(n).alibi || !extras(n).bias.empty(); }
    bool hides_any(uint32_t n) const { return hides(rules(n)) || has_file_mask(n); }
    bool masks_after(uint32_t n) const { return rules(n).route == MaskRoute::after && hides_any(n); }
    bool drops(uint32_t n) const { return rules(n).dropout_p > 0; }
    bool scales(uint32_t n) const { return score_scale(rules(n), head_width(n)).value != 1.0; }

    EngineRunner& engine() {
        if (!engine_) {
            own_engine_ = make_cpu_runner();
            engine_ = own_engine_.get();
        }
        return *engine_;
    }

    Result<const F32Tensor*> layer_input(uint32_t n);
    Result<F32Tensor> linear(const F32Tensor& x, const Linear& layer);
    LinearRun linear_run() {
        return [this](const F32Tensor& x, const Linear& layer) { return linear(x, layer); };
    }
    Result<void> draw_keep(uint32_t n);
    std::vector<uint8_t> shown_cells(uint32_t n, uint32_t head, bool all_rules) const;
    std::vector<uint8_t> file_cells(uint32_t n, uint32_t head) const;
    std::vector<float> slopes(uint32_t n) const;
    Result<AttentionResult> call(uint32_t n, uint32_t first, uint32_t count, uint32_t outputs, bool unscaled,
                                 bool kept);
    Result<void> head_matrices(uint32_t n, uint32_t head);
    void renormalise(uint32_t n, uint32_t head, Layer& l) const;
    void drop(uint32_t n, uint32_t head, Layer& l) const;
    Result<void> attend(uint32_t n);
    Result<void> attend_by_weights(uint32_t n);
    Result<void> finish(uint32_t n);
    Result<F32Tensor> behind(std::string_view id);
    Result<F32Tensor> pair_stage(std::string_view id, uint32_t head, uint32_t n);
    Result<F32Tensor> flow_stage(std::string_view id, uint32_t head, uint32_t n);
    std::string formula_of(const StageText& text, uint32_t n) const;

    std::shared_ptr<const Model> model_;
    ModelInput input_;
    std::vector<Layer> layers_;
    EngineRunner* engine_;
    std::unique_ptr<EngineRunner> own_engine_;
    bool strict_ = true;
    std::string reason_;
};

// ---- from the input to queries, keys and values ----

Result<const F32Tensor*> Trace::Impl::layer_input(uint32_t n) {
    if (n == 0) return &input_.x;
    if (Result<void> r = finish(n - 1); !r) return r.error();
    return &layers_[n - 1].end.result;
}

Result<F32Tensor> Trace::Impl::linear(const F32Tensor& x, const Linear& layer) {
    return strict_ ? strict::linear(x, layer) : run_linear(engine(), x, layer);
}

Result<void> Trace::Impl::project(uint32_t n) {
    Layer& l = layers_[n];
    if (l.projected) return {};
    const AttentionPart& a = block(n).attention;
    if (is_given(n)) {
        l.q = input_.q, l.k = input_.k;
        l.v = has_values(n) ? input_.v : F32Tensor({l.k.shape[0], l.k.shape[1], 1});
    } else {
        const Result<const F32Tensor*> x = layer_input(n);
        if (!x) return x.error();
        const bool crosses = n == 0 && !input_.memory.values.empty();
        Result<ProjectedHeads> made =
            project_heads(block(n), **x, crosses ? &input_.memory : nullptr, linear_run());
        if (!made) return made.error();
        l.normed = std::move(made->normed);
        l.q = std::move(made->q), l.k = std::move(made->k), l.v = std::move(made->v);
    }
    if (Result<void> r = place_heads(a, 0, l.q, l.k); !r) return r;
    if (rules(n).precision != Precision::f32)
        for (const auto& [t, name] : {std::pair{&l.q, "queries"}, {&l.k, "keys"}, {&l.v, "values"}})
            if (Result<void> r = round_to_half(*t, name); !r) return r;
    l.projected = true;
    return {};
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
        d.keep.present = 1, d.keep.type = FOVEA_U8, d.keep.heads = count;
        d.dropout_p = float(rules(n).dropout_p);
        own(FOVEA_BIND_KEEP, std::vector<uint8_t>(l.keep.begin() + int64_t(first * size),
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

// Where the mask comes after the softmax the weights are no call's, and the contexts are their products with
// the values.
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

Result<void> Trace::Impl::supply(uint32_t n, F32Tensor context) {
    const uint64_t columns = value_width(n) * block(n).attention.heads;
    if (context.values.size() != rows() * columns)
        return wrong("context", "the context has " + std::to_string(context.values.size()) +
                                    " numbers; the layer's has " + std::to_string(rows() * columns));
    if (Result<void> r = attend(n); !r) return r;  // lse
    for (size_t behind = n; behind < layers_.size(); ++behind) {
        if (behind > n) layers_[behind] = {};
        layers_[behind].finished = false;
    }
    layers_[n].context = reshaped(std::move(context), {rows(), columns});
    return {};
}

Result<void> Trace::Impl::finish(uint32_t n) {
    Layer& l = layers_[n];
    if (l.finished) return {};
    if (Result<void> r = attend(n); !r) return r;
    const Block& b = block(n);
    const F32Tensor* x = nullptr;
    if (b.residual) {
        const Result<const F32Tensor*> given = layer_input(n);
        if (!given) return given.error();
        x = *given;
    }
    Result<BlockEnd> end = finish_block(b, x, l.context, linear_run());
    if (!end) return end.error();
    l.end = std::move(*end);
    l.finished = true;
    return {};
}

Result<F32Tensor> Trace::Impl::behind(std::string_view id) {
    const auto last = uint32_t(layers_.size() - 1);
    if (Result<void> r = finish(last); !r) return r.error();
    F32Tensor x = normalised(model_->final_norm, layers_[last].end.result);
    if (id == "final") return x;
    Result<F32Tensor> logits = predict(*model_, std::move(x), linear_run());
    if (logits && id == "probabilities") softmax_rows(*logits);
    return logits;
}

// ---- stages ----

std::string Trace::Impl::formula_of(const StageText& text, uint32_t n) const {
    const Block& b = block(n);
    const AttentionPart& a = b.attention;
    const AttentionRules& r = rules(n);
    const std::string& id = text.id;
    const auto by_layout = [&](const Linear& layer, const char* bias = " + b") {
        const bool transposed = layer.layout == WeightLayout::out_in && !text.transposed.empty();
        return (transposed ? text.transposed : text.formula) + (layer.has_bias() ? bias : "");
    };
    const auto projected = [&](const Linear& layer, bool turned) {
        if (is_given(n)) return text.formula.substr(0, 1);
        std::string formula = by_layout(layer);
        const NormKind kind = id == "queries" ? a.query_norm.kind : a.key_norm.kind;
        const auto inside = [&](const char* name) {
            formula = formula.substr(0, 4) + name + "(" + formula.substr(4) + ")";
        };
        if (turned && kind != NormKind::none) inside(norm_name(kind));
        if (turned && a.rope) inside("rope");
        return formula;
    };
    const bool bare = !projects(n) && !is_given(n);
    if (id == "queries") return projected(a.query, true);
    if (id == "keys") return projected(a.key, true);
    if (id == "values") return projected(a.value, false);
    if (id == "scores" && bare) return "X·Xᵀ";
    if (id == "scaled") return std::string(bare ? "X·Xᵀ / " : "Q·Kᵀ / ") + divisor_text(r);
    if (id == "masked" && !has_bias(n)) return "s, −∞ if hidden";
    if (id == "masked" && !hides_any(n)) return "s + bias";
    if (id == "weights" && masks_after(n)) return "A / Σⱼ";
    if (id == "context" && bare) return "A·X";
    if (id == "output") return by_layout(a.output);
    const auto summed = [&](const Norm& behind, const Norm& of_sum, const char* part) {
        const std::string added =
            behind.kind == NormKind::none ? part : std::string(norm_name(behind.kind)) + "(" + part + ")";
        return b.order == BlockOrder::post ? std::string(norm_name(of_sum.kind)) + "(x + " + added + ")"
                                           : "x + " + added;
    };
    if (id == "attended") return summed(b.attention_output_norm, b.attention_norm, "output");
    if (id == "block") return summed(b.feed_forward_output_norm, b.feed_forward_norm, "h·W_down");
    if (id == "normed") return std::string(norm_name(b.attention_norm.kind)) + "(x)";
    if (id == "ff_normed") return std::string(norm_name(b.feed_forward_norm.kind)) + "(x)";
    if (id == "ff_hidden" && is_present(b.feed_forward.gate))
        return std::string(activation_name(b.feed_forward.activation)) + "(x·W_gate) ⊙ x·W_up";
    if (id == "ff_hidden") return std::string(activation_name(b.feed_forward.activation)) + "(x·W_up)";
    if (id == "final") return std::string(norm_name(model_->final_norm.kind)) + "(x)";
    return text.formula;
}

std::vector<TraceStage> Trace::Impl::stages(uint32_t n) const {
    const Block& b = block(n);
    const AttentionPart& a = b.attention;
    const FeedForward& f = b.feed_forward;
    const bool last = n + 1 == layers_.size(), with_qkv = projects(n) || is_given(n), after = masks_after(n);
    const uint64_t L = rows(), K = keys(n), width = n == 0 && given() ? 0 : width_before(n);
    struct Place {
        std::string_view id;
        bool there;
        uint64_t heads, rows, columns;
    };
    const auto weight = [](std::string_view id, bool there, const Linear& layer) {
        return there ? Place{id, true, 1, layer.weight.shape[0], layer.weight.shape[1]}
                     : Place{id, false, 1, 0, 0};
    };
    const auto pair = [&](std::string_view id, bool there) { return Place{id, there, a.heads, L, K}; };
    const bool values = has_values(n), ff = is_present(f.up), out = is_present(a.output);
    const uint64_t behind = width_behind(n);
    const Place all[] = {
        {"inputs", n == 0 && !given(), 1, L, width},
        {"normed", b.attention_norm.kind != NormKind::none && b.order != BlockOrder::post, 1, L, width},
        weight("w_query", projects(n), a.query),
        weight("w_key", projects(n), a.key),
        weight("w_value", projects(n), a.value),
        {"queries", with_qkv, a.heads, L, head_width(n)},
        {"keys", with_qkv, a.kv_heads, K, head_width(n)},
        {"values", with_qkv && values, a.kv_heads, K, value_width(n)},
        pair("scores", true),
        pair("scaled", scales(n)),
        pair("capped", rules(n).softcap > 0),
        pair("masked", (hides_any(n) || has_bias(n)) && !after),
        pair("weights_all", after),
        pair("masked_weights", after),
        {"row_sums", after, a.heads, L, 1},
        pair("weights", true),
        pair("keep", drops(n)),
        pair("dropped", drops(n)),
        {"context", values, 1, L, value_width(n) * a.heads},
        {"lse", values, a.heads, L, 1},
        weight("w_output", out, a.output),
        {"output", out, 1, L, output_width(n)},
        {"attended", b.residual, 1, L, output_width(n)},
        {"ff_normed", ff && b.feed_forward_norm.kind != NormKind::none && b.order != BlockOrder::post, 1, L,
         output_width(n)},
        {"ff_hidden", ff, 1, L, ff ? f.up.d_out() : 0},
        {"ff_output", ff, 1, L, behind},
        {"block", ff && b.residual, 1, L, behind},
        {"final", last && model_->final_norm.kind != NormKind::none, 1, L, behind},
        {"logits", last && is_present(model_->unembedding), 1, L,
         last && is_present(model_->unembedding) ? model_->unembedding.d_out() : 0},
        {"probabilities", last && is_present(model_->unembedding), 1, L,
         last && is_present(model_->unembedding) ? model_->unembedding.d_out() : 0}};
    std::vector<TraceStage> list;
    for (const Place& place : all) {
        if (!place.there) continue;
        const StageText* const text = find_stage_text(place.id);
        list.push_back({std::string(place.id), formula_of(*text, n), place.heads, place.rows, place.columns});
    }
    return list;
}

Result<F32Tensor> Trace::Impl::pair_stage(std::string_view id, uint32_t head, uint32_t n) {
    if (Result<void> r = head_matrices(n, head); !r) return r.error();
    const Layer& l = layers_[n];
    if (id == "scores") return l.scores;
    if (id == "scaled") return l.scaled;
    if (id == "capped") return l.capped;
    if (id == "masked") return l.masked;
    if (id == "weights_all") return l.weights_all;
    if (id == "masked_weights") return l.masked_weights;
    if (id == "row_sums") return l.row_sums;
    if (id == "weights") return l.weights;
    if (id == "dropped") return l.dropped;
    F32Tensor keep({rows(), keys(n)});
    for (size_t i = 0; i < keep.values.size(); ++i) keep.values[i] = l.keep[head * keep.values.size() + i];
    return keep;
}

// What is no matrix of queries and keys.
Result<F32Tensor> Trace::Impl::flow_stage(std::string_view id, uint32_t head, uint32_t n) {
    const AttentionPart& a = block(n).attention;
    if (id == "inputs") return input_.x;
    for (const auto& [name, layer] :
         {std::pair{"w_query", &a.query}, {"w_key", &a.key}, {"w_value", &a.value}, {"w_output", &a.output}})
        if (id == name) return layer->weight;
    if (Result<void> r = project(n); !r) return r.error();
    Layer& l = layers_[n];
    if (id == "normed") return l.normed;
    if (id == "queries") return matrix_of(l.q, head);
    if (id == "keys") return matrix_of(l.k, head);
    if (id == "values") return matrix_of(l.v, head);
    if (Result<void> r = attend(n); !r) return r.error();
    if (id == "context") return l.context;
    if (id == "lse") return matrix_of(l.lse, head);
    if (id == "final" || id == "logits" || id == "probabilities") return behind(id);
    if (Result<void> r = finish(n); !r) return r.error();
    if (id == "output") return l.end.output;
    if (id == "attended") return l.end.sum;
    if (id == "ff_normed") return l.end.ff_normed;
    if (id == "ff_hidden") return l.end.ff_hidden;
    if (id == "ff_output") return l.end.ff_output;
    return l.end.result;
}

Result<F32Tensor> Trace::Impl::stage(std::string_view id, uint32_t head, uint32_t n) {
    if (n >= layers_.size())
        return wrong("layer", "layer is " + std::to_string(n) + "; the model has layers 0 to " +
                                  std::to_string(layers_.size() - 1));
    std::string known;
    for (const TraceStage& one : stages(n)) {
        known += (known.empty() ? "" : ", ") + one.id;
        if (one.id != id) continue;
        if (one.heads > 1 ? head >= one.heads : head >= std::max(1u, block(n).attention.heads))
            return wrong("head",
                         "head is " + std::to_string(head) + "; " + one.id + " has heads 0 to " +
                             std::to_string(std::max<uint64_t>(one.heads, block(n).attention.heads) - 1));
        const bool of_head = find_stage_text(id)->pairs || id == "row_sums";
        return of_head ? pair_stage(id, head, n) : flow_stage(id, one.heads > 1 ? head : 0, n);
    }
    return wrong("stage", "there is no stage '" + printable_name(id, 40) + "' here; the layer has " + known);
}

// ---- the public face ----

Result<Trace> Trace::open(std::shared_ptr<const Model> model, ModelInput input, const TraceOptions& options) {
    if (Result<void> r = check_model(*model, input); !r) return r.error();
    return Trace(std::make_shared<Impl>(std::move(model), std::move(input), options));
}

const Model& Trace::model() const { return impl_->model(); }
const ModelInput& Trace::input() const { return impl_->input(); }
uint32_t Trace::layers() const { return uint32_t(model().blocks.size()); }
uint64_t Trace::rows() const { return impl_->rows(); }
uint64_t Trace::keys() const { return impl_->keys(0); }
uint32_t Trace::heads(uint32_t layer) const { return model().blocks.at(layer).attention.heads; }
bool Trace::is_strict() const { return impl_->is_strict(); }
std::string Trace::arithmetic() const { return impl_->arithmetic(); }
std::vector<TraceStage> Trace::stages(uint32_t layer) const { return impl_->stages(layer); }

std::string Trace::nearest_stage(std::string_view id, uint32_t layer) const {
    const std::vector<TraceStage> all = stages(layer);
    const auto has = [&](std::string_view name) {
        return std::any_of(all.begin(), all.end(), [&](const TraceStage& s) { return s.id == name; });
    };
    if (has(id)) return std::string(id);
    if (const StageText* text = find_stage_text(id))
        for (const std::string& near : text->nearest)
            if (has(near)) return near;
    return "weights";
}

Result<F32Tensor> Trace::stage(std::string_view id, uint32_t head, uint32_t layer) {
    return impl_->stage(id, head, layer);
}

Result<F32Tensor> Trace::whole_stage(std::string_view id, uint32_t layer) {
    Result<F32Tensor> first = stage(id, 0, layer);
    if (!first) return first;
    const std::vector<TraceStage> all = stages(layer);
    const auto info = std::find_if(all.begin(), all.end(), [&](const TraceStage& s) { return s.id == id; });
    if (info->heads == 1) return first;
    F32Tensor whole({info->heads, info->rows, info->columns});
    for (uint32_t h = 0; h < info->heads; ++h) {
        const Result<F32Tensor> one = stage(id, h, layer);
        if (!one) return one;
        std::copy(one->values.begin(), one->values.end(),
                  whole.values.begin() + int64_t(h * one->values.size()));
    }
    return whole;
}

Result<PreparedAttention> Trace::prepare(uint32_t layer) {
    const AttentionPart& part = model().blocks.at(layer).attention;
    return impl_->prepare(layer, 0, part.heads, part.rules.precision != Precision::f32, true);
}

Result<void> Trace::supply_context(uint32_t layer, F32Tensor context) {
    return impl_->supply(layer, std::move(context));
}

std::string matrix_text(const F32Tensor& matrix) {
    std::string text;
    for (uint64_t i = 0; i < matrix.rows(); ++i) {
        for (size_t j = 0; j < matrix.columns(); ++j) {
            char number[32];
            const float value = matrix.row(i)[j];
            if (std::isnan(value))
                std::snprintf(number, sizeof number, "nan");  // whatever its sign
            else
                std::snprintf(number, sizeof number, "%.9g", double(value));
            text += (j == 0 ? "" : " ") + std::string(number);
        }
        text += '\n';
    }
    return text;
}

Result<SessionStageText> session_stage_text(ReadSession read, std::string_view stage, uint32_t head,
                                            const TraceOptions& options) {
    Result<SessionModel> made = session_model(read.session);
    if (!made) return made.error();
    Result<Trace> trace = Trace::open(made->model, std::move(made->input), options);
    if (!trace) return trace.error();
    const std::string id = stage.empty() ? trace->nearest_stage(read.session.stage) : std::string(stage);
    const Result<F32Tensor> matrix = trace->stage(id, head);
    if (!matrix) return matrix.error();
    SessionStageText out{matrix_text(*matrix), std::move(read.notes)};
    out.notes.insert(out.notes.end(), made->notes.begin(), made->notes.end());
    return out;
}

}  // namespace fovea
