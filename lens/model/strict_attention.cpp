#include "model/transformer_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <fovea/model/strict.hpp>
#include <fovea/model/torch_random.hpp>

namespace fovea {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

bool has_strides(const FoveaStrides& s) { return s.batch || s.head || s.row; }

bool is_whole(const FoveaMatrixDesc& m, uint64_t keys) {
    return !m.present || (!has_strides(m.strides) && (m.keys == 0 || m.keys == keys));
}

// A field that is added to the end must be computed below or rejected here.
static_assert(offsetof(FoveaAttentionDesc, first_batch_head) + 8 == sizeof(FoveaAttentionDesc));

// Returns why the strict order does not support the call.
const char* refusal(const FoveaAttentionDesc& d) {
    if (d.q_type != FOVEA_F32 || d.k_type != FOVEA_F32 || d.v_type != FOVEA_F32 || d.o_type != FOVEA_F32)
        return "types other than float32";
    if (d.packed_rows_q || d.packed_rows_kv || d.page_size) return "packed rows and paged KV caches";
    if (d.flags & FOVEA_FLAG_VARLEN) return "sequence lengths";
    if (has_strides(d.q_strides) || has_strides(d.k_strides) || has_strides(d.v_strides) ||
        has_strides(d.o_strides))
        return "strides";
    if (!is_whole(d.mask, d.len_kv) || !is_whole(d.bias, d.len_kv) || !is_whole(d.dropout_mask, d.len_kv))
        return "matrices with strides or fewer columns than keys";
    if (d.bias.present && d.bias.type != FOVEA_F32) return "a bias of a type other than float32";
    if (d.outputs & FOVEA_OUTPUT_ROW_STATS) return "row statistics";
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
        if (!d_.dropout_mask.present) return;
        const auto* keep = row_of<uint8_t>(d_.dropout_mask, bindings_[FOVEA_BIND_DROPOUT_MASK], entry_, head_,
                                           row % d_.len_q, d_.len_q, d_.len_kv);
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

}  // namespace

Result<void> attend_strictly(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings,
                             ScoreScale scale, double dropout_p) {
    if (dropout_p > 0 && !call.dropout_mask.present)
        return Error{
            FOVEA_UNSUPPORTED, "dropout_p",
            "dropout without a dropout mask is not supported in the strict order; give dropout_mask"};
    if (const char* what = refusal(call))
        return Error{FOVEA_UNSUPPORTED, "attention",
                     std::string("the strict order does not support ") + what};
    Row row(call, bindings, scale, dropout_p);
    for (uint64_t index = 0; index < uint64_t{call.batch} * call.heads_q * call.len_q; ++index)
        row.run(index);
    return {};
}

}  // namespace fovea
