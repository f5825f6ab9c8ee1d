#include "train/step_parts.hpp"

#include <cmath>
#include <vector>

#include "train/arithmetic.hpp"

namespace fovea {

LossReport cross_entropy(const Batch& batch, uint32_t vocabulary, const float* logits, float* dlogits,
                         float* probabilities, uint32_t* said) {
    double weight_sum = 0, objective = 0, loss = 0;
    uint64_t scored = 0, right = 0;
    for (const float weight : batch.loss_weights) weight_sum += weight;
    std::vector<float> powers(vocabulary);
    const size_t places = batch.tokens.size();
    for (size_t place = 0; place < places; ++place) {
        const float* row = logits + place * vocabulary;
        const uint32_t target = batch.targets[place];
        uint32_t likeliest = 0;
        for (uint32_t n = 1; n < vocabulary; ++n)
            if (row[n] > row[likeliest]) likeliest = n;
        const float largest = row[likeliest];
        for (uint32_t n = 0; n < vocabulary; ++n) powers[n] = exponential(row[n] - largest);
        const float sum = sum_of(vocabulary, [&](uint32_t n) { return powers[n]; });
        if (said) said[place] = likeliest;
        if (probabilities)
            for (uint32_t n = 0; n < vocabulary; ++n) probabilities[place * vocabulary + n] = powers[n] / sum;
        const float weight = batch.loss_weights[place];
        if (weight > 0 || batch.scored[place]) {
            const double surprise = std::log(double(sum)) - (double(row[target]) - double(largest));
            objective += weight * surprise;
            if (batch.scored[place]) {
                loss += surprise;
                ++scored;
                right += likeliest == target;
            }
        }
        if (!dlogits) continue;
        const float share = weight > 0 ? float(weight / weight_sum) : 0.0f;
        const float factor = share / sum;
        for (uint32_t n = 0; n < vocabulary; ++n) dlogits[place * vocabulary + n] = powers[n] * factor;
        dlogits[place * vocabulary + target] -= share;
    }
    return {objective / weight_sum, loss / double(scored), double(right) / double(scored)};
}

}  // namespace fovea
