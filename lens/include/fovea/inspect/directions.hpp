// A head without a text: the singular directions of its two circuits (Elhage et al., 2021; Millidge and
// Black, 2022). They show which tokens it looks for and what it writes.
//
//   QK = scale * N' Wq' Wk N   score = sum over directions of value * (query . from) (key . to)
//   OV = N' Wo Wv N            written = sum over directions of value * (source . from) to
//
// N is the norm before the layer, with its weight and LayerNorm's mean but without its scale, N' likewise the
// norm after attention. Norms of each head's q and k give their weights. Biases, learned positions and the
// rotation of rotary positions are left out: QK is that of a query and a key at the same position.
#pragma once

#include <fovea/model/checkpoint_model.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fovea {

// A token, or a class, and the dot product of a direction and its row of the embedding or the unembedding.
struct TokenAlong {
    uint32_t token = 0;
    double value = 0;
};
// The tokens with the largest and the smallest products, the outermost first.
struct DirectionTokens {
    std::vector<TokenAlong> high, low;
};
// One direction in the stream that is read by, and the one that it leads to.
struct SingularDirection {
    double value = 0;  // the singular value
    std::vector<double> from,
        to;  // [width], of length 1; the element of `from` of largest magnitude is above 0
    // By the embedding, for `to` of OV by the unembedding with the final norm's weight. Empty in a model that
    // reads pictures, or without an unembedding.
    DirectionTokens from_tokens, to_tokens;
};
// Largest singular values first.
struct HeadDirections {
    uint32_t layer = 0, head = 0;
    std::vector<SingularDirection> qk, ov;
};

// Takes the largest `count` directions of each circuit, fewer where its rank is lower, and `most` tokens at
// each end. Computes in float64. Rejects a layer and a head that do not exist. Safe from any thread.
Result<HeadDirections> head_directions(const CheckpointModel& model, uint32_t layer, uint32_t head,
                                       size_t count, size_t most);

// Returns the text of a token; if it is empty, the ID is shown.
using TokenName = std::function<std::string(uint32_t id)>;
// As lines, and as one line of JSON.
std::string directions_text(const HeadDirections& of, const TokenName& name);
std::string directions_json(const HeadDirections& of);

}  // namespace fovea
