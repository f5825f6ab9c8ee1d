#include <fovea/model/generate.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/block_run.hpp"
#include "problem/philox.hpp"

namespace fovea {
namespace {

Error wrong(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

using Bindings = std::array<FoveaHostBuffer, FOVEA_BIND_COUNT>;

void give(Bindings& bindings, FoveaBinding binding, const F32Tensor& t) {
    bindings[binding] = {const_cast<float*>(t.values.data()), t.values.size() * 4};
}

}  // namespace

class Decoder::Impl {
  public:
    Impl(const CheckpointModel& model, uint64_t capacity, const DecoderOptions& options)
        : model_(model), capacity_(capacity), engine_(options.engine) {
        if (!engine_) {
            own_engine_ = make_cpu_runner();
            engine_ = own_engine_.get();
        }
        const ModelFacts& f = model_.facts();
        text_ = engine_->text(f.layers, capacity_);
        keep_ = model_.all_stored_block_bytes() <= options.keep_bytes;
        blocks_.resize(f.layers);
    }

    Result<std::vector<float>> run(std::span<const uint32_t> ids);
    uint64_t held() const { return held_; }
    uint64_t capacity() const { return capacity_; }
    std::string reason() const { return engine_->reason(); }

  private:
    struct Cache {
        F32Tensor keys, values;  // [kv_heads, capacity, head_width]
    };

    Result<std::shared_ptr<const Block>> block(uint64_t layer) {
        if (blocks_[layer]) return blocks_[layer];
        // Rows that lie in a cache were turned by the angles of the text's whole length, not of the tokens so
        // far: a text that outgrows what short angles are for must not mix the two.
        Result<Block> made = model_.block(layer, capacity_, true);
        if (!made) return made.error();
        std::shared_ptr<const Block> shared = std::make_shared<const Block>(std::move(*made));
        if (keep_) blocks_[layer] = shared;
        return shared;
    }

    Result<void> append(const F32Tensor& rows, F32Tensor& cache);
    Result<F32Tensor> attend(const Block& block, const F32Tensor& q, const Cache& cache);
    Result<F32Tensor> layer(uint64_t n, const F32Tensor& x);
    Result<F32Tensor> last_row(const F32Tensor& x);
    Result<F32Tensor> last_row_on_host(F32Tensor x);

    CheckpointModel model_;
    uint64_t capacity_, held_ = 0;
    EngineRunner* engine_;
    std::unique_ptr<EngineRunner> own_engine_;
    std::unique_ptr<ResidentText> text_;  // null: `caches_`
    std::vector<Cache> caches_;
    bool keep_ = true;
    std::vector<std::shared_ptr<const Block>> blocks_;
    Result<FoveaDeviceFacts> facts_ = cpu_facts(1);
    Workspace workspace_;
};

// New rows behind those that the cache holds, by the engine's own copy.
Result<void> Decoder::Impl::append(const F32Tensor& rows, F32Tensor& cache) {
    if (!facts_) return facts_.error();
    FoveaAppendDesc call{};
    call.struct_size = sizeof call;
    call.batch = 1, call.heads = uint32_t(rows.shape[0]), call.dim = uint32_t(rows.shape[2]);
    call.len = rows.shape[1], call.capacity = capacity_, call.first_row = held_;
    const Result<Plan> plan = plan_append(*facts_, call);
    if (!plan) return plan.error();
    Bindings bindings{};
    give(bindings, FOVEA_BIND_X, rows), give(bindings, FOVEA_BIND_Y, cache);
    return run_on_host(*plan, bindings.data(), workspace_);
}

// [rows, heads * width] of queries that stand behind all keys but their own.
Result<F32Tensor> Decoder::Impl::attend(const Block& block, const F32Tensor& q, const Cache& cache) {
    const uint64_t heads = q.shape[0], rows = q.shape[1], width = q.shape[2];
    FoveaAttentionDesc call = foveaAttentionDesc();
    call.batch = 1;
    call.heads_q = uint32_t(heads), call.heads_kv = block.attention.kv_heads;
    call.len_q = rows, call.len_kv = held_ + rows;
    call.dim_qk = call.dim_v = uint32_t(width);
    apply_rules(block.attention.rules, call);
    call.align = FOVEA_ALIGN_BOTTOM_RIGHT;
    const auto stride = int64_t(width);
    call.k_strides =
        call.v_strides = {int64_t(cache.keys.values.size()), int64_t(capacity_) * stride, stride};
    F32Tensor o({heads, rows, width});
    Bindings bindings{};
    give(bindings, FOVEA_BIND_Q, q), give(bindings, FOVEA_BIND_K, cache.keys);
    give(bindings, FOVEA_BIND_V, cache.values), give(bindings, FOVEA_BIND_O, o);
    if (Result<void> r = engine_->attention(call, bindings.data()); !r) return r.error();
    F32Tensor context({rows, heads * width});
    for (uint64_t h = 0; h < heads; ++h)
        for (uint64_t i = 0; i < rows; ++i) {
            const auto from = o.row(h * rows + i);
            std::copy(from.begin(), from.end(), context.row(i).begin() + int64_t(h * width));
        }
    return context;
}

Result<F32Tensor> Decoder::Impl::layer(uint64_t n, const F32Tensor& x) {
    const LinearRun linear = [&](const F32Tensor& rows, const Linear& l) {
        return run_linear(*engine_, rows, l);
    };
    const Result<std::shared_ptr<const Block>> shared = block(n);
    if (!shared) return shared.error();
    const Block& b = **shared;
    Result<ProjectedHeads> heads = project_heads(b, x, nullptr, linear);
    if (!heads) return heads.error();
    if (Result<void> r = place_heads(b.attention, held_, heads->q, heads->k); !r) return r.error();
    if (Result<void> r = append(heads->k, caches_[n].keys); !r) return r.error();
    if (Result<void> r = append(heads->v, caches_[n].values); !r) return r.error();
    Result<F32Tensor> context = attend(b, heads->q, caches_[n]);
    if (!context) return context;
    Result<BlockEnd> end = finish_block(b, &x, *context, linear);
    if (!end) return end.error();
    return std::move(end->result);
}

// Through all layers, where they are.
Result<F32Tensor> Decoder::Impl::last_row(const F32Tensor& x) {
    const auto on_device = [&]() -> Result<F32Tensor> {
        if (Result<void> r = text_->enter(x, held_); !r) return r.error();
        for (uint64_t n = 0; n < model_.facts().layers; ++n) {
            const Result<std::shared_ptr<const Block>> b = block(n);
            if (!b) return b.error();
            if (Result<void> r = text_->layer(n, **b); !r) return r.error();
        }
        return text_->row(x.rows() - 1);
    };
    if (text_) {
        Result<F32Tensor> last = on_device();
        // A model that does not fit goes through the device one matrix at a time.
        if (last || held_ != 0 || last.error().code != FOVEA_OUT_OF_DEVICE_MEMORY) return last;
        text_.reset();
    }
    return last_row_on_host(x);
}

Result<F32Tensor> Decoder::Impl::last_row_on_host(F32Tensor x) {
    const ModelFacts& f = model_.facts();
    const F32Tensor empty({f.kv_heads, capacity_, f.head_width});
    if (caches_.empty()) caches_.assign(f.layers, Cache{empty, empty});
    for (uint64_t n = 0; n < f.layers; ++n) {
        Result<F32Tensor> next = layer(n, x);
        if (!next) return next;
        x = std::move(*next);
    }
    const auto last = x.row(x.rows() - 1);
    return F32Tensor({1, last.size()}, {last.begin(), last.end()});
}

Result<std::vector<float>> Decoder::Impl::run(std::span<const uint32_t> ids) {
    if (ids.empty()) return wrong("tokens", "there is no token");
    if (ids.size() > capacity_ - held_)
        return wrong("tokens", std::to_string(ids.size()) + " tokens do not fit behind " +
                                   std::to_string(held_) + "; there is room for " +
                                   std::to_string(capacity_));
    Result<F32Tensor> x = model_.embed(ids, held_);
    if (!x) return x.error();
    Result<F32Tensor> last = last_row(*x);
    if (!last) return last.error();
    Result<F32Tensor> logits = model_.logits(std::move(*last), engine_);
    if (!logits) return logits.error();
    held_ += ids.size();
    return std::move(logits->values);
}

uint64_t Decoder::bytes(const CheckpointModel& model, uint64_t capacity, const DecoderOptions& options) {
    const ModelFacts& f = model.facts();
    const uint64_t caches = 2 * f.layers * f.kv_heads * f.head_width * capacity * 4;
    const bool kept = model.all_stored_block_bytes() <= options.keep_bytes;
    return caches + (kept ? model.all_stored_block_bytes() : model.stored_block_bytes());
}

Result<Decoder> Decoder::open(const CheckpointModel& model, uint64_t capacity,
                              const DecoderOptions& options) {
    const ModelFacts& f = model.facts();
    if (!f.causal)
        return Error{FOVEA_UNSUPPORTED, "model",
                     "a " + f.family + " model is an encoder: it generates no text"};
    if (!model.missing().empty())
        return wrong("tensor", "no tensor '" + model.missing()[0] + "' in " +
                                   printable_name(model.files().path.string(), 400));
    if (capacity == 0) return wrong("capacity", "there must be room for at least one token");
    // Learned positions end; rotary ones only lose their meaning there.
    if (!f.rope && f.context != 0 && capacity > f.context)
        return Error{FOVEA_LIMIT_EXCEEDED, "capacity",
                     std::to_string(capacity) + " tokens; the model has learned " +
                         std::to_string(f.context) + " positions"};
    return Decoder(std::make_shared<Impl>(model, capacity, options));
}

Result<std::vector<float>> Decoder::run(std::span<const uint32_t> ids) { return impl_->run(ids); }
uint64_t Decoder::held() const { return impl_->held(); }
uint64_t Decoder::capacity() const { return impl_->capacity(); }
std::string Decoder::reason() const { return impl_->reason(); }

uint32_t Sampler::choose(std::span<const float> logits) {
    const auto largest = std::max_element(logits.begin(), logits.end());
    if (temperature_ <= 0 || logits.empty()) return uint32_t(largest - logits.begin());
    std::vector<double> sums;
    double sum = 0;
    for (const float logit : logits)
        sums.push_back(sum += std::exp((double(logit) - double(*largest)) / temperature_));
    // One uniform number in [0, 1) for each token, by the engine's counter-based generator.
    const Philox4 drawn = philox4x32_10({{uint32_t(drawn_), uint32_t(drawn_ >> 32), 0, 0}}, uint32_t(seed_),
                                        uint32_t(seed_ >> 32));
    ++drawn_;
    const double uniform = double((uint64_t(drawn.word[0]) << 21) ^ (drawn.word[1] >> 11)) * 0x1p-53;
    const auto chosen = std::upper_bound(sums.begin(), sums.end(), uniform * sum);
    return uint32_t(std::min<int64_t>(chosen - sums.begin(), int64_t(logits.size()) - 1));
}

}  // namespace fovea
