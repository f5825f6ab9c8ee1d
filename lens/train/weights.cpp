// Describes a model's weights: which ones it has, their offsets, and their values before the first step.
#include <fovea/train/trainer.hpp>

#include <cmath>

#include "train/counter_stream.hpp"

namespace fovea {
namespace {

bool ends_with(const std::string& name, std::string_view end) { return name.ends_with(end); }

// Standard deviation of what is drawn; 0: not drawn but `constant`.
struct Start {
    double deviation = 0;
    float constant = 0;
};

Start start_of(const WeightEntry& entry, const TaskModel& model) {
    const double width = std::sqrt(double(model.width()));
    if (entry.name == "embedding.weight" || entry.name == "positions.weight") return {0.3, 0};
    // Small first logits: the loss begins near that of guessing.
    if (entry.name == "unembedding.weight") return {0.5 / width, 0};
    // Layers whose results are added to the residual 2 * layers times must not make it grow (Radford et al.,
    // GPT-2, 2019).
    if (ends_with(entry.name, "output.weight")) return {1 / width / std::sqrt(2.0 * model.layers), 0};
    if (ends_with(entry.name, "norm.weight")) return {0, 1};
    if (ends_with(entry.name, ".bias")) return {0, 0};
    return {1 / width, 0};
}

}  // namespace

std::vector<WeightEntry> weight_entries(const TaskModel& model) {
    std::vector<WeightEntry> entries;
    size_t offset = 0;
    const auto add = [&](std::string name, std::vector<uint64_t> shape) {
        size_t count = 1;
        for (const uint64_t extent : shape) count *= size_t(extent);
        entries.push_back({std::move(name), std::move(shape), offset, count});
        offset += count;
    };
    const uint64_t width = model.width();
    const auto add_norm = [&](const std::string& name) {
        if (!model.layer_norm) return;
        add(name + ".weight", {width});
        add(name + ".bias", {width});
    };
    add("embedding.weight", {model.vocabulary, width});
    if (model.positions == Positions::learned) add("positions.weight", {model.context, width});
    for (uint32_t layer = 0; layer < model.layers; ++layer) {
        const std::string prefix = "layers." + std::to_string(layer) + ".";
        add_norm(prefix + "norm");
        for (const char* part : {"query", "key", "value", "output"}) {
            add(prefix + part + ".weight", {width, width});
            const bool query_or_key = part[0] == 'q' || part[0] == 'k';
            if (query_or_key && model.query_key_bias) add(prefix + part + ".bias", {width});
        }
    }
    add_norm("final_norm");
    add("unembedding.weight", {model.vocabulary, width});
    return entries;
}

TrainState start_training(const Task& task, uint64_t seed) {
    TrainState state;
    state.options = task.options;
    state.seed = seed;
    const std::vector<WeightEntry> entries = weight_entries(task.model);
    const size_t count = entries.back().offset + entries.back().count;
    state.weights.assign(count, 0);
    state.mean.assign(count, 0);
    state.square.assign(count, 0);
    for (size_t n = 0; n < entries.size(); ++n) {
        const WeightEntry& entry = entries[n];
        const Start start = start_of(entry, task.model);
        const CounterStream random(StreamPurpose::weights, seed, 0, uint32_t(n));
        for (size_t i = 0; i < entry.count; ++i)
            state.weights[entry.offset + i] =
                start.deviation > 0 ? float(start.deviation * random.normal(uint32_t(i))) : start.constant;
    }
    return state;
}

}  // namespace fovea
