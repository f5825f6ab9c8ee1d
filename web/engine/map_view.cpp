#include "map_view.hpp"

#include <fovea/layers.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace fovea::web {
namespace {

typedef float F4 __attribute__((vector_size(16)));
typedef std::int32_t I4 __attribute__((vector_size(16)));

constexpr std::uint32_t kLanes = 4;
// Shares of a head's width: what a token is, where it stands, and one number for the sink.
constexpr std::uint32_t kSinkDims = 1;
constexpr std::uint32_t kPassage = 1024;  // every passage comes again this many tokens later

// e^x for x <= 0 within 2e-7 relative: 2^n times a polynomial on [-0.5, 0.5] of log2(e) x.
F4 exp_not_positive(F4 x) {
    x = x < -87.0F ? F4{-87.0F, -87.0F, -87.0F, -87.0F} : x;
    const F4 t = x * 1.44269504F;
    const F4 rounder = {12582912.0F, 12582912.0F, 12582912.0F, 12582912.0F};  // 1.5 * 2^23: adding it rounds
    const F4 n = (t + rounder) - rounder;
    // x - n ln 2 in two parts, so that the small difference keeps its digits.
    const F4 r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
    F4 p = r * 1.9875691500e-4F + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1.0F;
    const I4 exponent = (__builtin_convertvector(n, I4) + 127) << 23;
    return p * std::bit_cast<F4>(exponent);
}

float sum_of(F4 v) { return (v[0] + v[1]) + (v[2] + v[3]); }
float max_of(F4 v) { return std::max(std::max(v[0], v[1]), std::max(v[2], v[3])); }

}  // namespace

MapView::MapView(std::uint32_t tokens, std::uint32_t dim, std::uint32_t seed)
    : tokens_(tokens), dim_(dim), scale_(1.0F / std::sqrt(float(dim))) {
    plant_patterns(seed);
    pack_keys();
}

void MapView::plant_patterns(std::uint32_t seed) {
    q_.resize(std::size_t{tokens_} * dim_);
    k_.resize(q_.size());
    lse_.assign(tokens_, 0.0F);
    const std::uint32_t content = (dim_ - kSinkDims) / 2, place = dim_ - kSinkDims - content;
    TorchGenerator generator(seed);
    std::vector<float> vocabulary(std::size_t{kPassage} * content);
    generator.randn(vocabulary);
    const auto word = [&](std::uint32_t i) {
        // Every second passage repeats the one before it; the others shuffle the words.
        const std::uint32_t passage = i / kPassage, at = i % kPassage;
        const std::uint32_t shuffle = (passage / 2) * 7919U;
        return (at * 613U + shuffle) % kPassage;
    };
    const float content_gain = 2.2F * std::sqrt(std::sqrt(float(dim_)) / float(content) * 4.0F);
    const float place_gain = std::sqrt(3.4F * std::sqrt(float(dim_)) / (float(place) / 2));
    for (std::uint32_t i = 0; i < tokens_; ++i) {
        float* q = &q_[std::size_t{i} * dim_];
        float* k = &k_[std::size_t{i} * dim_];
        const float* asks = &vocabulary[std::size_t{word(i)} * content];
        const float* offers = &vocabulary[std::size_t{word(i == 0 ? 0 : i - 1)} * content];
        for (std::uint32_t c = 0; c < content; ++c) {
            q[c] = asks[c] * content_gain * 0.5F;
            k[c] = offers[c] * content_gain * 0.5F;
        }
        for (std::uint32_t c = 0; c + 1 < place; c += 2) {
            // Cosines of several wavelengths: the dot product depends on the distance alone and is largest at
            // 0.
            const double angle = double(i) / std::pow(6000.0, double(c) / place);
            q[content + c] = k[content + c] = place_gain * float(std::cos(angle));
            q[content + c + 1] = k[content + c + 1] = place_gain * float(std::sin(angle));
        }
        q[dim_ - 1] = 3.0F;
        k[dim_ - 1] = i < 4 ? 9.0F - float(i) : 0.0F;
    }
}

void MapView::pack_keys() {
    const std::uint32_t groups = (tokens_ + kLanes - 1) / kLanes;
    k_panels_.assign(std::size_t{groups} * dim_ * kLanes, 0.0F);
    for (std::uint32_t j = 0; j < tokens_; ++j)
        for (std::uint32_t d = 0; d < dim_; ++d)
            k_panels_[(std::size_t{j / kLanes} * dim_ + d) * kLanes + j % kLanes] =
                k_[std::size_t{j} * dim_ + d];
}

Result<double> MapView::prepare(Engine& engine, double max_flops) {
    if (!plan_) {
        Result<FoveaDeviceFacts> facts = engine.facts(engine.worker_count());
        if (!facts) return facts.error();
        Attention call;
        call.batch(1)
            .heads(1)
            .lengths(tokens_, tokens_)
            .dims(dim_, 1)
            .scale(scale_)
            .causal()
            .outputs(FOVEA_OUTPUT_LSE);
        call.desc.max_slice_cost = max_flops;
        Result<Plan> plan = plan_attention(*facts, call);
        if (!plan) return plan.error();
        plan_ = std::move(*plan);
    }
    const FoveaPlanInfo info = plan_.info();
    if (next_slice_ < info.slice_count) {
        // v plays no part in lse.
        const std::vector<float> v(tokens_, 0.0F);
        Bindings b;
        b.read(FOVEA_BIND_Q, q_.data(), q_.size() * sizeof(float));
        b.read(FOVEA_BIND_K, k_.data(), k_.size() * sizeof(float));
        b.read(FOVEA_BIND_V, v.data(), v.size() * sizeof(float));
        b.write(FOVEA_BIND_LSE, lse_.data(), lse_.size() * sizeof(float));
        if (Result<void> r = engine.run(plan_, b, engine.worker_count(), next_slice_, 1); !r)
            return r.error();
        ++next_slice_;
    }
    return info.slice_count ? double(next_slice_) / double(info.slice_count) : 1.0;
}

void MapView::reduce_pixel_row(std::int32_t level, std::int64_t pixel_row, std::int32_t column,
                               std::int32_t columns, float* mass, float* max) const {
    const std::int64_t cells = std::int64_t{1} << level;
    const std::int64_t row_begin = pixel_row * cells,
                       row_end = std::min<std::int64_t>(row_begin + cells, tokens_);
    if (row_begin < 0 || row_begin >= row_end) return;
    for (std::int64_t i = row_begin; i < row_end; ++i) {
        const float* q = &q_[std::size_t(i) * dim_];
        const float shift = lse_[std::size_t(i)];
        for (std::int32_t p = 0; p < columns; ++p) {
            const std::int64_t begin = std::max<std::int64_t>(0, (column + p) * cells);
            const std::int64_t end = std::min((column + p + 1) * cells, i + 1);
            F4 sum = {}, largest = {};
            for (std::int64_t group = begin / kLanes; group * kLanes < end; ++group) {
                const float* panel = &k_panels_[std::size_t(group) * dim_ * kLanes];
                F4 dot = {};
                for (std::uint32_t d = 0; d < dim_; ++d) {
                    F4 keys;
                    __builtin_memcpy(&keys, panel + d * kLanes, sizeof keys);
                    dot += keys * q[d];
                }
                const I4 j = std::int32_t(group * kLanes) + I4{0, 1, 2, 3};
                const F4 weight = exp_not_positive(dot * scale_ - shift);
                const F4 inside = ((j >= std::int32_t(begin)) & (j < std::int32_t(end))) ? weight : F4{};
                sum += inside;
                largest = inside > largest ? inside : largest;
            }
            mass[p] += sum_of(sum);
            max[p] = std::max(max[p], max_of(largest));
        }
    }
    const float inverse_rows = 1.0F / float(row_end - row_begin);
    for (std::int32_t p = 0; p < columns; ++p) mass[p] *= inverse_rows;
}

void MapView::sample_pixel_row(std::int32_t level, std::int64_t pixel_row, std::int32_t column,
                               std::int32_t columns, float* mass, float* max) const {
    const std::int64_t cells = std::int64_t{1} << level;
    const std::int64_t i = pixel_row * cells + cells / 2;
    if (i < 0 || i >= tokens_) return;
    for (std::int32_t p = 0; p < columns; ++p) {
        const std::int64_t j = (column + p) * cells + cells / 2;
        if (j < 0 || j > i) continue;
        const float weight = float(cell(std::uint32_t(i), std::uint32_t(j)));
        mass[p] = weight * float(cells);
        max[p] = weight;
    }
}

const std::vector<float>& MapView::tile(Engine& engine, std::int32_t level, std::int32_t row,
                                        std::int32_t column, std::int32_t rows, std::int32_t columns,
                                        bool sampled) {
    pixels_.assign(std::size_t(rows) * columns * 2, 0.0F);
    struct Job {
        MapView& map;
        std::int32_t level, row, column, rows, columns;
        bool sampled;
    } job{*this, level, row, column, rows, columns, sampled};
    engine.for_each(
        std::uint32_t(rows),
        [](void* arg, std::uint32_t index, std::uint32_t) {
            Job& j = *static_cast<Job*>(arg);
            float* mass = &j.map.pixels_[std::size_t(index) * j.columns];
            float* max = mass + std::size_t(j.rows) * j.columns;
            if (j.sampled)
                j.map.sample_pixel_row(j.level, std::int64_t{j.row} + index, j.column, j.columns, mass, max);
            else
                j.map.reduce_pixel_row(j.level, std::int64_t{j.row} + index, j.column, j.columns, mass, max);
        },
        &job);
    return pixels_;
}

double MapView::cell(std::uint32_t query, std::uint32_t key) const {
    if (query >= tokens_ || key > query) return 0;
    double score = 0;
    for (std::uint32_t d = 0; d < dim_; ++d)
        score += double(q_[std::size_t{query} * dim_ + d]) * double(k_[std::size_t{key} * dim_ + d]);
    return std::exp(score * double(scale_) - double(lse_[query]));
}

}  // namespace fovea::web
