#include "page_model.hpp"

#include "problem/philox.hpp"
#include "token_vectors.hpp"

#include <fovea/model.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace fovea::web {

struct Projection {
    std::vector<float> weight;  // [out, in], or [in, out] when weight_is_in_out
    uint32_t n_in, n_out;
    bool weight_is_in_out;
};

// Query, key and value projections in the order in which the tutorials' classes draw them.
struct Projections {
    Projection query, key, value;
    std::vector<float> output_weight, output_bias;
};

namespace {

// Spread of the GPT level's random projection: small enough that no weight saturates, large enough to see a
// pattern.
constexpr float kJointDeviation = 0.045f;

Result<void> apply(Engine& engine, const Projection& p, const float* bias, const std::vector<float>& x,
                   std::vector<float>& y) {
    FoveaLinearDesc desc{};
    desc.struct_size = sizeof desc;
    desc.n_in = p.n_in;
    desc.n_out = p.n_out;
    desc.weight_is_in_out = p.weight_is_in_out;
    desc.has_bias = bias != nullptr;
    desc.rows = x.size() / p.n_in;
    y.resize(desc.rows * p.n_out);
    Bindings b;
    b.read(FOVEA_BIND_X, x.data(), x.size() * sizeof(float));
    b.read(FOVEA_BIND_WEIGHT, p.weight.data(), p.weight.size() * sizeof(float));
    if (bias) b.read(FOVEA_BIND_BIAS, bias, p.n_out * sizeof(float));
    b.write(FOVEA_BIND_Y, y.data(), y.size() * sizeof(float));
    return engine.linear(desc, b);
}

Projection empty_projection(const PageState& s, uint32_t n_out) {
    return {std::vector<float>(size_t{s.d_in} * n_out), s.d_in, n_out, s.init == WeightInit::rand};
}

void draw(TorchGenerator& generator, WeightInit init, std::span<float> out, uint32_t fan_in) {
    if (init == WeightInit::rand)
        generator.rand(out);
    else
        generator.linear_weight(out, fan_in);
}

bool draws_the_same(const PageState& a, const PageState& b) {
    const auto key = [](const PageState& s) {
        return std::tuple(s.init, s.seed, s.d_in, s.d_out, s.heads, s.kv_heads, s.stacked, s.projects,
                          s.joint);
    };
    return key(a) == key(b);
}

Projections draw_projections(const PageState& s) {
    const uint32_t kv_out = s.d_out / s.heads * s.kv_heads;
    Projections p{
        empty_projection(s, s.d_out), empty_projection(s, kv_out), empty_projection(s, kv_out), {}, {}};
    TorchGenerator generator(s.seed);
    if (s.stacked) {
        // One head's three matrices after another's; side by side they are one matrix of all heads.
        const size_t part = size_t{s.d_out / s.heads} * s.d_in;
        for (uint32_t h = 0; h < s.heads; ++h) {
            draw(generator, s.init, std::span(p.query.weight).subspan(h * part, part), s.d_in);
            if (h >= s.kv_heads) continue;
            draw(generator, s.init, std::span(p.key.weight).subspan(h * part, part), s.d_in);
            draw(generator, s.init, std::span(p.value.weight).subspan(h * part, part), s.d_in);
        }
    } else {
        for (Projection* each : {&p.query, &p.key, &p.value}) draw(generator, s.init, each->weight, s.d_in);
    }
    if (s.joint)
        for (Projection* each : {&p.query, &p.key, &p.value}) {
            generator.randn(each->weight);
            for (float& w : each->weight) w *= kJointDeviation;
        }
    if (s.projects) {
        p.output_weight.resize(size_t{s.d_out} * s.d_out);
        p.output_bias.resize(s.d_out);
        generator.linear_weight(p.output_weight, s.d_out);
        generator.linear_bias(p.output_bias, s.d_out);
    }
    return p;
}

// Column h*dim + c of [rows, heads * dim] as [heads, rows, dim], the shape that the page shows.
std::vector<float> by_heads(const std::vector<float>& from, uint64_t rows, uint32_t heads, uint32_t dim) {
    std::vector<float> out(from.size());
    for (uint64_t r = 0; r < rows; ++r)
        for (uint32_t h = 0; h < heads; ++h)
            std::copy_n(&from[(r * heads + h) * dim], dim, &out[(h * rows + r) * dim]);
    return out;
}

std::vector<uint64_t> head_shape(uint64_t heads, uint64_t rows, uint64_t columns) {
    if (heads == 1) return {rows, columns};
    return {heads, rows, columns};
}

}  // namespace

double PageModel::divisor() const { return state_.divisor > 0 ? state_.divisor : std::sqrt(double(dim_)); }

void PageModel::add_shared(const char* id, std::vector<uint64_t> shape, std::vector<float> values) {
    shared_.push_back({id, std::move(shape), std::move(values)});
}

Result<PageModel> PageModel::from_tokens(Engine& engine, const PageState& state, const PageModel* previous) {
    PageModel m;
    if (previous && draws_the_same(previous->state_, state)) m.projections_ = previous->projections_;
    m.state_ = state;
    m.rows_ = m.keys_ = state.tokens.size();
    m.dim_ = m.dim_v_ = state.init == WeightInit::none ? state.d_in : state.d_out / state.heads;
    if (Result<void> r = m.project(engine); !r) return r.error();
    return m;
}

Result<PageModel> PageModel::from_tensors(Engine& engine, const PageState& s, const float* q, const float* k,
                                          const float* v) {
    PageModel m;
    m.state_ = s;
    m.rows_ = s.rows;
    m.keys_ = s.keys;
    m.dim_ = s.dim;
    m.dim_v_ = v ? s.dim_v : 1;
    m.q_.assign(q, q + size_t{s.heads} * s.rows * s.dim);
    m.k_.assign(k, k + size_t{s.kv_heads} * s.keys * s.dim);
    if (v)
        m.v_.assign(v, v + size_t{s.kv_heads} * s.keys * s.dim_v);
    else
        m.v_.assign(size_t{s.kv_heads} * s.keys, 1.0f);
    m.q_strides_ = {0, int64_t(m.rows_) * m.dim_, m.dim_};
    m.k_strides_ = {0, int64_t(m.keys_) * m.dim_, m.dim_};
    m.v_strides_ = {0, int64_t(m.keys_) * m.dim_v_, m.dim_v_};
    m.add_shared("queries", head_shape(s.heads, m.rows_, m.dim_), m.q_);
    m.add_shared("keys", head_shape(s.kv_heads, m.keys_, m.dim_), m.k_);
    if (v) m.add_shared("values", head_shape(s.kv_heads, m.keys_, m.dim_v_), m.v_);
    if (Result<void> r = m.attend(engine); !r) return r.error();
    return m;
}

Result<void> PageModel::project(Engine& engine) {
    const PageState& s = state_;
    std::vector<float> x(rows_ * s.d_in);
    for (uint64_t i = 0; i < rows_; ++i) {
        const std::span row(&x[i * s.d_in], s.d_in);
        s.joint ? positioned_token_vector(s.tokens[i], i, row) : token_vector(s.tokens[i], row);
    }
    add_shared("inputs", {rows_, s.d_in}, x);
    const int64_t kv_width = s.init == WeightInit::none ? s.d_in : int64_t{dim_} * s.kv_heads;
    const int64_t q_width = s.init == WeightInit::none ? s.d_in : int64_t{dim_} * s.heads;
    q_strides_ = {0, dim_, q_width};
    k_strides_ = v_strides_ = {0, dim_, kv_width};
    if (s.init == WeightInit::none) {
        q_ = k_ = v_ = std::move(x);
        return attend(engine);
    }
    if (!projections_) projections_ = std::make_shared<const Projections>(draw_projections(s));
    const Projections& p = *projections_;
    const char* const weight_ids[] = {"w_query", "w_key", "w_value"};
    const char* const ids[] = {"queries", "keys", "values"};
    const Projection* const all[] = {&p.query, &p.key, &p.value};
    std::vector<float>* const results[] = {&q_, &k_, &v_};
    for (int i = 0; i < 3; ++i) {
        if (Result<void> r = apply(engine, *all[i], nullptr, x, *results[i]); !r) return r;
        const uint32_t heads = i == 0 ? s.heads : s.kv_heads;
        const Projection& each = *all[i];
        if (each.weight_is_in_out)
            add_shared(weight_ids[i], {each.n_in, each.n_out}, each.weight);
        else
            add_shared(weight_ids[i], {each.n_out, each.n_in}, each.weight);
        add_shared(ids[i], head_shape(heads, rows_, dim_), by_heads(*results[i], rows_, heads, dim_));
    }
    if (Result<void> r = attend(engine); !r) return r;
    if (s.projects) return output_projection(engine, p.output_weight, p.output_bias);
    return {};
}

Result<void> PageModel::output_projection(Engine& engine, const std::vector<float>& weight,
                                          const std::vector<float>& bias) {
    const uint32_t width = state_.d_out;
    std::vector<float> y;
    if (Result<void> r = apply(engine, Projection{weight, width, width, false}, bias.data(), o_, y); !r)
        return r;
    add_shared("w_output", {width, width}, weight);
    add_shared("output", {rows_, width}, std::move(y));
    return {};
}

void PageModel::set_mask() {
    mask_.clear();
    if (state_.mask.empty()) return;
    mask_.resize((state_.mask.size() + 3) / 4 * 4);  // the engine reads whole words
    for (size_t i = 0; i < state_.mask.size(); ++i) mask_[i] = state_.mask[i] != '0';
}

void PageModel::draw_keep() {
    keep_.clear();
    if (state_.dropout_p <= 0) return;
    const uint64_t count = uint64_t{state_.heads} * rows_ * keys_;
    keep_.resize((count + 3) / 4 * 4);
    const std::span drawn(keep_.data(), count);
    if (state_.variant == DropoutVariant::counter) {
        Problem p{};
        p.dropout_seed = state_.dropout_seed;
        p.drop_threshold = static_cast<uint32_t>(state_.dropout_p * 4294967296.0);
        for (uint32_t h = 0; h < state_.heads; ++h)
            for (uint64_t i = 0; i < rows_; ++i)
                for (uint64_t j = 0; j < keys_; ++j)
                    drawn[(h * rows_ + i) * keys_ + j] = dropout_keeps(p, h, uint32_t(i), uint32_t(j));
        return;
    }
    TorchGenerator generator(state_.dropout_seed);
    if (state_.variant == DropoutVariant::mkl)
        generator.keep_mask_mkl(drawn, state_.dropout_p);
    else
        generator.keep_mask_native(drawn, state_.dropout_p);
}

FoveaAttentionDesc PageModel::describe(uint32_t head_count, bool with_keep, bool with_masks) const {
    const PageState& s = state_;
    Attention call;
    call.batch(1)
        .heads(head_count, head_count == 1 ? 1 : s.kv_heads)
        .lengths(rows_, keys_)
        .dims(dim_, dim_v_);
    call.scale(static_cast<float>(1.0 / (divisor() * s.temperature))).softcap(static_cast<float>(s.softcap));
    FoveaAttentionDesc& d = call.desc;
    d.q_strides = q_strides_;
    d.k_strides = k_strides_;
    d.v_strides = v_strides_;
    d.o_strides = {0, dim_v_, int64_t{dim_v_} * head_count};
    if (s.causal && with_masks) call.causal();
    if (s.window >= 0 && with_masks) call.window(s.window, -1);
    if (s.alibi) d.flags |= FOVEA_FLAG_ALIBI;
    if (!mask_.empty() && with_masks) {
        d.mask.present = 1;
        d.mask.type = FOVEA_U8;
    }
    if (with_keep && !keep_.empty()) {
        d.keep.present = 1;
        d.keep.type = FOVEA_U8;
        d.keep.heads = head_count;
        d.dropout_p = static_cast<float>(s.dropout_p);
    }
    return call;
}

void PageModel::bind_inputs(Bindings& b, uint32_t first_head, bool with_keep) const {
    const uint32_t kv_head = first_head / (state_.heads / state_.kv_heads);
    const auto tail = [&b](FoveaBinding binding, const std::vector<float>& all, uint64_t first) {
        b.read(binding, all.data() + first, (all.size() - first) * sizeof(float));
    };
    tail(FOVEA_BIND_Q, q_, uint64_t(q_strides_.head) * first_head);
    tail(FOVEA_BIND_K, k_, uint64_t(k_strides_.head) * kv_head);
    tail(FOVEA_BIND_V, v_, uint64_t(v_strides_.head) * kv_head);
    if (state_.alibi) tail(FOVEA_BIND_ALIBI, slopes_, first_head);
    if (!mask_.empty()) b.read(FOVEA_BIND_MASK, mask_.data(), mask_.size());
    if (with_keep && !keep_.empty()) {
        const uint64_t first = first_head * rows_ * keys_;
        b.read(FOVEA_BIND_KEEP, keep_.data() + first, keep_.size() - first);
    }
}

Result<std::vector<float>> PageModel::matrix(Engine& engine, uint32_t head_index, uint32_t output,
                                             FoveaBinding binding, bool with_keep, float scale) const {
    FoveaAttentionDesc desc = describe(1, with_keep, masks_in_engine());
    if (scale != 0) desc.scale = scale;
    desc.outputs = output;
    std::vector<float> out(rows_ * keys_);
    Bindings b;
    bind_inputs(b, head_index, with_keep);
    b.write(binding, out.data(), out.size() * sizeof(float));
    if (Result<void> r = engine.attention(desc, b); !r) return r.error();
    return out;
}

Result<void> PageModel::attend(Engine& engine) {
    const PageState& s = state_;
    set_mask();
    draw_keep();
    slopes_.clear();
    for (uint32_t h = 0; h < s.heads; ++h)
        slopes_.push_back(std::exp2(-8.0f * float(h + 1) / float(s.heads)));
    o_.assign(rows_ * s.heads * dim_v_, 0.0f);
    lse_.assign(s.heads * rows_, 0.0f);
    FoveaAttentionDesc desc = describe(s.heads, true, masks_in_engine());
    desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    Bindings b;
    bind_inputs(b, 0, true);
    b.write(FOVEA_BIND_O, o_.data(), o_.size() * sizeof(float));
    b.write(FOVEA_BIND_LSE, lse_.data(), lse_.size() * sizeof(float));
    if (Result<void> r = engine.attention(desc, b, &kernel_); !r) return r;
    if (s.renormalise)
        if (Result<void> r = renormalised_context(engine); !r) return r;
    if (v_.size() != keys_ * s.kv_heads || dim_v_ != 1 || s.rows == 0) {
        add_shared("context", {rows_, uint64_t{s.heads} * dim_v_}, o_);
        add_shared("lse", head_shape(s.heads, rows_, 1), lse_);
    }
    return {};
}

// The other route to a mask: all weights first, then those of hidden keys set to 0 and each row divided by
// its sum.
Result<void> PageModel::renormalised_context(Engine& engine) {
    for (uint32_t h = 0; h < state_.heads; ++h) {
        Result<std::vector<float>> weights = head_weights(engine, h);
        if (!weights) return weights.error();
        const HeadView view = head(h);
        for (uint64_t i = 0; i < rows_; ++i) {
            float* out = &o_[(i * state_.heads + h) * dim_v_];
            std::fill_n(out, dim_v_, 0.0f);
            for (uint64_t j = 0; j < keys_; ++j)
                for (uint32_t c = 0; c < dim_v_; ++c)
                    out[c] += (*weights)[i * keys_ + j] * view.v[j * view.v_stride + c];
        }
    }
    return {};
}

HeadView PageModel::head(uint32_t index) const {
    const uint32_t kv_head = index / (state_.heads / state_.kv_heads);
    return {q_.data() + q_strides_.head * index,
            k_.data() + k_strides_.head * kv_head,
            v_.data() + v_strides_.head * kv_head,
            uint64_t(q_strides_.row),
            uint64_t(k_strides_.row),
            uint64_t(v_strides_.row)};
}

}  // namespace fovea::web
