#include "train/float64_trainer.hpp"

#include <algorithm>
#include <cmath>

namespace fovea::testing_train {

Float64Trainer::Float64Trainer(const Task& task, uint64_t seed)
    : task_(task), seed_(seed), entries_(weight_entries(task.model)) {
    const TrainState start = start_training(task, seed);
    weights.assign(start.weights.begin(), start.weights.end());
    mean_.assign(weights.size(), 0);
    square_.assign(weights.size(), 0);
}

// Null where the model has no such weights.
const double* Float64Trainer::at(const std::string& name) const {
    for (const WeightEntry& entry : entries_)
        if (entry.name == name) return &weights[entry.offset];
    return nullptr;
}

double* Float64Trainer::gradient_at(const std::string& name, std::vector<double>& gradient) const {
    const double* place = at(name);
    return place ? &gradient[size_t(place - weights.data())] : nullptr;
}

// y = x W^T + b.
Float64Trainer::Rows Float64Trainer::project(const Rows& x, const std::string& name, uint32_t n_out) const {
    const uint32_t n_in = task_.model.width();
    const double* w = at(name + ".weight");
    const double* b = at(name + ".bias");
    Rows y(x.size() / n_in * n_out);
    for (size_t row = 0; row < x.size() / n_in; ++row)
        for (uint32_t o = 0; o < n_out; ++o) {
            double sum = b ? b[o] : 0;
            for (uint32_t i = 0; i < n_in; ++i) sum += x[row * n_in + i] * w[o * n_in + i];
            y[row * n_out + o] = sum;
        }
    return y;
}

void Float64Trainer::project_back(const Rows& x, const Rows& dy, const std::string& name, uint32_t n_out,
                                  Rows& dx, std::vector<double>& gradient) const {
    const uint32_t n_in = task_.model.width();
    const double* w = at(name + ".weight");
    double* dw = gradient_at(name + ".weight", gradient);
    double* db = gradient_at(name + ".bias", gradient);
    for (size_t row = 0; row < x.size() / n_in; ++row)
        for (uint32_t o = 0; o < n_out; ++o) {
            const double up = dy[row * n_out + o];
            if (db) db[o] += up;
            for (uint32_t i = 0; i < n_in; ++i) {
                dw[o * n_in + i] += up * x[row * n_in + i];
                dx[row * n_in + i] += up * w[o * n_in + i];
            }
        }
}

Float64Trainer::Rows Float64Trainer::norm(const Rows& x, const std::string& name) const {
    if (!task_.model.layer_norm) return x;
    const uint32_t width = task_.model.width();
    const double *w = at(name + ".weight"), *b = at(name + ".bias");
    Rows y(x.size());
    for (size_t first = 0; first < x.size(); first += width) {
        double mean = 0, variance = 0;
        for (uint32_t n = 0; n < width; ++n) mean += x[first + n] / width;
        for (uint32_t n = 0; n < width; ++n)
            variance += (x[first + n] - mean) * (x[first + n] - mean) / width;
        for (uint32_t n = 0; n < width; ++n)
            y[first + n] = (x[first + n] - mean) / std::sqrt(variance + 1e-5) * w[n] + b[n];
    }
    return y;
}

// From the definition: the derivative of element n by element m of its row, summed over n.
void Float64Trainer::norm_back(const Rows& x, const Rows& dy, const std::string& name, Rows& dx,
                               std::vector<double>& gradient) const {
    if (!task_.model.layer_norm) {
        for (size_t n = 0; n < dx.size(); ++n) dx[n] += dy[n];
        return;
    }
    const uint32_t width = task_.model.width();
    const double* w = at(name + ".weight");
    double *dw = gradient_at(name + ".weight", gradient), *db = gradient_at(name + ".bias", gradient);
    for (size_t first = 0; first < x.size(); first += width) {
        double mean = 0, variance = 0;
        for (uint32_t n = 0; n < width; ++n) mean += x[first + n] / width;
        for (uint32_t n = 0; n < width; ++n)
            variance += (x[first + n] - mean) * (x[first + n] - mean) / width;
        const double s = 1 / std::sqrt(variance + 1e-5);
        for (uint32_t n = 0; n < width; ++n) {
            const double centred = x[first + n] - mean, up = dy[first + n];
            dw[n] += up * centred * s;
            db[n] += up;
            for (uint32_t m = 0; m < width; ++m)
                dx[first + m] += up * w[n] *
                                 (s * ((n == m ? 1.0 : 0.0) - 1.0 / width) -
                                  s * s * s * centred * (x[first + m] - mean) / width);
        }
    }
}

void Float64Trainer::rotate(Rows& x, double direction) const {
    const TaskModel& m = task_.model;
    if (m.positions != Positions::rotary) return;
    const uint32_t half = m.head_dim / 2;
    for (uint32_t i = 0; i < m.context; ++i)
        for (uint32_t head = 0; head < m.heads; ++head)
            for (uint32_t n = 0; n < half; ++n) {
                const double angle = direction * i * std::pow(m.rope_theta, -2.0 * n / m.head_dim);
                double* pair = &x[i * m.width() + head * m.head_dim + n];
                const double a = pair[0], b = pair[half];
                pair[0] = a * std::cos(angle) - b * std::sin(angle);
                pair[half] = a * std::sin(angle) + b * std::cos(angle);
            }
}

void Float64Trainer::attend(Layer& layer) const {
    const TaskModel& m = task_.model;
    const uint32_t length = m.context, width = m.width();
    layer.weights.assign(size_t(m.heads) * length * length, 0);
    layer.context.assign(size_t(length) * width, 0);
    for (uint32_t head = 0; head < m.heads; ++head)
        for (uint32_t i = 0; i < length; ++i) {
            double* row = &layer.weights[(size_t(head) * length + i) * length];
            double sum = 0;
            for (uint32_t j = 0; j <= i; ++j) {
                double score = 0;
                for (uint32_t n = head * m.head_dim; n < (head + 1) * m.head_dim; ++n)
                    score += layer.q[i * width + n] * layer.k[j * width + n];
                row[j] = std::exp(score / std::sqrt(double(m.head_dim)));
                sum += row[j];
            }
            for (uint32_t j = 0; j <= i; ++j) {
                row[j] /= sum;
                for (uint32_t n = head * m.head_dim; n < (head + 1) * m.head_dim; ++n)
                    layer.context[i * width + n] += row[j] * layer.v[j * width + n];
            }
        }
}

void Float64Trainer::attend_back(const Layer& layer, const Rows& d_context, Rows& dq, Rows& dk,
                                 Rows& dv) const {
    const TaskModel& m = task_.model;
    const uint32_t length = m.context, width = m.width();
    const double scale = 1 / std::sqrt(double(m.head_dim));
    for (uint32_t head = 0; head < m.heads; ++head)
        for (uint32_t i = 0; i < length; ++i) {
            const double* row = &layer.weights[(size_t(head) * length + i) * length];
            std::vector<double> d_weight(i + 1);
            double mean = 0;
            for (uint32_t j = 0; j <= i; ++j) {
                for (uint32_t n = head * m.head_dim; n < (head + 1) * m.head_dim; ++n)
                    d_weight[j] += d_context[i * width + n] * layer.v[j * width + n];
                mean += row[j] * d_weight[j];
            }
            for (uint32_t j = 0; j <= i; ++j) {
                const double d_score = row[j] * (d_weight[j] - mean) * scale;
                for (uint32_t n = head * m.head_dim; n < (head + 1) * m.head_dim; ++n) {
                    dq[i * width + n] += d_score * layer.k[j * width + n];
                    dk[j * width + n] += d_score * layer.q[i * width + n];
                    dv[j * width + n] += row[j] * d_context[i * width + n];
                }
            }
        }
}

double Float64Trainer::sequence_loss(const Batch& batch, uint32_t sequence, double weight_sum,
                                     std::vector<double>* gradient) const {
    const TaskModel& m = task_.model;
    const uint32_t width = m.width(), length = m.context;
    const size_t first = size_t(sequence) * length;
    Rows x(size_t(length) * width);
    for (uint32_t i = 0; i < length; ++i)
        for (uint32_t n = 0; n < width; ++n)
            x[i * width + n] = at("embedding.weight")[batch.tokens[first + i] * width + n] +
                               (at("positions.weight") ? at("positions.weight")[i * width + n] : 0);
    std::vector<Layer> layers(m.layers);
    for (uint32_t l = 0; l < m.layers; ++l) {
        const std::string name = "layers." + std::to_string(l) + ".";
        Layer& layer = layers[l];
        layer.before = x;
        layer.input = norm(x, name + "norm");
        layer.q = project(layer.input, name + "query", width);
        layer.k = project(layer.input, name + "key", width);
        layer.v = project(layer.input, name + "value", width);
        rotate(layer.q, 1);
        rotate(layer.k, 1);
        attend(layer);
        const Rows y = project(layer.context, name + "output", width);
        for (size_t n = 0; n < x.size(); ++n) x[n] += y[n];
    }
    const Rows last = norm(x, "final_norm");
    Rows logits = project(last, "unembedding", m.vocabulary);

    double loss = 0;
    for (uint32_t i = 0; i < length; ++i) {
        double* row = &logits[size_t(i) * m.vocabulary];
        const double weight = batch.loss_weights[first + i] / weight_sum;
        const double largest = *std::max_element(row, row + m.vocabulary);
        double sum = 0;
        for (uint32_t n = 0; n < m.vocabulary; ++n) sum += std::exp(row[n] - largest);
        loss += weight * (std::log(sum) + largest - row[batch.targets[first + i]]);
        for (uint32_t n = 0; n < m.vocabulary; ++n) {
            const double likely = std::exp(row[n] - largest) / sum;
            row[n] = weight * (likely - (n == batch.targets[first + i] ? 1 : 0));
        }
    }
    if (!gradient) return loss;

    Rows up(x.size()), d_last(x.size());
    project_back(last, logits, "unembedding", m.vocabulary, d_last, *gradient);
    norm_back(x, d_last, "final_norm", up, *gradient);
    for (uint32_t l = m.layers; l-- > 0;) {
        const std::string name = "layers." + std::to_string(l) + ".";
        const Layer& layer = layers[l];
        Rows d_context(x.size()), dq(x.size()), dk(x.size()), dv(x.size()), d_input(x.size());
        project_back(layer.context, up, name + "output", width, d_context, *gradient);
        attend_back(layer, d_context, dq, dk, dv);
        rotate(dq, -1);
        rotate(dk, -1);
        project_back(layer.input, dq, name + "query", width, d_input, *gradient);
        project_back(layer.input, dk, name + "key", width, d_input, *gradient);
        project_back(layer.input, dv, name + "value", width, d_input, *gradient);
        norm_back(layer.before, d_input, name + "norm", up, *gradient);
    }
    for (uint32_t i = 0; i < length; ++i)
        for (uint32_t n = 0; n < width; ++n) {
            gradient_at("embedding.weight", *gradient)[batch.tokens[first + i] * width + n] +=
                up[i * width + n];
            if (double* places = gradient_at("positions.weight", *gradient))
                places[i * width + n] += up[i * width + n];
        }
    return loss;
}

double Float64Trainer::loss(const Batch& batch, std::vector<double>* gradient) const {
    double weight_sum = 0, loss = 0;
    for (const float weight : batch.loss_weights) weight_sum += weight;
    if (gradient) gradient->assign(weights.size(), 0);
    for (uint32_t row = 0; row < batch.rows; ++row) loss += sequence_loss(batch, row, weight_sum, gradient);
    return loss;
}

double Float64Trainer::step() {
    const TaskRecipe& recipe = task_.recipe;
    std::vector<double> gradient;
    const double before = loss(training_batch(task_, seed_, step_), &gradient);
    double length = 0;
    for (const double g : gradient) length += g * g;
    length = std::sqrt(length);
    const double shorten = length > recipe.longest_gradient ? recipe.longest_gradient / length : 1;
    ++step_;
    const double rate = recipe.learning_rate * std::min(1.0, double(step_) / recipe.warm_up_steps);
    for (size_t n = 0; n < weights.size(); ++n) {
        const double g = gradient[n] * shorten;
        mean_[n] = recipe.beta1 * mean_[n] + (1 - recipe.beta1) * g;
        square_[n] = recipe.beta2 * square_[n] + (1 - recipe.beta2) * g * g;
        const double corrected =
            rate * std::sqrt(1 - std::pow(recipe.beta2, step_)) / (1 - std::pow(recipe.beta1, step_));
        weights[n] -= corrected * mean_[n] / (std::sqrt(square_[n]) + recipe.epsilon);
    }
    return before;
}

}  // namespace fovea::testing_train
