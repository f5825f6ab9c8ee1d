#include "document/past_results.hpp"

#include "document/workbench.hpp"

#include <algorithm>
#include <utility>

namespace fovea::visualizer {

const LockedMatrix* PastResults::shown_locked() const {
    const auto tab = size_t(bench_.window.locked_tab);  // -1 is beyond all
    return bench_.window.centre == CentreTab::matrix && tab < locked_.size() ? &locked_[tab] : nullptr;
}

void PastResults::keep() {
    bench_.when_settled("keeping as A", [this] { keep_present(bench_.view.head); });
}

void PastResults::keep_present(uint32_t head) {
    drop_kept();
    kept_ = KeptResult{bench_.computation.result(), head};
}

void PastResults::drop_kept() {
    if (!kept_) return;
    bench_.computation.retire(std::move(kept_->result));
    kept_.reset();
}

void PastResults::swap() {
    if (!kept_) return;
    bench_.when_settled("swapping A and B", [this] {
        if (!kept_) return;
        const Settings kept = kept_->result->settings;
        const uint32_t head = kept_->head;
        keep_present(bench_.view.head);
        bench_.view.head = head;
        bench_.document.change(kept);
    });
}

void PastResults::lock() {
    bench_.when_settled("locking", [this] {
        if (locked_.size() == kMaxLocked)
            return bench_.problems.report("tabs", "six matrices are locked: unlock one first", false);
        lock_present(bench_.view.stage, bench_.view.head);
        bench_.window.locked_tab = int(locked_.size()) - 1;
        bench_.window.centre = CentreTab::matrix;
    });
}

void PastResults::lock_present(size_t stage, uint32_t head) {
    const std::shared_ptr<AttentionResult>& result = bench_.computation.result();
    const Settings& s = result->settings;
    std::string name = reads_tensors(s) || shows_model(s) ? head_name(s.mapping.layer, head)
                                                          : subject_name(s) + " H" + std::to_string(head);
    if (result->stages[stage].id != StageId::weights) name += " " + result->stages[stage].name;
    locked_.push_back({std::move(name), result, stage, head});
}

void PastResults::unlock(size_t tab) {
    if (tab >= locked_.size()) return;
    bench_.computation.retire(std::move(locked_[tab].result));
    locked_.erase(locked_.begin() + ptrdiff_t(tab));
    if (bench_.window.locked_tab >= int(tab)) --bench_.window.locked_tab;
}

const ViewState& PastResults::own_view() const { return restoring_ ? restoring_->view : bench_.view; }

std::string PastResults::own_stage() const {
    const ViewState& own = own_view();
    const Computation& computation = bench_.computation;
    const bool shows = !restoring_ && computation.ready() && own.stage < computation.stages().size();
    return shows ? computation.stages()[own.stage].name : own.wanted_stage;
}

int PastResults::own_tab() const { return restoring_ ? restoring_->locked_tab : bench_.window.locked_tab; }

std::vector<PastResult> PastResults::all() const {
    std::vector<PastResult> all;
    if (kept_) all.push_back({kept_->result->settings, kept_->head, false, {}});
    for (const LockedMatrix& one : locked_)
        all.push_back({one.result->settings, one.head, true, one.result->stages[one.stage].name});
    if (restoring_) all.insert(all.end(), restoring_->past.begin(), restoring_->past.end());
    return all;
}

void PastResults::restore(std::vector<PastResult> past) {
    end_restoring();
    if (past.empty()) return;
    const auto locks = [](const PastResult& one) { return one.locked; };
    if (std::any_of(past.begin(), past.end(), locks))
        while (!locked_.empty()) unlock(locked_.size() - 1);
    restoring_ = Restoring{std::move(past), bench_.view, std::exchange(bench_.window.locked_tab, -1)};
    bench_.computation.want_begin();
}

void PastResults::end_restoring() {
    if (!restoring_) return;
    bench_.view = restoring_->view;
    bench_.window.locked_tab = std::min(restoring_->locked_tab, int(locked_.size()) - 1);
    restoring_.reset();
    bench_.computation.want_begin();
}

// A rejected one has left its reason among the problems.
bool PastResults::go_on() {
    const Computation& computation = bench_.computation;
    if (!restoring_ || computation.wants_begin() || computation.projecting()) return false;
    const bool refused = !computation.problem().empty();
    if (!refused && !computation.measured()) return false;
    std::vector<PastResult>& past = restoring_->past;
    const Settings done = past.front().settings;
    do {
        const PastResult one = past.front();
        past.erase(past.begin());
        if (refused) continue;
        const AttentionResult& result = *computation.result();
        const size_t stage = result.stage_index(one.locked ? one.stage : stage_name(StageId::weights));
        if (stage == result.stages.size() || (one.locked && locked_.size() == kMaxLocked)) {
            bench_.problems.report(
                "tabs",
                "a locked matrix is gone: its result has no stage \xe2\x80\x9c" + one.stage + "\xe2\x80\x9d",
                false);
            continue;
        }
        const uint32_t head = std::min(one.head, uint32_t(result.stages[stage].heads) - 1);
        if (one.locked)
            lock_present(stage, head);
        else
            keep_present(head);
    } while (!past.empty() && past.front().settings == done);
    if (past.empty()) end_restoring();
    bench_.computation.want_begin();
    return true;
}

}  // namespace fovea::visualizer
