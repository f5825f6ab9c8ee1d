#include <fovea/inspect/cache_cost.hpp>
#include <fovea/inspect/head_survey.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "problem/rotation.hpp"

namespace fovea {
namespace {

constexpr uint64_t kLogitRows = 64;  // rows whose logits are in memory at a time

// Stores rows in a type and reads them back. Plans are kept, since a layer's heads have equal sizes.
class CacheRounding {
  public:
    explicit CacheRounding(Runner& engine) : engine_(engine) {}

    // [rows, width], in place.
    Result<void> round(const CacheType& type, std::span<float> rows, uint64_t width) {
        if (type.type == FOVEA_F32) return {};
        Plans& plans = plans_[{type.type, type.rotated, width, rows.size()}];
        if (!plans.append)
            if (Result<void> r = make(type, rows.size() / width, width, plans); !r) return r;
        cache_.resize(size_t(plans.append->info().binding_bytes[FOVEA_BIND_Y]));
        FoveaHostBuffer in[FOVEA_BIND_COUNT] = {}, out[FOVEA_BIND_COUNT] = {};
        in[FOVEA_BIND_X] = {rows.data(), rows.size_bytes()};
        in[FOVEA_BIND_Y] = out[FOVEA_BIND_X] = {cache_.data(), cache_.size()};
        out[FOVEA_BIND_Y] = in[FOVEA_BIND_X];
        out[FOVEA_BIND_POSITIONS] = {positions_.data(), positions_.size() * 4};
        if (Result<void> r = engine_.run(*plans.append, in); !r) return r;
        if (Result<void> r = engine_.run(*plans.gather, out); !r) return r;
        if (type.rotated) rotate_row(rows.data(), rows.size());
        return {};
    }

  private:
    struct Plans {
        std::optional<Plan> append, gather;
    };

    Result<void> make(const CacheType& type, uint64_t rows, uint64_t width, Plans& to) {
        FoveaAppendDesc append = foveaAppendDesc();
        append.y_type = type.type, append.rotate = type.rotated;
        append.batch = append.heads = 1, append.dim = uint32_t(width), append.len = append.capacity = rows;
        FoveaGatherDesc gather = foveaGatherDesc();
        gather.x_type = type.type, gather.batch = gather.heads = 1, gather.dim = uint32_t(width);
        gather.len = gather.capacity = rows;
        Result<Plan> writes = plan_append(engine_.properties(), append);
        if (!writes) return writes.error();
        Result<Plan> reads = plan_gather(engine_.properties(), gather);
        if (!reads) return reads.error();
        to.append.emplace(std::move(*writes)), to.gather.emplace(std::move(*reads));
        for (uint64_t n = positions_.size(); n < rows; ++n) positions_.push_back(int32_t(n));
        return {};
    }

    Runner& engine_;
    std::map<std::tuple<FoveaDtype, bool, uint64_t, uint64_t>, Plans> plans_;
    std::vector<std::byte> cache_;
    std::vector<int32_t> positions_;
};

// A type for each key/value head of each layer, or one for all.
struct Assignment {
    std::vector<CacheType> types;
    uint64_t kv_heads;

    const CacheType& of(uint64_t layer, uint64_t head) const {
        return types.size() == 1 ? types[0] : types[size_t(layer * kv_heads + head)];
    }
};

Result<KeysAndValues> stored(const PreparedAttention& call, uint64_t layer, const Assignment& as,
                             CacheRounding& rounding) {
    const FoveaAttentionDesc& d = call.call;
    if (d.k_type != FOVEA_F32 || d.v_type != FOVEA_F32)
        return Error{FOVEA_UNSUPPORTED, "precision",
                     "layer " + std::to_string(layer) +
                         " rounds its keys to float16; the cost of a KV cache needs float32"};
    KeysAndValues out;
    for (const auto& [binding, width, to] :
         {std::tuple{FOVEA_BIND_K, d.dim_qk, &out.keys}, {FOVEA_BIND_V, d.dim_v, &out.values}}) {
        const auto* from = reinterpret_cast<const float*>(call.inputs[binding].data());
        const uint64_t of_head = d.len_kv * width;
        to->assign(from, from + d.heads_kv * of_head);
        for (uint64_t h = 0; h < d.heads_kv; ++h)
            if (Result<void> r =
                    rounding.round(as.of(layer, h), std::span(*to).subspan(h * of_head, of_head), width);
                !r)
                return r.error();
    }
    return out;
}

// Returns the output of a layer whose keys and values are stored so.
Result<F32Tensor> leaving_with(Trace& trace, uint64_t layer, const Assignment& as, CacheRounding& rounding,
                               Runner& engine) {
    Result<PreparedAttention> call = trace.prepare(0);
    if (!call) return call.error();
    Result<KeysAndValues> cache = stored(*call, layer, as, rounding);
    if (!cache) return cache.error();
    FoveaAttentionDesc& d = call->call;
    d.outputs = FOVEA_OUTPUT_O;
    std::vector<float> o(size_t(d.heads_q * d.len_q * d.dim_v));
    std::array<FoveaHostBuffer, FOVEA_BIND_COUNT> bound = call->bindings();
    bound[FOVEA_BIND_K] = {cache->keys.data(), cache->keys.size() * 4};
    bound[FOVEA_BIND_V] = {cache->values.data(), cache->values.size() * 4};
    bound[FOVEA_BIND_O] = {o.data(), o.size() * 4};
    if (Result<void> r = engine.attention(d, bound.data()); !r) return r.error();
    F32Tensor context({d.len_q, uint64_t{d.heads_q} * d.dim_v});
    for (uint64_t h = 0; h < d.heads_q; ++h)
        for (uint64_t i = 0; i < d.len_q; ++i)
            std::copy_n(o.begin() + int64_t((h * d.len_q + i) * d.dim_v), d.dim_v,
                        context.row(i).begin() + int64_t(h * d.dim_v));
    if (Result<void> r = trace.supply_context(0, std::move(context)); !r) return r.error();
    return trace.leaving();
}

double log_sum_exp(std::span<const float> logits) {
    const double most = double(*std::max_element(logits.begin(), logits.end()));
    double sum = 0;
    for (const float x : logits) sum += std::exp(double(x) - most);
    return most + std::log(sum);
}

double divergence_of_logits(std::span<const float> own, std::span<const float> other) {
    const double lse = log_sum_exp(own), other_lse = log_sum_exp(other);
    double sum = 0;
    for (size_t n = 0; n < own.size(); ++n) {
        const double p = std::exp(double(own[n]) - lse);
        if (p > 0) sum += p * ((double(own[n]) - lse) - (double(other[n]) - other_lse));
    }
    return sum;
}

class CostRun {
  public:
    CostRun(const CheckpointModel& model, const CacheCostOptions& options, CacheCosts& to)
        : model_(model),
          options_(options),
          to_(to),
          engine_(runner_or_own(options.trace.engine, own_)),
          rounding_(engine_) {}

    // Runs a text with each assignment. `heads`: receives the sums of each head, by assignment.
    Result<void> run(std::span<const uint32_t> ids, std::span<const Assignment> all,
                     std::vector<std::vector<LayerSurvey::CacheSums>>* heads, std::span<double> next,
                     const std::function<bool(double)>& progress) {
        Result<F32Tensor> entering = model_.embed(ids);
        if (!entering) return entering.error();
        F32Tensor own = std::move(*entering);
        std::vector<F32Tensor> changed(all.size(), own);
        TraceOptions trace = options_.trace;
        trace.engine = &engine_;
        for (uint64_t n = 0; n < to_.layers; ++n) {
            if (progress && !progress(double(n) / double(to_.layers)))
                return Error{FOVEA_CANCELLED, "run", "the run was cancelled"};
            Result<Trace> exact = trace_layer(model_, n, std::move(own), {}, trace);
            if (!exact) return exact.error();
            if (heads)
                if (Result<void> r = survey(*exact, n, ids, all, *heads); !r) return r;
            for (size_t a = 0; a < all.size(); ++a) {
                Result<Trace> one = trace_layer(model_, n, std::move(changed[a]), {}, trace);
                if (!one) return one.error();
                Result<F32Tensor> leaves = leaving_with(*one, n, all[a], rounding_, engine_);
                if (!leaves) return leaves.error();
                changed[a] = std::move(*leaves);
            }
            Result<F32Tensor> leaves = exact->leaving();
            if (!leaves) return leaves.error();
            own = std::move(*leaves);
        }
        return compare(own, changed, next);
    }

  private:
    Result<void> survey(Trace& trace, uint64_t layer, std::span<const uint32_t> ids,
                        std::span<const Assignment> all,
                        std::vector<std::vector<LayerSurvey::CacheSums>>& heads) {
        Result<LayerSurvey> open = LayerSurvey::open(trace, 0, ids, engine_);
        if (!open) return open.error();
        std::vector<KeysAndValues> caches;
        for (const Assignment& as : all) {
            Result<KeysAndValues> cache = stored(open->call(), layer, as, rounding_);
            if (!cache) return cache.error();
            caches.push_back(std::move(*cache));
        }
        const auto sums = open->cache_sums(caches);
        if (!sums) return sums.error();
        for (size_t a = 0; a < all.size(); ++a)
            for (size_t h = 0; h < (*sums)[a].size(); ++h) {
                LayerSurvey::CacheSums& sum = heads[a][size_t(layer * to_.heads + h)];
                const LayerSurvey::CacheSums& one = (*sums)[a][h];
                sum.divergence += one.divergence, sum.context += one.context, sum.change += one.change;
            }
        return {};
    }

    // Adds the divergences of the next token's probabilities.
    Result<void> compare(const F32Tensor& own, std::span<const F32Tensor> changed, std::span<double> next) {
        for (uint64_t first = 0; first < own.rows(); first += kLogitRows) {
            const uint64_t rows = std::min(kLogitRows, own.rows() - first);
            const auto logits = [&](const F32Tensor& all) {
                const auto from = all.values.begin() + int64_t(first * all.columns());
                F32Tensor part({rows, all.columns()}, {from, from + int64_t(rows * all.columns())});
                return model_.logits(std::move(part), &engine_);
            };
            const Result<F32Tensor> exact = logits(own);
            if (!exact) return exact.error();
            for (size_t a = 0; a < changed.size(); ++a) {
                const Result<F32Tensor> other = logits(changed[a]);
                if (!other) return other.error();
                for (uint64_t i = 0; i < rows; ++i)
                    next[a] += divergence_of_logits(exact->row(i), other->row(i));
            }
        }
        return {};
    }

    const CheckpointModel& model_;
    const CacheCostOptions& options_;
    CacheCosts& to_;
    std::unique_ptr<Runner> own_;
    Runner& engine_;
    CacheRounding rounding_;
};

// The type of fewest bytes whose divergence no query head of the group has above the limit; float32 costs
// nothing.
CachePlan plan_of(const CacheCosts& costs, double limit) {
    CachePlan plan;
    plan.limit = limit;
    const uint64_t group = costs.heads / costs.kv_heads;
    for (uint64_t n = 0; n < costs.layers * costs.kv_heads; ++n) {
        CacheType best;
        CacheCost cost;
        for (size_t t = 0; t < costs.types.size(); ++t) {
            const uint64_t first = n / costs.kv_heads * costs.heads + n % costs.kv_heads * group;
            CacheCost worst;
            for (uint64_t h = first; h < first + group; ++h) {
                worst.divergence = std::max(worst.divergence, costs.of[t][size_t(h)].divergence);
                worst.change = std::max(worst.change, costs.of[t][size_t(h)].change);
            }
            const double bytes = cache_type_bytes(costs.types[t]), least = cache_type_bytes(best);
            const bool is_better = bytes < least || (bytes == least && worst.divergence < cost.divergence);
            if (worst.divergence <= limit && is_better) best = costs.types[t], cost = worst;
        }
        plan.types.push_back(best);
        plan.bytes += 2 * double(costs.head_width) * cache_type_bytes(best);
        plan.worst.divergence = std::max(plan.worst.divergence, cost.divergence);
        plan.worst.change = std::max(plan.worst.change, cost.change);
    }
    return plan;
}

}  // namespace

std::string cache_type_name(const CacheType& type) {
    return std::string(dtype_name(type.type)) + (type.rotated ? " rotated" : "");
}

double cache_type_bytes(const CacheType& type) {
    const StorageBlock block = dtype_info(type.type).block;
    return double(block.bytes) / double(block.numbers);
}

std::vector<CacheType> cache_types(uint64_t head_width) {
    std::vector<CacheType> all;
    for (const DtypeInfo& info : kDtypes) {
        if (!(info.uses & (kUseNumbers | kUseCache)) || info.type == FOVEA_F32) continue;
        if (head_width % info.block.numbers != 0) continue;
        all.push_back({info.type, false});
        if (info.block.numbers > 1) all.push_back({info.type, true});
    }
    std::stable_sort(all.begin(), all.end(), [](const CacheType& a, const CacheType& b) {
        return cache_type_bytes(a) > cache_type_bytes(b);
    });
    return all;
}

double CacheCosts::bytes(const CacheType& type) const {
    return 2 * double(layers * kv_heads * head_width) * cache_type_bytes(type);
}

uint64_t cache_costs_bytes(const CheckpointModel& model, uint64_t tokens) {
    const ModelConfig& f = model.config();
    const uint64_t types = cache_types(f.head_width).size();
    ModelRunOptions run;
    run.with_logits = false;
    const uint64_t rows = tokens * (f.width + 2 * f.kv_heads * f.head_width);
    return run_model_bytes(model, tokens, run) +
           LayerSurvey::bytes(tokens, f.heads, f.kv_heads, f.head_width) + 4 * (types + 1) * rows +
           8 * kLogitRows * f.vocabulary;
}

Result<CacheCosts> cache_costs(const CheckpointModel& model, std::span<const std::vector<uint32_t>> texts,
                               const CacheCostOptions& options) {
    const ModelConfig& f = model.config();
    if (!model.has_unembedding())
        return Error{
            FOVEA_UNSUPPORTED, "model",
            "the files hold no unembedding; the cost of a KV cache needs the next token's probabilities"};
    if (options.limit && !(*options.limit >= 0))
        return Error{
            FOVEA_INVALID_ARGUMENT, "limit",
            "limit is " + std::to_string(*options.limit) + "; it must be a divergence in nats, at least 0"};
    for (const std::string& name : model.missing())
        return Error{
            FOVEA_INVALID_ARGUMENT, "tensor",
            "tensor '" + name + "' is missing from " + printable_name(model.files().path.string(), 400)};
    CacheCosts out;
    out.layers = f.layers, out.heads = f.heads, out.kv_heads = f.kv_heads, out.head_width = f.head_width;
    out.types = cache_types(f.head_width);
    std::vector<Assignment> uniform;
    for (const CacheType& type : out.types) uniform.push_back({{type}, f.kv_heads});
    std::vector<std::vector<LayerSurvey::CacheSums>> sums(
        out.types.size(), std::vector<LayerSurvey::CacheSums>(size_t(f.layers * f.heads)));
    out.next.assign(out.types.size(), 0.0);
    std::vector<const std::vector<uint32_t>*> used;
    for (const std::vector<uint32_t>& ids : texts)
        if (ids.size() >= 2) used.push_back(&ids), out.tokens += ids.size();
    out.texts = used.size();
    if (used.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "texts", "no text has at least 2 tokens; give a longer one"};
    CostRun run(model, options, out);
    // A plan's run takes about one share, the others one for each type and one for the heads.
    const double shares = double(out.types.size() + 1), whole = shares + (options.limit ? 1 : 0);
    const auto told = [&](double first, double share) {
        return [&, first, share](double part) {
            return !options.progress || options.progress((first + part * share) / whole);
        };
    };
    for (size_t n = 0; n < used.size(); ++n) {
        const double share = shares / double(used.size());
        if (Result<void> r = run.run(*used[n], uniform, &sums, out.next, told(double(n) * share, share)); !r)
            return r.error();
    }
    const auto rows = double(out.tokens);
    for (const auto& of_type : sums) {
        std::vector<CacheCost>& costs = out.of.emplace_back();
        for (const LayerSurvey::CacheSums& one : of_type)
            costs.push_back(
                {one.divergence / rows, one.context > 0 ? std::sqrt(one.change / one.context) : 0.0});
    }
    for (double& sum : out.next) sum /= rows;
    if (!options.limit) return out;
    out.plan = plan_of(out, *options.limit);
    const Assignment mixed{out.plan->types, f.kv_heads};
    for (size_t n = 0; n < used.size(); ++n) {
        const double share = 1.0 / double(used.size());
        if (Result<void> r = run.run(*used[n], std::span(&mixed, 1), nullptr, std::span(&out.plan->next, 1),
                                     told(shares + double(n) * share, share));
            !r)
            return r.error();
    }
    out.plan->next /= rows;
    return out;
}

}  // namespace fovea
