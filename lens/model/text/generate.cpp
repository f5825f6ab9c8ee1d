#include <fovea/model/generate.hpp>
#include <fovea/model/next_tokens.hpp>
#include <fovea/philox.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <tuple>

#include "files/number_text.hpp"
#include "model/text/host_text.hpp"

namespace fovea {
namespace {

Error wrong(std::string field, std::string text) {
    return {FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

// True if texts of these two lengths turn by the same angles in every layer.
bool same_blocks(const ModelConfig& f, uint64_t a, uint64_t b) {
    const auto same = [&](const std::optional<RopeConfig>& rope) {
        return !rope || rope->is_long(a) == rope->is_long(b);
    };
    return same(f.rope) && same(f.local_rope);
}

}  // namespace

class Decoder::Impl {
  public:
    Impl(const CheckpointModel& model, uint64_t capacity, const DecoderOptions& options)
        : model_(model), capacity_(capacity), engine_(&runner_or_own(options.engine, own_engine_)) {
        const ModelConfig& f = model_.config();
        text_ = engine_->text(f.layers, capacity_);
        if (!text_) text_ = std::make_unique<HostText>(*engine_, f.layers, capacity_);
        keep_ = model_.all_stored_block_bytes() <= options.keep_bytes;
        blocks_.resize(f.layers);
    }

    Result<std::vector<float>> run(std::span<const uint32_t> ids);
    uint64_t held() const { return ids_.size(); }
    uint64_t capacity() const { return capacity_; }
    std::string reason() const { return engine_->reason(); }

  private:
    Result<std::shared_ptr<const Block>> block(uint64_t layer) {
        if (blocks_[layer]) return blocks_[layer];
        Result<Block> made = model_.block(layer, length_, true);
        if (!made) return made.error();
        std::shared_ptr<const Block> shared = std::make_shared<const Block>(std::move(*made));
        if (keep_) blocks_[layer] = shared;
        return shared;
    }

    Result<F32Tensor> last_row(const F32Tensor& x);

    CheckpointModel model_;
    uint64_t capacity_;
    std::vector<uint32_t> ids_;  // the text so far
    uint64_t cached_ = 0;        // tokens whose keys and values the layers hold: all, or after a switch none
    uint64_t length_ = 1;        // a length of text that the blocks are made for
    std::unique_ptr<Runner> own_engine_;
    Runner* engine_;
    std::unique_ptr<ResidentText> text_;
    bool keep_ = true;
    std::vector<std::shared_ptr<const Block>> blocks_;
};

// Through all layers, where they are.
Result<F32Tensor> Decoder::Impl::last_row(const F32Tensor& x) {
    const uint64_t layers = model_.config().layers;
    const auto through = [&]() -> Result<F32Tensor> {
        if (Result<void> r = text_->enter(x, cached_); !r) return r.error();
        for (uint64_t n = 0; n < layers; ++n) {
            const Result<std::shared_ptr<const Block>> b = block(n);
            if (!b) return b.error();
            if (Result<void> r = text_->layer(n, **b); !r) return r.error();
        }
        return text_->row(x.rows() - 1);
    };
    Result<F32Tensor> last = through();
    if (last || cached_ != 0 || last.error().code != FOVEA_OUT_OF_DEVICE_MEMORY) return last;
    // A model that does not fit goes through the device one matrix at a time.
    text_ = std::make_unique<HostText>(*engine_, layers, capacity_);
    return through();
}

Result<std::vector<float>> Decoder::Impl::run(std::span<const uint32_t> ids) {
    if (ids.empty()) return wrong("tokens", "tokens is empty; it must have at least one token");
    if (ids.size() > capacity_ - ids_.size())
        return wrong("tokens", std::to_string(ids.size()) + " tokens do not fit after " +
                                   std::to_string(ids_.size()) + "; there is room for " +
                                   std::to_string(capacity_));
    std::vector<uint32_t> text = ids_;
    text.insert(text.end(), ids.begin(), ids.end());
    // Long texts turn by other angles than short ones: where a text outgrows the short ones, its cached rows
    // are of no use, and it runs anew.
    if (!same_blocks(model_.config(), text.size(), length_)) {
        cached_ = 0;
        std::fill(blocks_.begin(), blocks_.end(), nullptr);
    }
    length_ = text.size();
    Result<F32Tensor> x = model_.embed(std::span(text).subspan(cached_), cached_);
    if (!x) return x.error();
    Result<F32Tensor> last = last_row(*x);
    if (!last) return last.error();
    Result<F32Tensor> logits = model_.logits(std::move(*last), engine_);
    if (!logits) return logits.error();
    ids_ = std::move(text), cached_ = ids_.size();
    return std::move(logits->values);
}

uint64_t Decoder::bytes(const CheckpointModel& model, uint64_t capacity, const DecoderOptions& options) {
    const ModelConfig& f = model.config();
    const uint64_t caches = 2 * f.layers * f.kv_heads * f.head_width * capacity * 4;
    const bool kept = model.all_stored_block_bytes() <= options.keep_bytes;
    return caches + (kept ? model.all_stored_block_bytes() : model.stored_block_bytes());
}

Result<Decoder> Decoder::open(const CheckpointModel& model, uint64_t capacity,
                              const DecoderOptions& options) {
    const ModelConfig& f = model.config();
    if (!f.causal)
        return Error{FOVEA_UNSUPPORTED, "model",
                     "a " + f.family + " model is an encoder, which generates no text; use a decoder model"};
    if (!model.missing().empty())
        return wrong("tensor", "tensor '" + model.missing()[0] + "' is missing from " +
                                   printable_name(model.files().path.string(), 400));
    if (capacity == 0) return wrong("capacity", "capacity is 0; it must be at least 1");
    // Learned positions end; rotary ones only lose their meaning there.
    if (!f.rope && f.context != 0 && capacity > f.context)
        return Error{FOVEA_LIMIT_EXCEEDED, "capacity",
                     "capacity is " + std::to_string(capacity) + "; the model has learned " +
                         std::to_string(f.context) + " positions, which is the limit"};
    return Decoder(std::make_shared<Impl>(model, capacity, options));
}

Result<std::vector<float>> Decoder::run(std::span<const uint32_t> ids) { return impl_->run(ids); }
uint64_t Decoder::held() const { return impl_->held(); }
uint64_t Decoder::capacity() const { return impl_->capacity(); }
std::string Decoder::reason() const { return impl_->reason(); }

namespace {

// Sets the weights of tokens that the filters leave out to 0. They are proportional to exp(logit /
// temperature).
void keep_likeliest(std::vector<double>& weights, const SamplerOptions& o) {
    std::vector<double> sorted = weights;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    if (o.top_k != 0 && o.top_k < sorted.size()) {
        const double last = sorted[size_t(o.top_k) - 1];
        sorted.erase(std::upper_bound(sorted.begin(), sorted.end(), last, std::greater<>()), sorted.end());
    }
    if (o.top_p < 1) {
        const double enough = o.top_p * std::accumulate(sorted.begin(), sorted.end(), 0.0);
        size_t kept = 0;
        for (double sum = 0; kept < sorted.size() && (kept == 0 || sum < enough); ++kept) sum += sorted[kept];
        sorted.resize(kept);
    }
    const double least = std::max(sorted.back(), o.min_p * sorted.front());
    for (double& weight : weights)
        if (weight < least) weight = 0;
}

}  // namespace

Result<uint32_t> Sampler::choose(std::span<const float> logits, uint64_t position) const {
    if (Result<void> r = check_logits(logits); !r) return r.error();
    const auto largest = std::max_element(logits.begin(), logits.end());
    if (options_.temperature <= 0) return uint32_t(largest - logits.begin());
    std::vector<double> sums;
    for (const float logit : logits)
        sums.push_back(std::exp((double(logit) - double(*largest)) / options_.temperature));
    if (options_.top_k != 0 || options_.top_p < 1 || options_.min_p > 0) keep_likeliest(sums, options_);
    std::partial_sum(sums.begin(), sums.end(), sums.begin());
    const double sum = sums.back();
    // One uniform number in [0, 1) for each position, by the engine's counter-based generator: a text that is
    // continued later draws what it would have drawn.
    const Philox4 drawn = philox4x32_10({{uint32_t(position), uint32_t(position >> 32), 0, 0}},
                                        uint32_t(options_.seed), uint32_t(options_.seed >> 32));
    const double uniform = double((uint64_t(drawn.word[0]) << 21) ^ (drawn.word[1] >> 11)) * 0x1p-53;
    const auto chosen = std::upper_bound(sums.begin(), sums.end(), uniform * sum);
    // A rounded product may be the whole sum: the last token that has a share in it.
    const auto last = std::lower_bound(sums.begin(), sums.end(), sum);
    return uint32_t(std::min(chosen, last) - sums.begin());
}

Result<void> check_generation(const GenerationOptions& options) {
    constexpr uint64_t kMaxCount = 1'000'000;
    if (options.count < 1 || options.count > kMaxCount)
        return wrong("count", "count is " + std::to_string(options.count) + "; it must be from 1 to " +
                                  std::to_string(kMaxCount));
    const SamplerOptions& o = options.sampling;
    const std::tuple<const char*, double, double> numbers[] = {
        {"temperature", o.temperature, 1000}, {"top_p", o.top_p, 1}, {"min_p", o.min_p, 1}};
    for (const auto& [name, value, most] : numbers) {
        if (value >= 0 && value <= most) continue;
        std::string text = std::string(name) + " is ";
        files::append_number(text, value);
        files::append_number(text += "; it must be from 0 to ", most);
        return wrong(name, std::move(text));
    }
    const std::pair<const char*, bool> filters[] = {
        {"top_k", o.top_k != 0}, {"top_p", o.top_p < 1}, {"min_p", o.min_p > 0}};
    for (const auto& [name, is_on] : filters)
        if (is_on && o.temperature == 0)
            return wrong(name, std::string(name) +
                                   " needs a temperature above 0: without it the likeliest token is taken");
    return {};
}

bool Generation::ends(const CheckpointModel& model, std::span<const uint32_t> text,
                      const GenerationOptions& options) {
    const std::vector<uint32_t>& ends = model.config().end_tokens;
    return !options.ignore_eos && !text.empty() && std::binary_search(ends.begin(), ends.end(), text.back());
}

Result<Generation> Generation::open(const CheckpointModel& model, std::vector<uint32_t> text,
                                    const GenerationOptions& options) {
    if (Result<void> r = check_generation(options); !r) return r.error();
    if (text.empty()) return wrong("tokens", "tokens is empty; it must have at least one token");
    Result<Decoder> decoder = Decoder::open(model, capacity(text.size(), options), options.decoder);
    if (!decoder) {
        Error error = decoder.error();
        if (error.field == "capacity") error.field = "count";  // the option that a caller can change
        return error;
    }
    return Generation(model, std::move(*decoder), std::move(text), options);
}

Result<uint32_t> Generation::next() {
    const Result<std::vector<float>> logits = decoder_.run(next_);
    if (!logits) return logits.error();
    const Result<uint32_t> chosen = Sampler(options_.sampling).choose(*logits, text_size_ + made_.size());
    if (!chosen) return chosen;
    next_ = {*chosen};
    made_.push_back(*chosen);
    ended_ = ends(model_, made_, options_);
    return chosen;
}

}  // namespace fovea
