// The cost of a quantized KV cache, head by head. If a head's keys and values are stored in a type, its
// weights and context change. If those of all heads are, the model's predictions change. A plan has a type
// for each key/value head.
//
// Sums are float64 in a fixed order, so they do not depend on the number of threads.
#pragma once

#include <fovea/model/cache_type.hpp>
#include <fovea/model/checkpoint_model.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fovea {

/// "q4_0 rotated".
std::string cache_type_name(const CacheType& type);
/// Bytes of an element.
double cache_type_bytes(const CacheType& type);
/// The types that heads of this size can have, except float32, and the rotated forms of those that have one.
std::vector<CacheType> cache_types(uint64_t head_width);

/// The keys and values of a layer as a type gives them back: [kv_heads, tokens, width] each.
struct KeysAndValues {
    std::vector<float> keys, values;
};

/// The changes by a type in one head whose queries, keys and values are the model's own. Means over rows.
struct CacheCost {
    double divergence = 0;  // Kullback-Leibler, of the weights from those with the type, nats
    double change = 0;      // |changed - own| / |own| of the context, of all rows together
};

/// A type for each key/value head.
struct CachePlan {
    double limit = 0;              // largest divergence of a query head's weights
    std::vector<CacheType> types;  // [layers, kv_heads]
    double bytes = 0;              // bytes of a token
    CacheCost worst;               // largest of a head
    double next = 0;               // divergence of the next token's probabilities with this plan, nats
};

/// The costs of a model over texts.
struct CacheCosts {
    std::vector<CacheType> types;
    uint64_t layers = 0, heads = 0, kv_heads = 0, head_width = 0;  // heads of a layer
    uint64_t texts = 0, tokens = 0;                                // counts of what was run
    std::vector<std::vector<CacheCost>> of;                        // by type: [layers, heads]
    std::vector<double> next;  // by type: as CachePlan::next, with the type in all layers
    std::optional<CachePlan> plan;

    double bytes(const CacheType& type) const;  // bytes of a token
};

/// The options of cache_costs().
struct CacheCostOptions {
    TraceOptions trace;
    std::optional<double> limit;           // makes a plan, see CachePlan::limit
    std::function<bool(double)> progress;  // told the share that is done; false cancels the run
};
/// Runs texts of token IDs; those of fewer than two tokens are left out. Rejects what run_model() rejects,
/// models without an unembedding or with masks of cells, and a corpus without a text.
Result<CacheCosts> cache_costs(const CheckpointModel& model, std::span<const std::vector<uint32_t>> texts,
                               const CacheCostOptions& options);
/// Bytes that it holds at most for a text of so many tokens, apart from the model's file.
uint64_t cache_costs_bytes(const CheckpointModel& model, uint64_t tokens);

/// A table for people, with the `top` heads that the smallest type costs most; and all as one object.
std::string cache_costs_text(const CacheCosts& costs, size_t top);
std::string cache_costs_json(const CacheCosts& costs);

}  // namespace fovea
