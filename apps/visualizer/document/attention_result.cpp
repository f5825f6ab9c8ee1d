#include "document/attention_result.hpp"

#include "document/imported_file.hpp"
#include "document/opened_model.hpp"

#include <fovea/runtime.hpp>

#include <algorithm>
#include <cctype>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace fovea::visualizer {
namespace {

// The trace computes further matrices of all heads up to here; they are another copy each.
constexpr uint64_t kMaxTracedCells = 4u << 20;
constexpr const char* kMeanStage = "mean_weights";
constexpr double kRowSumAlarm = 1e-3;

struct Summed {  // Statistics of one head's values.
    float low = INFINITY, high = -INFINITY;
    double sum = 0;
    uint64_t finite = 0, nan = 0, infinite = 0, hidden = 0;
};

// Computed in lanes, because millions of values are summarized between two frames.
Summed summed(std::span<const float> values) {
    constexpr size_t kLanes = 8;
    float low[kLanes], high[kLanes];
    double sum[kLanes] = {};
    uint32_t finite[kLanes] = {};
    std::fill_n(low, kLanes, INFINITY);
    std::fill_n(high, kLanes, -INFINITY);
    const auto take = [&](float value, size_t lane) {
        const bool counts = std::abs(value) <= FLT_MAX;
        const float below = counts ? value : INFINITY, above = counts ? value : -INFINITY;
        low[lane] = below < low[lane] ? below : low[lane];
        high[lane] = above > high[lane] ? above : high[lane];
        sum[lane] += counts ? double(value) : 0;
        finite[lane] += counts;
    };
    const size_t whole = values.size() / kLanes * kLanes;
    for (size_t i = 0; i < whole; i += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane) take(values[i + lane], lane);
    for (size_t i = whole; i < values.size(); ++i) take(values[i], 0);
    Summed out;
    for (size_t lane = 0; lane < kLanes; ++lane) {
        out.low = std::min(out.low, low[lane]), out.high = std::max(out.high, high[lane]);
        out.sum += sum[lane];
        out.finite += finite[lane];
    }
    if (out.finite == values.size()) return out;
    for (const float value : values) {
        out.nan += value != value;
        out.hidden += value == -INFINITY;
        out.infinite += value == INFINITY;
    }
    return out;
}

ColorRange range_of(const Summed& s) {
    const float ends[] = {s.low, s.high};
    return fitted_range(std::span(ends, s.finite > 0 ? 2 : 0));
}

StageStats stats_of(const std::vector<Summed>& heads) {
    StageStats stats;
    double sum = 0, low = INFINITY, high = -INFINITY;
    uint64_t finite = 0;
    for (const Summed& s : heads) {
        sum += s.sum, finite += s.finite;
        stats.nan += s.nan, stats.infinite += s.infinite, stats.hidden += s.hidden;
        low = std::min(low, double(s.low)), high = std::max(high, double(s.high));
    }
    if (finite > 0) stats.low = low, stats.high = high, stats.mean = sum / double(finite);
    return stats;
}

void fill(const GpuBuffer& buffer, const std::vector<float>& values) {
    std::memcpy(buffer.data(), values.data(), values.size() * 4);
    buffer.flush();
}

// True for the matrices of a layer.
bool is_weight(StageId id) {
    return id == StageId::w_query || id == StageId::w_key || id == StageId::w_value ||
           id == StageId::w_output;
}

// The window's fonts have no small letters above or below the line.
std::string in_plain_letters(std::string formula) {
    const std::pair<const char*, const char*> all[] = {{"\xe1\xb5\x80", "^T"},         // superscript T
                                                       {"\xe2\xb1\xbc", ""},           // subscript j
                                                       {"\xe2\x8a\x99", "\xc3\x97"}};  // circled dot
    for (const auto& [from, to] : all)
        for (size_t at = formula.find(from); at != std::string::npos; at = formula.find(from))
            formula.replace(at, std::char_traits<char>::length(from), to);
    return formula;
}

// Adds a stage with values in host memory, and a buffer to draw it from.
Result<void> add_host_stage(GpuDevice& device, AttentionResult& result, Stage stage,
                            const F32Tensor& values) {
    Result<GpuBuffer> made = GpuBuffer::create(device, values.values.size() * 4);
    if (!made) return made.error();
    fill(*made, values.values);
    result.host_buffers.push_back(std::make_unique<GpuBuffer>(std::move(*made)));
    stage.formula = in_plain_letters(std::move(stage.formula));
    stage.heads = values.rank() == 3 ? values.shape[0] : 1;
    stage.columns = values.columns();
    stage.rows = values.rows() / stage.heads;
    stage.buffer = result.host_buffers.back().get();
    stage.values = {reinterpret_cast<const float*>(stage.buffer->data()), values.values.size()};
    stage.row_tokens = !stage.id || !is_weight(*stage.id);
    result.stages.push_back(std::move(stage));
    return {};
}

// Where the call writes a stage of the model; none: the trace computes it.
std::optional<FoveaBinding> written_by_call(const AttentionResult& result, StageId id) {
    const AttentionRules& rules = result.trace->rules(result.projected.layer);
    const bool after = rules.route == MaskRoute::after && hides(rules), drops = rules.dropout_p > 0;
    if (id == StageId::scaled) return FOVEA_BIND_SCORES;
    if (id == StageId::scores && score_scale(rules, result.run->desc().dim_qk).value == 1.0)
        return FOVEA_BIND_SCORES;
    if (id == StageId::masked) return FOVEA_BIND_MASKED;
    if (id == StageId::lse) return FOVEA_BIND_LSE;
    if (id == StageId::context && result.run->desc().heads_q == 1 && !after) return FOVEA_BIND_O;
    // The route that hides after the softmax has a call without masks.
    if (after) return id == StageId::weights_all && !drops ? std::optional(FOVEA_BIND_WEIGHTS) : std::nullopt;
    if (id == (drops ? StageId::dropped : StageId::weights)) return FOVEA_BIND_WEIGHTS;
    return {};
}

// Adds the mean of the weights of several heads after the weights. Both buffers are filled once the call has
// ended.
Result<void> add_mean_stage(GpuDevice& device, AttentionResult& result) {
    const Stage weights = result.stages.back();
    Stage mean{kMeanStage, "mean of the heads' weights", {}};
    mean.rows = weights.rows, mean.columns = weights.columns;
    mean.over_keys = mean.is_sum = mean.row_tokens = mean.of_heads = true;
    for (const bool hiding : {false, true}) {
        Result<GpuBuffer> room = GpuBuffer::create(device, mean.rows * mean.columns * 4);
        if (!room) return room.error();
        result.host_buffers.push_back(std::make_unique<GpuBuffer>(std::move(*room)));
        GpuBuffer* const buffer = result.host_buffers.back().get();
        const std::span values(reinterpret_cast<const float*>(buffer->data()), mean.rows * mean.columns);
        if (hiding)
            mean.hiding = buffer, mean.hiding_values = values;
        else
            mean.buffer = mean.traced = buffer, mean.values = values;
    }
    result.stages.push_back(mean);
    return {};
}

// A key that no head sees is hidden.
void fill_mean(const Stage& weights, Stage& mean) {
    const size_t cells = mean.rows * mean.columns;
    std::vector<float> sums(cells, 0.0f), hides(cells, 0.0f);
    for (size_t cell = 0; cell < cells; ++cell) {
        bool seen = false;
        for (uint32_t head = 0; head < weights.heads; ++head) {
            sums[cell] += weights.head_values(head)[cell];
            seen = seen || !weights.hidden(head, cell / mean.columns, cell % mean.columns);
        }
        sums[cell] /= float(weights.heads);
        if (!seen) hides[cell] = -INFINITY;
    }
    fill(*mean.traced, sums);
    fill(*mean.hiding, hides);
}

// The model's stages from the scores on.
Result<void> add_call_stages(GpuDevice& device, AttentionResult& result) {
    const uint64_t cells = result.projected.q.shape[1] * result.projected.k.shape[1];
    for (const TraceStage& made : result.trace->stages(result.projected.layer)) {
        const StageText& text = stage_text(made.id);
        if (made.id < StageId::scores) continue;
        const std::optional<FoveaBinding> binding = written_by_call(result, made.id);
        // Other stages with one cell per weight are shown, in addition to the call's own matrices, while they
        // are small.
        if (!binding && text.pairs && cells * made.heads > kMaxTracedCells) continue;
        Stage stage{text.name, in_plain_letters(made.formula), made.id};
        stage.heads = made.heads, stage.rows = made.rows, stage.columns = made.columns;
        stage.over_keys = text.pairs;
        stage.is_sum = text.sums && made.id != StageId::masked_weights && made.id != StageId::dropped;
        stage.row_tokens = !is_weight(made.id);
        if (binding) {
            stage.buffer = &result.run->buffer(*binding);
            stage.values = result.run->values(*binding);
        } else {
            Result<GpuBuffer> room = GpuBuffer::create(device, made.heads * made.rows * made.columns * 4);
            if (!room) return room.error();
            result.host_buffers.push_back(std::make_unique<GpuBuffer>(std::move(*room)));
            stage.traced = result.host_buffers.back().get();
            stage.buffer = stage.traced;
            stage.values = {reinterpret_cast<const float*>(stage.buffer->data()),
                            made.heads * made.rows * made.columns};
        }
        if (text.sums && text.pairs) {  // probabilities of the next token sum up, too, and hide none
            stage.hiding = &result.run->buffer(FOVEA_BIND_MASKED);
            stage.hiding_values = result.run->values(FOVEA_BIND_MASKED);
        }
        if (made.id == StageId::weights && !result.projected.extras.sinks.empty())
            stage.formula += ", a sink in each row";
        if (made.id == StageId::context && result.run->products_info())
            stage.formula +=
                std::string(", float16 inputs by ") + kernel_name(result.run->products_info()->kernel);
        result.stages.push_back(stage);
        if (made.id == StageId::weights && made.heads > 1 && cells * made.heads <= kMaxTracedCells)
            if (Result<void> r = add_mean_stage(device, result); !r) return r;
    }
    const Stage* const keep = result.find_stage(StageId::keep);
    for (Stage& stage : result.stages)
        if (keep && stage.id == StageId::dropped && keep->heads == stage.heads)
            stage.dropping = keep->buffer, stage.dropping_values = keep->values;
    return {};
}

// The call's [heads, rows, width] as the model has contexts: [rows, heads * width].
F32Tensor side_by_side(const AttentionRun& run) {
    const FoveaAttentionDesc& d = run.desc();
    const std::span<const float> o = run.values(FOVEA_BIND_O);
    F32Tensor joined({d.len_q, uint64_t(d.heads_q) * d.dim_v});
    for (uint64_t head = 0; head < d.heads_q; ++head)
        for (uint64_t row = 0; row < d.len_q; ++row)
            std::memcpy(&joined.values[(row * d.heads_q + head) * d.dim_v],
                        &o[(head * d.len_q + row) * d.dim_v], d.dim_v * 4);
    return joined;
}

}  // namespace

std::string mask_text(const Settings& s, const CallExtras& extras) {
    std::string text;
    if (s.softcap > 0)
        text += format_number(s.softcap, 3) + " tanh(scores / " + format_number(s.softcap, 3) + ")";
    if (s.alibi) text += std::string(text.empty() ? "" : ", ") + "+ slope (j - i)";
    if (s.causal) text += std::string(text.empty() ? "" : ", ") + "key \xe2\x89\xa4 query";
    if (s.windowed)
        text += std::string(text.empty() ? "" : ", ") + "window " + std::to_string(s.window_left) + ", " +
                std::to_string(s.window_right);
    if (s.pattern != MaskPattern::none)
        text += std::string(text.empty() ? "" : ", ") + std::string(mask_pattern_name(s.pattern)) + " mask";
    if (!s.hidden_keys.empty())
        text += std::string(text.empty() ? "" : ", ") + std::to_string(s.hidden_keys.size()) + " hidden";
    const auto of_file = [&](bool has, const char* what) {
        if (has) text += std::string(text.empty() ? "" : ", ") + what;
    };
    of_file(!extras.bias.empty(), "+ the file's scores");
    of_file(!extras.mask.empty() && s.pattern == MaskPattern::none, "the file's mask");
    of_file(!extras.sinks.empty(), "a sink in each row");
    return text.empty() ? "nothing is masked" : text;
}

bool Stage::hidden(uint32_t head, uint64_t row, uint64_t column) const {
    const size_t index = (head * rows + row) * columns + column;
    const std::span<const float> from = hiding ? hiding_values : values;
    return index < from.size() && std::isinf(from[index]) && from[index] < 0;
}

bool Stage::dropped(uint32_t head, uint64_t row, uint64_t column) const {
    const size_t index = (head * rows + row) * columns + column;
    return index < dropping_values.size() && dropping_values[index] == 0 && !hidden(head, row, column);
}

const Stage* AttentionResult::find_stage(StageId id) const {
    for (const Stage& stage : stages)
        if (stage.id == id) return &stage;
    return nullptr;
}

const Stage* AttentionResult::find_stage(std::string_view name) const {
    for (const Stage& stage : stages)
        if (stage.name == name) return &stage;
    return nullptr;
}

LayerNumbers AttentionResult::numbers() const {
    LayerNumbers of;
    if (projected.source) of.model = projected.source->model.get(), of.block = &projected.block();
    of.tokens = tokens();
    for (uint32_t head = 0; projected.run && head < projected.block().attention.heads; ++head)
        if (projected.run->changes().changes_head(settings.mapping.layer, head))
            of.changed_heads.push_back(head);
    of.stage = [this](StageId id, uint32_t head) -> StageNumbers {
        const Stage* const stage = find_stage(id);
        if (!stage || head >= stage->heads) return {};
        return {stage->head_values(head), stage->heads, stage->rows, stage->columns};
    };
    if (settings.model && shows_model(settings))
        of.origin = [this](std::string_view part, uint64_t output) {
            return settings.model->weights.origin(settings.mapping.layer, part, output);
        };
    return of;
}

size_t AttentionResult::stage_index(const std::string& name) const {
    const auto at = [&](std::string_view id) {
        return size_t(
            std::find_if(stages.begin(), stages.end(), [&](const Stage& s) { return s.name == id; }) -
            stages.begin());
    };
    size_t found = at(name);
    if (const std::optional<StageId> id = stage_from_name(name))
        for (const StageId near : stage_text(*id).nearest)
            if (found == stages.size()) found = at(stage_name(near));
    return found;
}

std::string AttentionResult::title() const {
    const std::string from =
        settings.file ? std::filesystem::path(settings.file->path).filename().string() : settings.text;
    return subject_name(settings) + ", \xe2\x80\x9c" + from + "\xe2\x80\x9d, " +
           std::string(precision_name(settings.precision)) + " on the " + (run->on_cpu() ? "CPU" : "device");
}

uint64_t AttentionResult::size_bytes() const {
    uint64_t sum = run->input_bytes() + run->output_bytes() + run->workspace_bytes();
    for (const std::unique_ptr<GpuBuffer>& buffer : host_buffers) sum += buffer->size_bytes();
    return sum;
}

Result<std::shared_ptr<AttentionResult>> make_result(GpuDevice& device, Projected projected,
                                                     const Settings& settings, ComputeOn place,
                                                     const std::function<void()>& wake) {
    if (!fits_matrices(projected))
        return Error{FOVEA_UNSUPPORTED, "length",
                     std::to_string(projected.q.shape[0]) + " heads of " +
                         format_count(projected.q.shape[1]) + " x " + format_count(projected.k.shape[1]) +
                         " weights are too many to be stored as matrices; show a map, or use fewer tokens"};
    Result<std::shared_ptr<Trace>> trace = trace_of(projected, settings);
    if (!trace) return trace.error();
    const Result<PreparedAttention> prepared = (*trace)->prepare(projected.layer);
    if (!prepared) return prepared.error();
    auto result = std::make_shared<AttentionResult>();
    result->settings = settings;
    result->projected = std::move(projected);
    result->trace = std::move(*trace);
    Precision precision = settings.precision;
    if (place == ComputeOn::processor && precision == Precision::f16_inputs) {
        precision = Precision::f16;
        result->warnings.push_back(
            "float16 inputs need a GPU's cooperative matrices; the CPU stores q, k and v as float16 and "
            "computes "
            "in float32");
    }
    Result<std::unique_ptr<AttentionRun>> run =
        AttentionRun::create(device, *prepared, precision, place, wake);
    if (!run) return run.error();
    result->run = std::move(*run);
    for (const HostStage& stage : result->projected.stages) {
        // Queries, keys and values as they are stored.
        const bool rounds = settings.precision != Precision::f32 && stage.id >= StageId::queries;
        const Result<F32Tensor> rounded =
            rounds ? result->trace->whole_stage(stage.id, result->projected.layer) : stage.values;
        if (!rounded) return rounded.error();
        if (Result<void> r =
                add_host_stage(device, *result, {stage_name(stage.id), stage.formula, stage.id}, *rounded);
            !r)
            return r.error();
    }
    if (Result<void> r = add_call_stages(device, *result); !r) return r.error();
    if (settings.file)
        for (const FileTable& table : import_tables(settings))
            if (Result<void> r =
                    add_host_stage(device, *result, {table.name, table.formula, {}}, table.values);
                !r)
                return r.error();
    return result;
}

Result<void> fill_traced_stages(AttentionResult& result) {
    Trace& trace = *result.trace;
    const uint32_t layer = result.projected.layer;
    AttentionRun& run = *result.run;
    const FoveaAttentionDesc& d = run.desc();
    const bool small = d.heads_q * d.len_q * d.len_kv <= kMaxTracedCells;
    const bool by_trace = run.on_cpu() && !run.stands_in() && small;
    const bool after = !result.stages.empty() && result.find_stage(StageId::weights_all);
    // Stages after the contexts are computed from the call's own contexts.
    const PromptRun* const model_run = result.projected.run.get();
    const uint32_t model_layer = result.settings.mapping.layer;
    const bool changed = model_run && model_run->changes().changes_heads(model_layer, d.heads_q);
    const bool supplied = (!by_trace && !after) || changed;
    F32Tensor context;
    if (supplied) {
        Result<F32Tensor> made = by_trace || after ? trace.whole_stage(StageId::context, layer)
                                                   : Result<F32Tensor>(side_by_side(run));
        if (!made) return made.error();
        context = std::move(*made);
        if (changed) model_run->changes().apply(model_layer, d.heads_q, context);
    }
    if (supplied && result.find_stage(StageId::output))
        if (Result<void> r = trace.supply_context(layer, context); !r) return r;
    for (Stage& stage : result.stages) {
        if (stage.of_heads) continue;
        const std::optional<FoveaBinding> binding =
            stage.id ? written_by_call(result, *stage.id) : std::optional<FoveaBinding>();
        const bool replaced = changed && stage.id == StageId::context;
        if (!stage.traced && !(by_trace && binding) && !replaced) continue;
        const Result<F32Tensor> values = supplied && stage.id == StageId::context
                                             ? Result<F32Tensor>(context)
                                             : trace.whole_stage(*stage.id, layer);
        if (!values) return values.error();
        if (stage.traced)
            fill(*stage.traced, values->values);
        else
            run.replace(*binding, values->values);
    }
    for (Stage& stage : result.stages)
        if (stage.of_heads) fill_mean(*result.find_stage(StageId::weights), stage);
    return {};
}

// The range of weights without rows that see one key: their weight is 1 whatever the scores are, and would
// make all others one color. Logarithms begin at the smallest weight that is shown.
static void fit_weights(ColorRange& range, const Stage& stage, uint32_t head) {
    const std::span<const float> values = stage.head_values(head);
    double high = 0, least = 0;
    for (uint64_t row = 0; row < stage.rows; ++row) {
        const std::span<const float> weights = values.subspan(row * stage.columns, stage.columns);
        const bool alone = std::count_if(weights.begin(), weights.end(), [](float w) { return w != 0; }) < 2;
        for (const float weight : weights) {
            if (!(weight > 0) || !std::isfinite(weight)) continue;
            if (!alone) high = std::max(high, double(weight));
            least = least == 0 ? double(weight) : std::min(least, double(weight));
        }
    }
    if (high > 0) range.high = high;
    range.least = least;
}

void measure_stages(AttentionResult& result) {
    for (Stage& stage : result.stages) {
        std::vector<Summed> heads;
        for (uint32_t head = 0; head < stage.heads; ++head) {
            heads.push_back(summed(stage.head_values(head)));
            stage.ranges.push_back(range_of(heads.back()));
            if (stage.is_sum) fit_weights(stage.ranges.back(), stage, head);
            // Numbers of either sign have one map of colors, whichever signs a head's have.
            if (stage.id && stage_text(*stage.id).is_signed)
                stage.ranges.back().scale = ColorScale::symmetric;
        }
        stage.stats = stats_of(heads);
    }
}

CellSum mean_sum(const AttentionResult& result, uint64_t row, uint64_t column) {
    const Stage& weights = *result.find_stage(StageId::weights);
    CellSum sum;
    sum.how = "weight of each head";
    sum.a = "weight";
    for (uint32_t head = 0; head < weights.heads; ++head) {
        const float weight = weights.head_values(head)[row * weights.columns + column];
        sum.terms.push_back({"head " + std::to_string(head), weight, 0, weight});
        sum.sum += weight;
    }
    sum.ending = "divided by the " + std::to_string(weights.heads) + " heads";
    sum.result = sum.sum / float(weights.heads);
    return sum;
}

std::string odd_row_of_weights(const AttentionResult& result) {
    const Stage& stage = *result.find_stage(StageId::weights);
    if (!stage.is_sum || !result.projected.extras.sinks.empty()) return "";
    for (uint64_t row = 0; row < stage.heads * stage.rows; ++row) {
        double sum = 0;
        for (const float w : stage.values.subspan(row * stage.columns, stage.columns)) sum += double(w);
        if (sum == 0 || std::abs(sum - 1) <= kRowSumAlarm) continue;
        return "row " + std::to_string(row % stage.rows) + " of head " +
               std::to_string(row / stage.rows + 1) + " sums to " + format_number(sum, 7);
    }
    return "";
}

}  // namespace fovea::visualizer
