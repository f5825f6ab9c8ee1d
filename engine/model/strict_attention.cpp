#include "model/strict_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fovea/model/strict.hpp>
#include <fovea/model/torch_random.hpp>

namespace fovea {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// What the strict order does not have.
const char* refusal(const FoveaAttentionDesc& d) {
    if (d.q_type != FOVEA_F32 || d.k_type != FOVEA_F32 || d.v_type != FOVEA_F32 || d.o_type != FOVEA_F32)
        return "float16";
    if (d.packed_rows_q || d.packed_rows_kv || d.page_size) return "packed and paged rows";
    if (d.bias.present && d.bias.type != FOVEA_F32) return "a bias in float16";
    if (d.outputs & FOVEA_OUTPUT_ROW_STATS) return "statistics of rows";
    return nullptr;
}

// Row `i` of head `h` of entry `b` in a matrix whose sides may be 1 for all.
template <class T>
const T* row_of(const FoveaMatrixDesc& m, const FoveaHostBuffer& buffer, uint64_t b, uint64_t h, uint64_t i,
                uint64_t rows, uint64_t keys) {
    const uint64_t height = m.rows ? m.rows : rows, heads = std::max(1u, m.heads);
    const uint64_t at = ((m.batch > 1 ? b : 0) * heads + (heads > 1 ? h : 0)) * height + (height > 1 ? i : 0);
    return static_cast<const T*>(buffer.data) + at * keys;
}

class Row {
  public:
    Row(const FoveaAttentionDesc& d, const FoveaHostBuffer* bindings, ScoreScale scale, double dropout_p)
        : d_(d), bindings_(bindings), scale_(scale), dropout_p_(dropout_p), values_(d.len_kv) {}

    void run(uint64_t row) {
        i_ = row % d_.len_q, head_ = row / d_.len_q % d_.heads_q, entry_ = row / d_.len_q / d_.heads_q;
        first_key_row_ = (entry_ * d_.heads_kv + head_ / (d_.heads_q / d_.heads_kv)) * d_.len_kv;
        score(row);
        store(FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES, row);
        if (d_.softcap != 0.0f)
            for (float& value : values_) value = d_.softcap * strict::tanh(value / d_.softcap);
        store(FOVEA_OUTPUT_CAPPED, FOVEA_BIND_CAPPED, row);
        add();
        hide();
        store(FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED, row);
        if (d_.outputs & FOVEA_OUTPUT_LSE) output(FOVEA_BIND_LSE)[row] = log_sum_exp();
        normalise();
        drop(row);
        store(FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS, row);
        if (d_.outputs == 0 || d_.outputs & FOVEA_OUTPUT_O)
            weigh({output(FOVEA_BIND_O) + row * d_.dim_v, d_.dim_v});
    }

  private:
    const float* input(FoveaBinding binding) const {
        return static_cast<const float*>(bindings_[binding].data);
    }
    float* output(FoveaBinding binding) const { return static_cast<float*>(bindings_[binding].data); }
    void store(uint32_t bit, FoveaBinding binding, uint64_t row) const {
        if (d_.outputs & bit) std::copy(values_.begin(), values_.end(), output(binding) + row * d_.len_kv);
    }

    void score(uint64_t row) {
        const std::span q(input(FOVEA_BIND_Q) + row * d_.dim_qk, d_.dim_qk);
        const auto scale = static_cast<float>(scale_.value);
        for (uint64_t j = 0; j < values_.size(); ++j) {
            const std::span k(input(FOVEA_BIND_K) + (first_key_row_ + j) * d_.dim_qk, d_.dim_qk);
            const float product = strict::dot(q, k);
            values_[j] = scale_.divides ? product / scale : product * scale;
        }
    }

    int64_t position() const {
        const int64_t offset = d_.align == FOVEA_ALIGN_BOTTOM_RIGHT ? int64_t(d_.len_kv) - int64_t(d_.len_q)
                               : d_.align == FOVEA_ALIGN_OFFSET     ? d_.q_offset
                                                                    : 0;
        return int64_t(i_) + offset;
    }

    void add() {
        const bool slopes = d_.flags & FOVEA_FLAG_ALIBI;
        if (!slopes && !d_.bias.present) return;
        const float slope = slopes ? input(FOVEA_BIND_ALIBI)[head_] : 0.0f;
        const float* bias = d_.bias.present ? row_of<float>(d_.bias, bindings_[FOVEA_BIND_BIAS], entry_,
                                                            head_, i_, d_.len_q, d_.len_kv)
                                            : nullptr;
        for (uint64_t j = 0; j < values_.size(); ++j) {
            float added = slopes ? slope * float(int64_t(j) - position()) : 0.0f;
            if (bias) added += bias[j];
            // Set, not added: a hidden key's score may be NaN.
            values_[j] = added == kHidden ? kHidden : values_[j] + added;
        }
    }

    void hide() {
        const bool causal = d_.flags & FOVEA_FLAG_CAUSAL, window = d_.flags & FOVEA_FLAG_WINDOW;
        const uint8_t* mask = d_.mask.present ? row_of<uint8_t>(d_.mask, bindings_[FOVEA_BIND_MASK], entry_,
                                                                head_, i_, d_.len_q, d_.len_kv)
                                              : nullptr;
        for (uint64_t j = 0; j < values_.size(); ++j) {
            const int64_t distance = int64_t(j) - position();
            const bool left = window && d_.window_left >= 0 && -distance > d_.window_left;
            const bool right = window && d_.window_right >= 0 && distance > d_.window_right;
            if ((causal && distance > 0) || left || right || (mask && !mask[j])) values_[j] = kHidden;
        }
    }

    float sink() const { return d_.flags & FOVEA_FLAG_SINKS ? input(FOVEA_BIND_SINKS)[head_] : kHidden; }

    float log_sum_exp() const {
        double largest = double(sink());
        for (const float value : values_) largest = std::max(largest, double(value));
        if (std::isinf(largest)) return static_cast<float>(largest);
        double sum = std::exp(double(sink()) - largest);
        for (const float value : values_) sum += std::exp(double(value) - largest);
        return static_cast<float>(largest + std::log(sum));
    }

    // A sink is one more score, whose weight goes nowhere.
    void normalise() {
        std::vector<float> scores = values_;
        if (d_.flags & FOVEA_FLAG_SINKS) scores.push_back(sink());
        std::vector<float> weights(scores.size());
        strict::softmax(scores, weights);
        std::copy_n(weights.begin(), values_.size(), values_.begin());
    }

    void drop(uint64_t row) {
        if (!d_.keep.present) return;
        const auto* keep = row_of<uint8_t>(d_.keep, bindings_[FOVEA_BIND_KEEP], entry_, head_, row % d_.len_q,
                                           d_.len_q, d_.len_kv);
        for (uint64_t j = 0; j < values_.size(); ++j)
            values_[j] *= dropout_factor(keep[j] ? 1 : 0, dropout_p_);
    }

    void weigh(std::span<float> context) const {
        std::fill(context.begin(), context.end(), 0.0f);
        for (uint64_t j = 0; j < values_.size(); ++j) {
            // A key without weight has no say, whatever its value holds (0 times NaN would be NaN).
            if (values_[j] == 0.0f) continue;
            const float* value = input(FOVEA_BIND_V) + (first_key_row_ + j) * d_.dim_v;
            for (size_t c = 0; c < context.size(); ++c) {
                const float product = values_[j] * value[c];
                context[c] += product;
            }
        }
    }

    const FoveaAttentionDesc& d_;
    const FoveaHostBuffer* bindings_;
    ScoreScale scale_;
    double dropout_p_;
    uint64_t i_ = 0, head_ = 0, entry_ = 0, first_key_row_ = 0;
    std::vector<float> values_;
};

// The description counts heads, batch entries and widths in 32 bits.
Result<void> check_narrow(std::initializer_list<std::pair<const char*, uint64_t>> sizes) {
    for (const auto& [field, value] : sizes)
        if (value > std::numeric_limits<uint32_t>::max())
            return Error{FOVEA_LIMIT_EXCEEDED, field,
                         std::string(field) + " is " + std::to_string(value) + "; the limit is 4294967295"};
    return {};
}

FoveaHostBuffer borrowed(const F32Tensor& tensor) {
    return {const_cast<float*>(tensor.values.data()), tensor.values.size() * sizeof(float)};
}

}  // namespace

Result<void> attend_strictly(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings,
                             ScoreScale scale, double dropout_p) {
    if (dropout_p > 0 && !call.keep.present)
        return Error{FOVEA_UNSUPPORTED, "dropout_p",
                     "the strict order drops by a keep mask only; none was given"};
    if (const char* what = refusal(call))
        return Error{FOVEA_UNSUPPORTED, "attention", std::string("the strict order does not have ") + what};
    Row row(call, bindings, scale, dropout_p);
    for (uint64_t index = 0; index < uint64_t{call.batch} * call.heads_q * call.len_q; ++index)
        row.run(index);
    return {};
}

Result<std::unique_ptr<ProblemCall>> problem_call(const AttentionProblem& problem) {
    const Shape &q = problem.q->shape, &k = problem.k->shape, &v = problem.v->shape;
    if (Result<void> r = check_narrow(
            {{"batch", q[0]}, {"heads_q", q[1]}, {"heads_kv", k[1]}, {"dim_qk", q[3]}, {"dim_v", v[3]}});
        !r)
        return r.error();
    auto made = std::make_unique<ProblemCall>();
    made->call.desc = problem.call;
    made->call.batch(uint32_t(q[0])).heads(uint32_t(q[1]), uint32_t(k[1])).lengths(q[2], k[2]);
    made->call.dims(uint32_t(q[3]), uint32_t(v[3])).scale(problem.scale.factor());
    FoveaAttentionDesc& d = made->call.desc;
    if (d.outputs == 0) d.outputs = FOVEA_OUTPUT_O;
    d.dropout_p = float(problem.dropout_p);
    made->bindings[FOVEA_BIND_Q] = borrowed(*problem.q);
    made->bindings[FOVEA_BIND_K] = borrowed(*problem.k);
    made->bindings[FOVEA_BIND_V] = borrowed(*problem.v);
    if (problem.bias) {
        d.bias.present = 1, d.bias.type = FOVEA_F32;
        d.bias.batch = uint32_t(problem.bias->shape[0]), d.bias.heads = uint32_t(problem.bias->shape[1]);
        made->bindings[FOVEA_BIND_BIAS] = borrowed(*problem.bias);
    }
    if (problem.keep) {
        d.keep.present = 1, d.keep.type = FOVEA_U8, d.keep.batch = d.batch, d.keep.heads = d.heads_q;
        made->keep.resize((problem.keep->values.size() + 3) / 4 * 4);  // the engine reads whole words
        for (size_t i = 0; i < problem.keep->values.size(); ++i)
            made->keep[i] = problem.keep->values[i] != 0.0f;
        made->bindings[FOVEA_BIND_KEEP] = {made->keep.data(), made->keep.size()};
    }
    AttentionResult& to = made->result;
    const Shape rows = {q[0], q[1], q[2]}, matrix = {q[0], q[1], q[2], k[2]},
                contexts = {q[0], q[1], q[2], v[3]};
    for (const auto& [bit, binding, tensor, shape] :
         {std::tuple{FOVEA_OUTPUT_O, FOVEA_BIND_O, &to.o, &contexts},
          {FOVEA_OUTPUT_LSE, FOVEA_BIND_LSE, &to.lse, &rows},
          {FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES, &to.scores, &matrix},
          {FOVEA_OUTPUT_CAPPED, FOVEA_BIND_CAPPED, &to.capped, &matrix},
          {FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED, &to.masked, &matrix},
          {FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS, &to.weights, &matrix}}) {
        if (!(d.outputs & bit)) continue;
        *tensor = F32Tensor(*shape);
        made->bindings[binding] = borrowed(*tensor);
    }
    return made;
}

}  // namespace fovea
