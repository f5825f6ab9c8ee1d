#include <fovea/model/engine_executor.hpp>

#include <array>
#include <limits>

namespace fovea {
namespace {

// The buffers of one call. The engine only reads what is an input, so constness may go.
class Bindings {
  public:
    void input(FoveaBinding binding, const F32Tensor& tensor) {
        buffers_[binding] = {const_cast<float*>(tensor.values.data()), tensor.values.size() * sizeof(float)};
    }
    void output(FoveaBinding binding, F32Tensor& tensor) { input(binding, tensor); }
    void input(FoveaBinding binding, std::span<const uint8_t> bytes) {
        buffers_[binding] = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
    }
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

Result<Attention> describe(const AttentionProblem& problem, FoveaKernel kernel) {
    const Shape &q = problem.q->shape, &k = problem.k->shape, &v = problem.v->shape;
    std::array<uint32_t, 5> sizes{};
    const std::array<std::pair<const char*, uint64_t>, 5> wide = {
        {{"batch", q[0]}, {"heads_q", q[1]}, {"heads_kv", k[1]}, {"dim_qk", q[3]}, {"dim_v", v[3]}}};
    for (size_t i = 0; i < sizes.size(); ++i) {
        const Result<uint32_t> size = narrow(wide[i].first, wide[i].second);
        if (!size) return size.error();
        sizes[i] = *size;
    }
    Attention call;
    call.batch(sizes[0]).heads(sizes[1], sizes[2]).lengths(q[2], k[2]).dims(sizes[3], sizes[4]);
    call.scale(problem.scale.factor()).softcap(problem.softcap).outputs(problem.outputs).kernel(kernel);
    if (problem.causal) call.causal(problem.align);
    if (problem.bias != nullptr) {
        call.desc.bias.present = 1;
        call.desc.bias.type = FOVEA_F32;
        call.desc.bias.batch = static_cast<uint32_t>(problem.bias->shape[0]);
        call.desc.bias.heads = static_cast<uint32_t>(problem.bias->shape[1]);
    }
    if (problem.dropout_p > 0.0) {
        call.dropout(static_cast<float>(problem.dropout_p), problem.dropout_seed, problem.dropout_offset);
    }
    if (problem.keep != nullptr) {
        call.desc.keep.present = 1;
        call.desc.keep.type = FOVEA_U8;
        call.desc.keep.batch = sizes[0];
        call.desc.keep.heads = sizes[1];
    }
    return call;
}

// A mask as bytes, in whole 32-bit words as the engine reads it.
std::vector<uint8_t> bytes_of(const F32Tensor& mask) {
    std::vector<uint8_t> bytes((mask.values.size() + 3) / 4 * 4);
    for (size_t i = 0; i < mask.values.size(); ++i) bytes[i] = mask.values[i] != 0.0f ? 1 : 0;
    return bytes;
}

struct OutputSlot {
    uint32_t bit;
    FoveaBinding binding;
    F32Tensor AttentionResult::*tensor;
};
constexpr OutputSlot kOutputs[] = {
    {FOVEA_OUTPUT_O, FOVEA_BIND_O, &AttentionResult::o},
    {FOVEA_OUTPUT_LSE, FOVEA_BIND_LSE, &AttentionResult::lse},
    {FOVEA_OUTPUT_SCORES, FOVEA_BIND_SCORES, &AttentionResult::scores},
    {FOVEA_OUTPUT_CAPPED, FOVEA_BIND_CAPPED, &AttentionResult::capped},
    {FOVEA_OUTPUT_MASKED, FOVEA_BIND_MASKED, &AttentionResult::masked},
    {FOVEA_OUTPUT_WEIGHTS, FOVEA_BIND_WEIGHTS, &AttentionResult::weights},
};

Shape output_shape(const AttentionProblem& problem, FoveaBinding binding) {
    Shape shape(problem.q->shape.begin(), problem.q->shape.begin() + 3);
    if (binding == FOVEA_BIND_O) shape.push_back(problem.v->shape[3]);
    if (binding != FOVEA_BIND_O && binding != FOVEA_BIND_LSE) shape.push_back(problem.k->shape[2]);
    return shape;
}

}  // namespace

std::string EngineExecutor::name() const { return engine_.device().name; }

Result<AttentionResult> EngineExecutor::attention(const AttentionProblem& problem) {
    const Result<Attention> call = describe(problem, kernel_);
    if (!call) return call.error();
    Bindings bindings;
    bindings.input(FOVEA_BIND_Q, *problem.q);
    bindings.input(FOVEA_BIND_K, *problem.k);
    bindings.input(FOVEA_BIND_V, *problem.v);
    if (problem.bias != nullptr) bindings.input(FOVEA_BIND_BIAS, *problem.bias);
    std::vector<uint8_t> keep;
    if (problem.keep != nullptr) {
        keep = bytes_of(*problem.keep);
        bindings.input(FOVEA_BIND_KEEP, keep);
    }
    AttentionResult result;
    for (const OutputSlot& slot : kOutputs) {
        if ((problem.outputs & slot.bit) == 0) continue;
        result.*slot.tensor = F32Tensor(output_shape(problem, slot.binding));
        bindings.output(slot.binding, result.*slot.tensor);
    }
    Result<RunReport> report = engine_.attention(call->desc, bindings.get());
    if (!report) return report.error();
    last_attention_ = std::move(*report);
    return result;
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
    // Without positions the tables are [B, L, dim / 2]: the same for every batch entry.
    const RopeTables tables = rope_tables(rope, x.shape[2], x.shape[3]);
    F32Tensor cos({x.shape[0], x.shape[2], x.shape[3] / 2}), sin = cos;
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
