// The parts of a block other than attention, in plain float32 loops.
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

}  // namespace fovea
