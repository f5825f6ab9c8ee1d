// From the tensors of a file to one attention call, and from its results back to tensors.
#pragma once

#include <fovea/files.hpp>
#include <fovea/runtime.hpp>

#include <memory>
#include <string>
#include <vector>

namespace fovea::app {

// Owns what the bindings point to. Inputs of other float types are converted; `notes` says so.
struct AttentionCall {
    FoveaAttentionDesc desc = foveaAttentionDesc();
    HostBindings bindings{};
    std::vector<std::vector<std::byte>> storage;        // of inputs
    std::vector<std::unique_ptr<std::byte[]>> results;  // of outputs
    std::vector<std::string> notes;
    size_t rank = 4;          // of q: results have as many axes
    bool rows_first = false;  // layout [B, L, H, D]
};

// Reads q, k, v and, where present, mask, bias, sinks, alibi, kv_lengths, q_lengths, keep. `rows_first`: q,
// k, v are [B, L, H, D] instead of [B, H, L, D]. Tensors of rank 3 have no batch axis, of rank 2 neither
// batch nor heads.
Result<void> read_attention_tensors(const TensorSet& file, bool rows_first, AttentionCall& call);

// Says in `notes` which tensors of the file no part of the call reads: a name may be misspelt.
void note_unused_tensors(const TensorSet& file, AttentionCall& call);

// Allocates the outputs that call.desc asks for, or says which is too large; call after the options were
// applied.
Result<void> allocate_outputs(AttentionCall& call);

// The outputs as tensors named o, lse, scores, ...
Result<TensorSet> output_tensors(const AttentionCall& call);

}  // namespace fovea::app
