// A forward pass in float64 that freezes its norms and leaves out what one writer wrote.
#pragma once

#include "model/float64_parts.hpp"

#include <fovea/inspect/writers.hpp>

#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

namespace fovea {

class Replay {
  public:
    using Values = std::vector<double>;
    // The writer to leave out, or the part of it that it made of one source or neuron.
    struct LeftOut {
        Writer writer;
        std::optional<size_t> source;
    };
    using Gone = std::optional<LeftOut>;

    // `token` and `position` are rows of the embedding before its norm; no rows: none.
    Replay(std::vector<Block> blocks, Norm embedding_norm, Matrix token, Matrix position)
        : blocks_(std::move(blocks)),
          embedding_norm_(std::move(embedding_norm)),
          token_(std::move(token)),
          position_(std::move(position)) {
        for (size_t n = 0; n < blocks_.size(); ++n) run(n);
    }

    // `ends` with the row of the unembedding that belongs to one token, and its bias.
    double logit(const Model& ends, size_t row, const Gone& gone) {
        const bool biases = !is(gone, Writer::Kind::reader_bias);
        Values x = stream(row, blocks_.size(), gone);
        norm(ends.final_norm, x, row, "final", biases);
        if (is_present(ends.prediction.dense)) {
            x = linear(ends.prediction.dense, x, biases);
            Values gains;
            for (const double v : x) gains.push_back(act(ends.prediction.activation, v) / v);
            gains = gains_.try_emplace(row, gains).first->second;
            for (size_t c = 0; c < x.size(); ++c) x[c] *= gains[c];
            norm(ends.prediction.norm, x, row, "prediction", biases);
        }
        return linear(ends.unembedding, x, biases)[0];
    }

    double score(const LayerCell& cell, const Gone& at_query, const Gone& at_key) {
        const AttentionPart& a = blocks_[cell.layer].attention;
        const Values q = made(cell.layer, cell.query, true, cell.head, at_query);
        const Values k = made(cell.layer, cell.key, false, cell.head / (a.heads / a.kv_heads), at_key);
        return std::inner_product(q.begin(), q.end(), k.begin(), 0.0) * factor(a, q.size());
    }

    // The sum of the magnitudes of what the score adds up, in its order: what its rounding is measured by.
    double products(const LayerCell& cell) {
        const AttentionPart& a = blocks_[cell.layer].attention;
        const Values q = made(cell.layer, cell.query, true, cell.head, {});
        const Values k = made(cell.layer, cell.key, false, cell.head / (a.heads / a.kv_heads), {});
        double sum = 0;
        for (size_t c = 0; c < q.size(); ++c) sum += std::abs(q[c] * k[c]);
        return sum * factor(a, q.size());
    }

  private:
    static double factor(const AttentionPart& a, size_t width) {
        const ScoreScale scale = score_scale(a.rules, width);
        return scale.divides ? 1 / scale.value : scale.value;
    }
    static bool is(const Gone& gone, Writer::Kind kind, size_t layer = 0, size_t head = 0) {
        return gone && gone->writer == Writer{kind, uint32_t(layer), uint32_t(head)};
    }
    static void grow(Values& x, const Values& by) {
        for (size_t c = 0; c < x.size(); ++c) x[c] += by[c];
    }
    static Values linear(const Linear& l, const Values& x, bool with_bias) {
        Linear bare = l;
        if (!with_bias) bare.bias = F32Tensor(Shape{0});
        return times({x}, bare)[0];
    }

    // The first call for a row and a name, with nothing left out, freezes the scale.
    void norm(const Norm& n, Values& x, size_t row, const std::string& name, bool with_bias) {
        if (n.kind == NormKind::none) return;
        double mean = 0, squares = 0;
        for (const double v : x) mean += v / double(x.size());
        if (n.kind == NormKind::rms) mean = 0;
        for (const double v : x) squares += (v - mean) * (v - mean) / double(x.size());
        const double scale =
            scales_.try_emplace({row, name}, 1 / std::sqrt(squares + n.epsilon)).first->second;
        for (size_t c = 0; c < x.size(); ++c) {
            x[c] = (x[c] - mean) * scale;
            if (!n.weight.values.empty()) x[c] *= double(n.weight.values[c]);
            if (!n.bias.values.empty() && with_bias) x[c] += double(n.bias.values[c]);
        }
    }

    // Returns what enters block `layers`; with `attended`, the stream that its feed-forward part reads.
    Values stream(size_t row, size_t layers, const Gone& gone, bool attended = false) {
        Values x = is(gone, Writer::Kind::token) ? Values(token_[row].size()) : token_[row];
        if (!position_.empty() && !is(gone, Writer::Kind::position)) grow(x, position_[row]);
        norm(embedding_norm_, x, row, "embedding", !is(gone, Writer::Kind::embedding_bias));
        for (size_t n = 0; n < layers + attended; ++n) {
            const Block& b = blocks_[n];
            const std::string name = std::to_string(n);
            const bool biases = !is(gone, Writer::Kind::bias, n);
            Values part = context_[n][row];
            const size_t width = part.size() / b.attention.heads;
            for (size_t h = 0; h < b.attention.heads; ++h)
                for (size_t c = 0; is(gone, Writer::Kind::head, n, h) && c < width; ++c)
                    part[h * width + c] -= gone->source ? read_[n][h][row][*gone->source * width + c]
                                                        : context_[n][row][h * width + c];
            part = linear(b.attention.output, part, biases);
            norm(b.attention_output_norm, part, row, name + "a", biases);
            grow(x, part);
            if (b.order == BlockOrder::post) norm(b.attention_norm, x, row, name + "b", biases);
            if (n == layers || !is_present(b.feed_forward.up)) continue;
            part = fed_[n][row];
            if (is(gone, Writer::Kind::feed_forward, n)) {
                Values hidden = hidden_[n][row];
                for (size_t c = 0; c < hidden.size(); ++c)
                    if (!gone->source || *gone->source == c) hidden[c] = 0;
                part = linear(b.feed_forward.down, hidden, false);
            }
            const std::vector<float>& bias = b.feed_forward.down.bias.values;
            if (biases) grow(part, bias.empty() ? Values(x.size()) : Values(bias.begin(), bias.end()));
            norm(b.feed_forward_output_norm, part, row, name + "c", biases);
            grow(x, part);
            if (b.order == BlockOrder::post) norm(b.feed_forward_norm, x, row, name + "d", biases);
        }
        return x;
    }

    // q or k of one head.
    Values made(size_t n, size_t row, bool query, size_t head, const Gone& gone) {
        const Block& b = blocks_[n];
        const AttentionPart& a = b.attention;
        const std::string name = std::to_string(n);
        const bool biases = !gone || gone->writer.kind != Writer::Kind::reader_bias;
        Values x = stream(row, n, gone);
        if (b.order != BlockOrder::post) norm(b.attention_norm, x, row, name + "n", biases);
        const Values all = linear(query ? a.query : a.key, x, biases);
        const size_t width = all.size() / (query ? a.heads : a.kv_heads);
        const auto from = all.begin() + int64_t(head * width);
        Values y(from, from + int64_t(width));
        norm(query ? a.query_norm : a.key_norm, y, row, name + (query ? "q" : "k") + std::to_string(head),
             biases);
        if (!a.rope) return y;
        const size_t pairs = a.rope->rotated(width) / 2;
        for (size_t p = 0; p < pairs; ++p) {
            double angle =
                double(a.rope->first_position + row) * std::pow(a.rope->theta, -double(p) / double(pairs));
            if (!a.rope->divisors.empty()) angle /= a.rope->divisors[p];
            double& u = y[a.rope->interleaved ? 2 * p : p];
            double& w = y[a.rope->interleaved ? 2 * p + 1 : p + pairs];
            const double before = u;
            u = a.rope->magnitude * (std::cos(angle) * before - std::sin(angle) * w);
            w = a.rope->magnitude * (std::sin(angle) * before + std::cos(angle) * w);
        }
        return y;
    }

    void run(size_t n) {
        const Block& b = blocks_[n];
        const AttentionPart& a = b.attention;
        const FeedForward& f = b.feed_forward;
        const size_t rows = token_.size();
        Matrix values;
        for (size_t i = 0; i < rows; ++i) {
            Values x = stream(i, n, {});
            if (b.order != BlockOrder::post) norm(b.attention_norm, x, i, std::to_string(n) + "n", true);
            values.push_back(linear(a.value, x, true));
        }
        const size_t width = values[0].size() / a.kv_heads;
        context_.emplace_back(rows, Values(width * a.heads));
        read_.emplace_back(a.heads, Matrix(rows, Values(rows * width)));
        for (size_t h = 0; h < a.heads; ++h)
            for (size_t i = 0; i < rows; ++i) {
                const size_t kv = h / (a.heads / a.kv_heads);
                Values weights(rows, -INFINITY);
                for (size_t j = 0; j < rows; ++j) {
                    if (!rules_show(a.rules, i, j, rows, rows)) continue;
                    weights[j] = score({uint32_t(n), uint32_t(h), i, j}, {}, {});
                    const double c = a.rules.softcap;
                    if (c > 0) weights[j] = c * std::tanh(weights[j] / c);
                }
                softmax(weights);
                for (size_t j = 0; j < rows; ++j)
                    for (size_t c = 0; c < width; ++c)
                        context_[n][i][h * width + c] += read_[n][h][i][j * width + c] =
                            weights[j] * values[j][kv * width + c];
            }
        fed_.emplace_back(), hidden_.emplace_back();
        for (size_t i = 0; i < rows && is_present(f.up); ++i) {
            Values x = stream(i, n, {}, b.order != BlockOrder::parallel);
            if (b.order != BlockOrder::post) norm(b.feed_forward_norm, x, i, std::to_string(n) + "f", true);
            const bool gated = is_present(f.gate);
            Values hidden = linear(f.up, x, true);
            const Values gate = gated ? linear(f.gate, x, true) : Values();
            for (size_t c = 0; c < hidden.size(); ++c)
                hidden[c] = gated ? act(f.activation, gate[c]) * hidden[c] : act(f.activation, hidden[c]);
            fed_[n].push_back(linear(f.down, hidden, false));
            hidden_[n].push_back(hidden);
        }
    }

    std::vector<Block> blocks_;
    Norm embedding_norm_;
    Matrix token_, position_;
    std::vector<Matrix> context_, fed_, hidden_;  // by layer and row; fed_: without the last bias
    std::vector<std::vector<Matrix>> read_;       // by layer, head and row: [source, width] of its context
    std::map<size_t, Values> gains_;              // the prediction head's activation as products, by row
    std::map<std::pair<size_t, std::string>, double> scales_;
};

}  // namespace fovea
