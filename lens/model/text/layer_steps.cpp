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
                 std::to_string(rows_) + " rows behind " + std::to_string(held_) + "; there is room for " +
                     std::to_string(capacity_)};
}

// The stream grows by x; `normed` becomes its norm, or with `stays` the stream itself does.
Result<void> LayerSteps::add_to_stream(const Norm& n, Role x, bool stays) {
    if (n.kind == NormKind::none) return pointwise(PointwiseRule::add, rows_ * width_, stream, x);
    if (Result<void> r = norm(n, rows_, width_, x, normed, stream); !r) return r;
    if (stays) swap(stream, normed);
    return {};
}

Result<void> LayerSteps::attention(const AttentionPart& a, Role from) {
    const uint64_t width = a.query.d_out() / a.heads;
    const Product projections[] = {{&a.query, queries}, {&a.key, keys}, {&a.value, values}};
    if (Result<void> r = linear(projections, from); !r) return r;
    for (const auto& [n, role, heads] :
         {std::tuple{&a.query_norm, queries, a.heads}, {&a.key_norm, keys, a.kv_heads}}) {
        if (n->kind != NormKind::none)
            if (Result<void> r = norm(*n, rows_ * heads, width, role, role); !r) return r;
        if (a.rope)
            if (Result<void> r = rotate(a, role, heads, width); !r) return r;
    }
    if (Result<void> r = attend(a, width); !r) return r;
    const Product output[] = {{&a.output, part}};
    return linear(output, context);
}

Result<void> LayerSteps::feed_forward(const FeedForward& f, Role from) {
    const uint64_t middle = rows_ * f.up.d_out();
    const PointwiseRule rule = rule_of(f.activation);
    const bool gated = is_present(f.gate);
    const Product both[] = {{&f.up, hidden}, {&f.gate, gate}}, down[] = {{&f.down, part}};
    if (Result<void> r = linear(std::span(both, gated ? 2 : 1), from); !r) return r;
    const Role last = gated ? gate : hidden;
    if (Result<void> r = pointwise(rule, middle, last, gated ? std::optional(hidden) : std::nullopt); !r)
        return r;
    return linear(down, last);
}

Result<void> LayerSteps::layer(uint64_t n, const Block& b) {
    const AttentionPart& a = b.attention;
    const FeedForward& f = b.feed_forward;
    if (!b.residual || !is_present(a.query) || !is_present(a.key) || !is_present(a.value) ||
        !is_present(a.output) || a.rules.alibi ||
        (b.order == BlockOrder::parallel && b.feed_forward_norm.kind == NormKind::none))
        return Error{FOVEA_UNSUPPORTED, "block",
                     "layer " + std::to_string(n) + " has other parts than a text's layers"};
    begin(n, b);
    const bool post = b.order == BlockOrder::post;
    const auto normed_stream = [&](const Norm& norm_of, Role& from) -> Result<void> {
        from = stream;
        if (post || norm_of.kind == NormKind::none) return {};
        from = normed;
        return norm(norm_of, rows_, width_, stream, normed);
    };
    const auto norm_part = [&](const Norm& norm_of) -> Result<void> {
        if (norm_of.kind == NormKind::none) return {};
        return norm(norm_of, rows_, width_, part, part);
    };
    Role from = stream;
    if (Result<void> r = normed_stream(b.attention_norm, from); !r) return r;
    if (Result<void> r = attention(a, from); !r) return r;
    if (Result<void> r = norm_part(b.attention_output_norm); !r) return r;
    if (!is_present(f.up)) return add_to_stream(post ? b.attention_norm : Norm{}, part, post);
    if (b.order == BlockOrder::parallel) {
        if (Result<void> r = normed_stream(b.feed_forward_norm, from); !r) return r;
        if (Result<void> r = add_to_stream(Norm{}, part, false); !r) return r;
    } else {
        const Norm& next = post ? b.attention_norm : b.feed_forward_norm;
        from = post || next.kind == NormKind::none ? stream : normed;
        if (Result<void> r = add_to_stream(next, part, post); !r) return r;
    }
    if (Result<void> r = feed_forward(f, from); !r) return r;
    if (Result<void> r = norm_part(b.feed_forward_output_norm); !r) return r;
    return add_to_stream(post ? b.feed_forward_norm : Norm{}, part, post);
}

}  // namespace fovea
