#include <fovea/model/engine_executor.hpp>

#include <limits>

#include "model/strict_attention.hpp"

namespace fovea {
namespace {

// The buffers of one call. The engine only reads what is an input, so constness may go.
class Bindings {
  public:
    void input(FoveaBinding binding, const F32Tensor& tensor) {
        buffers_[binding] = {const_cast<float*>(tensor.values.data()), tensor.values.size() * sizeof(float)};
    }
    void output(FoveaBinding binding, F32Tensor& tensor) { input(binding, tensor); }
    const HostBindings& get() const { return buffers_; }

  private:
    HostBindings buffers_{};
};

// The description counts heads, batch entries and widths in 32 bits.
Result<uint32_t> narrow(const char* field, uint64_t value) {
    if (value <= std::numeric_limits<uint32_t>::max()) return static_cast<uint32_t>(value);
    return Error{FOVEA_LIMIT_EXCEEDED, field,
                 std::string(field) + " is " + std::to_string(value) + "; the limit is 4294967295"};
}

}  // namespace

std::string EngineExecutor::name() const { return engine_.device().name; }

Result<AttentionResult> EngineExecutor::attention(const AttentionProblem& problem) {
    const Result<std::unique_ptr<ProblemCall>> made = problem_call(problem);
    if (!made) return made.error();
    ProblemCall& call = **made;
    Result<RunReport> report = engine_.attention(call.call.kernel(kernel_), call.bindings);
    if (!report) return report.error();
    last_attention_ = std::move(*report);
    return std::move(call.result);
}

Result<F32Tensor> EngineExecutor::linear(const F32Tensor& x, const Linear& layer) {
    const Result<uint32_t> n_in = narrow("n_in", layer.d_in()), n_out = narrow("n_out", layer.d_out());
    if (!n_in) return n_in.error();
    if (!n_out) return n_out.error();
    FoveaLinearDesc desc{};
    desc.struct_size = sizeof desc;
    desc.n_in = *n_in;
    desc.n_out = *n_out;
    desc.rows = x.rows();
    desc.has_bias = layer.has_bias() ? 1 : 0;
    desc.weight_is_in_out = layer.layout == WeightLayout::in_out ? 1 : 0;
    Shape shape = x.shape;
    shape.back() = layer.d_out();
    F32Tensor y(std::move(shape));
    Bindings bindings;
    bindings.input(FOVEA_BIND_X, x);
    bindings.input(FOVEA_BIND_WEIGHT, layer.weight);
    if (layer.has_bias()) bindings.input(FOVEA_BIND_BIAS, layer.bias);
    bindings.output(FOVEA_BIND_Y, y);
    const Result<RunReport> report = engine_.linear(desc, bindings.get());
    if (!report) return report.error();
    return y;
}

Result<F32Tensor> EngineExecutor::rope(const F32Tensor& x, const Rope& rope) {
    const Result<uint32_t> batch = narrow("batch", x.shape[0]), heads = narrow("heads", x.shape[1]);
    const Result<uint32_t> dim = narrow("dim", x.shape[3]);
    if (!batch) return batch.error();
    if (!heads) return heads.error();
    if (!dim) return dim.error();
    FoveaRopeDesc desc{};
    desc.struct_size = sizeof desc;
    desc.batch = *batch;
    desc.heads = *heads;
    desc.dim = *dim;
    desc.len = x.shape[2];
    desc.interleaved = rope.interleaved ? 1 : 0;
    desc.rotary_dim = uint32_t(rope.rotated(x.shape[3]));
    // Without positions the tables are [B, L, rotary_dim / 2]: the same for every batch entry.
    const RopeTables tables = rope_tables(rope, x.shape[2], x.shape[3]);
    F32Tensor cos({x.shape[0], x.shape[2], desc.rotary_dim / 2}), sin = cos;
    for (size_t i = 0; i < cos.values.size(); ++i) {
        cos.values[i] = tables.cos.values[i % tables.cos.values.size()];
        sin.values[i] = tables.sin.values[i % tables.sin.values.size()];
    }
    F32Tensor y(x.shape);
    Bindings bindings;
    bindings.input(FOVEA_BIND_X, x);
    bindings.input(FOVEA_BIND_COS, cos);
    bindings.input(FOVEA_BIND_SIN, sin);
    bindings.output(FOVEA_BIND_Y, y);
    const Result<RunReport> report = engine_.rope(desc, bindings.get());
    if (!report) return report.error();
    return y;
}

}  // namespace fovea
