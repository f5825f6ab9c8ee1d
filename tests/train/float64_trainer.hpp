// The same model and the same steps in float64 and plain loops, written from the formulas and without the
// engine: what the trainer is held to.
#pragma once

#include <fovea/train.hpp>

#include <string>
#include <vector>

namespace fovea::testing_train {

class Float64Trainer {
  public:
    explicit Float64Trainer(const Task& task, uint64_t seed);

    // Mean loss over the batch's loss weights. gradient, of the weights' layout, may be null.
    double loss(const Batch& batch, std::vector<double>* gradient) const;
    // One step of the run; the loss of its batch before it.
    double step();

    std::vector<double> weights;

  private:
    struct Layer {  // The values that the backward pass needs, [rows, width] or [heads, context, context].
        std::vector<double> before, input, q, k, v, context, weights;
    };
    using Rows = std::vector<double>;
    const double* at(const std::string& name) const;
    Rows project(const Rows& x, const std::string& name, uint32_t n_out) const;
    Rows norm(const Rows& x, const std::string& name) const;
    void rotate(Rows& x, double direction) const;
    void attend(Layer& layer) const;
    void project_back(const Rows& x, const Rows& dy, const std::string& name, uint32_t n_out, Rows& dx,
                      std::vector<double>& gradient) const;
    void norm_back(const Rows& x, const Rows& dy, const std::string& name, Rows& dx,
                   std::vector<double>& gradient) const;
    void attend_back(const Layer& layer, const Rows& d_context, Rows& dq, Rows& dk, Rows& dv) const;
    double sequence_loss(const Batch& batch, uint32_t row, double weight_sum,
                         std::vector<double>* gradient) const;
    double* gradient_at(const std::string& name, std::vector<double>& gradient) const;

    Task task_;
    uint64_t seed_;
    uint32_t step_ = 0;
    std::vector<WeightEntry> entries_;
    std::vector<double> mean_, square_;
};

}  // namespace fovea::testing_train
