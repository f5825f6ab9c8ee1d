#include "document/vector_plot.hpp"

#include "document/cell_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace fovea::visualizer {
namespace {

using Vector = std::vector<double>;
constexpr int kSteps = 200;

double dot(const Vector& a, const Vector& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// By power iteration with the products of columns, which are never formed. It begins at the longest row:
// the same vectors always have the same plane.
Vector direction(const std::vector<Vector>& rows, size_t width) {
    const auto longest = std::max_element(
        rows.begin(), rows.end(), [](const Vector& a, const Vector& b) { return dot(a, a) < dot(b, b); });
    Vector along = *longest;
    for (int step = 0; step < kSteps; ++step) {
        const double length = std::sqrt(dot(along, along));
        if (!(length > 0)) return Vector(width, 0);
        Vector next(width, 0);
        for (const Vector& row : rows) {
            const double part = dot(row, along) / length;
            for (size_t c = 0; c < width; ++c) next[c] += part * row[c];
        }
        along = std::move(next);
    }
    const double length = std::sqrt(dot(along, along));
    for (double& value : along) value = length > 0 ? value / length : 0;
    return along;
}

}  // namespace

std::array<double, 2> PrincipalPlane::place(std::span<const float> vector) const {
    std::array<double, 2> at{};
    for (size_t axis = 0; axis < 2; ++axis)
        for (size_t c = 0; c < vector.size(); ++c)
            at[axis] += (double(vector[c]) - origin[c]) * axes[axis][c];
    return at;
}

std::vector<float> PrincipalPlane::moved(std::span<const float> vector, std::array<double, 2> to) const {
    const std::array<double, 2> at = place(vector);
    std::vector<float> out(vector.begin(), vector.end());
    for (size_t c = 0; c < out.size(); ++c)
        out[c] = float(double(out[c]) + (to[0] - at[0]) * axes[0][c] + (to[1] - at[1]) * axes[1][c]);
    return out;
}

PrincipalPlane principal_plane(std::span<const float> values, size_t width, bool centred) {
    PrincipalPlane plane;
    const size_t count = values.size() / width;
    plane.origin.assign(width, 0);
    plane.axes = {Vector(width, 0), Vector(width, 0)};
    if (width == 2 && !centred) {
        plane.axes[0][0] = plane.axes[1][1] = 1;
        return plane;
    }
    std::vector<Vector> rows;
    for (size_t n = 0; n < count; ++n)
        rows.emplace_back(values.begin() + ptrdiff_t(n * width), values.begin() + ptrdiff_t((n + 1) * width));
    if (centred && count > 0) {
        for (const Vector& row : rows)
            for (size_t c = 0; c < width; ++c) plane.origin[c] += row[c] / double(count);
        for (Vector& row : rows)
            for (size_t c = 0; c < width; ++c) row[c] -= plane.origin[c];
    }
    const auto squares = [&] {
        double sum = 0;
        for (const Vector& row : rows) sum += dot(row, row);
        return sum;
    };
    const double all = squares();
    for (Vector& axis : plane.axes) {
        if (!(squares() > 1e-12 * all)) break;  // nothing is left to differ in
        axis = direction(rows, width);
        for (Vector& row : rows) {
            const double part = dot(row, axis);
            for (size_t c = 0; c < width; ++c) row[c] -= part * axis[c];
        }
    }
    plane.share = all > 0 ? 1 - squares() / all : 1;
    return plane;
}

namespace {

// [heads, tokens, width]: one head of it.
F32Tensor head_of(const F32Tensor& all, uint64_t head) {
    const uint64_t size = all.shape[1] * all.shape[2];
    const auto from = all.values.begin() + ptrdiff_t(head * size);
    return {Shape{all.shape[1], all.shape[2]}, {from, from + ptrdiff_t(size)}};
}

double reach_of(const PrincipalPlane& plane, const F32Tensor& rows, double reach = 1e-6) {
    for (uint64_t n = 0; n < rows.rows(); ++n)
        for (const double at : plane.place(rows.row(n))) reach = std::max(reach, std::abs(at));
    return reach;
}

Settings without_edits(Settings s) {
    s.edits.clear();
    return s;
}

}  // namespace

void VectorPlot::follow(const AttentionResult& result, uint32_t head) {
    if (begun_ && of_ == result.settings && head_ == head) return;
    const bool same_words = begun_ && laid_for_ == without_edits(result.settings) && head_ == head;
    begun_ = true, tried_ = false, stale_ = true;
    of_ = result.settings, laid_for_ = without_edits(result.settings), head_ = head;
    const Projected& p = result.projected;
    const uint64_t queries = p.q.shape[1], keys = p.k.shape[1];
    why_not_ = std::max(queries, keys) > kMaxTokens
                   ? "Up to " + std::to_string(kMaxTokens) + " tokens are drawn as points; here are " +
                         std::to_string(std::max(queries, keys)) + "."
                   : "";
    words_ = F32Tensor{Shape{0}};
    if (!why_not_.empty()) return;
    if (const Stage* inputs = result.find_stage(StageId::inputs))
        words_ = {Shape{inputs->rows, inputs->columns}, {inputs->values.begin(), inputs->values.end()}};
    const uint64_t heads = p.q.shape[0];
    key_head_ = uint32_t(std::min<uint64_t>(head, heads - 1) / (heads / p.k.shape[0]));
    own_queries_ = queries_ = head_of(p.q, std::min<uint64_t>(head, heads - 1));
    own_keys_ = keys_ = head_of(p.k, key_head_);
    call_ = call_of(p);
    rules_ = result.trace->rules(p.layer);
    if (!same_words) {
        held = {VectorKind::query, 0};
        std::vector<float> both = queries_.values;
        both.insert(both.end(), keys_.values.begin(), keys_.values.end());
        pair_plane_ = principal_plane(both, queries_.columns(), false);
        pair_reach_ = reach_of(pair_plane_, keys_, reach_of(pair_plane_, queries_));
        if (has_words()) {
            word_plane_ = principal_plane(words_.values, words_.columns(), true);
            word_reach_ = reach_of(word_plane_, words_);
        }
    }
    of_words = of_words && has_words();
}

std::string VectorPlot::why_words_stay() const {
    if (reads_tensors(of_)) return "the vectors of your own tensors cannot be moved";
    if (shows_model(of_)) return "the vectors of a trained model cannot be moved";
    return "";
}

std::vector<VectorPoint> VectorPlot::points() const {
    std::vector<VectorPoint> all;
    const auto add = [&](VectorKind kind, const F32Tensor& rows, const F32Tensor& own) {
        for (uint64_t n = 0; n < rows.rows(); ++n) {
            const bool tried = !std::equal(rows.row(n).begin(), rows.row(n).end(), own.row(n).begin());
            all.push_back({kind, uint32_t(n), plane().place(rows.row(n)), tried});
        }
    };
    if (of_words) {
        add(VectorKind::word, words_, words_);
    } else {
        add(VectorKind::key, keys_, own_keys_);
        add(VectorKind::query, queries_, own_queries_);
    }
    return all;
}

void VectorPlot::try_out(VectorKind kind, uint32_t token, std::array<double, 2> to) {
    const bool key = kind == VectorKind::key;
    F32Tensor &rows = key ? keys_ : queries_, &own = key ? own_keys_ : own_queries_;
    const std::vector<float> moved = pair_plane_.moved(rows.row(token), to);
    const auto same = [&](uint64_t n) { return std::ranges::equal(own.row(n), own.row(token)); };
    for (uint64_t n = 0; n < rows.rows(); ++n)
        if (n == token || (key && same(n))) std::ranges::copy(moved, rows.row(n).begin());
    tried_ = stale_ = true;
}

void VectorPlot::take_back() {
    queries_ = own_queries_, keys_ = own_keys_;
    tried_ = false, stale_ = true;
}

const Result<F32Tensor>& VectorPlot::tried_weights() {
    if (!std::exchange(stale_, false)) return weights_;
    const auto put = [](F32Tensor& all, uint64_t head, const F32Tensor& rows) {
        std::ranges::copy(rows.values, all.values.begin() + ptrdiff_t(head * rows.values.size()));
    };
    put(call_.q, std::min<uint64_t>(head_, call_.q.shape[0] - 1), queries_);
    put(call_.k, key_head_, keys_);
    Result<Trace> trace = trace_of_call(call_, rules_);
    weights_ = !trace ? Result<F32Tensor>(trace.error())
                      : trace->stage(rules_.dropout_p > 0 ? StageId::dropped : StageId::weights,
                                     std::min<uint32_t>(head_, trace->heads() - 1));
    return weights_;
}

std::string VectorPlot::edits_with(const Settings& settings, uint32_t token,
                                   std::optional<std::array<double, 2>> to) const {
    std::string text;
    const auto add = [&](StageId stage, uint64_t row, uint64_t column, double value) {
        text += (text.empty() ? "" : ",") + stage_name(stage) + " " + std::to_string(row) + " " +
                std::to_string(column) + " " + format_number(value, 9);
    };
    for (const CellEdit& edit : settings.edits)
        if (edit.stage != StageId::inputs || (to && edit.row != token))
            add(edit.stage, edit.row, edit.column, edit.value);
    if (!to) return text;
    // Three decimals, so that the value on the screen is the exact value.
    const std::vector<float> row = word_plane_.moved(words_.row(token), *to);
    for (size_t c = 0; c < row.size(); ++c)
        add(StageId::inputs, token, c, std::round(double(row[c]) * 1000) / 1000);
    return text;
}

}  // namespace fovea::visualizer
