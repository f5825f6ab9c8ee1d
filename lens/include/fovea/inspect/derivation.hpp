// One attention weight taken apart: every number between q, k and what the cell adds to the context.
#pragma once

#include <fovea/fovea.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A cell of one head's weight matrix.
struct Cell {
    uint32_t batch = 0, head = 0;
    uint64_t query = 0, key = 0;
};

struct DerivationTerm {                // one product of the score
    float q, k, product, running_sum;  // product = q * k; the sum so far, this product included
};

struct DerivationValue {                 // one element of the output
    float value, contribution, context;  // v_j[d]; the weight times it; o_i[d], summed over all keys
};

// In float32 and in the plain order, whatever the precision of the forward pass.
struct Derivation {
    Cell cell;
    uint32_t kv_head = 0;  // the key/value head that this query head reads
    int64_t position = 0;  // the position of the query among the keys

    std::vector<DerivationTerm> terms;  // one for each of D
    float dot = 0.0f, scale = 0.0f, score = 0.0f;
    float softcap = 0.0f, capped = 0.0f;  // softcap 0: there is none and capped is the score
    bool has_alibi = false, has_bias = false, has_sink = false, has_dropout = false;
    float alibi_slope = 0.0f, alibi = 0.0f;  // alibi = slope * (key - position)
    float bias = 0.0f;
    std::string hidden_by;  // empty: the query sees the key. "causal: key 4 comes after position 2"
    float masked = 0.0f;    // -inf where hidden

    uint32_t visible_keys = 0;            // keys that this row attends to
    float row_max = 0.0f;                 // maximum of the row's masked scores and the sink
    float exponential = 0.0f;             // exp(masked - row_max)
    float sink = 0.0f, sink_term = 0.0f;  // sink_term = exp(sink - row_max)
    float denominator = 0.0f, lse = 0.0f;
    float weight = 0.0f;  // exponential / denominator
    bool kept = true;
    float keep_scale = 1.0f, dropped_weight = 0.0f;  // the weight after dropout, if there is any
    std::vector<DerivationValue> values;             // one for each of Dv
};

// Recomputes the row of the cell from host memory; needs the bindings that the description needs, outputs
// left out. `bindings` has FOVEA_BIND_COUNT elements. Rejects a cell outside the matrix and buffers that are
// too small. The cost is that of one row. Thread-safe.
Result<Derivation> derive_cell(const FoveaAttentionDesc& desc, const FoveaHostBuffer* bindings,
                               const Cell& cell);
// Returns the weights of the cell's whole row, after dropout: [keys], 0 where a key is masked. The same
// errors, cost and thread safety; the cell's key does not matter, but must exist.
Result<std::vector<float>> row_weights(const FoveaAttentionDesc& desc, const FoveaHostBuffer* bindings,
                                       const Cell& cell);

struct DerivationStyle {                      // how a derivation is written
    std::string_view query_token, key_token;  // empty: "query 1", "key 4"
    size_t most_terms = 16;  // for a wide head, only this many of the largest products are shown, ordered by
                             // d
    int decimals = 4;
};
// Returns lines for a person, each step with its values.
std::string derivation_text(const Derivation& derivation, const DerivationStyle& style = {});
// d,q,k,product,running_sum and below it the steps; values with the digits that read back to the same
// float32.
std::string derivation_csv(const Derivation& derivation);
// A script that computes the weight again, with no library but the standard one.
std::string derivation_python(const Derivation& derivation);
// An aligned block for a paper.
std::string derivation_latex(const Derivation& derivation, const DerivationStyle& style = {});

}  // namespace fovea
