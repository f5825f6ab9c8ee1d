// The matrices of one head, and the steps behind one of their cells.
#include "page_model.hpp"

namespace fovea::web {
namespace {

// Is key j hidden from query i by the state's own masks?
bool is_hidden(const PageState& s, uint64_t i, uint64_t j, uint64_t keys) {
    if (s.causal && j > i) return true;
    if (s.window >= 0 && int64_t(j) < int64_t(i) - s.window) return true;
    return !s.mask.empty() && s.mask[i * keys + j] == '0';
}

}  // namespace

Result<std::vector<PageStage>> PageModel::head_stages(Engine& engine, uint32_t h) const {
    std::vector<PageStage> out;
    const auto add = [&](const char* id, Result<std::vector<float>> values) -> Result<void> {
        if (!values) return values.error();
        out.push_back({id, {rows_, keys_}, std::move(*values)});
        return {};
    };
    const PageState& s = state_;
    const float unscaled = 1.0f;
    if (auto r = add("scores", matrix(engine, h, FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES, false, unscaled));
        !r)
        return r.error();
    if (divisor() * s.temperature != 1)
        if (auto r = add("scaled", matrix(engine, h, FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES, false, 0)); !r)
            return r.error();
    if (s.softcap > 0)
        if (auto r = add("capped", matrix(engine, h, FOVEA_OUTPUT_CAPPED, FOVEA_BIND_CAPPED, false, 0)); !r)
            return r.error();
    const bool masks = s.causal || s.window >= 0 || s.alibi || !s.mask.empty();
    if (masks && !s.renormalise)
        if (auto r = add("masked", matrix(engine, h, FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED, false, 0)); !r)
            return r.error();
    Result<std::vector<float>> weights =
        matrix(engine, h, FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS, false, 0);
    if (!weights) return weights.error();
    if (s.renormalise && masks) {
        if (auto r = add("weights_all", *weights); !r) return r.error();
        std::vector<float> sums(rows_);
        for (uint64_t i = 0; i < rows_; ++i) {
            float sum = 0;
            for (uint64_t j = 0; j < keys_; ++j) {
                float& w = (*weights)[i * keys_ + j];
                if (is_hidden(s, i, j, keys_)) w = 0;
                sum += w;
            }
            sums[i] = sum;
        }
        if (auto r = add("masked_weights", *weights); !r) return r.error();
        for (uint64_t i = 0; i < rows_; ++i)
            for (uint64_t j = 0; j < keys_; ++j)
                if (sums[i] > 0) (*weights)[i * keys_ + j] /= sums[i];
        out.push_back({"row_sums", {rows_, 1}, std::move(sums)});
    }
    if (auto r = add("weights", std::move(weights)); !r) return r.error();
    if (!keep_.empty()) {
        const uint8_t* keep = keep_.data() + h * rows_ * keys_;
        out.push_back({"keep", {rows_, keys_}, std::vector<float>(keep, keep + rows_ * keys_)});
        if (auto r = add("dropped", head_weights(engine, h)); !r) return r.error();
    }
    return out;
}

Result<std::vector<float>> PageModel::head_weights(Engine& engine, uint32_t h) const {
    Result<std::vector<float>> weights =
        matrix(engine, h, FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS, !state_.renormalise, 0);
    if (!weights || !state_.renormalise) return weights;
    const float kept_factor = static_cast<float>(1.0 / (1.0 - state_.dropout_p));
    for (uint64_t i = 0; i < rows_; ++i) {
        float* row = weights->data() + i * keys_;
        float sum = 0;
        for (uint64_t j = 0; j < keys_; ++j) {
            if (is_hidden(state_, i, j, keys_)) row[j] = 0;
            sum += row[j];
        }
        for (uint64_t j = 0; j < keys_; ++j) {
            if (sum > 0) row[j] /= sum;
            if (!keep_.empty()) row[j] = keep_[(h * rows_ + i) * keys_ + j] ? row[j] * kept_factor : 0;
        }
    }
    return weights;
}

Result<Derivation> PageModel::derive(uint32_t h, uint64_t i, uint64_t j) const {
    Bindings b;
    bind_inputs(b, 0, true);
    const bool with_masks = true;
    return derive_cell(describe(state_.heads, true, with_masks), b.buffers, Cell{0, h, i, j});
}

}  // namespace fovea::web
