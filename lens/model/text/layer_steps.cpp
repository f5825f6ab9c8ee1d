#include "model/text/layer_steps.hpp"

namespace fovea {

bool same_angles(const Rope& a, const Rope& b) {
    return a.theta == b.theta && a.interleaved == b.interleaved && a.first_position == b.first_position &&
           a.width == b.width && a.divisors == b.divisors && a.magnitude == b.magnitude;
}

Result<void> LayerSteps::take(const F32Tensor& x, uint64_t held) {
    rows_ = x.rows(), width_ = x.columns(), held_ = held;
    if (held_ + rows_ <= capacity_) return {};
    return Error{FOVEA_LIMIT_EXCEEDED, "rows",
                 std::to_string(rows_) + " rows after " + std::to_string(held_) + " exceed the capacity, " +
                     std::to_string(capacity_)};
}

FoveaAttentionDesc LayerSteps::attention_call(const AttentionPart& a) const {
    const auto heads = int64_t(a.heads), kv = int64_t(a.kv_heads), width = int64_t(head_width());
    const auto rows = int64_t(rows_), capacity = int64_t(capacity_);
    FoveaAttentionDesc call = foveaAttentionDesc();
    call.batch = 1, call.heads_q = a.heads, call.heads_kv = a.kv_heads;
    call.len_q = rows_, call.len_kv = held_ + rows_;
    call.dim_qk = call.dim_v = uint32_t(width);
    apply_rules(a.rules, call);
    call.align = FOVEA_ALIGN_BOTTOM_RIGHT;
    call.q_strides = call.o_strides = {rows * heads * width, width, heads * width};
    call.k_strides = call.v_strides = {kv * capacity * width, capacity * width, width};
    return call;
}

Result<void> LayerSteps::copy(Role, Role) {
    return Error{FOVEA_UNSUPPORTED, "block", "a layer of a text model must have all of its parts"};
}

Result<void> LayerSteps::norm(const Norm& n, uint32_t heads, Role from, Role to) {
    return heads ? norm_rows(n, rows_ * heads, head_width(), from, to)
                 : norm_rows(n, rows_, width_, from, to);
}

Result<void> LayerSteps::activate(Activation activation, Role role, const Role* other) {
    return pointwise(rule_of(activation), rows_ * block_->feed_forward.up.d_out(), role,
                     other ? std::optional(*other) : std::nullopt);
}

Result<void> LayerSteps::add(Role from, const Norm* next, Role to) {
    if (!next) return pointwise(PointwiseRule::add, rows_ * width_, stream, from);
    if (Result<void> r = norm_rows(*next, rows_, width_, from, normed, stream); !r) return r;
    if (to == stream) swap(stream, normed);
    return {};
}

Result<void> LayerSteps::layer(uint64_t n, const Block& b) {
    const AttentionPart& a = b.attention;
    if (!b.residual || !is_present(a.query) || !is_present(a.key) || !is_present(a.value) ||
        !is_present(a.output) || a.rules.alibi ||
        (b.order == BlockOrder::parallel && b.feed_forward_norm.kind == NormKind::none))
        return Error{FOVEA_UNSUPPORTED, "block",
                     "layer " + std::to_string(n) +
                         " does not have the parts of a text model's layer, which are needed"};
    block_ = &b;
    begin(n);
    return walk(b, block_steps(b));
}

}  // namespace fovea
