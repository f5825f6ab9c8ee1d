#include <fovea/inspect/kept_run.hpp>
#include <fovea/model/session.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>

namespace fovea {
namespace {

constexpr const char* kWhat =
    "hidden, q, k, v, context, lse, weights, logits or another stage of a layer, and after a colon a layer, "
    "or "
    "layer and head, such as weights:3.1";

bool has_heads(StageId id) { return (id >= StageId::queries && id <= StageId::lse); }

// True for what a layer computes: not the weights of the model, nor the ends of a whole trace.
bool is_of_run(StageId id) {
    return id >= StageId::normed && id < StageId::final && id != StageId::w_query && id != StageId::w_key &&
           id != StageId::w_value && id != StageId::w_output;
}

bool is_pair(StageId id) {
    return id >= StageId::scores && id <= StageId::dropped && id != StageId::row_sums;
}

// One name of the list.
struct Kept {
    enum class Kind { hidden, logits, stage } kind = Kind::stage;
    StageId stage = StageId::weights;
    std::optional<uint64_t> place, head;  // place: a layer; of logits a token

    uint64_t heads(const ModelConfig& f) const {
        return stage == StageId::keys || stage == StageId::values ? f.kv_heads : f.heads;
    }
    bool is_of(uint64_t layer) const { return !place || *place == layer; }

    // Returns the elements of one layer; of a stage that only its trace knows, the most that it may have.
    uint64_t elements(const ModelConfig& f, uint64_t tokens) const {
        if (kind == Kind::hidden) return tokens * f.width;
        if (kind == Kind::logits) return (place ? 1 : tokens) * f.vocabulary;
        if (!has_heads(stage)) return tokens * std::max(f.width, f.hidden);
        const uint64_t row = is_pair(stage) ? tokens : f.head_width;
        return (head ? 1 : heads(f)) * tokens * row;
    }
};

Error refused(std::string_view name, const std::string& why) {
    return {FOVEA_INVALID_ARGUMENT, "keep", "keep has '" + printable_name(name, 60) + "'" + why};
}

Result<Kept> kept_of(std::string_view name, const ModelConfig& f, uint64_t tokens) {
    Kept kept;
    const size_t colon = name.find(':');
    const std::string_view what = name.substr(0, colon);
    constexpr std::pair<std::string_view, StageId> kShort[] = {
        {"q", StageId::queries}, {"k", StageId::keys}, {"v", StageId::values}};
    const auto* const known = std::find_if(std::begin(kShort), std::end(kShort),
                                           [&](const auto& one) { return one.first == what; });
    if (what == "hidden" || what == "logits") {
        kept.kind = what == "hidden" ? Kept::Kind::hidden : Kept::Kind::logits;
    } else if (known != std::end(kShort)) {
        kept.stage = known->second;
    } else if (const std::optional<StageId> stage = stage_from_name(what); stage && is_of_run(*stage)) {
        kept.stage = *stage;
    } else {
        return refused(name, "; it must be " + std::string(kWhat));
    }
    if (colon == name.npos) return kept;
    std::string_view rest = name.substr(colon + 1);
    const auto number = [&](const char* of, uint64_t limit) -> Result<uint64_t> {
        uint64_t value = 0;
        const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
        if (code != std::errc()) return refused(name, "; it must be " + std::string(kWhat));
        if (value >= limit)
            return refused(name, ", whose " + std::string(of) + " is " + std::to_string(value) +
                                     "; it must be from 0 to " + std::to_string(limit - 1));
        rest.remove_prefix(size_t(end - rest.data()));
        return value;
    };
    const bool is_stage = kept.kind == Kept::Kind::stage;
    const Result<uint64_t> place = kept.kind == Kept::Kind::logits
                                       ? number("token", tokens)
                                       : number("layer", f.layers + (is_stage ? 0 : 1));
    if (!place) return place.error();
    kept.place = *place;
    if (is_stage && has_heads(kept.stage) && rest.starts_with('.')) {
        rest.remove_prefix(1);
        const Result<uint64_t> head = number("head", kept.heads(f));
        if (!head) return head.error();
        kept.head = *head;
    }
    if (!rest.empty()) return refused(name, "; it must be " + std::string(kWhat));
    return kept;
}

// A stage of the only layer of a trace, without axes of one column.
Result<F32Tensor> stage_of(Trace& trace, const Kept& kept, const ModelConfig& f) {
    if (kept.stage == StageId::context) {
        Result<F32Tensor> all = trace.stage(kept.stage);
        if (!all) return all;
        const uint64_t rows = all->rows(), columns = all->columns();
        if (kept.head) return slice_columns(*all, *kept.head * f.head_width, f.head_width);
        return reshaped(split_heads(reshaped(std::move(*all), {1, rows, columns}), f.heads),
                        {f.heads, rows, columns / f.heads});
    }
    Result<F32Tensor> of =
        kept.head ? trace.stage(kept.stage, uint32_t(*kept.head)) : trace.whole_stage(kept.stage);
    if (!of || !has_heads(kept.stage)) return of;
    Shape shape = {trace.rows(), of->columns()};
    if (kept.stage == StageId::lse || kept.stage == StageId::row_sums) shape.pop_back();
    if (!kept.head) shape.insert(shape.begin(), kept.heads(f));
    return reshaped(std::move(*of), std::move(shape));
}

// Appends a layer's tensor to that of all layers.
void put(const Kept& kept, uint64_t layers, F32Tensor layer, F32Tensor& to) {
    if (kept.place) {
        to = std::move(layer);
        return;
    }
    if (to.values.empty()) {
        to.shape = layer.shape;
        to.shape.insert(to.shape.begin(), layers);
        to.values.reserve(size_t(layers * layer.values.size()));
    }
    to.values.insert(to.values.end(), layer.values.begin(), layer.values.end());
}

// Returns the memory that Linux reports as available without swapping; 0 if unknown.
uint64_t free_memory() {
    std::ifstream file("/proc/meminfo");
    std::string key, unit;
    for (uint64_t value = 0; file >> key >> value; std::getline(file, unit))
        if (key == "MemAvailable:") return value * 1024;
    return 0;
}

}  // namespace

std::string bytes_text(uint64_t bytes) {
    constexpr const char* kUnits[] = {"bytes", "KB", "MB", "GB", "TB"};
    auto value = double(bytes);
    size_t unit = 0;
    for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
    return text;
}

Result<void> check_memory(uint64_t bytes, std::string_view hint) {
    const uint64_t free = free_memory();
    if (free == 0 || bytes <= free) return {};
    return Error{FOVEA_LIMIT_EXCEEDED, "memory",
                 "this run needs about " + bytes_text(bytes) + " of memory, and " + bytes_text(free) +
                     " is free; " + std::string(hint)};
}

Result<std::vector<F32Tensor>> run_keeping(const CheckpointModel& model, std::span<const uint32_t> ids,
                                           std::span<const std::string> keep, ModelRunOptions options) {
    if (ids.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "tokens", "tokens is empty; it must have at least one token"};
    const ModelConfig& f = model.config();
    std::vector<Kept> all;
    options.with_logits = options.with_hidden = options.with_weights = options.with_lens = false;
    uint64_t bytes = run_model_bytes(model, ids.size(), options);
    for (const std::string& name : keep) {
        Result<Kept> one = kept_of(name, f, ids.size());
        if (!one) return one.error();
        if (one->kind == Kept::Kind::logits && !model.has_unembedding())
            return refused(name, ", and the model's files have no unembedding; leave it out");
        const bool is_one = one->place || one->kind == Kept::Kind::logits;
        const uint64_t times = is_one ? 1 : f.layers + (one->kind == Kept::Kind::hidden ? 1 : 0);
        bytes += 4 * times * one->elements(f, ids.size());
        // A trace computes the scores of one head at a time, in five matrices.
        if (one->kind == Kept::Kind::stage && is_pair(one->stage)) bytes += 20 * ids.size() * ids.size();
        all.push_back(*one);
    }
    if (Result<void> r = check_memory(bytes, "give fewer tokens, or keep fewer tensors"); !r)
        return r.error();
    std::vector<F32Tensor> kept(keep.size(), F32Tensor(Shape{0}));
    const auto hook = std::move(options.on_hidden);
    options.on_hidden = [&](uint64_t n, F32Tensor& hidden) -> Result<void> {
        if (hook)
            if (Result<void> r = hook(n, hidden); !r) return r;
        for (size_t i = 0; i < all.size(); ++i)
            if (all[i].kind == Kept::Kind::hidden && all[i].is_of(n)) {
                put(all[i], f.layers + 1, hidden, kept[i]);
            } else if (all[i].kind == Kept::Kind::logits && n == f.layers) {
                F32Tensor rows = hidden;
                if (all[i].place) {
                    const auto row = hidden.row(*all[i].place);
                    rows = F32Tensor({1, f.width}, {row.begin(), row.end()});
                }
                Result<F32Tensor> logits = model.logits(std::move(rows), options.trace.engine);
                if (!logits) return logits.error();
                if (all[i].place) logits->shape.erase(logits->shape.begin());
                kept[i] = std::move(*logits);
            }
        return {};
    };
    options.on_layer = [&](uint64_t n, Trace& trace) -> Result<void> {
        for (size_t i = 0; i < all.size(); ++i) {
            if (all[i].kind != Kept::Kind::stage || !all[i].is_of(n)) continue;
            Result<F32Tensor> stage = stage_of(trace, all[i], f);
            if (!stage)
                return refused(
                    keep[i], ", which layer " + std::to_string(n) + " does not have: " + stage.error().text);
            put(all[i], f.layers, std::move(*stage), kept[i]);
        }
        return {};
    };
    const Result<ModelRun> ran = run_model(model, ids, options);
    if (!ran) return ran.error();
    return kept;
}

}  // namespace fovea
