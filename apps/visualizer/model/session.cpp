#include "model/session.hpp"

#include <algorithm>
#include <cstring>

namespace fovea::visualizer {
namespace {

constexpr size_t kMostUndo = 200;

std::string scale_text(const Settings& s, const AttentionRun& run) {
    std::string text = "q \xc2\xb7 k";
    if (s.scaled) text += " / \xe2\x88\x9a" + std::to_string(run.desc().dim_qk);
    if (s.temperature != 1) text += " / " + format_number(s.temperature, 3);
    return text;
}

std::string mask_text(const Settings& s) {
    std::string text;
    if (s.softcap > 0)
        text += format_number(s.softcap, 3) + " tanh(scores / " + format_number(s.softcap, 3) + ")";
    if (s.alibi) text += std::string(text.empty() ? "" : ", ") + "+ slope (j - i)";
    if (s.causal) text += std::string(text.empty() ? "" : ", ") + "key \xe2\x89\xa4 query";
    if (s.windowed)
        text += std::string(text.empty() ? "" : ", ") + "window " + std::to_string(s.window_left) + ", " +
                std::to_string(s.window_right);
    return text.empty() ? "nothing is masked" : text;
}

}  // namespace

Session::~Session() = default;

void Session::change(const Settings& settings, uint64_t gesture) {
    if (settings == settings_) return;
    if (gesture == 0 || gesture != last_gesture_) {
        undo_.push_back(settings_);
        if (undo_.size() > kMostUndo) undo_.erase(undo_.begin());
    }
    last_gesture_ = gesture;
    redo_.clear();
    settings_ = settings;
    dirty_ = true;
}

void Session::undo() {
    if (undo_.empty()) return;
    redo_.push_back(settings_);
    settings_ = undo_.back();
    undo_.pop_back();
    last_gesture_ = 0;
    dirty_ = true;
}

void Session::redo() {
    if (redo_.empty()) return;
    undo_.push_back(settings_);
    settings_ = redo_.back();
    redo_.pop_back();
    last_gesture_ = 0;
    dirty_ = true;
}

Result<bool> Session::update(VkCommandBuffer cmd, double flops) {
    if (dirty_) {
        dirty_ = false;
        problem_.clear();
        // A refused change keeps the last result on the screen, with the reason beside it.
        if (Result<void> r = rebuild(); !r) problem_ = r.error().field + ": " + r.error().text;
        if (run_)
            if (Result<void> r = compute_at_once(flops); !r) return r.error();
    }
    if (!run_) return Error{FOVEA_INVALID_ARGUMENT, "settings", problem_};
    if (run_->finished()) {
        if (updates_since_end_ < frames_in_flight_) ++updates_since_end_;
        return !complete();
    }
    const Result<bool> advanced = run_->advance(cmd, flops);
    if (!advanced) return advanced.error();
    derived_cell_.reset();
    updates_since_end_ = 0;
    return !complete();
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

Result<void> Session::rebuild() {
    Result<Projected> projected = project(settings_);
    if (!projected) return projected.error();
    Result<std::unique_ptr<AttentionRun>> run = AttentionRun::create(device_, *projected, settings_, on_cpu_);
    if (!run) return run.error();
    const std::string shown = view.stage < stages_.size() ? stages_[view.stage].name : "weights";
    for (const Stage& old : stages_) released.push_back(old.buffer->handle());
    stages_.clear();
    host_buffers_.clear();
    projected_ = std::move(*projected);
    run_ = std::move(*run);
    for (const HostStage& host_stage : projected_.stages)
        if (Result<void> r = add_host_stage(host_stage); !r) return r;
    collect_stages();
    const auto find = [&](const std::string& name) {
        return size_t(
            std::find_if(stages_.begin(), stages_.end(), [&](const Stage& s) { return s.name == name; }) -
            stages_.begin());
    };
    view.stage = find(shown);
    if (view.stage == stages_.size()) view.stage = find("weights");
    view.head = std::min<uint32_t>(view.head, uint32_t(stage().heads - 1));
    view.picked_row = std::clamp(view.picked_row, 0, int(stage().rows) - 1);
    view.picked_column = std::clamp(view.picked_column, 0, int(stage().columns) - 1);
    derived_cell_.reset();
    derivation_.reset();
    return {};
}

Result<void> Session::add_host_stage(const HostStage& stage) {
    const F32Tensor& t = stage.tensor;
    Result<GpuBuffer> made = GpuBuffer::create(device_, t.values.size() * 4);
    if (!made) return made.error();
    std::memcpy(made->data(), t.values.data(), t.values.size() * 4);
    made->flush();
    host_buffers_.push_back(std::make_unique<GpuBuffer>(std::move(*made)));
    Stage row{stage.name, stage.formula};
    row.heads = t.rank() == 3 ? t.shape[0] : 1;
    row.columns = t.columns();
    row.rows = t.rows() / row.heads;
    row.buffer = host_buffers_.back().get();
    row.values = t.values;
    row.row_tokens = stage.name.substr(0, 2) != "W_";
    stages_.push_back(row);
    return {};
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
        {"scores", scale_text(settings_, *run_), FOVEA_BIND_SCORES, d.len_kv, true},
        {"masked", mask_text(settings_), FOVEA_BIND_MASKED, d.len_kv, true},
        {"weights", settings_.dropout ? "dropout(softmax(masked))" : "softmax(masked)", FOVEA_BIND_WEIGHTS,
         d.len_kv, true},
        {"context", "weights v", FOVEA_BIND_O, d.dim_v, false},
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
        stages_.push_back(stage);
    }
}

const std::optional<Derivation>& Session::derivation() {
    const Stage& s = stage();
    const Cell cell{0, view.head, uint64_t(view.picked_row), uint64_t(view.picked_column)};
    const bool same = derived_cell_ && derived_cell_->head == cell.head &&
                      derived_cell_->query == cell.query && derived_cell_->key == cell.key;
    if (!s.over_keys || !complete()) {
        derivation_.reset();
        derived_cell_.reset();
    } else if (!same) {
        derived_cell_ = cell;
        Result<Derivation> derived = derive_cell(run_->desc(), run_->host_bindings().data(), cell);
        if (derived)
            derivation_ = std::move(*derived);
        else
            derivation_.reset();
    }
    return derivation_;
}

}  // namespace fovea::visualizer
