// The texts of the window's panels, in English; scripts/house_rules.py finds others in panels/. Another
// language is another Texts with its own values; {0} is the first value of fill().
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
        const char* other_runs = "{0} other runs\n";
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
        const char* only_selected = "Only the {0} x {1} selected cells";
        const char* export_all = "Export all";
        const char* replace = "Replace";
        const char* save = "Save";
        const char* open = "Open";
        const char* cancel = "Cancel";
        const char* save_formats =
            ".png: a picture; .svg: the matrix; .csv and .npy: its values; .npz: all heads; .fovea: the "
            "session";
        const char* open_formats =
            "safetensors, npz, npy, csv, png, sessions (.fovea), models (a folder with config.json, or "
            ".gguf)";
        const char* a_model = "model";
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
        const char* in_tiles = "of the map, in tiles";
        const char* planted = "synthetic patterns, float32";
        const char* of_file = "from the file";
        const char* scores = "q · k / {0}; never stored: {1}";
        const char* lse = "of each row, when a tile needs it: {0}% computed";
        const char* dropout = "p {0}, seed {1}, by counters (Philox)";
        const char* weights = "exp(masked − log-sum-exp); a pixel is {0} x {0} weights";
        const char* exact_tiles = "{0}, exact tiles {1} of {2}";
    } map;
    struct Tokens {
        const char* pick_hint = "Click to pick this key.";
        const char* unmask_hint = "Click to pick this key, right-click to unmask the key.";
        const char* mask_hint =
            "Click to pick this key, right-click to mask the key for every query\n(the other weights are "
            "rescaled to sum to 1).";
        const char* unmask = "Unmask {0} keys";
        const char* tokenizer_hint = "Chooses what a token of the text is (W).";
        const char* every_query = "lines of all queries";
        const char* lines_shown = "{0} of {1} lines shown";
        const char* use_words = "Use words";
        const char* use_words_hint =
            "Opens this text at level 2, where tokens are words and weights come from a seed.";
        const char* unnamed = "The file has no token names.";
        const char* of_file = "The tokens are those of the file.";
        const char* title = "Text";
        const char* reads = "This model reads {0}.";
        const char* keys_shown = "{0} of {1} keys";
        const char* from = "from “{0}” to";
    } tokens;
    struct Status {
        const char* saved_hint = "{0}\nV compares A with what is shown, Shift+A clears A.";
        const char* compiling = "On the CPU while {0} compiles shaders";
        const char* cancel = "Cancel";
        const char* pixel = "a pixel: {0} x {0} weights; ";
        const char* rows_known = "sums of {0}% of the rows computed; ";
        const char* tiles = "tiles: {0}; {1} cached";
        const char* cell = "query {0} → key {1}";
    } status;
    struct Memory {
        const char* display = "display copies";
        const char* saved = "saved result A";
        const char* inputs = "q, k, v, masks";
        const char* outputs = "scores, weights, context";
        const char* workspace = "workspace";
        const char* locked = "locked matrices";
        const char* grid = "layer grid";
        const char* tiles = "map tiles";
        const char* total = "{0} in total; the program uses {1} of the device's {2}";
    } memory;
    struct Gpu {
        const char* on_cpu = "CPU, kernel {0}, {1}";
        const char* on_device = "{0}, kernel {1}, {2}, {3} dispatches per slice";
        const char* one_slice = "1 slice";
        const char* slices = "{0} slices";
        const char* measure = "Measure roofline (U)";
        const char* no_timestamps = "This device has no timestamps, so no times can be shown.";
        const char* about =
            "FLOP are those of the whole matrix; bytes count each tensor once. The first run after a change "
            "is slower: caches and clocks are cold.";
        const char* intensity = "FLOP per byte";
        const char* dispatch = "{0}: {1}, from {2} on\n{3} groups, slice {4}, dispatch {5} of {6}";
        const char* waits = "\nAfter a barrier: it reads the results of earlier dispatches.";
        const char* first_slices = "of the first {0} slices";
        const char* frame_ago = "{0} frames ago: {1}{2}\nline: 1/60 s";
        const char* of_device = ", {0} of it on the device";
        const char* last_frames = "last {0} frames: median {1}, 95% below {2}";
        const char* roofline = "measured roofline {0} and {1}: {2}% of what {3} FLOP per byte allow";
        const char* under_map = "Times of the level's matrix. The map's tiles: {0}";
        const char* busy = "{0} busy   {1}   {2}{3}";
        const char* last_runs = "last {0} runs: median {1}, 95% below {2}";
    } gpu;
    struct Pipeline {
        const char* layer = "layer {0} of 0–{1}";
        const char* stage_hint =
            "{0}\nsmallest {1}, mean {2}, largest {3}\n{4} masked, {5} NaN, {6} infinite\n{7}";
        const char* file_layer = "layer {0} of the file";
    } pipeline;
    struct Inspector {
        const char* after_mask = "after mask";
        const char* visible = "visible";
        const char* sum_of_products = "sum of the products";
        const char* row_max = "row max";
        const char* with_sink = "of the row's exp and the sink";
        const char* of_exp = "of the row's exp";
        const char* after_dropout = "after dropout";
        const char* masked = "masked before dropout";
        const char* dropped = "not kept";
        const char* contribution = "contribution of the value to the context";
        const char* copy_hint = "Copies the steps as CSV, Python or LaTeX.";
        const char* as_csv = "Copy as CSV";
        const char* as_python = "Copy as Python";
        const char* as_latex = "Copy as LaTeX";
        const char* click_map = "Click on the map to pick a cell.";
        const char* exact = "computed from q and k, not read from a tile";
        const char* sort = "largest products first";
        const char* of_row = "of the row";
        const char* of_products = "of the products";
        const char* pinned = "Cell, pinned";
        const char* copy = "Copy";
        const char* back = "Back";
        const char* computing = "computing";
        const char* given = "given";
        const char* added = "added";
        const char* largest_products = "the {0} largest of {1} products";
        const char* largest_terms = "the {0} largest of {1} terms";
        const char* by_cpu = "{0} on the CPU";
        const char* by_device = "{0} on the device";
        const char* input_hint = "{0}\nClick to show these cells; Backspace goes back.";
        const char* visible_key = "{0} visible key";
        const char* visible_keys = "{0} visible keys";
        const char* sink = "exp({0} − max), without a key";
        const char* kept = "kept, × {0}";
        const char* first_values = "the first {0} of {1}";
        const char* back_hint = "Goes back to the cell of {0} that was picked before (Backspace).";
        const char* why = "Why?";
        const char* why_hint =
            "Splits the score by the parts of the model that wrote to its query and its key.";
        const char* steps = "Show steps";
        const char* steps_hint = "Shows every number between q, k and the context again.";
        const char* all_pairs = "{0} × {0} writers";
        const char* sink_apart = "sink: in the row's sum, not in the score";
        const char* at_query = "query";
        const char* at_key = "key";
        const char* share = "share";
        const char* largest_pairs =
            "the {0} largest of {1} pairs of what wrote to the query and to the key; shares of the score";
        const char* open_writer = "{0}{1}\nClick to show this head where it wrote this.";
        const char* token = "token";
        const char* position = "position";
        const char* embedding_bias = "embedding bias";
        const char* feed_forward = "L{0} feed-forward";
        const char* bias = "L{0} biases";
        const char* query_bias = "bias of q";
        const char* key_bias = "bias of k";
    } inspector;
    struct Keys {
        const char* heads = "heads";
        const char* next_task = "the next model that learned a task";
        const char* toggle_head = "switch the shown head of a model off or on";
        const char* pick_first_key = "pick the first key";
        const char* pick_last_key = "pick the last key";
        const char* pick_peak = "pick the row's largest value";
        const char* pick_next_peak = "pick the row's next peak: the largest below the picked one";
        const char* zoom_to_digits = "zoom in until the picked cell has digits";
        const char* train_small_model = "train a small model";
        const char* train_or_pause = "train or pause";
        const char* train_step = "one training step";
        const char* previous_train_step = "previous training step";
        const char* next_token = "predictions of the next token";
        const char* walk = "walk through the level: begin, next step";
        const char* walk_back = "previous step of the walk";
        const char* end_walk = "end the walk";
        const char* next_layer = "next layer of the model";
        const char* previous_layer = "previous layer";
        const char* level_1 = "level 1: attention without weights";
        const char* level_2 = "level 2: trainable weights";
        const char* level_3 = "level 3: causal mask";
        const char* level_4 = "level 4: dropout";
        const char* level_5 = "level 5: stacked heads";
        const char* level_6 = "level 6: weight split";
        const char* level_7 = "level 7: GPT block";
        const char* token_path = "path of the picked token through the layer";
        const char* vectors = "words, queries and keys as points of a plane";
        const char* go_back = "back to the cell before a click on an input";
        const char* layers = "all layers and heads of the model";
        const char* next_stage = "next stage";
        const char* previous_stage = "previous stage";
        const char* next_head = "next head";
        const char* previous_head = "previous head";
        const char* pick_previous_key = "pick the previous key";
        const char* pick_next_key = "pick the next key";
        const char* pick_previous_query = "pick the previous query";
        const char* pick_next_query = "pick the next query";
        const char* back_16_keys = "back 16 keys";
        const char* forward_16_keys = "forward 16 keys";
        const char* back_16_queries = "back 16 queries";
        const char* forward_16_queries = "forward 16 queries";
        const char* pin = "pin the picked cell; on a map, the largest weight of its pixel";
        const char* unpin = "unpin the pick and clear the selection";
        const char* mask_key = "mask or unmask the picked key; the other weights are rescaled to sum to 1";
        const char* token_lines = "tokens as lines or as a list";
        const char* toggle_causal = "causal mask on or off";
        const char* toggle_dropout = "dropout on or off";
        const char* toggle_scale = "scale on or off";
        const char* next_precision = "next precision: float32, float16 storage, float16 inputs";
        const char* next_tokenizer = "tokens are words, characters or bytes";
        const char* log_colors = "log colors";
        const char* next_colormap = "next colormap";
        const char* narrow_range = "range: 1st to 99th percentile";
        const char* own_range = "range of the values";
        const char* fit_matrix = "fit the matrix";
        const char* zoom_in = "zoom in";
        const char* zoom_out = "zoom out";
        const char* save_a = "save this result as A";
        const char* clear_a = "clear A";
        const char* swap_a_b = "swap A and B";
        const char* matrix = "matrix of the selection";
        const char* lock_matrix = "lock the shown matrix in a new tab";
        const char* close_locked_tab = "close the locked tab";
        const char* next_matrix_tab = "next of the matrix tabs";
        const char* compare = "compare A and B";
        const char* mask_editor = "mask editor";
        const char* map = "map of a long head";
        const char* gpu_times = "GPU times";
        const char* measure_roofline = "measure the device's roofline";
        const char* memory = "memory";
        const char* problems = "problems";
        const char* theme = "dark or light";
        const char* go_to_cell = "go to a cell";
        const char* find_token = "find a token";
        const char* open_file = "open a file";
        const char* export_file = "export";
        const char* save_session = "save the session";
        const char* palette = "palette";
        const char* undo = "undo";
        const char* redo = "redo";
        const char* larger_type = "larger type";
        const char* smaller_type = "smaller type";
        const char* normal_type = "type size 100 %";
        const char* full_screen = "full screen";
        const char* show_or_hide = "show or hide";
        const char* focus_next_panel = "focus next panel; Tab and arrows move within a panel";
        const char* focus_previous_panel = "focus previous panel";
        const char* swap_sides = "swap the sides";
        const char* reset_layout = "reset layout";
        const char* toggle_motion = "motion between stages on or off";
        const char* tour = "tour: begin, next step";
        const char* end_tour = "end the tour";
        const char* keys = "keys";
        const char* quit = "quit";
        const char* picking_peak = "picking a peak";
        const char* narrowing_range = "narrowing the range";
    } keys;
    struct Dialogs {
        const char* mouse =
            "Mouse: the wheel zooms, dragging pans, hovering picks a cell, a click pins the cell. Ctrl+Tab "
            "moves to the next panel; Tab and arrows move within a panel.\nScreen readers cannot read this "
            "window: --follow FILE and --describe print what it shows,\nand the web page is accessible.";
        const char* command_hint = "command, or parameter and value: temperature 5";
        const char* map_cell_hint = "query and key, counted from 0";
        const char* cell_hint = "row and column: counted from 0, or tokens";
        const char* map_cell_example = "“8192, 17”";
        const char* cell_example = "“3, 1” or “journey, step”";
        const char* open = "Open a file";
        const char* save = "Export";
        const char* import_sheet = "How the file is read";
        const char* keys = "Keys";
        const char* commands = "Commands";
        const char* go_to = "Go to a cell";
    } dialogs;
    struct Flow {
        const char* matrix_hint = "{0} = {1}, {2}\nClick to show the large matrix.";
        const char* play_hint = "Shows the token's path, step by step (Shift+F).";
        const char* empty = "This result has no stages to show.";
        const char* play = "Play";
        const char* pick = "Pick a cell of a token to see its path through the layer.";
        const char* attends =
            "{0} asks with its query; {1} answers with its key and gives its share of its value.";
        const char* path = "The path of {0} through the layer.";
    } flow;
    struct Sentence {
        const char* no_role = "This head has no clear role";
        const char* of_task = "{0}, a head of a small model that was trained for one task: {1}";
        const char* of_model = "{0}, a head of {1}";
        const char* of_level = "{0}: the weights come from a seed, not from training";
        const char* expects = "After “{0}” the model expects “{1}”: {2} %";
        const char* own = "Type your own:";
        const char* numbers = "See every number";
        const char* numbers_hint = "Shows all panels: each stage, each cell and how it is computed (M).";
    } sentence;
    struct Heads {
        const char* ordered_by = "ordered by";
        const char* smallest_first = "smallest first";
        const char* largest_first = "largest first";
        const char* statistics =
            "{0}\nentropy {1} nats ({2}% of uniform)\nmean distance {3} tokens\nfirst token {4}%, previous "
            "token {5}%\nlargest weight {6} on average";
        const char* on_text = "\non this text: {0}";
        const char* keys = "\n\nclick: show; Shift+click: compare";
        const char* model_keys = "\n\nclick: show; Shift+click: compare; right-click: switch off or on";
        const char* under_map =
            "The map shows head {0} of {1}, which are too long for thumbnails; [ and ] change the head.";
        const char* all_layers = "all {0} layers";
        const char* this_layer = "this layer";
    } heads;
    struct Sheet {
        const char* heads_first = "[B,] heads, tokens, width";
        const char* tokens_first = "[B,] tokens, heads, width";
        const char* kind_qkv = "queries, keys and values";
        const char* kind_fused = "one fused QKV tensor";
        const char* kind_gpt2 = "weights of a GPT-2 layer";
        const char* kind_llama = "weights of a Llama layer";
        const char* kind_tables = "matrices to show";
        const char* heads_of_rows = "heads of tensors [L, H D]";
        const char* applied =
            "The weights are applied to the text. Without hidden_states in the file,\nthe vector of a word "
            "is made from its letters.";
        const char* rotate = "apply rotary embedding (the file's q and k are without)";
        const char* done = "Done";
        const char* undo = "Undo";
        const char* layout = "layout";
        const char* contents = "contents";
        const char* file = "{0}: {1} tensors, {2} token names";
        const char* map_shape = "{0} query heads, {1} x {2} weights each, width {3}: shown as a map";
        const char* shape = "{0} query heads, {1} key heads, {2} x {3} weights each, width {4}";
        const char* masked = "masked: {0}";
    } sheet;
    struct Window {
        const char* swap = "Swap sides";
        const char* reset = "Reset layout";
        const char* edge_hint =
            "Drag to resize the panel, double-click to reset the layout, right-click for more.";
        const char* compute_on_cpu = "Compute on the CPU";
        const char* show_map = "Show as a map";
        const char* left = "Text and pipeline";
        const char* right = "Cell and parameters";
    } window;
    struct Mask {
        const char* invert = "Invert";
        const char* symmetric = "Make symmetric";
        const char* brush = "brush";
        const char* cell = "cell";
        const char* rectangle = "rectangle";
        const char* row = "row";
        const char* column = "column";
        const char* visible = "{0}% visible";
        const char* one_masked = "{0}% visible, 1 row is fully masked: its context is 0";
        const char* many_masked = "{0}% visible, {1} rows are fully masked: their context is 0";
        const char* too_large =
            "A mask of {0} x {1} cells cannot be painted; the limit is {2} per side. Choose causal or window "
            "in the parameters.";
    } mask;
    struct Matrix {
        const char* auto_colors = "colors: auto";
        const char* automatic = "automatic";
        const char* fit = "Fit";
        const char* lock = "Lock";
        const char* lock_hint = "Keeps this matrix in a tab (Ctrl+L).";
        const char* close = "Close";
        const char* close_hint = "Closes this tab (Ctrl+W).";
        const char* range_hint =
            "Dragging the upper half moves the top of the range, the lower half its bottom.\nRight-click for "
            "the range of the values.";
        const char* mass = "mass";
        const char* scale = "scale: ";
        const char* entropy_from = "entropy from {0}";
        const char* entropy = "entropy";
        const char* computing = "computing, {0}%";
    } matrix;
    struct Parameters {
        const char* scale_hint =
            "Divides scores, so that wide heads do not make the softmax sharp (Vaswani et al., 2017).";
        const char* temperature_hint =
            "Divides the scores: above 1 the weights become more even, below 1 the largest gets more.";
        const char* softcap_hint = "Keeps scores within ±c by c·tanh(s / c), as Gemma 2 does. 0: off.";
        const char* causal_hint =
            "A token sees itself and earlier tokens only, as in a model that predicts the next word.";
        const char* causal = "causal mask";
        const char* window_hint = "A token sees a limited number of keys before and after itself.";
        const char* keys_before_hint = "The number of keys before itself that a token sees.";
        const char* keys_before = "keys before";
        const char* keys_after_hint = "The number of keys after itself that a token sees.";
        const char* keys_after = "keys after";
        const char* alibi_hint =
            "Lowers scores with the distance of query and key, by a slope for each head (Press et al., "
            "2022).";
        const char* rope_hint =
            "Rotates queries and keys by angles of their positions, so that their product depends on the "
            "distance (Su et al., 2021).";
        const char* pattern_hint =
            "Adds a mask to causal and window: padding, prefix, stripes, blocks, or painted.";
        const char* dropout_hint =
            "Sets random weights to 0 in training and multiplies the others by 1 / (1 − p).";
        const char* probability_hint = "The share p of weights that are dropped.";
        const char* dropout_seed_hint = "The seed of the dropout mask's random numbers.";
        const char* dropout_seed = "dropout seed";
        const char* weight_seed_hint = "The seed of the random numbers of W_query, W_key and W_value.";
        const char* weight_seed = "weight seed";
        const char* heads_hint =
            "The number of heads; each attends separately, and their contexts are concatenated.";
        const char* kv_heads_hint =
            "The number of key and value heads, each shared by several query heads (Ainslie et al., 2023).";
        const char* kv_heads = "KV heads";
        const char* tokens_hint = "Repeats the tokens up to this length.";
        const char* after_softmax_hint =
            "Masks weights after the softmax and divides each row by its remaining sum.";
        const char* after_softmax = "mask after the softmax";
        const char* always_causal = "always causal";
        const char* reset = "Reset";
        const char* reset_hint = "Restores the parameters of the level or model.";
        const char* as_typed = "as typed";
        const char* unbounded = "unbounded";
        const char* off = "off";
        const char* scale_by_width = "scale by 1/√d";
        const char* title = "Parameters";
        const char* scale_by = "scale by 1/{0}";
    } parameters;
    struct Problems {
        const char* clear = "Clear";
        const char* none = "None: every file could be read, and every value is finite.";
        const char* none_and_sums =
            "None: every file could be read, every row of weights sums to 1, and every value is finite.";
    } problems;
    struct Story {
        const char* none = "Only levels and tasks have a walk: choose one above.";
        const char* back = "Back";
        const char* next = "Next";
        const char* end = "End";
        const char* instruction = "Try it: {0}";
        const char* sight = "You should now see: {0}";
        const char* walk = "Walk me through";
        const char* walk_hint = "Explains what is shown step by step (F3).";
        // Controls that the shared tables call by the page's name, and their names here. Longer ones first.
        struct Name {
            const char *page, *window;
        };
        Name names[29] = {
            {"“Divide scores by” below", "“scale by 1/√d” under Parameters"},
            {"the slider “Temperature” to its right end", "“temperature” under Parameters to its right end"},
            {"the slider “Temperature” to its left end", "“temperature” under Parameters to its left end"},
            {"another seed under “Weight matrices”", "another “weight seed” under Parameters"},
            {"“Mask pattern” below", "“causal mask” under Parameters"},
            {"Choose “after softmax” under Mask", "Switch on “mask after the softmax” under Parameters"},
            {"Choose “Sliding window” under “Mask pattern”", "Switch on “window” under Parameters"},
            {"move “Rate p” to 0.5", "switch on “dropout” under Parameters"},
            {"Move “Rate p” to its left end", "Move “probability” under Parameters to its left end"},
            {"another seed under Dropout", "another “dropout seed” under Parameters"},
            {"Choose “PyTorch with MKL” under “Random generator”", "Press Ctrl+P and enter: rng mkl"},
            {"“Head” above the matrix", "its picture under Heads"},
            {"Pictures of all of them are below the parameters", "Pictures of all of them are under Heads"},
            {"Choose head 1 in “Compare with”", "Shift+click the picture of head 1 under Heads"},
            {"Choose a head in “Compare with”", "Shift+click a picture under Heads"},
            {"Below all heads stand side by side with theirs",
             "Under Heads, order them by entropy to see theirs"},
            {"Choose 3 query heads under Heads", "Choose 3 “heads” under Parameters"},
            {"key/value head under Heads", "of “KV heads” under Parameters"},
            {"key/value heads under Heads", "of “KV heads” under Parameters"},
            {"Switch on “ALiBi distance bias” under Mask", "Switch on “ALiBi” under Parameters"},
            {"Choose 256 tokens under Heads", "Move “tokens” under Parameters to 256"},
            {"Press “Switch off head” above the matrix",
             "Press Shift+Delete, or right-click the head under Heads"},
            {"Below the matrix the model says", "Under Next the model says"},
            {"Below the heads stands what the model expects after each",
             "Under Next stands what the model expects after each"},
            {", as the numbers on the right say", ""},
            {"the sums on the right are above 1 or below it", "the sums of rows are above 1 or below it"},
            {"after the word “live” at the top", "under GPU"},
            {"switch between them below", "“mask after the softmax” switches between them"},
            {"“Tokens” below says", "“tokens” under Parameters says"},
        };
        const char* said_done = "walk, step {0} of {1}: {2}; done: {3}\n";
        const char* said = "walk, step {0} of {1}: {2}; to do: {3}\n";
    } story;
    struct Bar {
        const char* task_hint =
            "Opens a small model whose heads learned a task (Alt+0); levels 2 to 7 have weights from a seed.";
        const char* model_hint = "Shows all layers and heads of the model (Shift+H).";
        const char* file_hint = "Shows how the tensors are read.";
        const char* close_hint = "Closes the file.";
        const char* precision_hint =
            "Chooses how queries, keys and values are stored and multiplied (E).\nSave a result as A (A), "
            "then choose another precision to see the error.";
        const char* f32 = "float32 inputs and accumulation";
        const char* f16 = "q, k and v stored as float16, float32 products and accumulation";
        const char* f16_inputs =
            "float16 inputs, float32 accumulation: cooperative matrices, where the device has them";
        const char* open = "Open";
        const char* open_hint =
            "Opens tensors, a model or a session (Ctrl+O); you can also drop a file here.";
        const char* export_file = "Export";
        const char* export_hint =
            "Exports a picture, the values of the matrix or the session (Ctrl+E, Ctrl+S).";
        const char* restore = "Restore last session";
        const char* undo = "Undo";
        const char* redo = "Redo";
        const char* light = "Light";
        const char* dark = "Dark";
        const char* help_hint = "Lists all keys (?); Ctrl+P finds a command by name.";
        const char* learned = "Trained heads";
        const char* trained = "Trained: {0}";
        const char* levels = "Levels";
        const char* levels_hint = "Opens a level of the tutorials (Alt+1 to Alt+7).";
        const char* level_hint = "{0} (Alt+{1})";
        const char* changed = ", changed";
        const char* changed_level_hint = "{0}, changed; choosing it again restores the level (Alt+{1}).";
    } bar;
    struct Tour {
        const char* matrix = "Attention as numbers";
        const char* matrix_text =
            "Each row is a query, each column a key. Move over the cells to pick one, click to pin the cell; "
            "wheel and drag zoom and pan.";
        const char* cell = "Every number explained";
        const char* cell_text =
            "The picked cell, from its products to its weight and its contribution to the context. Copy it "
            "as CSV, Python or LaTeX.";
        const char* stages = "From tokens to context";
        const char* stages_text =
            "The stages in order, with formulas and shapes. Click one to see its tensor; PgUp and PgDn "
            "change the stage.";
        const char* levels = "Levels and walks";
        const char* levels_text =
            "Seven levels follow the tutorials, and five small models were trained. “Walk me through” "
            "explains "
            "what is shown, step by step.";
        const char* keys = "Commands and keys";
        const char* keys_text =
            "Ctrl+P finds every command, ? lists the keys, Ctrl+O opens your own tensors. F2 starts this "
            "tour again.";
        const char* skip = "Skip";
        const char* done = "Done";
        const char* next = "Next";
    } tour;
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
