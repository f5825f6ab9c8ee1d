// From the tensors of a file to one attention call, and from its results back to tensors.
#pragma once

#include <fovea/files.hpp>
#include <fovea/runtime.hpp>

#include <array>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::app {

// Memory of zeros that takes no page until it is written: ranks that write no file have outputs, too.
struct ZeroedMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
};

// An attention call that owns the memory of its bindings. Inputs stay in the file if they have the engine's
// layout there. Other float types are converted, which `notes` reports.
struct AttentionCall {
    FoveaAttentionDesc desc = foveaAttentionDesc();
    HostBindings bindings{};
    std::array<std::shared_ptr<const void>, FOVEA_BIND_COUNT> files;  // owners of inputs that stay in files,
                                                                      // by binding
    std::vector<std::vector<std::byte>> storage;                      // memory of all other inputs
    std::vector<std::unique_ptr<std::byte, ZeroedMemory>> results;    // memory of outputs
    std::vector<std::string> notes;  // with names as the file has them: untrusted text
    size_t rank = 4;                 // rank of q: results have as many axes
    bool rows_first = false;         // layout [B, L, H, D]
};

// Reads q, k, v and, where present, mask, bias, sinks, alibi, kv_lengths, q_lengths, dropout_mask, and what
// the file's metadata say of the call (files/attention_notes.hpp), which a note repeats. `rows_first`: q, k,
// v are [B, L, H, D] instead of [B, H, L, D]; nothing: as the metadata say. Tensors of rank 3 have no batch
// axis, of rank 2 neither batch nor heads.
Result<void> read_attention_tensors(const TensorSet& file, std::optional<bool> rows_first,
                                    AttentionCall& call);

// The element type of a file that holds values of the engine's `type`.
FoveaDtype element_type_of(FoveaDtype type);

// Points a binding at a tensor, or at a copy of it in the call's storage. Float16 and bfloat16 stay what they
// are, float64 becomes float32, which a note says; keep_as_f32 makes float32 of them all.
Result<FoveaDtype> keep_float(AttentionCall& call, FoveaBinding binding, const Tensor& tensor);
Result<void> keep_as_f32(AttentionCall& call, FoveaBinding binding, const Tensor& tensor);

// Appends the rows of k and v, rotated or not, to an empty cache of `type`. The cache takes their place.
// `notes` says how large it is.
Result<void> cache_keys_and_values(AttentionCall& call, FoveaDtype type, bool rotated, Engine& engine);

// Says in `notes` which tensors of the file no part of the call reads: a name may be misspelt. `also`: read
// by the caller itself.
void note_unused_tensors(const TensorSet& file, AttentionCall& call,
                         std::initializer_list<std::string_view> also = {});

// Allocates the outputs that call.desc asks for, or says which is too large; call after the options were
// applied.
Result<void> allocate_outputs(AttentionCall& call);

// Memory of `size_bytes` for a binding, zero-filled; the error names `option` and `name`.
Result<void> allocate_result(AttentionCall& call, FoveaBinding binding, uint64_t size_bytes,
                             const char* option, std::string_view name);

// The outputs as tensors named o, lse, scores, ...
Result<TensorSet> output_tensors(const AttentionCall& call);

}  // namespace fovea::app
