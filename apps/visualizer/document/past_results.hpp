// Results that stay while the reader changes things: A of the comparison and the matrices of locked tabs.
// Undo does not take them back.
#pragma once

#include "document/attention_result.hpp"
#include "document/view_state.hpp"

namespace fovea::visualizer {

class Workbench;

// A of the comparison.
struct KeptResult {
    std::shared_ptr<const AttentionResult> result;
    uint32_t head = 0;
};

// A matrix that stays in its own tab, with its result.
struct LockedMatrix {
    std::string name;  // "L3H5", "level 3 H1 scores"
    std::shared_ptr<const AttentionResult> result;
    size_t stage = 0;
    uint32_t head = 0;
};

// The description from which such a result is computed again.
struct PastResult {
    Settings settings;
    uint32_t head = 0;
    bool locked = false;
    std::string stage;  // stage of a locked tab
};

class PastResults {
  public:
    static constexpr size_t kMaxLocked = 6;

    explicit PastResults(Workbench& bench) : bench_(bench) {}

    const KeptResult* kept() const { return kept_ ? &*kept_ : nullptr; }
    const std::vector<LockedMatrix>& locked() const { return locked_; }
    // The locked matrix whose tab is in front; null: none.
    const LockedMatrix* shown_locked() const;

    // Keeps the present result as A, while undo, redo and changes go on.
    void keep();
    // The same at once.
    void keep_present(uint32_t head);
    void drop_kept();
    void show_kept_head(uint32_t head) {
        if (kept_) kept_->head = head;
    }
    // The kept settings become the present ones, a step of undo, and the present result the kept one.
    void swap();
    // Keeps the shown matrix in its own tab, which becomes the shown one.
    void lock();
    void unlock(size_t tab);

    // A and the locked tabs, in their order, also those that are still to be computed again.
    std::vector<PastResult> all() const;
    // Computes these again in order, keeps and locks them, and then computes the settings' own result.
    void restore(std::vector<PastResult> past);
    // Until then view and stage are of no result that the reader chose; these are.
    bool restoring() const { return restoring_.has_value(); }
    const ViewState& own_view() const;
    std::string own_stage() const;
    int own_tab() const;
    // The settings of the result that is computed again.
    const Settings& wanted_settings() const { return restoring_->past.front().settings; }
    // Keeps or locks the result that was computed again and begins the next, finally the document's own.
    // False if there is nothing to do yet.
    bool go_on();
    void end_restoring();

  private:
    struct Restoring {
        std::vector<PastResult> past;  // the first is being computed
        ViewState view;                // the view after them
        int locked_tab = -1;
    };
    void lock_present(size_t stage, uint32_t head);

    Workbench& bench_;
    std::optional<KeptResult> kept_;
    std::vector<LockedMatrix> locked_;
    std::optional<Restoring> restoring_;
};

}  // namespace fovea::visualizer
