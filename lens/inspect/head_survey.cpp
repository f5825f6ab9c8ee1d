#include <fovea/inspect/head_survey.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <numbers>
#include <unordered_map>

#include "inspect/splitmix64.hpp"
#include "problem/parallel.hpp"

namespace fovea {
namespace {

constexpr float kLeastInduction = 0.01f, kLeastShown = 0.005f;
constexpr size_t kShownKeys = 8;
constexpr uint64_t kBlockBytes = 2u << 20;  // weights stay in the L2 cache until they are summed
constexpr uint64_t kDrawn = 30;             // random texts of each head
constexpr size_t kLanes = 8;

constexpr HeadMetricName kMetrics[] = {
    {"self_attention_score", "self", "Mean weight of a token on itself", &HeadMetrics::self},
    {"prev_token_score", "previous token", "Mean weight of a token on the one before it",
     &HeadMetrics::previous},
    {"pattern_entropy", "entropy", "Mean entropy of a row of weights, in nats; 0: one key has all",
     &HeadMetrics::entropy},
    {"qk_distance", "distance", "Mean number of tokens between query and key, by weight",
     &HeadMetrics::distance},
    {"qk_distance_variance", "distance variance", "Variance of the number of tokens between query and key",
     &HeadMetrics::distance_variance},
    {"induction_score", "induction",
     "Mean weight of a repeated token on what came after its earlier occurrences", &HeadMetrics::induction}};

// Adds the weights of a row to the sums of their diagonals, [2 tokens - 1] by key - query + tokens - 1.
void add_diagonals(std::span<const float> row, uint64_t query, std::span<double> diagonals) {
    double* const to = diagonals.data() + (diagonals.size() / 2 - query);
    for (size_t j = 0; j < row.size(); ++j) to[j] += double(row[j]);
}

float largest_of(std::span<const float> row) {
    std::array<float, kLanes> lanes{};
    size_t j = 0;
    for (; j + kLanes <= row.size(); j += kLanes)
        for (size_t l = 0; l < kLanes; ++l) lanes[l] = row[j + l] > lanes[l] ? row[j + l] : lanes[l];
    for (; j < row.size(); ++j) lanes[0] = std::max(lanes[0], row[j]);
    return *std::max_element(lanes.begin(), lanes.end());
}

// ln x for x >= FLT_MIN to 1e-12, without a branch or a call, so that compilers make vectors of it.
inline double log_of(float x) {
    const uint32_t above = std::bit_cast<uint32_t>(x) - 0x3f3504f3u;  // sqrt(1/2)
    const float mantissa = std::bit_cast<float>((above & 0x007fffffu) + 0x3f3504f3u);
    const double exponent = double(int32_t(above) >> 23), m = double(mantissa);
    const double z = (m - 1) / (m + 1), s = z * z;
    const double series =
        1 + s * (1.0 / 3 + s * (1.0 / 5 + s * (1.0 / 7 + s * (1.0 / 9 + s * (1.0 / 11 + s * (1.0 / 13))))));
    return exponent * std::numbers::ln2 + 2 * z * series;
}

// The Kullback-Leibler divergence of weights from others, which count as at least FLT_MIN; nats.
double divergence(std::span<const float> own, std::span<const float> other) {
    std::array<double, kLanes> sums{};
    const auto add = [&](size_t l, float p, float q) {
        sums[l] += double(p) * (log_of(std::max(p, FLT_MIN)) - log_of(std::max(q, FLT_MIN)));
    };
    size_t j = 0;
    for (; j + kLanes <= own.size(); j += kLanes)
        for (size_t l = 0; l < kLanes; ++l) add(l, own[j + l], other[j + l]);
    for (; j < own.size(); ++j) add(0, own[j], other[j]);
    double sum = 0;
    for (const double one : sums) sum += one;
    return sum;
}

// Adds what needs some keys of a row: `before` has each token's last earlier occurrence + 1.
void add_keys(std::span<const float> row, uint64_t i, std::span<const uint32_t> before, HeadSums& sums) {
    if (i > 0) {
        sums.first += double(row[0]);
        sums.largest = std::max(sums.largest, double(largest_of(row.subspan(1))));
    }
    for (uint64_t j = before[i]; j != 0; j = before[j - 1]) {  // the occurrence is j - 1, the next token j
        sums.same += double(row[j - 1]);
        if (row[j] >= kLeastInduction) sums.induction += double(row[j]);
        if (j != i) sums.followed += double(row[j]);
    }
}

void add_shown(std::span<const float> row, SparseRows& out) {
    std::vector<uint32_t> shown;
    for (uint32_t j = 0; j < row.size(); ++j)
        if (row[j] >= kLeastShown) shown.push_back(j);
    const auto order = [&](uint32_t a, uint32_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; };
    if (shown.size() > kShownKeys) {
        std::nth_element(shown.begin(), shown.begin() + kShownKeys, shown.end(), order);
        shown.resize(kShownKeys);
        std::sort(shown.begin(), shown.end());
    }
    out.counts.push_back(uint8_t(shown.size()));
    for (const uint32_t j : shown) {
        out.keys.push_back(j);
        out.values.push_back(uint16_t(std::lround(std::min(double(row[j]), 6.0) * 10'000)));
    }
}

template <class Task>
void in_parallel(const FoveaParallel* parallel, uint32_t count, const Task& task) {
    for_each_task(
        parallel, count, [](void* arg, uint32_t i, uint32_t) { (*static_cast<const Task*>(arg))(i); },
        const_cast<void*>(static_cast<const void*>(&task)));
}

double mean(double sum, uint64_t count) {
    return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / double(count);
}

}  // namespace

SurveyCounts& SurveyCounts::operator+=(const SurveyCounts& other) {
    rows += other.rows, pairs += other.pairs, repeats += other.repeats, followed += other.followed;
    return *this;
}

SurveyCounts survey_counts(std::span<const uint32_t> ids) {
    SurveyCounts counts{ids.size(), ids.empty() ? 0 : ids.size() - 1, 0, 0};
    std::unordered_map<uint32_t, size_t> first;
    for (size_t i = 0; i < ids.size(); ++i) {
        const auto [at, is_new] = first.try_emplace(ids[i], i);
        counts.repeats += !is_new;
        counts.followed += !is_new && at->second + 1 < i;
    }
    return counts;
}

HeadSums& HeadSums::operator+=(const HeadSums& other) {
    for (double HeadSums::*one :
         {&HeadSums::self, &HeadSums::previous, &HeadSums::first, &HeadSums::entropy, &HeadSums::distance,
          &HeadSums::squared_distance, &HeadSums::induction, &HeadSums::followed, &HeadSums::same})
        this->*one += other.*one;
    largest = std::max(largest, other.largest);
    return *this;
}

HeadMetrics head_metrics(const HeadSums& sums, const SurveyCounts& counts) {
    HeadMetrics m;
    m.self = mean(sums.self, counts.rows), m.previous = mean(sums.previous, counts.pairs);
    m.entropy = mean(sums.entropy, counts.rows), m.distance = mean(sums.distance, counts.rows);
    m.distance_variance = mean(sums.squared_distance, counts.rows) - m.distance * m.distance;
    m.induction = mean(sums.induction, counts.repeats);
    m.scores = {float(m.previous), float(mean(sums.followed, counts.followed)),
                float(mean(sums.first, counts.pairs)), float(mean(sums.same, counts.repeats))};
    return m;
}

std::span<const HeadMetricName> head_metric_names() { return kMetrics; }

double role_share(const HeadMetrics& metrics) {
    double best = metrics.self;
    for (const TokenScoreName& one : token_score_names())
        if (const double share = double(metrics.scores.*one.value); share > best) best = share;
    return best;
}

std::string_view survey_role(const HeadMetrics& metrics) {
    const double share = role_share(metrics);
    if (!(share >= double(kMinJob))) return "no clear role";
    return share == metrics.self ? "the token itself" : head_job(metrics.scores);
}

// ---- one layer ----

Result<LayerSurvey> LayerSurvey::open(Trace& trace, uint32_t layer, std::span<const uint32_t> ids,
                                      Runner& engine) {
    Result<PreparedAttention> call = trace.prepare(layer);
    if (!call) return call.error();
    const FoveaAttentionDesc& d = call->call;
    if (d.mask.present || d.bias.present || d.dropout_mask.present || d.dropout_p > 0 ||
        d.len_q != ids.size() || d.len_kv != ids.size())
        return Error{
            FOVEA_UNSUPPORTED, "layer",
            "layer " + std::to_string(layer) +
                " has a mask of cells, a bias or dropout, or other keys than the text's tokens; a survey "
                "of heads supports causal masks, windows and ALiBi"};
    LayerSurvey out;
    out.call_ = std::move(*call);
    out.ids_ = ids;
    out.engine_ = &engine;
    out.before_.resize(ids.size());
    std::unordered_map<uint32_t, uint32_t> last;
    for (size_t i = 0; i < ids.size(); ++i) {
        uint32_t& place = last[ids[i]];
        out.before_[i] = std::exchange(place, uint32_t(i + 1));
    }
    return out;
}

uint64_t LayerSurvey::bytes(uint64_t tokens, uint64_t heads, uint64_t kv_heads, uint64_t head_width) {
    return tokens * (4 * head_width * (heads + 2 * kv_heads) +
                     heads * (2 * sizeof(double) + sizeof(FoveaRowStats))) +
           std::max(kBlockBytes, 4 * heads * tokens);
}

template <class Use>
Result<void> LayerSurvey::each_block(uint32_t first_head, uint32_t heads, uint32_t outputs, Use use) {
    const FoveaAttentionDesc& whole = call_.call;
    const uint32_t group = whole.heads_q / whole.heads_kv;
    const uint64_t tokens = whole.len_q;
    const bool causal = whole.flags & FOVEA_FLAG_CAUSAL;
    FoveaAttentionDesc d = whole;
    d.outputs = FOVEA_OUTPUT_WEIGHTS | outputs;
    d.heads_q = heads, d.heads_kv = heads == 1 ? 1 : heads / group;
    d.align = FOVEA_ALIGN_OFFSET;
    const auto strides = [&](uint64_t count, uint64_t dim) {
        FoveaStrides s{};
        s.batch = int64_t(count * tokens * dim), s.head = int64_t(tokens * dim), s.row = int64_t(dim);
        return s;
    };
    d.q_strides = strides(whole.heads_q, d.dim_qk);
    d.k_strides = strides(whole.heads_kv, d.dim_qk), d.v_strides = strides(whole.heads_kv, d.dim_v);
    const std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> all = call_.bindings();
    for (uint64_t first = 0; first < tokens;) {
        // All rows of a causal block have first + rows keys, so rows (first + rows) cells must fit.
        const double room = double(kBlockBytes) / (4.0 * heads), begin = double(first);
        const double fit = causal ? (std::sqrt(begin * begin + 4 * room) - begin) / 2 : room / double(tokens);
        const uint64_t rows = std::clamp<uint64_t>(uint64_t(fit), 1, tokens - first);
        d.len_q = rows, d.len_kv = causal ? first + rows : tokens;
        d.q_offset = int64_t(first);
        const auto run = [&](const KeysAndValues* cache, std::vector<float>& weights,
                             std::vector<float>& context) -> Result<Block> {
            weights.resize(size_t(heads * rows * d.len_kv));
            stats_.resize(outputs & FOVEA_OUTPUT_ROW_STATS ? size_t(heads * rows) : 0);
            context.resize(outputs & FOVEA_OUTPUT_O ? size_t(heads * rows * d.dim_v) : 0);
            std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> bound = all;
            if (cache) {
                bound[FOVEA_BIND_K] = {const_cast<float*>(cache->keys.data()), cache->keys.size() * 4};
                bound[FOVEA_BIND_V] = {const_cast<float*>(cache->values.data()), cache->values.size() * 4};
            }
            const auto from = [&](FoveaBinding binding, uint64_t floats) {
                FoveaHostBuffer& b = bound[binding];
                if (!b.data) return;
                b.data = static_cast<float*>(b.data) + floats;
                b.size_bytes -= floats * 4;
            };
            from(FOVEA_BIND_Q, (first_head * tokens + first) * d.dim_qk);
            from(FOVEA_BIND_K, first_head / group * tokens * d.dim_qk);
            from(FOVEA_BIND_V, first_head / group * tokens * d.dim_v);
            from(FOVEA_BIND_ALIBI, first_head), from(FOVEA_BIND_SINKS, first_head);
            bound[FOVEA_BIND_WEIGHTS] = {weights.data(), weights.size() * 4};
            if (!context.empty()) bound[FOVEA_BIND_O] = {context.data(), context.size() * 4};
            if (!stats_.empty())
                bound[FOVEA_BIND_ROW_STATS] = {stats_.data(), stats_.size() * sizeof(FoveaRowStats)};
            if (Result<void> r = engine_->attention(d, bound.data()); !r) return r.error();
            return Block{first, rows, d.len_kv, weights.data(), context.data(), stats_.data()};
        };
        const Result<Block> block = run(nullptr, weights_, context_);
        if (!block) return block.error();
        const auto again = [&](const KeysAndValues& cache) {
            return run(&cache, other_weights_, other_context_);
        };
        if (Result<void> r = use(*block, again); !r) return r;
        first += rows;
    }
    return {};
}

Result<std::vector<HeadSums>> LayerSurvey::sums() {
    const uint32_t heads = call_.call.heads_q;
    const uint64_t tokens = call_.call.len_q;
    const bool causal = call_.call.flags & FOVEA_FLAG_CAUSAL;
    std::vector<HeadSums> all(heads);
    std::vector<std::vector<double>> diagonals(heads, std::vector<double>(2 * tokens - 1));
    const auto use = [&](const Block& block, const auto&) -> Result<void> {
        in_parallel(engine_->parallel(), heads, [&](uint32_t h) {
            HeadSums own;
            for (uint64_t r = 0; r < block.rows; ++r) {
                const uint64_t i = block.first + r, at = h * block.rows + r;
                const std::span row(block.weights + at * block.keys, causal ? i + 1 : block.keys);
                own.entropy += double(block.stats[at].entropy);
                add_diagonals(row, i, diagonals[h]);
                add_keys(row, i, before_, own);
            }
            all[h] += own;
        });
        return {};
    };
    if (const Result<void> ran = each_block(0, heads, FOVEA_OUTPUT_ROW_STATS, use); !ran) return ran.error();
    for (uint32_t h = 0; h < heads; ++h)
        for (uint64_t at = 0; at < 2 * tokens - 1; ++at) {
            const double away = std::fabs(double(at) - double(tokens - 1)), weight = diagonals[h][at];
            all[h].distance += weight * away, all[h].squared_distance += weight * (away * away);
            if (at + 1 == tokens) all[h].self = weight;
            if (at + 2 == tokens) all[h].previous = weight;
        }
    return all;
}

Result<std::vector<std::vector<LayerSurvey::CacheSums>>> LayerSurvey::cache_sums(
    std::span<const KeysAndValues> caches) {
    const uint32_t heads = call_.call.heads_q;
    const bool causal = call_.call.flags & FOVEA_FLAG_CAUSAL;
    const uint64_t width = call_.call.dim_v;
    std::vector<std::vector<CacheSums>> all(caches.size(), std::vector<CacheSums>(heads));
    const Result<void> ran =
        each_block(0, heads, FOVEA_OUTPUT_O, [&](const Block& block, const auto& again) -> Result<void> {
            for (size_t n = 0; n < caches.size(); ++n) {
                const Result<Block> other = again(caches[n]);
                if (!other) return other.error();
                in_parallel(engine_->parallel(), heads, [&](uint32_t h) {
                    CacheSums own;
                    for (uint64_t r = 0; r < block.rows; ++r) {
                        const uint64_t row = h * block.rows + r,
                                       keys = causal ? block.first + r + 1 : block.keys;
                        own.divergence += divergence(std::span(block.weights + row * block.keys, keys),
                                                     std::span(other->weights + row * block.keys, keys));
                        for (uint64_t c = 0; c < width; ++c) {
                            const double was = double(block.context[row * width + c]),
                                         change = double(other->context[row * width + c]) - was;
                            own.context += was * was, own.change += change * change;
                        }
                    }
                    CacheSums& sums = all[n][h];
                    sums.divergence += own.divergence, sums.context += own.context, sums.change += own.change;
                });
            }
            return {};
        });
    if (!ran) return ran.error();
    return all;
}

Result<SparseRows> LayerSurvey::sparse_rows(uint32_t head) {
    SparseRows out;
    const Result<void> ran = each_block(head, 1, 0, [&](const Block& block, const auto&) -> Result<void> {
        for (uint64_t r = 0; r < block.rows; ++r)
            add_shown(std::span(block.weights + r * block.keys, block.keys), out);
        return {};
    });
    if (!ran) return ran.error();
    return out;
}

// ---- samples ----

HeadSampler::HeadSampler(uint64_t head, uint64_t texts) : head_(head), last_rank_(~uint64_t{0}) {
    if (texts <= kDrawn) return;
    std::vector<uint64_t> ranks(texts);
    for (uint64_t n = 0; n < texts; ++n) ranks[n] = rank(n);
    std::nth_element(ranks.begin(), ranks.begin() + kDrawn - 1, ranks.end());
    last_rank_ = ranks[kDrawn - 1];
}

// Another order of the texts for each head.
uint64_t HeadSampler::rank(uint64_t text) const { return splitmix64(head_ << 40 ^ text); }

bool HeadSampler::wants(uint64_t text, float activation) const {
    return rank(text) <= last_rank_ || highest_.size() < kHighest || Kept{activation, text} < highest_.top();
}

void HeadSampler::add(uint64_t text, float activation) {
    if (rank(text) <= last_rank_) drawn_.push_back({activation, text});
    highest_.push({activation, text});
    if (highest_.size() > kHighest) highest_.pop();
}

std::vector<HeadSampler::Sample> HeadSampler::samples(std::vector<float> activations) const {
    std::sort(activations.begin(), activations.end());
    const size_t count = activations.size();
    std::vector<float> limits;
    for (uint32_t n = 1; n < kIntervals && count > 0; ++n)
        limits.push_back(
            activations[std::min<size_t>((2 * n * count + kIntervals) / (2 * kIntervals), count - 1)]);
    const auto interval = [&](float activation) {
        return uint32_t(std::upper_bound(limits.begin(), limits.end(), activation) - limits.begin()) + 1;
    };
    std::vector<Kept> drawn = drawn_;
    std::sort(drawn.begin(), drawn.end(),
              [&](const Kept& a, const Kept& b) { return rank(a.text) < rank(b.text); });
    std::vector<Sample> out;
    for (uint32_t n = 1; n < kIntervals; ++n) {
        uint32_t taken = 0;
        for (const Kept& one : drawn)
            if (interval(one.activation) == n && taken < kPerInterval)
                out.push_back({one.text, n, one.activation}), ++taken;
    }
    const size_t lower = out.size();
    for (std::priority_queue<Kept> rest = highest_; !rest.empty(); rest.pop())
        if (interval(rest.top().activation) == kIntervals)
            out.push_back({rest.top().text, kIntervals, rest.top().activation});
    std::reverse(out.begin() + int64_t(lower), out.end());
    return out;
}

}  // namespace fovea
