#include "document/computation.hpp"

#include "document/document.hpp"

#include <algorithm>
#include <thread>
#include <tuple>
#include <utility>

namespace fovea::visualizer {
namespace {

// From here on turning a file's tensors into heads takes longer than a frame.
// From here on a GPT block's projections do: three of 768 x 768 for each token.
constexpr size_t kManyTokens = 32;
constexpr size_t kMaxRunTimes = 120;
// Statistics of heads are taken on this thread, between two frames.
constexpr size_t kMaxStatsValues = 16u << 20;

bool same_projection(const Settings& a, const Settings& b) {
    const auto key = [](const Settings& s) {
        return std::tie(s.file, s.text, s.tokenizer, s.level, s.length, s.init, s.seed, s.heads, s.kv_heads,
                        s.rope, s.edits);
    };
    if (key(a) != key(b)) return false;
    // In a model the rules count in every layer, those before the shown one, too.
    const auto of_model = [](const Settings& s) { return std::tie(s.task, s.heads_off, s.mapping.layer); };
    const auto rules = [](const Settings& s) -> const AttentionRules& { return s; };
    if (shows_model(a) || shows_model(b))
        return of_model(a) == of_model(b) && rules(a) == rules(b) && a.model == b.model &&
               a.changed == b.changed && a.learned == b.learned;
    return !a.file || a.mapping == b.mapping;
}

uint64_t size_of(const ImportedFile& file) {
    uint64_t sum = 0;
    for (const Tensor& t : file.set.tensors) sum += t.bytes.size();
    return sum;
}

}  // namespace

Computation::Computation(GpuDevice& device, bool on_cpu, int frames_in_flight, const Background& background,
                         Problems& problems, std::vector<VkBuffer>& released)
    : device_(device),
      on_cpu_(on_cpu || !device.has_vulkan()),
      frames_in_flight_(frames_in_flight),
      background_(background),
      problems_(problems),
      released_(released) {}

void Computation::compute_on_cpu(bool on_cpu) {
    if (on_cpu == on_cpu_ || !device_.has_vulkan()) return;
    on_cpu_ = on_cpu;
    wants_begin_ = true;
}

void Computation::measure_wanted_roof() {
    if (!std::exchange(wants_roof_, false)) return;
    const Result<Roof> measured = measure_roof(device_);
    run_seconds_.clear();  // the device is warm from here on
    if (measured)
        roof = *measured;
    else
        problems_.report("roof", measured.error().text, false);
}

std::string Computation::preparing() const {
    if (waits_for_)
        return "running the model, layer " + std::to_string(grid_ ? grid_->finished_layers() : 0) + " of " +
               std::to_string(grid_ ? grid_->layer_count() : 0);
    if (!projecting_) return "";
    const Settings& s = projecting_->settings;
    return s.file ? "reading " + file_name(s.file->path) : "projecting the tokens";
}

std::optional<Result<Projected>> Computation::projection(const Settings& by) {
    waits_for_.reset();
    // Taken whatever is wanted now: as long as one waits here, each frame begins anew.
    std::optional<Result<Projected>> come;
    if (projection_has_come()) {
        Projecting ended = std::move(*projecting_);
        projecting_.reset();
        if (same_projection(ended.settings, by)) come = ended.future.get();
    }
    if (result_ && same_projection(result_->projected_by, by)) return Result<Projected>(result_->projected);
    if (by.model && shows_model(by)) return layer_projection(by);
    if (come) return come;
    // Weights of the result before are drawn already; it stays while a thread reads it.
    const auto project_all = [before = result_](const Settings& s) {
        return project(s, before ? &before->projected : nullptr);
    };
    const bool heavy = by.file ? size_of(*by.file) >= kLargeFileBytes
                               : by.level == 7 && !shows_model(by) && text_tokens(by).size() >= kManyTokens;
    if (!background_.has_frames() || !heavy) return project_all(by);
    if (projecting_) return {};  // another's, not ended yet
    projecting_ =
        Projecting{by, std::async(std::launch::async, [by, project_all, done = background_.end_of_step()] {
                       Result<Projected> projected = project_all(by);
                       done();
                       return projected;
                   })};
    return {};
}

// In a window nobody waits for the driver's compiler; a picture without one is of the place that was asked
// for.
ComputeOn Computation::place() const {
    return on_cpu_                     ? ComputeOn::processor
           : !background_.has_frames() ? ComputeOn::device
                                       : ComputeOn::first_processor;
}

Result<void> Computation::begin(Projected projected, const Settings& settings, const Settings& by) {
    Result<std::shared_ptr<AttentionResult>> made =
        make_result(device_, std::move(projected), settings, place(), background_.wake());
    if (!made) return made.error();
    (*made)->projected_by = by;
    if (result_) release(*result_);
    result_ = std::move(*made);
    // Problems of a text are replaced by those of the next one; problems of a file stay.
    const bool of_text = result_->projected.source != nullptr;
    problems_.replace("text", of_text ? result_->projected.warnings : std::vector<std::string>());
    for (const std::string& warning : result_->projected.warnings)
        if (!of_text) problems_.report("file", warning, false);
    for (const std::string& warning : result_->warnings) problems_.report("precision", warning, false);
    updates_since_end_ = 0;
    measured_ = false;
    head_stats_.clear();
    derived_cell_.reset();
    derivation_.reset();
    ++results_;
    return {};
}

Result<void> Computation::compute_at_once(double flops) {
    updates_since_end_ = 0;
    if (frames_in_flight_ == 0 || run().total_flops() > flops) return {};
    while (!run().finished()) {
        Result<bool> advanced = false;
        if (Result<void> r =
                device_.run_once([&](VkCommandBuffer cmd) { advanced = result_->run->advance(cmd, flops); });
            !r)
            return r;
        if (!advanced) return advanced.error();
    }
    derived_cell_.reset();
    updates_since_end_ = frames_in_flight_;
    return {};
}

Result<bool> Computation::advance(VkCommandBuffer cmd, double flops) {
    if (run().finished()) {
        // Counted first: what is drawn as complete has its ranges.
        if (updates_since_end_ < frames_in_flight_) ++updates_since_end_;
        if (complete()) measure();
        return !measured();
    }
    const Result<bool> advanced = result_->run->advance(cmd, flops);
    if (!advanced) return advanced.error();
    derived_cell_.reset();
    updates_since_end_ = 0;
    return true;
}

// Statistics, and alarms for values that cannot be right.
void Computation::measure() {
    if (measured_) return;
    measured_ = true;
    if (Result<void> r = fill_traced_stages(*result_); !r)
        problems_.report(r.error().field, r.error().text, true);
    if (const double busy = run().times().busy_s; busy > 0 && !run().stands_in()) {
        if (run_seconds_.size() == kMaxRunTimes) run_seconds_.erase(run_seconds_.begin());
        run_seconds_.push_back(busy);
    }
    measure_stages(*result_);
    for (const Stage& stage : result_->stages) {
        if (stage.stats->nan > 0)
            problems_.report(stage.name, format_count(stage.stats->nan) + " values are NaN", true);
        if (stage.stats->infinite > 0)
            problems_.report(stage.name, format_count(stage.stats->infinite) + " values are infinite", true);
    }
    if (const std::string odd = odd_row_of_weights(*result_); !odd.empty())
        problems_.report("weights", odd, true);
}

const std::vector<HeadStats>& Computation::head_stats() {
    const Stage* weights = complete() ? find_stage(StageId::weights) : nullptr;
    if (weights && head_stats_.empty() && weights->values.size() <= kMaxStatsValues)
        for (uint32_t head = 0; head < weights->heads; ++head)
            head_stats_.push_back(fovea::head_stats(weights->head_values(head), weights->columns));
    return head_stats_;
}

const std::optional<Derivation>& Computation::derivation(const AttentionRun& of, const Stage& stage,
                                                         const Cell& cell) {
    const bool same = derived_cell_ && derived_from_ == &of && derived_cell_->head == cell.head &&
                      derived_cell_->query == cell.query && derived_cell_->key == cell.key;
    if (!stage.over_keys || stage.of_heads || !complete()) {
        derivation_.reset();
        derived_cell_.reset();
    } else if (!same) {
        derived_cell_ = cell;
        derived_from_ = &of;
        Result<Derivation> derived = derive_cell(of.desc(), of.host_bindings().data(), cell);
        if (derived)
            derivation_ = std::move(*derived);
        else
            derivation_.reset();
    }
    return derivation_;
}

void Computation::begin_grid(const Settings& settings) {
    if (grid_ && grid_->serves(settings)) return;
    std::unique_ptr<HeadGrid> next =
        std::make_unique<HeadGrid>(settings, background_.wake(), grid_ ? grid_.get() : nullptr);
    if (grid_ && !same_subject(grid_->settings(), settings)) next_.reset();
    if (grid_) drop_grid();
    grid_ = std::move(next);
    // The new grid may have the address of an earlier one, so the cached table must not be reused.
    next_of_ = next_wanted_ = {};
}

bool Computation::layer_has_come(uint32_t layer) const {
    return grid_ && (grid_->enters(layer) || grid_->ended());
}

// The thread that fills the grid of heads comes to the layer; the last result stays until then.
std::optional<Result<Projected>> Computation::layer_projection(const Settings& by) {
    begin_grid(by);
    while (!background_.has_frames() && !layer_has_come(by.mapping.layer)) std::this_thread::yield();
    if (grid_->enters(by.mapping.layer)) return project_layer(by, grid_->run());
    if (grid_->ended()) {
        const std::string why = grid_->problem();
        return Result<Projected>(
            Error{FOVEA_INVALID_ARGUMENT, "model", why.empty() ? "the model has not been run" : why});
    }
    waits_for_ = by.mapping.layer;
    return {};
}

const HeadGrid* Computation::head_grid(const Settings& settings) {
    const bool serves = grid_ && grid_->serves(settings);
    // After a rejected change the last result stays, with its heads.
    if (!serves && grid_ && !problem_.empty()) return grid_.get();
    if (!serves && (!problem_.empty() || shown_layers(settings).size() < (shows_model(settings) ? 1u : 2u))) {
        if (grid_) drop_grid();
        return nullptr;
    }
    begin_grid(settings);
    if (Result<void> r = grid_->take(device_); !r) problems_.report("layers", r.error().text, true);
    return grid_.get();
}

Result<void> Computation::finish_wanted_grid() {
    if (grid_) return grid_->finish(device_);
    return {};
}

const PromptNext* Computation::next_table(const Settings& settings, uint64_t row) {
    const HeadGrid* const grid = head_grid(settings);
    if (!grid || !complete() || !grid->enters(grid->layer_count())) return nullptr;
    const auto receive = [&] {
        Result<PromptNext> made = coming_next_.get();
        next_of_ = next_wanted_;
        next_.reset();
        next_problem_ = made ? "" : made.error().text;
        if (made) next_ = std::move(*made);
    };
    if (has_come(coming_next_)) receive();
    const NextWanted wanted{grid, row};
    if (next_of_ != wanted && !coming_next_.valid()) {
        next_wanted_ = wanted;
        coming_next_ = std::async(background_.has_frames() ? std::launch::async : std::launch::deferred,
                                  [settings, run = grid->run(), row, done = background_.end_of_step()] {
                                      Result<PromptNext> made = next_after(settings, *run, row);
                                      done();
                                      return made;
                                  });
        if (!background_.has_frames()) receive();
    }
    return next_ ? &*next_ : nullptr;
}

const ScoreWriters* Computation::why(const LayerCell& cell) {
    const auto receive = [&] {
        Result<ScoreWriters> made = coming_why_.get();
        why_of_ = why_wanted_;
        why_.reset();
        why_problem_ = made ? "" : made.error().text;
        if (made) why_ = std::move(*made);
    };
    if (has_come(coming_why_)) receive();
    const WhyWanted wanted{results_, cell};
    if (why_of_ != wanted && !coming_why_.valid()) {
        why_wanted_ = wanted;
        const Projected& p = result_->projected;
        // A model of a task is so small that its answer is there with the frame.
        const bool apart = background_.has_frames() && p.run;
        coming_why_ = std::async(apart ? std::launch::async : std::launch::deferred,
                                 [model = result_->settings.model, run = p.run, source = p.source, cell,
                                  done = background_.end_of_step()] {
                                     Result<ScoreWriters> made = writers_of(model, run, *source, cell);
                                     done();
                                     return made;
                                 });
        if (!apart) receive();
    }
    if (why_of_ == wanted) return why_ ? &*why_ : nullptr;
    why_problem_.clear();
    return nullptr;
}

void Computation::drop_grid() {
    for (const GridLayer& layer : grid_->layers())
        if (layer.pixels.handle()) released_.push_back(layer.pixels.handle());
    grid_->cancel();
    retired_grids_.push_back(std::move(grid_));
}

void Computation::release(const AttentionResult& result) {
    for (const Stage& stage : result.stages) released_.push_back(stage.buffer->handle());
}

void Computation::retire(std::shared_ptr<const AttentionResult> result) {
    release(*result);
    retired_.push_back(std::move(result));
}

void Computation::free_retired() {
    retired_.clear();
    // One whose thread is still in a layer of a large model goes later.
    std::erase_if(retired_grids_, [](const std::unique_ptr<HeadGrid>& grid) { return grid->ended(); });
}

}  // namespace fovea::visualizer
