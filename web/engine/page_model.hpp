// From the page's state to every stage of one attention layer.
#pragma once

#include "engine_call.hpp"
#include "page_state.hpp"

#include <fovea/inspect.hpp>

#include <memory>
#include <string>
#include <vector>

namespace fovea::web {

struct PageStage {
    std::string id;  // "queries", "scores", "weights", ...: the page knows its formula
    std::vector<uint64_t> shape;
    std::vector<float> values;
};

// Where one head's rows lie in q, k, v and o: element of row r, column c is base[r * row_stride + c].
struct HeadView {
    const float *q, *k, *v;
    uint64_t q_stride, k_stride, v_stride;
};

struct Projections;

class PageModel {
  public:
    // X and the weights from the state's seed. Weights drawn for `previous` (or null) are used again where
    // they are the same: a GPT block has millions.
    static Result<PageModel> from_tokens(Engine& engine, const PageState& state, const PageModel* previous);
    // Tensors given by the reader: q [heads, rows, dim], k [kv_heads, keys, dim], v [kv_heads, keys, dim_v]
    // or null.
    static Result<PageModel> from_tensors(Engine& engine, const PageState& state, const float* q,
                                          const float* k, const float* v);

    const PageState& state() const { return state_; }
    uint64_t rows() const { return rows_; }
    uint64_t keys() const { return keys_; }
    const std::string& kernel() const { return kernel_; }

    const std::vector<PageStage>& shared_stages() const { return shared_; }
    // The matrices of one head, computed now: never more than one head's are held.
    Result<std::vector<PageStage>> head_stages(Engine& engine, uint32_t head) const;
    // The final weights of one head alone.
    Result<std::vector<float>> head_weights(Engine& engine, uint32_t head) const;
    // Every step behind one weight; on the route that renormalises, those of the other route, which gives the
    // same.
    Result<Derivation> derive(uint32_t head, uint64_t query, uint64_t key) const;

  private:
    PageState state_;
    uint64_t rows_ = 0, keys_ = 0;
    uint32_t dim_ = 0, dim_v_ = 0;
    FoveaStrides q_strides_{}, k_strides_{}, v_strides_{};
    std::vector<float> q_, k_, v_, o_, lse_, slopes_;
    std::vector<uint8_t> keep_, mask_;
    std::vector<PageStage> shared_;
    std::string kernel_;
    std::shared_ptr<const Projections> projections_;

    double divisor() const;
    HeadView head(uint32_t index) const;
    FoveaAttentionDesc describe(uint32_t head_count, bool with_keep, bool with_masks) const;
    void bind_inputs(Bindings& bindings, uint32_t first_head, bool with_keep) const;
    bool masks_in_engine() const { return !state_.renormalise; }
    Result<std::vector<float>> matrix(Engine& engine, uint32_t head, uint32_t output, FoveaBinding binding,
                                      bool with_keep, float scale) const;
    void draw_keep();
    void set_mask();
    Result<void> project(Engine& engine);
    Result<void> attend(Engine& engine);
    Result<void> renormalised_context(Engine& engine);
    Result<void> output_projection(Engine& engine, const std::vector<float>& weight,
                                   const std::vector<float>& bias);
    void add_shared(const char* id, std::vector<uint64_t> shape, std::vector<float> values);
};

}  // namespace fovea::web
