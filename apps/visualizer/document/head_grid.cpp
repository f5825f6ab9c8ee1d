#include "document/head_grid.hpp"

#include "document/imported_file.hpp"
#include "document/opened_model.hpp"
#include "document/projected.hpp"

#include <fovea/inspect.hpp>
#include <fovea/model/learned.hpp>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

namespace fovea::visualizer {
namespace {

Settings without_layer(Settings settings) {
    settings.mapping.layer = 0;
    // The reader's own rules for a published model apply only in the shown layer, except masked keys.
    if (settings.model) {
        const std::vector<uint32_t> hidden = settings.hidden_keys;
        static_cast<AttentionRules&>(settings) = {};
        settings.hidden_keys = hidden;
    }
    return settings;
}

bool same_text(const Settings& a, const Settings& b) {
    const auto key = [](const Settings& s) { return std::tie(s.model, s.learned, s.task, s.text); };
    return shows_model(a) && shows_model(b) && key(a) == key(b);
}

// True if the model of a task runs by other rules than its own.
bool has_other_rules(const Settings& s) {
    const Session own = level_session(s.level, s.task);
    return !s.changed.empty() || s.heads_off != 0 || !s.hidden_keys.empty() ||
           static_cast<const AttentionRules&>(own) != static_cast<const AttentionRules&>(s);
}

// The text and the changes of a published model; of others only that there are changes.
Result<Prompt> prompt_of(const Settings& s) {
    Prompt prompt;
    prompt.side = HeadGrid::kSide;
    if (!shows_model(s)) return prompt;
    prompt.other_rules = !s.model && has_other_rules(s);
    if (!s.model) return prompt;
    Result<std::vector<uint32_t>> ids = tokens_of(*s.model, s.text);
    if (!ids) return ids.error();
    prompt.ids = std::move(*ids);
    for (const uint32_t key : s.hidden_keys)
        if (key < prompt.ids.size()) prompt.changes.hidden_tokens.push_back(key);
    for (const HeadChange& change : s.changed) {
        if (change.patch.empty()) {
            prompt.changes.scale_head(change.at.layer, change.at.head, change.scale);
            continue;
        }
        Result<std::vector<uint32_t>> other = tokens_of(*s.model, change.patch);
        if (!other) return Error{other.error().code, "patch", other.error().text};
        if (other->size() != prompt.ids.size())
            return Error{FOVEA_INVALID_ARGUMENT, "patch",
                         "\xe2\x80\x9c" + change.patch + "\xe2\x80\x9d has " + std::to_string(other->size()) +
                             " tokens; to patch a head it must have " + std::to_string(prompt.ids.size()) +
                             ", as the text"};
        prompt.patches.push_back({change.at.layer, change.at.head, std::move(*other)});
    }
    return prompt;
}

PromptLayer refused_layer(uint32_t layer, const Error& error) {
    PromptLayer none;
    none.layer = layer, none.problem = error.text;
    return none;
}

}  // namespace

std::string head_name(uint32_t layer, uint32_t head) {
    return "L" + std::to_string(layer) + "H" + std::to_string(head);
}

Result<PromptNext> next_after(const Settings& s, const PromptRun& run, uint64_t row) {
    constexpr size_t kMax = 8;
    return run.next(row, kMax, [&](F32Tensor rows) {
        return s.model ? s.model->weights.logits(std::move(rows))
                       : logits_of(*learned_of(s).model, std::move(rows));
    });
}

std::string next_text(const Settings& s, uint32_t token) {
    if (s.model) return token_text(*s.model, token);
    const std::vector<std::string>& vocabulary = learned_of(s).model->vocabulary;
    return token < vocabulary.size() ? vocabulary[token] : "";
}

HeadGrid::HeadGrid(const Settings& settings, std::function<void()> wake, const HeadGrid* before)
    : settings_(settings), wanted_(shown_layers(settings)), wake_(std::move(wake)) {
    Result<Prompt> prompt = prompt_of(settings);
    if (prompt) {
        const bool known = before && before->run_ && same_text(before->settings_, settings);
        run_ = std::make_shared<PromptRun>(std::move(*prompt),
                                           known && settings.model ? before->run_.get() : nullptr);
        if (known && !settings.model) run_->compare_with(*before->run_);
    } else {
        problem_ = prompt.error().text;
    }
    thread_ = std::thread([this] {
        if (Result<void> r = run_ ? work() : Result<void>(); !r) {
            const std::lock_guard lock(mutex_);
            problem_ = r.error().text;
        }
        ended_ = true;
        if (wake_) wake_();
    });
}

HeadGrid::~HeadGrid() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
}

bool HeadGrid::serves(const Settings& settings) const {
    return without_layer(settings) == without_layer(settings_);
}

std::string HeadGrid::problem() const {
    const std::lock_guard lock(mutex_);
    return problem_;
}

void HeadGrid::add(PromptLayer layer) {
    run_->add(std::move(layer));
    if (wake_) wake_();
}

Result<void> HeadGrid::work() {
    if (settings_.model) return run_published();
    if (shows_model(settings_)) return run_learned();
    for (const uint32_t layer : wanted_) {
        if (ending_) return {};
        Settings settings = settings_;
        settings.mapping.layer = layer;
        const Result<Projected> projected = project(settings);
        const auto trace = projected ? trace_of(*projected, settings) : projected.error();
        Result<PromptLayer> made = trace ? prompt_layer(**trace, projected->layer, {}, kSide) : trace.error();
        if (made) made->layer = layer;
        add(made ? std::move(*made) : refused_layer(layer, made.error()));
    }
    return {};
}

// A model of the tutorials' size: one trace has all of its layers.
Result<void> HeadGrid::run_learned() {
    const Result<Projected> projected = project(settings_);
    if (!projected) return projected.error();
    Trace& trace = *projected->trace;
    // Equal tokens have equal values.
    std::vector<uint32_t> ids;
    const std::vector<std::string>& tokens = projected->tokens;
    for (const std::string& token : tokens)
        ids.push_back(uint32_t(std::find(tokens.begin(), tokens.end(), token) - tokens.begin()));
    for (const uint32_t layer : wanted_) {
        if (ending_) return {};
        Result<F32Tensor> x = layer == 0 ? trace.stage(StageId::inputs) : trace.leaving(layer - 1);
        if (!x) return x.error();
        run_->enter(std::move(*x));
        Result<PromptLayer> made = prompt_layer(trace, layer, ids, kSide);
        add(made ? std::move(*made) : refused_layer(layer, made.error()));
    }
    Result<F32Tensor> leaves = trace.leaving(wanted_.back());
    if (!leaves) return leaves.error();
    run_->enter(std::move(*leaves));
    run_->end();
    return {};
}

// The engine runs the model; each layer is looked at while it is in memory.
Result<void> HeadGrid::run_published() {
    const std::unique_ptr<Runner> engine = make_model_runner();
    PromptOptions options;
    options.trace.engine = engine.get();
    options.progress = [&](double) { return !ending_; };
    options.wake = wake_;
    options.check_memory = [&](uint64_t need) -> Result<void> {
        const uint64_t has = machine_memory();
        if (has == 0 || need <= has) return {};
        return Error{FOVEA_OUT_OF_HOST_MEMORY, "text",
                     "the text has " + std::to_string(run_->prompt().ids.size()) + " tokens, which need " +
                         format_bytes(need) + " of memory; this machine has " + format_bytes(has) +
                         ": use a shorter text"};
    };
    return run_->run(settings_.model->weights, options);
}

Result<void> HeadGrid::take(const GpuDevice& device) {
    while (const std::shared_ptr<const PromptLayer> made = run_ ? run_->layer(layers_.size()) : nullptr) {
        GridLayer layer;
        layer.layer = made->layer, layer.rows = made->rows, layer.columns = made->columns;
        layer.problem = made->problem;
        const size_t size = size_t(made->rows) * made->columns;
        for (uint32_t head = 0; head < made->heads.size(); ++head)
            layer.heads.push_back({layer.layer, head, made->heads[head].stats, made->heads[head].scores,
                                   fitted_range(std::span(made->pictures).subspan(head * size, size))});
        if (!made->pictures.empty()) {
            Result<GpuBuffer> buffer = GpuBuffer::create(device, made->pictures.size() * 4, "thumbnails");
            if (!buffer) return buffer.error();
            layer.pixels = std::move(*buffer);
            std::memcpy(layer.pixels.data(), made->pictures.data(), made->pictures.size() * 4);
            layer.pixels.flush();
        }
        layers_.push_back(std::move(layer));
    }
    return {};
}

Result<void> HeadGrid::finish(const GpuDevice& device) {
    if (thread_.joinable()) thread_.join();
    return take(device);
}

uint64_t HeadGrid::size_bytes() const {
    uint64_t sum = 0;
    for (const GridLayer& layer : layers_) sum += layer.pixels.size_bytes();
    return sum;
}

}  // namespace fovea::visualizer
