#include <fovea/model/layer_trace.hpp>

namespace fovea {

bool LayerTrace::wants(std::string_view name) const {
    if (mode_ != Mode::listed) return mode_ == Mode::everything;
    return names_.contains(prefix_ + std::string(name));
}

void LayerTrace::record(std::string_view name, std::string formula, const F32Tensor& tensor, Shape shape) {
    if (wants(name)) record(name, std::move(formula), F32Tensor(std::move(shape), tensor.values));
}

void LayerTrace::record(std::string_view name, std::string formula, F32Tensor&& tensor) {
    if (wants(name))
        stages_.push_back({prefix_ + std::string(name), prefix_ + std::move(formula), std::move(tensor)});
}

const F32Tensor* LayerTrace::find(std::string_view full_name) const {
    for (const LayerStage& stage : stages_) {
        if (stage.name == full_name) return &stage.tensor;
    }
    return nullptr;
}

}  // namespace fovea
