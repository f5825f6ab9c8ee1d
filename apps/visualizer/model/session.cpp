#include "model/session.hpp"

#include "data/imported_file.hpp"

#include <fovea/runtime.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

namespace fovea::visualizer {
namespace {

constexpr size_t kMostProblems = 200;
constexpr std::chrono::duration<float> kFadeTime = std::chrono::milliseconds(200);

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

std::string scale_text(const Settings& s, uint64_t dim) {
    return scale_text(s, dim, s.file ? s.mapping.divisor : 0);
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

Session::~Session() = default;

Result<bool> Session::update(VkCommandBuffer cmd, double flops) {
    retired_.clear();
    retired_grids_.clear();
    if (file_has_come()) take_file(coming_file_.get());
    if (moves_on() || projection_has_come()) dirty_ = true;
    if (dirty_) {
        dirty_ = false;
        problem_.clear();
        if (std::exchange(wants_roof_, false)) {
            const Result<Roof> measured = measure_roof(device_);
            run_seconds_.clear();  // the device is warm from here on
            if (measured)
                roof = *measured;
            else
                report("roof", measured.error().text, false);
        }
        if (wanted_head_) open_map(*std::exchange(wanted_head_, std::nullopt));
        if (!wanted_map_.empty()) open_wanted_map();
        forget_pick();
        if (map && map->follow(settings(), tiles_device())) map_buffers->clear(released);
        // A refused change keeps the last result on the screen, with the reason beside it.
        if (Result<void> r = rebuild(); !r) {
            problem_ = r.error().field + ": " + r.error().text;
            if (r.error().code == FOVEA_OUT_OF_DEVICE_MEMORY)
                tell("Out of device memory. " + problem_, false, true);
            report(r.error().field, r.error().text, true);
        }
        if (run_)
            if (Result<void> r = compute_at_once(flops); !r) return r.error();
    }
    if (map_has_come()) {
        Result<LongHead> head = coming_map_.get();
        if (head)
            open_map(std::move(*head));
        else
            report("map", head.error().text, true);
    }
    if (map_buffers && map_buffers->full()) map_buffers->prune(released);
    bool map_moves = false;
    if (map) {
        const Result<bool> advanced = map->advance(cmd, frames_in_flight_);
        if (!advanced) return advanced.error();
        map_moves = *advanced;
    }
    if (!run_ && projecting_) return map_moves;
    if (!run_ && go_on_restoring()) return true;
    if (!run_) return Error{FOVEA_INVALID_ARGUMENT, "settings", problem_};
    if (run_->finished()) {
        // Counted first: what is drawn as complete has its ranges.
        if (updates_since_end_ < frames_in_flight_) ++updates_since_end_;
        if (complete()) collect_stats();
        if (go_on_restoring()) return true;
        return map_moves || !complete() || !stats_done_;
    }
    const Result<bool> advanced = run_->advance(cmd, flops);
    if (!advanced) return advanced.error();
    derived_cell_.reset();
    updates_since_end_ = 0;
    return true;
}

// What fits one frame is there in the frame of the change: numbers do not blink while a slider is dragged.
Result<void> Session::compute_at_once(double flops) {
    updates_since_end_ = 0;
    if (frames_in_flight_ == 0 || run_->total_flops() > flops) return {};
    while (!run_->finished()) {
        Result<bool> advanced = false;
        if (Result<void> r =
                device_.run_once([&](VkCommandBuffer cmd) { advanced = run_->advance(cmd, flops); });
            !r)
            return r;
        if (!advanced) return advanced.error();
    }
    derived_cell_.reset();
    updates_since_end_ = frames_in_flight_;
    return {};
}

// In a window nobody waits for the driver's compiler; a picture without one is of the place that was asked
// for.
ComputeOn Session::place() const {
    return on_cpu_                  ? ComputeOn::processor
           : frames_in_flight_ == 0 ? ComputeOn::device
                                    : ComputeOn::first_processor;
}

Result<void> Session::rebuild() {
    const bool from_file = settings_.file && settings_.mapping.kind != ImportKind::tables;
    Settings by = settings_;
    if (!from_file || map_is_of_file()) by.file.reset();
    std::optional<Result<Projected>> made = projection(by);
    if (made && *made && by.file && !fits_matrices(**made)) {
        open_file_map(**made);
        by.file.reset();
        made = projection(by);
    }
    if (!made) return {};
    Result<Projected> projected = std::move(*made);
    if (!projected) return projected.error();
    if (Result<void> r = round_to_precision(*projected, settings_); !r) return r;
    Result<std::unique_ptr<AttentionRun>> run =
        AttentionRun::create(device_, *projected, settings_, place(), wake);
    if (!run) return run.error();
    std::string shown = view.stage < stages_.size() ? stages_[view.stage].name : "weights";
    if (!wanted_stage.empty()) shown = std::exchange(wanted_stage, "");
    for (const Stage& old : stages_) released.push_back(old.buffer->handle());
    stages_.clear();
    fade_begin_.reset();
    host_buffers_.clear();
    projected_ = std::move(*projected);
    projected_by_ = std::move(by);
    run_ = std::move(*run);
    for (const HostStage& host_stage : projected_.stages)
        if (Result<GpuBuffer*> r = add_host_stage(host_stage); !r) return r.error();
    collect_stages();
    if (Result<void> r = add_output_stages(); !r) return r;
    if (settings_.file)
        for (const HostStage& table : import_tables(settings_))
            if (Result<GpuBuffer*> r = add_host_stage(table); !r) return r.error();
    for (const std::string& warning : projected_.warnings) report("file", warning, false);
    stats_done_ = false;
    head_stats_.clear();
    summary_of_.clear();
    const auto find = [&](const std::string& name) {
        return size_t(std::find_if(stages_.begin(), stages_.end(),
                                   [&](const Stage& s) { return is_stage(s.name, name); }) -
                      stages_.begin());
    };
    view.stage = find(shown);
    if (view.stage == stages_.size()) view.stage = find("weights");
    keep_pick_in_range();
    derived_cell_.reset();
    derivation_.reset();
    return {};
}

void Session::keep_pick_in_range() {
    view.head = std::min<uint32_t>(view.head, uint32_t(stage().heads - 1));
    view.picked_row = std::clamp(view.picked_row, 0, int(stage().rows) - 1);
    view.picked_column = std::clamp(view.picked_column, 0, int(stage().columns) - 1);
    if (view.compared_head >= int(stage().heads)) view.compared_head = -1;
    if (view.selection && !view.selection->within(stage().rows, stage().columns)) view.selection.reset();
}

float Session::fade() const {
    if (!fade_begin_ || !ui.motion || ui.locked_tab >= 0 || fade_from_ >= stages_.size()) return 1;
    const std::chrono::duration<float> since = clock() - *fade_begin_;
    return std::min(since / kFadeTime, 1.0f);
}

void Session::show_stage(size_t index) {
    fade_from_ = view.stage;
    fade_begin_ = clock();
    view.stage = std::min(index, stages_.size() - 1);
    if (view.stage == fade_from_ || !complete()) fade_begin_.reset();
    view.zoom = view.pan_x = view.pan_y = 0;
    view.range_low = view.range_high = NAN;
    keep_pick_in_range();
}

void Session::open_map(LongHead head) {
    forget_pick();
    map_source_.reset();
    if (map_buffers) map_buffers->clear(released);
    map_buffers = std::make_unique<MapBuffers>(device_);
    const uint64_t rows = head.call.len_q, keys = head.call.len_kv;
    map = std::make_unique<LongMap>(std::move(head), settings(), tiles_device(), wake);
    ui.map = MapPlace{};
    ui.map.picked_row = rows / 2, ui.map.picked_key = std::min(rows, keys) / 2;
    ui.centre = CentreTab::map;
}

GpuDevice* Session::tiles_device() const {
    const bool software = device_.facts().device_class == FOVEA_CLASS_CPU;
    const bool wanted =
        tiles_on_ == TilesOn::device || (tiles_on_ == TilesOn::automatic && !on_cpu_ && !software);
    return wanted && device_.has_vulkan() ? &device_ : nullptr;
}

void Session::compute_tiles_on(TilesOn where) {
    if (where == tiles_on_) return;
    tiles_on_ = where;
    dirty_ = true;
}

void Session::show_refused_as_map() {
    const bool from_file = settings().file && settings().mapping.kind != ImportKind::tables;
    const Result<Projected> projected = from_file ? project_import(settings()) : project(settings());
    if (!projected) return report("map", projected.error().text, true);
    wanted_head_ = long_head(*projected, std::min(view.head, uint32_t(projected->q.shape[1] - 1)),
                             from_file ? settings().mapping.divisor : 0);
    wanted_head_->name = "head " + std::to_string(view.head + 1);
    undo();
    dirty_ = true;
}

// Drawing a million tokens takes seconds: on another thread, where there are frames meanwhile.
void Session::open_wanted_map() {
    const std::string name = std::exchange(wanted_map_, "");
    ui.centre = CentreTab::map;
    coming_map_ =
        std::async(frames_in_flight_ > 0 ? std::launch::async : std::launch::deferred, [name, wake = wake] {
            Result<LongHead> head = long_preset(name);
            if (wake) wake();
            return head;
        });
    if (frames_in_flight_ == 0) coming_map_.wait();
}

const Stage* Session::find_stage(std::string_view name) const {
    for (const Stage& stage : stages_)
        if (stage.name == name) return &stage;
    return nullptr;
}

void Session::compute_on_cpu(bool on_cpu) {
    if (on_cpu == on_cpu_ || !device_.has_vulkan()) return;
    on_cpu_ = on_cpu;
    dirty_ = true;
}

void Session::report(std::string where, std::string text, bool error) {
    const bool repeated = std::any_of(problems.begin(), problems.end(), [&](const Problem& known) {
        return known.where == where && known.text == text;
    });
    if (!repeated && problems.size() < kMostProblems)
        problems.push_back({std::move(where), std::move(text), error});
}

const HeadGrid* Session::head_grid() {
    if (grid_ && !grid_->serves(settings())) drop_grid();
    if (!grid_) {
        if (!problem_.empty() || layers_of(settings()).size() < 2) return nullptr;
        grid_ = std::make_unique<HeadGrid>(settings(), wake);
    }
    if (Result<void> r = grid_->take(device_); !r) report("layers", r.error().text, true);
    return grid_.get();
}

Result<void> Session::finish_wanted_grid() {
    if (grid_) return grid_->finish(device_);
    return {};
}

void Session::drop_grid() {
    if (!grid_) return;
    for (const GridLayer& layer : grid_->layers())
        if (layer.pixels.handle()) released.push_back(layer.pixels.handle());
    retired_grids_.push_back(std::move(grid_));
}

void Session::show_head(uint32_t layer, uint32_t head) {
    drop_kept();
    view.compared_head = -1;
    view.head = head;
    Settings next = settings();
    next.mapping.layer = layer;
    change(next);
}

void Session::compare_with_head(uint32_t layer, uint32_t head) {
    if (!kept_ && layer == settings().mapping.layer) {
        view.compared_head = int(head);
        return;
    }
    // Another layer's head is another result: A is kept, and the other layer becomes the present one.
    if (!kept_) keep_result();
    if (!kept_) return;
    view.head = head;
    Settings next = settings();
    next.mapping.layer = layer;
    change(next);
}

Result<GpuBuffer*> Session::add_host_stage(const HostStage& stage) {
    const F32Tensor& t = stage.tensor;
    Result<GpuBuffer> made = GpuBuffer::create(device_, t.values.size() * 4);
    if (!made) return made.error();
    std::memcpy(made->data(), t.values.data(), t.values.size() * 4);
    made->flush();
    const auto buffer = std::make_shared<GpuBuffer>(std::move(*made));
    host_buffers_.push_back(buffer);
    Stage row{stage.name, stage.formula};
    row.heads = t.rank() == 3 ? t.shape[0] : 1;
    row.columns = t.columns();
    row.rows = t.rows() / row.heads;
    row.buffer = host_buffers_.back().get();
    row.values = {reinterpret_cast<const float*>(row.buffer->data()), t.values.size()};
    row.row_tokens = stage.name.substr(0, 2) != "W_";
    stages_.push_back(row);
    return buffer.get();
}

void Session::collect_stages() {
    const FoveaAttentionDesc& d = run_->desc();
    const struct {
        const char* name;
        std::string formula;
        FoveaBinding binding;
        uint64_t columns;
        bool over_keys;
    } rows[] = {
        {"scores", scale_text(settings_, run_->desc().dim_qk), FOVEA_BIND_SCORES, d.len_kv, true},
        {"masked", mask_text(settings_, projected_.extras), FOVEA_BIND_MASKED, d.len_kv, true},
        {"weights", settings_.dropout ? "dropout(softmax(masked))" : "softmax(masked)", FOVEA_BIND_WEIGHTS,
         d.len_kv, true},
        {"context",
         run_->products_info() ? std::string("weights v, products of float16 factors by ") +
                                     kernel_name(run_->products_info()->kernel)
                               : "weights v",
         FOVEA_BIND_O, d.dim_v, false},
    };
    for (const auto& row : rows) {
        Stage stage{row.name, row.formula};
        stage.heads = d.heads_q;
        stage.rows = d.len_q;
        stage.columns = row.columns;
        stage.buffer = &run_->buffer(row.binding);
        stage.values = run_->values(row.binding);
        stage.over_keys = row.over_keys;
        stage.row_tokens = true;
        if (row.binding == FOVEA_BIND_WEIGHTS) {
            stage.hiding = &run_->buffer(FOVEA_BIND_MASKED);
            stage.hiding_values = run_->values(FOVEA_BIND_MASKED);
        }
        stages_.push_back(stage);
    }
}

const std::optional<Derivation>& Session::derivation() {
    const Shown now = shown();
    const Stage& s = *now.stage;
    const Cell cell{0, now.head, uint64_t(view.picked_row), uint64_t(view.picked_column)};
    const bool same = derived_cell_ && derived_from_ == now.run && derived_cell_->head == cell.head &&
                      derived_cell_->query == cell.query && derived_cell_->key == cell.key;
    if (!s.over_keys || !complete()) {
        derivation_.reset();
        derived_cell_.reset();
    } else if (!same) {
        derived_cell_ = cell;
        derived_from_ = now.run;
        Result<Derivation> derived = derive_cell(now.run->desc(), now.run->host_bindings().data(), cell);
        if (derived)
            derivation_ = std::move(*derived);
        else
            derivation_.reset();
    }
    return derivation_;
}

}  // namespace fovea::visualizer
