// Sums up a head over many texts, and chooses the texts that show it. No matrix [tokens, tokens] is held:
// weights are made from q and k by blocks of rows.
//
// Sums are float64 in a fixed order, so they do not depend on the number of threads. Metrics are defined as
// HeadVis defines them (Luger, Kamath et al., 2026), so that both can be compared.
#pragma once

#include <fovea/inspect/cache_cost.hpp>
#include <fovea/model/token_scores.hpp>
#include <fovea/model/trace.hpp>

#include <cstdint>
#include <queue>
#include <span>
#include <string_view>
#include <vector>

namespace fovea {

/// The rows of a text that a mean counts, by its token IDs.
struct SurveyCounts {
    uint64_t rows = 0;      // tokens
    uint64_t pairs = 0;     // tokens with one before them
    uint64_t repeats = 0;   // tokens that occurred before
    uint64_t followed = 0;  // repeats whose earlier occurrence is not the token just before

    SurveyCounts& operator+=(const SurveyCounts& other);
};
/// Counts the rows of one text, of which `ids` are the tokens. Safe from any thread.
SurveyCounts survey_counts(std::span<const uint32_t> ids);

/// One head's sums over the rows of texts. Query i, key j, weight w.
struct HeadSums {
    double self = 0, previous = 0, first = 0;   // w of keys i, i - 1 and 0; the last two without row 0
    double entropy = 0;                         // -w ln w, nats
    double distance = 0, squared_distance = 0;  // w |i - j|, w |i - j|^2
    double induction = 0;                       // w of at least 0.01 on keys after earlier occurrences
    double followed = 0, same = 0;              // as TokenScores::induction and ::same
    double largest = 0;                         // w, without row 0 and key 0: "activation"

    // Adds sums; the larger `largest` stays.
    HeadSums& operator+=(const HeadSums& other);
};

/// Means of the sums. NaN where nothing was counted.
struct HeadMetrics {
    double self = 0, previous = 0, entropy = 0, distance = 0, distance_variance = 0, induction = 0;
    TokenScores scores;  // the project's own
};
HeadMetrics head_metrics(const HeadSums& sums, const SurveyCounts& counts);
/// A metric by its names: HeadVis's key, and a label for people.
struct HeadMetricName {
    const char *key, *label, *about;
    double HeadMetrics::*value;
};
std::span<const HeadMetricName> head_metric_names();
/// Returns head_job() of the scores, "the token itself" where that is the clearest, or "no clear role".
std::string_view survey_role(const HeadMetrics& metrics);
/// The share that decided the role, 0 to 1: a mean weight.
double role_share(const HeadMetrics& metrics);

/// The weights of a head's rows that are worth drawing: of each row the eight largest of at least 0.005.
struct SparseRows {
    std::vector<uint8_t> counts;   // by row
    std::vector<uint32_t> keys;    // row by row, ascending
    std::vector<uint16_t> values;  // ten-thousandths, rounded
};

/// One layer of a trace on a text, ready for the sums. Not thread-safe; the engine's threads are used. The
/// trace and the engine must outlive it. Rejects layers with a mask of cells, a bias or dropout.
class LayerSurvey {
  public:
    static Result<LayerSurvey> open(Trace& trace, uint32_t layer, std::span<const uint32_t> ids,
                                    Runner& engine);
    /// Returns the sums of all heads.
    Result<std::vector<HeadSums>> sums();
    Result<SparseRows> sparse_rows(uint32_t head);
    /// Sums over the rows of a head, with other keys and values. They are of the divergence of its weights
    /// from theirs, and of the squares of its context and of the change.
    struct CacheSums {
        double divergence = 0, context = 0, change = 0;
    };
    /// Returns the sums of all heads for each of `caches`.
    Result<std::vector<std::vector<CacheSums>>> cache_sums(std::span<const KeysAndValues> caches);
    /// The layer's attention call.
    const PreparedAttention& call() const { return call_; }
    /// Bytes that it holds at most for a text, apart from the trace.
    static uint64_t bytes(uint64_t tokens, uint64_t heads, uint64_t kv_heads, uint64_t head_width);

  private:
    // Weights of some heads and of rows [first, first + rows): [heads, rows, keys].
    struct Block {
        uint64_t first, rows, keys;
        const float* weights;
        const float* context;        // [heads, rows, width of a value], if FOVEA_OUTPUT_O was asked for
        const FoveaRowStats* stats;  // if FOVEA_OUTPUT_ROW_STATS was
    };
    // use(block, again): again(cache) is the block with other keys and values.
    template <class Use>
    Result<void> each_block(uint32_t first_head, uint32_t heads, uint32_t outputs, Use use);

    PreparedAttention call_;
    std::span<const uint32_t> ids_;
    std::vector<uint32_t> before_;  // for each token its last earlier occurrence + 1; 0: none
    Runner* engine_ = nullptr;
    std::vector<float> weights_, context_, other_weights_, other_context_;
    std::vector<FoveaRowStats> stats_;
};

/// The texts that show a head: of each fifth of the activations three random ones, of the highest fifth the
/// ten highest. Which texts may be drawn is decided before anything runs, so that only these are kept.
class HeadSampler {
  public:
    static constexpr uint32_t kIntervals = 5, kPerInterval = 3, kHighest = 10;

    /// `head` counts through all layers. `texts` is the number of texts of the corpus.
    HeadSampler(uint64_t head, uint64_t texts);
    /// True if the text may become a sample after the texts that were added: add() it, with its sparse rows
    /// kept. Texts are added in order. Adding one that is not wanted changes nothing.
    bool wants(uint64_t text, float activation) const;
    void add(uint64_t text, float activation);

    struct Sample {
        uint64_t text;
        uint32_t interval;  // 1 to kIntervals
        float activation;
    };
    /// `activations` has those of all texts that ran. Samples from the lowest interval to the highest.
    std::vector<Sample> samples(std::vector<float> activations) const;

  private:
    uint64_t rank(uint64_t text) const;
    struct Kept {
        float activation;
        uint64_t text;
        // The least one is on top; of equals the later text.
        friend bool operator<(const Kept& a, const Kept& b) {
            return a.activation != b.activation ? a.activation > b.activation : a.text < b.text;
        }
    };
    uint64_t head_, last_rank_;
    std::priority_queue<Kept> highest_;
    std::vector<Kept> drawn_;
};

}  // namespace fovea
