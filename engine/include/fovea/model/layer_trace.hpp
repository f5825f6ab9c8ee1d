// The named intermediate results of one forward pass, in the order in which they were computed.
#pragma once

#include <fovea/model/f32_tensor.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

struct LayerStage {       // one intermediate result
    std::string name;     // "queries", "head0.weights", ...
    std::string formula;  // "queries = X W_query", in ASCII
    F32Tensor tensor;
};

// Says which results a caller wants and holds them afterwards. A layer asks before it computes a matrix for
// it: what is not wanted is never held. Not thread-safe.
class LayerTrace {
  public:
    static LayerTrace nothing() { return LayerTrace(Mode::nothing); }
    static LayerTrace everything() { return LayerTrace(Mode::everything); }
    static LayerTrace only(std::set<std::string, std::less<>> names) {
        LayerTrace trace(Mode::listed);
        trace.names_ = std::move(names);
        return trace;
    }

    // `name` without the prefix in force.
    bool wants(std::string_view name) const;
    // Keeps the tensor if it is wanted. The first form copies it only then, under another shape of as many
    // elements.
    void record(std::string_view name, std::string formula, const F32Tensor& tensor, Shape shape);
    void record(std::string_view name, std::string formula, F32Tensor&& tensor);

    // Put before the names (also at the head of the formulas) that are recorded from now on: "head0."
    void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

    const std::vector<LayerStage>& stages() const { return stages_; }
    std::vector<LayerStage> take_stages() { return std::move(stages_); }
    // By full name; null when there is none. Valid until the next record().
    const F32Tensor* find(std::string_view full_name) const;

  private:
    enum class Mode { nothing, everything, listed };
    explicit LayerTrace(Mode mode) : mode_(mode) {}

    Mode mode_;
    std::set<std::string, std::less<>> names_;
    std::string prefix_;
    std::vector<LayerStage> stages_;
};

}  // namespace fovea
