// The texts that the window shows, by panel, in English. Another language is another Texts with its own
// values; {0} is the first value of fill().
#pragma once

#include <string>
#include <vector>

namespace fovea::visualizer {

struct Texts {
    struct Compare {
        const char* head = "head {0}";
        const char* swap = "Swap";
        const char* side = "side by side";
        const char* halves = "halves";
        const char* difference = "difference A − B";
        const char* same_range = "same range";
        const char* save = "Save as A";
        const char* clear = "Clear A";
        const char* saved = "A saved: {0}";
        const char* picked = "picked cell ({0}): A {1}, B {2}, difference {3}";
        const char* largest = "largest difference {0} at {1} → {2}";
        const char* mean = "mean difference {0}";
        const char* divergence = "Jensen–Shannon divergence of this row {0}";
        const char* minus = "{0} minus {1}";
        const char* both_halves = "{0} on and below the diagonal, {1} above";
        const char* both = "A and B";
        const char* save_hint =
            "Saves the shown result as A, to compare it with later changes\nof level, text, parameters or "
            "layer.";
        const char* same_range_hint = "Gives a number the same color in A and B.";
    } compare;
    struct Next {
        const char* next = "next";
        const char* changed = "with the changes";
        const char* probability = "probability";
        const char* without = "without";
        const char* said_without = "predicted without";
        const char* lens = "if the model stopped after layer ...";
        const char* lens_hint =
            "Applies the final norm and the output layer to the output of each layer:\nthe logit lens "
            "(nostalgebraist, 2020).";
        const char* none = "none";
        const char* off = "off";
        const char* unchanged = "unchanged";
        const char* scale_hint = "Multiplies what the head adds; 0 switches the head off.";
        const char* patch = "patch from a sentence with as many tokens";
        const char* patched = "from “{0}”";
        const char* reset = "Reset";
        const char* reset_all = "Reset all {0}";
        const char* computing = "computing";
        const char* after = "after “{0}”";
        const char* patch_hint =
            "Replaces the head's output, token by token, with its output for that sentence:\nactivation "
            "patching (Vig et al., 2020).";
        const char* empty = "Open a model or pick a learned one (Alt+0) to see its predictions here.";
    } next;
    struct Layers {
        const char* off = ", off ";
        const char* up_to = "up to {0}";
        const char* at_least = "at least {0}";
        const char* leave_above = "Leaves out the heads above this value.";
        const char* leave_below = "Leaves out the heads below this value.";
        const char* progress = "layer {0} of {1}";
        const char* empty = "Open a model or pick a learned one to see every head here.";
        const char* open = "Open a model";
        const char* learned = "Show a learned model";
    } layers;
    struct Vectors {
        const char* word_at = "word {0}: {1}, {2}\ndrag to move";
        const char* query_at = "query of {0}: {1}, {2}\ndrag to move";
        const char* key_at = "key of {0}: {1}, {2}\ndrag to move";
        const char* query = "query of {0}";
        const char* key = "key of {0}";
        const char* word = "word {0}";
        const char* place_hint = "Moves the point: drag, or Ctrl+click to type its coordinates.";
        const char* queries_and_keys = "queries and keys";
        const char* words = "words";
        const char* reset = "Reset";
        const char* weights_tried = "weights of {0}; lines: unchanged";
        const char* weights = "weights of {0}";
        const char* about_words =
            "Each word is a row of {0} numbers, shown along the two directions in which these words differ "
            "most ({1} of all differences).";
        const char* drag_words = "Drag a word to change its numbers in the session.";
        const char* words_stay = "Words cannot be moved: {0}.";
        const char* two_numbers = "Queries and keys are two numbers each.";
        const char* many_numbers =
            "Queries and keys are {0} numbers each; these two directions hold {1} of all differences.";
        const char* about =
            "Keys pointing the same way as the query get more weight, longer ones most of all. Drag a query "
            "or a key to try other vectors; the layer keeps its own.";
    } vectors;
    struct Train {
        const char* steps = "step 0 to {0}";
        const char* loss = "loss";
        const char* chance = "chance (ln {0})";
        const char* loss_now = "loss {0}";
        const char* scores = "accuracy and scores of heads";
        const char* weight_off = "from {0}, {1}, to {2}, {3}: {4}\nclick to switch the head on";
        const char* weight_on = "from {0}, {1}, to {2}, {3}: {4}\nclick to switch the head off";
        const char* pause = "Pause";
        const char* train = "Train";
        const char* train_hint = "Runs training steps with the engine’s own attention and gradients.";
        const char* step = "Step";
        const char* step_hint = "Runs one training step.";
        const char* rewind = "Rewind";
        const char* rewind_hint = "Goes back to step 0 of the same seed, whose steps repeat bit for bit.";
        const char* new_seed = "New seed";
        const char* new_seed_hint = "Starts another run and keeps the curve of this one, faint.";
        const char* show_heads = "Show heads";
        const char* show_heads_hint = "Opens this state of the model in every panel.";
        const char* save_state = "Save state";
        const char* save_state_hint = "Saves the state next to the program, for `fovea train --resume`.";
        const char* save_curves = "Save curves";
        const char* save_curves_hint = "Saves loss, accuracy and scores of every step and run as CSV.";
        const char* where = "seed {0}, step {1} of {2}";
        const char* nothing = "nothing to predict on this sequence";
        const char* accuracy = "accuracy on this sequence {0} %";
        const char* unseen = "; on 64 unseen sequences {0} %, loss {1}";
        const char* speed5 = "5 steps per second";
        const char* speed20 = "20 steps per second";
        const char* speed200 = "200 steps per second";
        const char* fastest = "maximum speed";
    } train;
    struct Files {
        const char* saved = "Saved {0}";
        const char* up = "..  Up one level";
        const char* unreadable = "This folder cannot be read: {0}";
        const char* nothing = "No file that Fovea can open";
        const char* name = "file name or full path";
        const char* open_model = "Open this folder’s model";
        const char* export_all_hint = "Clears the selection, so that the whole matrix is exported.";
        const char* replaces = "A file with this name exists and will be replaced.";
        const char* saved_without = "Saved {0} without {1}.";
    } files;
    struct Map {
        const char* head = "head {0}";
        const char* choose = "choose a length";
        const char* mass = "mass";
        const char* largest = "largest";
        const char* fit = "Fit";
        const char* digits = "Digits";
        const char* digits_hint = "Zooms in until digits show (Shift+I).";
        const char* peak = "Peak";
        const char* peak_hint = "Picks the largest weight of the query (Shift+M).";
        const char* next_peak = "Next peak";
        const char* next_peak_hint = "Picks the next smaller weight of the query (Shift+P).";
        const char* device = "device";
        const char* cpu = "CPU";
        const char* tiles = "Tiles: {0}";
        const char* exact = "exact";
        const char* compiling = "; shaders are compiling";
        const char* computing = "computing";
        const char* sampled = "sampled";
        const char* cell = "pixel of query {0}, key {1}: weight {2}";
        const char* range = "{0} to {1}";
        const char* block_largest = "pixel of queries {0}, keys {1}: largest weight {2}{3}";
        const char* block_mass = "pixel of queries {0}, keys {1}: mass {2}{3}";
        const char* of_middle = " of its middle cell";
        const char* of_all = " of all its cells";
        const char* coming = "computing the queries and keys";
        const char* empty =
            "A zoomable map of a long head, from a synthetic context or a file whose matrix is too large to "
            "store.";
        const char* share = "query {0}: {1} keys have {2} %";
        const char* before_dropout = "before dropout";
        const char* none = "No map is open.";
        const char* unnamed = "{0}, without token names";
        const char* synthetic =
            "Synthetic: a local band, a sink on token 0, separators that all later tokens look at, and a "
            "text that repeats every {0} tokens.";
        const char* one_head = "This map has one head.";
    } map;
    struct Tokens {
        const char* pick_hint = "Click to pick this key.";
        const char* unmask_hint = "Click to pick this key, right-click to unmask the key.";
        const char* mask_hint =
            "Click to pick this key, right-click to mask the key for every query\n(the other weights are "
            "rescaled to sum to 1).";
        const char* unmask = "Unmask {0} keys";
        const char* tokenizer_hint = "Chooses what a token of the text is (W).";
    } tokens;
    struct Status {
        const char* saved_hint = "{0}\nV compares A with what is shown, Shift+A clears A.";
        const char* compiling = "On the CPU while {0} compiles shaders";
    } status;
    struct Memory {
        const char* display = "display copies";
        const char* saved = "saved result A";
    } memory;
    struct Gpu {
        const char* on_cpu = "CPU, kernel {0}, {1}";
        const char* on_device = "{0}, kernel {1}, {2}, {3} dispatches per slice";
        const char* one_slice = "1 slice";
        const char* slices = "{0} slices";
    } gpu;
    struct Pipeline {
        const char* layer = "layer {0} of 0–{1}";
    } pipeline;
    struct Inspector {
        const char* after_mask = "after mask";
        const char* visible = "visible";
    } inspector;
};

// Returns the texts of the language in use.
inline const Texts& texts() {
    static constexpr Texts kEnglish;
    return kEnglish;
}

// Replaces {0}, {1} and so on in a text with the values.
inline std::string fill(const char* text, const std::vector<std::string>& values) {
    std::string filled;
    for (const char* at = text; *at; ++at) {
        const size_t value = at[0] == '{' && at[1] >= '0' && at[1] <= '9' && at[2] == '}'
                                 ? size_t(at[1] - '0')
                                 : values.size();
        if (value < values.size())
            filled += values[value], at += 2;
        else
            filled += *at;
    }
    return filled;
}

}  // namespace fovea::visualizer
