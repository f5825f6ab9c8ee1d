// Attention blocks of real models: the weights that <fovea/files.hpp> loads, as layers that run on any
// executor.
#pragma once

#include <fovea/files.hpp>
#include <fovea/model/attention_layers.hpp>

namespace fovea {

// GPT-2: joint projection in Conv1D layout, causal, scores / sqrt(head_dim). context_length 0: any input
// length.
GptAttention gpt2_layer(Gpt2Attention weights, uint64_t context_length = 0);

// Llama and its kin: rotary positions from `first_position` on, grouped heads, causal, scores /
// sqrt(head_dim).
GroupedQueryAttention llama_layer(LlamaAttention weights, uint64_t first_position = 0);

}  // namespace fovea
