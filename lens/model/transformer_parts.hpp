// The parts of a block in plain float32 loops.
#pragma once

#include <fovea/model/transformer.hpp>

namespace fovea {

F32Tensor normalised(const Norm& norm, F32Tensor rows);
// Applies the embedding to rows of its table: scale, positions from `first` on, norm.
Result<F32Tensor> embedded(const Embedding& embedding, std::span<const uint32_t> ids, F32Tensor rows,
                           uint64_t first);
// Logits become c tanh(logit / c); with 0 they stay.
void cap_logits(double softcap, std::span<float> logits);
// In place, each then times the other's number where there is one.
void activate(Activation activation, std::span<float> values, const F32Tensor* other = nullptr);
// The rows' softmax, in place.
void softmax_rows(F32Tensor& rows);
// "LayerNorm", "RMSNorm"; "gelu", ...: as formulas say it.
const char* norm_name(NormKind kind);
const char* activation_name(Activation activation);

// Rejects a model and an input that do not fit together; the error names the block and the part.
Result<void> check_model(const Model& model, const ModelInput& input);

// One attention call, rows one after the other in the tutorials' order.
// `scale` and `dropout_p` in the place of the call's: scores may be divided, and PyTorch's rate is a float64.
// Takes float32 tensors without gaps, every mask, bias, sinks and explicit keep masks. Rejects lengths,
// packing, paging, strides, other types and counter-based dropout, which the strict order lacks. The
// bindings have the sizes that foveaPlanAttention would ask for.
Result<void> attend_strictly(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings,
                             ScoreScale scale, double dropout_p);

}  // namespace fovea
