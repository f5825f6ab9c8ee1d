#include "model/text/host_text.hpp"

#include <algorithm>

#include "model/block_run.hpp"

namespace fovea {

HostText::HostText(Runner& engine, uint64_t layers, uint64_t capacity)
    : LayerSteps(capacity), engine_(engine), on_rows_(engine.parallel()), layers_(layers) {}

F32Tensor& HostText::need(Role role, uint64_t width) {
    F32Tensor& room = room_[role];
    room.values.resize(rows_ * width);
    room.shape = {rows_, width};
    return room;
}

Result<void> HostText::enter(const F32Tensor& x, uint64_t held) {
    if (Result<void> r = take(x, held); !r) return r;
    room_[stream] = x;
    return {};
}

Result<F32Tensor> HostText::row(uint64_t index) {
    const auto row = room_[stream].row(index);
    return F32Tensor({1, row.size()}, {row.begin(), row.end()});
}

Result<void> HostText::linear(std::span<const Product> products, Role x) {
    std::vector<LinearProduct> all;
    for (const Product& one : products) all.push_back({one.layer, &need(one.to, one.layer->d_out())});
    return run_linears(engine_, room_[x], all);
}

Result<void> HostText::norm_rows(const Norm& n, uint64_t rows, uint64_t width, Role x, Role y,
                                 std::optional<Role> sum) {
    need(y, rows * width / rows_);
    on_rows_.norm(n, room_[x].values.data(), rows, width, room_[y].values.data(),
                  sum ? room_[*sum].values.data() : nullptr);
    return {};
}

Result<void> HostText::pointwise(PointwiseRule rule, uint64_t count, Role x, std::optional<Role> other) {
    float* const numbers = room_[x].values.data();
    on_rows_.pointwise(rule, numbers, other ? room_[*other].values.data() : nullptr, numbers, count);
    return {};
}

Result<void> HostText::rotate(const Rope& rope, uint32_t heads, Role role) {
    const uint64_t width = head_width();
    auto found = std::find_if(angles_.begin(), angles_.end(), [&](const Angles& one) {
        return one.width == width && same_angles(one.rope, rope);
    });
    if (found == angles_.end())
        found = angles_.insert(angles_.end(), Angles{rope, width, rope_tables(rope, capacity_, width)});
    on_rows_.rotate(room_[role].values.data(), rows_, heads, width, HeadOrder::beside, rope, found->tables,
                    held_);
    return {};
}

Result<void> HostText::attend(const AttentionPart& a) {
    const uint64_t kv = a.kv_heads, width = head_width();
    for (const auto& [role, kept] : {std::pair{keys, &at_->keys}, {values, &at_->values}}) {
        if (kept->values.empty()) *kept = F32Tensor({kv, capacity_, width});
        on_rows_.append(room_[role].values.data(), rows_, kv, width, kept->values.data(), capacity_, held_);
    }
    F32Tensor& o = need(context, a.heads * width);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (const auto& [binding, t] : {std::pair{FOVEA_BIND_Q, &room_[queries]},
                                     {FOVEA_BIND_K, &at_->keys},
                                     {FOVEA_BIND_V, &at_->values},
                                     {FOVEA_BIND_O, &o}})
        bindings[binding] = {t->values.data(), t->values.size() * 4};
    return engine_.attention(attention_call(a), bindings);
}

}  // namespace fovea
