#include "document/long_map.hpp"

#include "document/projected.hpp"

#include <fovea/inspect.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

namespace fovea::visualizer {
namespace {

// A mask of a cell for each weight is kept up to here.
constexpr uint64_t kMaxMaskCells = 64u << 20;
// Rows of a mask begin this far apart or a multiple of it.
constexpr uint64_t kMaskRowBytes = 256;
constexpr uint32_t kMaxWorkers = 16;

// Mask, scale, softcap and dropout of the settings on a call; the cells of a mask are another matter.
FoveaAttentionDesc settled(const LongHead& head, const Settings& s) {
    FoveaAttentionDesc call = head.call;
    if (call.align == FOVEA_ALIGN_DEFAULT) call.align = FOVEA_ALIGN_TOP_LEFT;
    call.flags &= ~uint32_t(FOVEA_FLAG_CAUSAL | FOVEA_FLAG_WINDOW | FOVEA_FLAG_ALIBI | FOVEA_FLAG_SINKS);
    if (s.alibi) call.flags |= FOVEA_FLAG_ALIBI;
    if (head.has_sink) call.flags |= FOVEA_FLAG_SINKS;
    if (s.causal || head.always_causal) call.flags |= FOVEA_FLAG_CAUSAL;
    if (s.windowed) {
        call.flags |= FOVEA_FLAG_WINDOW;
        call.window_left = s.window_left, call.window_right = s.window_right;
    }
    AttentionRules rules = s;
    if (head.divisor > 0 && s.scale == "auto") rules.scale = format_number(double(head.divisor), 9);
    call.scale = score_scale(rules, call.dim_qk).factor();
    call.softcap = float(s.softcap);
    call.dropout_p = float(s.dropout_p);
    call.dropout_seed = s.dropout_p > 0 ? s.dropout_seed : 0;
    return call;
}

bool same_mask(const Settings& a, const Settings& b) {
    return a.pattern == b.pattern && a.hidden_keys == b.hidden_keys && a.precision == b.precision &&
           (a.pattern != MaskPattern::painted || a.painted == b.painted);
}

uint64_t padded_row(uint64_t keys, uint64_t alignment) {
    return (keys + alignment - 1) / alignment * alignment;
}

// Padding and hidden keys are the same for every query; other patterns need a cell for each weight.
void mask_head(LongHead& head, const Settings& s) {
    const uint64_t rows = head.call.len_q, keys = head.call.len_kv;
    head.call.mask = {};
    head.mask.clear();
    head.left_out.clear();
    const auto leave_out = [&](const std::string& what) {
        head.left_out += (head.left_out.empty() ? "left out here: " : ", ") + what;
    };
    if (s.precision != Precision::f32) leave_out("float16, a map is float32");
    if (s.route == MaskRoute::after) leave_out("the route after the softmax, whose numbers are the same");
    if (s.dropout_p > 0 && s.dropout_random != DropoutRandom::counter)
        leave_out("PyTorch's order of dropout, a map drops by counters");
    if (!head.lost_bias.empty()) leave_out(head.lost_bias);
    if (!head.lost_mask.empty() && s.pattern == MaskPattern::none) leave_out(head.lost_mask);
    bool each_row = s.pattern != MaskPattern::none && s.pattern != MaskPattern::padding;
    if (each_row && rows * keys > kMaxMaskCells) {
        leave_out("the " + std::string(mask_pattern_name(s.pattern)) +
                  " mask (a cell for each of more than " + format_count(kMaxMaskCells) + " weights)");
        each_row = false;
    }
    const bool patterned = each_row;
    // A chosen pattern replaces the file's mask.
    const std::vector<uint8_t>* of_file = s.pattern == MaskPattern::none ? head.file_mask.get() : nullptr;
    const bool file_rows = of_file && of_file->size() > keys;
    each_row = each_row || file_rows;
    const bool hides =
        std::any_of(s.hidden_keys.begin(), s.hidden_keys.end(), [&](uint32_t key) { return key < keys; });
    const bool padded = s.pattern == MaskPattern::padding;
    if (!each_row && !of_file && !hides && !padded) return;
    const uint64_t height = each_row ? rows : 1, stride = padded_row(keys, kMaskRowBytes);
    head.mask.assign(height * stride, 1);
    FoveaMatrixDesc& mask = head.call.mask;
    mask.present = 1;
    mask.type = FOVEA_U8;
    mask.rows = height, mask.keys = keys;
    mask.strides = {int64_t(height * stride), int64_t(height * stride), int64_t(stride)};
    for (uint64_t i = 0; i < height && (each_row || of_file || padded); ++i)
        for (uint64_t j = 0; j < keys; ++j) {
            const bool chosen = (!patterned && !padded) || pattern_shows(s, i, j, rows, keys);
            head.mask[i * stride + j] = chosen && (!of_file || (*of_file)[(file_rows ? i * keys : 0) + j]);
        }
    for (const uint32_t key : s.hidden_keys)
        for (uint64_t i = 0; i < height && key < keys; ++i) head.mask[i * stride + key] = 0;
}

void add_bias(LongHead& out, const CallExtras& extras) {
    const uint64_t keys = out.call.len_kv, height = extras.bias_rows,
                   stride = padded_row(keys, kMaskRowBytes / 4);
    const float* from = &extras.bias[(extras.bias_heads > 1 ? out.head : 0) * height * keys];
    out.bias.assign(height * stride, 0);
    for (uint64_t row = 0; row < height; ++row) std::copy_n(from + row * keys, keys, &out.bias[row * stride]);
    FoveaMatrixDesc& bias = out.call.bias;
    bias.present = 1;
    bias.type = FOVEA_F32;
    bias.rows = height, bias.keys = keys;
    bias.strides = {int64_t(height * stride), int64_t(height * stride), int64_t(stride)};
}

// The head's mask and scores of a file, as far as there is room for them.
void add_file_cells(LongHead& out, const CallExtras& extras) {
    const uint64_t keys = out.call.len_kv;
    const std::string too_many =
        " (a cell for each of more than " + format_count(kMaxMaskCells) + " weights)";
    if (!extras.bias.empty()) {
        if (extras.bias_rows * keys > kMaxMaskCells)
            out.lost_bias = "the scores that the file adds" + too_many;
        else
            add_bias(out, extras);
    }
    if (extras.mask.empty()) return;
    const uint64_t cells = extras.mask_rows * keys;
    if (cells > kMaxMaskCells) {
        out.lost_mask = "the file's mask" + too_many;
        return;
    }
    const auto from = extras.mask.begin() + ptrdiff_t((extras.mask_heads > 1 ? out.head : 0) * cells);
    out.file_mask = std::make_shared<const std::vector<uint8_t>>(from, from + ptrdiff_t(cells));
}

}  // namespace

Result<LongHead> long_preset(std::string_view name) {
    Result<LongContext> made = long_context(name);
    if (!made) return made.error();
    LongHead head{{made->call, std::move(made->q), std::move(made->k)}, std::string(name), true};
    head.slope = alibi_slope(0, 1);
    return head;
}

LongHead long_head(const Projected& p, uint32_t head, float divisor) {
    LongHead out;
    const uint64_t rows = p.q.shape[1], keys = p.k.shape[1], dim = p.q.shape[2];
    Attention call;
    call.batch(1).heads(1).lengths(rows, keys).dims(uint32_t(dim)).outputs(FOVEA_OUTPUT_LSE);
    out.call = call.desc;
    const uint64_t kv = head / (p.q.shape[0] / p.k.shape[0]);
    out.q.assign(p.q.values.begin() + ptrdiff_t(head * rows * dim),
                 p.q.values.begin() + ptrdiff_t((head + 1) * rows * dim));
    out.k.assign(p.k.values.begin() + ptrdiff_t(kv * keys * dim),
                 p.k.values.begin() + ptrdiff_t((kv + 1) * keys * dim));
    out.head = head, out.heads = uint32_t(p.q.shape[0]);
    out.divisor = divisor;
    out.slope = slope_of(p.extras, head, out.heads);
    out.has_sink = head < p.extras.sinks.size();
    if (out.has_sink) out.sink = p.extras.sinks[head];
    add_file_cells(out, p.extras);
    return out;
}

// One core is left to the window.
static uint32_t workers() { return std::clamp(std::thread::hardware_concurrency(), 2u, kMaxWorkers + 1) - 1; }

static EngineOptions engine_of(const GpuDevice* device) {
    EngineOptions options;
    options.backend = device ? BackendChoice::vulkan : BackendChoice::cpu;
    options.cpu_threads = workers();
    if (device) options.device_name = device->name();
    return options;
}

static LongHead ruled(LongHead head, const Settings& settings) {
    head.call = settled(head, settings);
    mask_head(head, settings);
    return head;
}

LongMap::LongMap(LongHead head, const Settings& settings, GpuDevice* device, std::function<void()> wake)
    : device_(device),
      head_(ruled(std::move(head), settings)),
      masked_by_(settings),
      source_(head_, engine_of(device), std::move(wake)) {}

LongMap::~LongMap() = default;

bool LongMap::follow(const Settings& settings, GpuDevice* device) {
    const FoveaAttentionDesc next = settled(head_, settings);
    const bool same_call = std::memcmp(&next, &head_.call, sizeof next) == 0;
    const bool same_cells = same_mask(settings, masked_by_);
    if (same_call && same_cells && device == device_) return false;
    // Tiles of the other place are as good, but one picture is of one place.
    source_.follow(engine_of(device), [&] {
        head_.call = next;
        if (!same_cells) mask_head(head_, settings);
    });
    masked_by_ = settings;
    device_ = device;
    return true;
}

std::string LongMap::where() const {
    const std::string refusal = source_.refusal();
    if (!device_ || !refusal.empty())
        return "CPU, " + std::to_string(workers()) + (workers() == 1 ? " thread" : " threads") +
               (refusal.empty() ? "" : " (the device: " + refusal + ")");
    const double seconds = source_.slice_seconds();
    return device_->name() + (seconds > 0 ? ", " + format_number(1e3 * seconds, 2) + " ms a slice" : "");
}

Result<Derivation> LongMap::derive(uint64_t row, uint64_t key) const {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    head_.bind(bindings);  // weights do not depend on values, so the map's inspector shows none
    Result<Derivation> derived = derive_cell(head_.call, bindings, Cell{0, 0, row, key});
    if (derived) derived->values.clear();
    return derived;
}

Result<std::vector<float>> LongMap::row_weights(uint64_t row) const {
    FoveaAttentionDesc call = head_.rows_call(row, 1);
    call.outputs = FOVEA_OUTPUT_WEIGHTS;
    std::vector<float> weights(call.len_kv);
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    head_.bind(bindings, row);
    bindings[FOVEA_BIND_WEIGHTS] = {weights.data(), weights.size() * 4};
    if (Result<void> r = make_cpu_runner()->attention(call, bindings); !r) return r.error();
    return weights;
}

MapPick LongMap::pick(uint64_t row, uint64_t key, const MapPick* before) const {
    constexpr size_t kMaxLargest = 48;
    MapPick out{row, key, {}, {}, 0};
    if (Result<Derivation> derived = derive(row, key)) out.derivation = std::move(*derived);
    if (before && before->row == row && !before->largest.empty()) {
        out.largest = before->largest;
        out.share = before->share;
        return out;
    }
    const Result<std::vector<float>> weights = row_weights(row);
    if (!weights) return out;
    const std::vector<float>& w = *weights;
    std::vector<uint64_t> order(w.size());
    std::iota(order.begin(), order.end(), 0);
    const auto shown = ptrdiff_t(std::min(order.size(), kMaxLargest));
    std::partial_sort(order.begin(), order.begin() + shown, order.end(),
                      [&](uint64_t a, uint64_t b) { return w[a] != w[b] ? w[a] > w[b] : a < b; });
    for (auto at = order.begin(); at != order.begin() + shown; ++at) {
        out.largest.emplace_back(*at, w[*at]);
        out.share += double(w[*at]);
    }
    return out;
}

Result<std::pair<uint64_t, uint64_t>> LongMap::largest_of(const MapBlock& block) const {
    const std::unique_ptr<Runner> cpu = make_cpu_runner();
    const FoveaAttentionDesc call = head_.rows_call(block.first_row, block.rows);
    std::vector<float> lse(rows());
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    head_.bind(bindings, block.first_row);
    bindings[FOVEA_BIND_LSE] = {&lse[block.first_row], block.rows * 4};
    if (Result<void> r = cpu->attention(call, bindings); !r) return r.error();
    FoveaMapTileDesc tile{};
    tile.struct_size = sizeof tile;
    tile.head_count = 1;
    tile.first_row = block.first_row, tile.row_count = block.rows;
    tile.first_key = block.first_key, tile.key_count = block.keys;
    tile.outputs = FOVEA_TILE_MAX;
    const Result<Plan> plan = plan_map_tile(cpu->properties(), head_.call, tile);
    if (!plan) return plan.error();
    std::vector<float> cells(block.rows * block.keys);
    head_.bind(bindings);
    bindings[FOVEA_BIND_LSE] = {lse.data(), lse.size() * 4};
    bindings[FOVEA_BIND_TILE_MAX] = {cells.data(), cells.size() * 4};
    if (Result<void> r = cpu->run(*plan, bindings); !r) return r.error();
    const auto at = uint64_t(std::max_element(cells.begin(), cells.end()) - cells.begin());
    return std::pair{block.first_row + at / block.keys, block.first_key + at % block.keys};
}

}  // namespace fovea::visualizer
