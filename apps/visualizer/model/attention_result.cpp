#include "model/attention_result.hpp"

#include "model/attention_inputs.hpp"
#include "model/host_call.hpp"
#include "model/imported_file.hpp"

#include <fovea/runtime.hpp>

#include <algorithm>
#include <cctype>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace fovea::visualizer {
namespace {

// Levels from here on have several heads.
constexpr int kFirstLevelOfHeads = 5;
constexpr double kRowSumAlarm = 1e-3;

struct Summed {  // of one head's values
    float low = INFINITY, high = -INFINITY;
    double sum = 0;
    uint64_t finite = 0, nan = 0, infinite = 0, hidden = 0;
};

// In lanes, for millions of values stand between two frames.
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

ColourRange range_of(const Summed& s) {
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

FoveaHostBuffer host(const std::vector<float>& values) {
    return {const_cast<float*>(values.data()), values.size() * 4};  // inputs are not written to
}

// [heads, rows, width] -> [rows, heads * width]
std::vector<float> side_by_side(const Stage& context) {
    const uint64_t heads = context.heads, rows = context.rows, width = context.columns;
    std::vector<float> joined(heads * rows * width);
    for (uint64_t head = 0; head < heads; ++head)
        for (uint64_t row = 0; row < rows; ++row)
            std::memcpy(&joined[(row * heads + head) * width], &context.values[(head * rows + row) * width],
                        width * 4);
    return joined;
}

Result<std::vector<float>> through(const Linear& layer, const std::vector<float>& x, uint64_t rows) {
    const Result<FoveaDeviceFacts> facts = cpu_facts(1);
    if (!facts) return facts.error();
    FoveaLinearDesc desc{};
    desc.struct_size = sizeof desc;
    desc.n_in = uint32_t(layer.d_in()), desc.n_out = uint32_t(layer.d_out());
    desc.has_bias = layer.has_bias();
    desc.rows = rows;
    const Result<Plan> plan = plan_linear(*facts, desc);
    if (!plan) return plan.error();
    std::vector<float> y(rows * layer.d_out());
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_X] = host(x);
    bindings[FOVEA_BIND_WEIGHT] = host(layer.weight.values);
    if (layer.has_bias()) bindings[FOVEA_BIND_BIAS] = host(layer.bias.values);
    bindings[FOVEA_BIND_Y] = {y.data(), y.size() * 4};
    if (Result<void> r = run_on_host(*plan, bindings); !r) return r.error();
    return y;
}

void fill(GpuBuffer& buffer, const std::vector<float>& values) {
    std::memcpy(buffer.data(), values.data(), values.size() * 4);
    buffer.flush();
}

// A stage whose numbers are in host memory, with a buffer of its own to draw from.
Result<GpuBuffer*> add_host_stage(GpuDevice& device, AttentionResult& result, const HostStage& stage) {
    const F32Tensor& t = stage.tensor;
    Result<GpuBuffer> made = GpuBuffer::create(device, t.values.size() * 4);
    if (!made) return made.error();
    fill(*made, t.values);
    result.host_buffers.push_back(std::make_unique<GpuBuffer>(std::move(*made)));
    GpuBuffer* buffer = result.host_buffers.back().get();
    Stage row{stage.name, stage.formula};
    row.heads = t.rank() == 3 ? t.shape[0] : 1;
    row.columns = t.columns();
    row.rows = t.rows() / row.heads;
    row.buffer = buffer;
    row.values = {reinterpret_cast<const float*>(buffer->data()), t.values.size()};
    row.row_tokens = stage.name.substr(0, 2) != "W_";
    result.stages.push_back(row);
    return buffer;
}

void add_call_stages(AttentionResult& result) {
    const Settings& settings = result.settings;
    const AttentionRun& run = *result.run;
    const FoveaAttentionDesc& d = run.desc();
    const struct {
        const char* name;
        std::string formula;
        FoveaBinding binding;
        uint64_t columns;
        bool over_keys;
    } rows[] = {
        {"scores", scale_text(settings, d.dim_qk, settings.file ? settings.mapping.divisor : 0),
         FOVEA_BIND_SCORES, d.len_kv, true},
        {"masked", mask_text(settings, result.projected.extras), FOVEA_BIND_MASKED, d.len_kv, true},
        {"weights", settings.dropout ? "dropout(softmax(masked))" : "softmax(masked)", FOVEA_BIND_WEIGHTS,
         d.len_kv, true},
        {"context",
         run.products_info() ? std::string("weights v, products of float16 factors by ") +
                                   kernel_name(run.products_info()->kernel)
                             : "weights v",
         FOVEA_BIND_O, d.dim_v, false},
    };
    for (const auto& row : rows) {
        Stage stage{row.name, row.formula};
        stage.heads = d.heads_q;
        stage.rows = d.len_q;
        stage.columns = row.columns;
        stage.buffer = &run.buffer(row.binding);
        stage.values = run.values(row.binding);
        stage.over_keys = row.over_keys;
        stage.row_tokens = true;
        if (row.binding == FOVEA_BIND_WEIGHTS) {
            stage.hiding = &run.buffer(FOVEA_BIND_MASKED);
            stage.hiding_values = run.values(FOVEA_BIND_MASKED);
        }
        result.stages.push_back(stage);
    }
}

Result<void> add_output_stages(GpuDevice& device, AttentionResult& result) {
    if (result.settings.level < kFirstLevelOfHeads || reads_tensors(result.settings)) return {};
    const FoveaAttentionDesc& d = result.run->desc();
    Result<GpuBuffer*> added = add_host_stage(device, result,
                                              {"joined", "contexts of all heads, side by side",
                                               F32Tensor({d.len_q, uint64_t(d.heads_q) * d.dim_v})});
    if (!added) return added.error();
    result.joined = *added;
    if (!result.projected.has_output_layer) return {};
    const Linear& layer = result.projected.output_layer;
    added = add_host_stage(device, result, {"W_output", "drawn from the seed", layer.weight});
    if (!added) return added.error();
    added = add_host_stage(
        device, result,
        {"output", layer.has_bias() ? "joined W_output transposed + bias" : "joined W_output transposed",
         F32Tensor({d.len_q, layer.d_out()})});
    if (!added) return added.error();
    result.output = *added;
    return {};
}

}  // namespace

std::string scale_text(const Settings& s, uint64_t dim, float divisor) {
    std::string text = "q \xc2\xb7 k";
    if (s.scaled && divisor > 0 && std::abs(divisor * divisor / float(dim) - 1) > 1e-5f)
        text += " / " + format_number(double(divisor), 5);
    else if (s.scaled)
        text += " / \xe2\x88\x9a" + std::to_string(dim);
    if (s.temperature != 1) text += " / " + format_number(s.temperature, 3);
    return text;
}

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

bool is_stage(const std::string& stage, const std::string& meant) {
    const auto small = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
    if (stage == "scores" && meant == "scaled") return true;
    return std::equal(stage.begin(), stage.end(), meant.begin(), meant.end(),
                      [&](char x, char y) { return small(x) == small(y); });
}

bool Stage::hidden(uint32_t head, uint64_t row, uint64_t column) const {
    const size_t index = (head * rows + row) * columns + column;
    const std::span<const float> from = hiding ? hiding_values : values;
    return index < from.size() && std::isinf(from[index]) && from[index] < 0;
}

const Stage* AttentionResult::find_stage(std::string_view name) const {
    for (const Stage& stage : stages)
        if (stage.name == name) return &stage;
    return nullptr;
}

size_t AttentionResult::stage_index(const std::string& name) const {
    return size_t(
        std::find_if(stages.begin(), stages.end(), [&](const Stage& s) { return is_stage(s.name, name); }) -
        stages.begin());
}

std::string AttentionResult::title() const {
    const std::string from =
        settings.file ? std::filesystem::path(settings.file->path).filename().string() : settings.text;
    return "level " + std::to_string(settings.level) + ", \xe2\x80\x9c" + from + "\xe2\x80\x9d, " +
           std::string(precision_name(settings.precision)) + " on the " +
           (run->on_cpu() ? "processor" : "device");
}

uint64_t AttentionResult::size_bytes() const {
    uint64_t sum = run->input_bytes() + run->output_bytes() + run->workspace_bytes();
    for (const std::unique_ptr<GpuBuffer>& buffer : host_buffers) sum += buffer->size_bytes();
    return sum;
}

Result<std::shared_ptr<AttentionResult>> make_result(GpuDevice& device, Projected projected,
                                                     const Settings& settings, ComputeOn place,
                                                     const std::function<void()>& wake) {
    if (Result<void> r = round_to_precision(projected, settings); !r) return r.error();
    Result<std::unique_ptr<AttentionRun>> run =
        AttentionRun::create(device, projected, settings, place, wake);
    if (!run) return run.error();
    auto result = std::make_shared<AttentionResult>();
    result->settings = settings;
    result->projected = std::move(projected);
    result->run = std::move(*run);
    for (const HostStage& stage : result->projected.stages)
        if (Result<GpuBuffer*> r = add_host_stage(device, *result, stage); !r) return r.error();
    add_call_stages(*result);
    if (Result<void> r = add_output_stages(device, *result); !r) return r.error();
    if (settings.file)
        for (const HostStage& table : import_tables(settings))
            if (Result<GpuBuffer*> r = add_host_stage(device, *result, table); !r) return r.error();
    return result;
}

Result<void> fill_output_stages(AttentionResult& result) {
    if (!result.joined) return {};
    const std::vector<float> joined = side_by_side(*result.find_stage("context"));
    fill(*result.joined, joined);
    if (!result.output) return {};
    const Result<std::vector<float>> y =
        through(result.projected.output_layer, joined, result.run->desc().len_q);
    if (!y) return y.error();
    fill(*result.output, *y);
    return {};
}

void measure_stages(AttentionResult& result) {
    for (Stage& stage : result.stages) {
        std::vector<Summed> heads;
        for (uint32_t head = 0; head < stage.heads; ++head) {
            heads.push_back(summed(stage.head_values(head)));
            stage.ranges.push_back(range_of(heads.back()));
        }
        stage.stats = stats_of(heads);
    }
}

std::string odd_row_of_weights(const AttentionResult& result) {
    const Stage& stage = *result.find_stage("weights");
    if (result.settings.dropout || !result.projected.extras.sinks.empty()) return "";
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
