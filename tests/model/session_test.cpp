// Sessions: what is read is what was written, and what cannot be taken is told. The numbers of sessions are
// tested in tests/sessions.
#include "files/sha256.hpp"
#include "support/scratch.hpp"

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>
#include <fovea/model.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>

namespace fovea {
namespace {

Session full_session() {
    Session s = level_session(5);
    s.text = "Ein \"Satz\" & mehr + Ähnliches, 100%\n\t我";
    s.tokenizer = Tokenizer::characters;
    s.task = "sort", s.heads_off = 2;
    s.seed = 4294967295u;
    s.heads = 6, s.kv_heads = 3;
    s.edits = {{StageId::inputs, 1, 2, 0.9}, {StageId::w_query, 0, 1, -0.25}};
    s.scale = "2.5", s.temperature = 0.1;
    s.pattern = MaskPattern::painted;
    s.painted = {{1, 0, 1, 1, 0, 1}, 2, 3};
    s.under = "prefix";
    s.windowed = true, s.window_left = -1, s.window_right = 3;
    s.hidden_keys = {0, 7};
    s.route = MaskRoute::after;
    s.alibi = true, s.softcap = 30, s.dropout_p = 0.2, s.dropout_seed = 9;
    s.dropout_random = DropoutRandom::counter;
    s.precision = Precision::f16;
    s.stage = StageId::context, s.head = 5, s.row = 3, s.column = 4, s.colormap = "blue-orange",
    s.logarithmic = true;
    s.low = "-0.5", s.high = "1e3", s.table = true, s.compared_head = 2, s.compare_how = "triangle";
    s.view = "1,2,3.5", s.zoom = "65536,1,2,8,max", s.step = 3, s.training = "sort,2,40,0,",
    s.published = "../gpt2", s.published_sha256 = "12ab", s.changed_heads = "0 1 0\n1 2 from a & b";
    s.spread = 3, s.pinned = true;
    s.dropout_rate = 0.25, s.import_kind = "fused", s.import_fused = "c_attn", s.import_order = "kqv";
    s.import_tokens_first = s.import_rotates = true, s.import_heads = 4, s.import_layer = 11,
    s.import_divisor = 8;
    return s;
}

Session read(std::string_view json, std::vector<SessionNote>* notes = nullptr,
             const SessionReader& reader = {}) {
    Result<ReadSession> result = read_session(json, reader);
    EXPECT_TRUE(result) << result.error().text;
    if (!result) return {};
    if (notes) *notes = result->notes;
    return result->session;
}

std::string state(const std::string& members, const std::string& more = "") {
    return R"({"format": "fovea-session", "version": 1, "state": {)" + members + "}" + more + "}";
}

TEST(Sessions, a_default_one_is_level_2s) {
    EXPECT_EQ(Session{}, level_session(2));
    EXPECT_EQ(read(state("")), level_session(2));
}

TEST(Sessions, every_key_survives_a_file_and_an_address) {
    Session s = full_session();
    std::vector<SessionNote> notes;
    EXPECT_EQ(read(write_session(s), &notes), s);
    EXPECT_EQ(notes, std::vector<SessionNote>{});
    const Result<ReadSession> again = read_address("#" + write_address(s));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->session, s);
    EXPECT_EQ(again->notes, std::vector<SessionNote>{});
}

// Each member of the session above differs from the level's own, so that a key that is forgotten shows.
TEST(Sessions, the_full_one_differs_in_every_key) {
    const Result<JsonValue> full = parse_json(write_session(full_session())),
                            own = parse_json(write_session(level_session(5)));
    const std::set<std::string_view> same = {"level", "len", "init", "rope", "causal"};
    for (const SessionKey& key : session_keys()) {
        const JsonValue &a = (*full)[key.group][key.key], &b = (*own)[key.group][key.key];
        const bool differs = a.scalar_text() != b.scalar_text() || a.items().size() != b.items().size();
        EXPECT_EQ(differs, !same.contains(key.key)) << key.key;
    }
}

// Each step begins undone and ends done, with keys and values that sessions know; the page's test walks them
// by keyboard and compares every number that a step names with the one that is shown.
TEST(Stories, every_step_names_keys_that_are_there_and_is_done_only_when_it_was) {
    std::vector<std::pair<int, std::string>> walks;
    for (int level = 1; level <= kLevelCount; ++level) walks.emplace_back(level, "");
    for (const std::string& task : learned_tasks()) walks.emplace_back(2, task);
    for (const auto& [level, task] : walks) {
        const std::vector<StoryStep> steps = story(level, task);
        EXPECT_GE(steps.size(), 8u);
        EXPECT_LE(steps.size(), 12u);
        for (size_t n = 0; n < steps.size(); ++n) {
            const StoryStep& step = steps[n];
            SCOPED_TRACE("level " + std::to_string(level) + ", task '" + task + "', " + step.title);
            EXPECT_EQ(step.shown.step, n + 1);
            EXPECT_FALSE(step.text.empty() || step.instruction.empty() || step.sight.empty());
            EXPECT_FALSE(step.done(step.shown));
            std::string address = write_address(step.shown);
            for (const StoryCheck& check : step.checks) {
                const bool differs = check.kind == StoryCheck::Kind::is_not;
                const std::string value = check.value == "true" ? "1" : check.value;
                address += "&" + check.key + "=" + (!differs ? value : check.key == "text" ? "x" : "7");
            }
            const Result<ReadSession> read = read_address(address);
            ASSERT_TRUE(read);
            EXPECT_TRUE(step.done(read->session)) << address;
            for (const SessionNote& note : read->notes)
                EXPECT_NE(note.text.find("is given twice"), std::string::npos) << note.text;
        }
    }
    EXPECT_TRUE(story(0).empty());
    EXPECT_TRUE(story(2, "no such task").empty());
    EXPECT_TRUE(story(kLevelCount + 1).empty());
}

// A task's model has its own rules, wherever it is opened from.
TEST(Sessions, a_task_does_not_depend_on_the_level) {
    for (const std::string& task : learned_tasks()) {
        const Session own = level_session(2, task);
        EXPECT_EQ(own.scale, "auto");
        EXPECT_EQ(own.dropout_p, 0);
        for (int level = 1; level <= kLevelCount; ++level) {
            Session s = level_session(level, task);
            EXPECT_EQ(s.level, level);
            s.level = own.level;
            EXPECT_EQ(s, own) << task << " from level " << level;
        }
    }
    EXPECT_EQ(level_session(4, "no such task"), level_session(4));
}

TEST(Sessions, a_published_model_is_refused_where_it_is_not_shown) {
    Session s = level_session(2);
    s.published = "models/gpt2";
    const Result<SessionModel> made = session_model(s);
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().text.find("models/gpt2"), std::string::npos) << made.error().text;
    EXPECT_NE(made.error().text.find("visualizer"), std::string::npos) << made.error().text;
}

// Files of before name the window's theme, which is the person's.
TEST(Sessions, a_theme_is_no_part_of_them) {
    std::vector<SessionNote> notes;
    EXPECT_EQ(read(state("", R"(, "desktop": {"theme": "light"})"), &notes), level_session(2));
    EXPECT_TRUE(notes.empty());
}

TEST(Sessions, levels_write_short_addresses) {
    for (int level = 1; level <= kLevelCount; ++level)
        EXPECT_EQ(write_address(level_session(level)), "v=1&level=" + std::to_string(level));
    Session s = level_session(2);
    set_mask_key(s, "causal");
    s.text = "The cat";
    EXPECT_EQ(write_address(s), "v=1&level=2&text=The+cat&mask=causal");
}

TEST(Sessions, tensors_kept_and_locked_survive) {
    Session s = level_session(3);
    auto tensors = std::make_shared<SessionTensors>();
    tensors->q = {{1, 2, 2}, {1.0f, -2.5f, 1e-30f, 3.0f}, {}, {}, {}};
    tensors->k = {{}, {}, "folder/k.npy", "k", "ab12"};
    tensors->tokens = {"The", " \"cat\" \xc3\xa9"};
    s.tensors = tensors;
    s.kept = {level_session(4)};
    s.kept[0].tensors = tensors;
    s.locked = {level_session(1), level_session(7)};
    const Session again = read(write_session(s));
    ASSERT_NE(again.tensors, nullptr);
    EXPECT_EQ(*again.tensors, *tensors);
    ASSERT_EQ(again.kept.size(), 1u);
    EXPECT_EQ(again.kept[0].tensors, again.tensors);
    EXPECT_EQ(again.locked, s.locked);
    EXPECT_NE(write_session(s).find("\"same\""), std::string::npos);
}

TEST(Sessions, what_cannot_be_taken_is_told_with_what_is_taken) {
    const std::map<std::string, std::string> told = {
        {R"("seed": -1)", "seed is -1; it must be 0 to 4294967295, whole: 123 is taken"},
        {R"("heads": 1.5)", "heads is 1.5; it must be 1 to 12, whole: 1 is taken"},
        {R"("temp": "0x1")", "temp is 0x1; it must be 0.05 to 10: 1 is taken"},
        {R"("temp": "nan")", "temp is nan; it must be 0.05 to 10: 1 is taken"},
        {R"("alibi": 2)", "alibi is 2; it must be true or false: false is taken"},
        {R"("how": "x")", "how is x; it must be one of side, triangle, difference: side is taken"},
        {R"("text": {})",
         "text is a list or an object; it must be a text: Your journey starts with one step is taken"},
        {R"("hue": 1)", "a session has no key hue; it is left out"},
        {R"("edits": "inputs 1 2 2e4")",
         "edits is inputs 1 2 2e4; it must be at most 256 cells as inputs 1 2 0.9,w_query 0 1 -0.25, numbers "
         "from -10000 to 10000: nothing is taken"},
        {R"("heads": 2)", "level 2 has one head; heads 2 is not used"},
        {R"("len": 7)", "the tokens are repeated on level 7 only; len 7 is not used"},
        {R"("level": 7, "init": "rand")",
         "level 7 draws its weights from a normal distribution; init rand is not used"},
        {R"("level": 6, "heads": 3, "kv": 2)", "kv is 2, which does not divide 3 heads: 3 is taken"},
        {R"("level": 7, "heads": 5)",
         "heads is 5, which does not divide the width 768 of level 7: 12 is taken"},
    };
    for (const auto& [json, text] : told) {
        std::vector<SessionNote> notes, again;
        const Session taken = read(state(json), &notes);
        ASSERT_EQ(notes.size(), 1u) << json;
        EXPECT_EQ(notes[0].text, text);
        // The substituted value is itself valid.
        EXPECT_EQ(read(write_session(taken), &again), taken) << json;
        EXPECT_TRUE(again.empty()) << again[0].text;
    }
}

TEST(Sessions, nothing_is_no_scale_and_no_map) {
    for (const char* json : {R"("scale": "0")", R"("scale": "-1")", R"("zoom": "0,1,1,1,mass")",
                             R"("zoom": "mine,1,1,1,mass")"}) {
        std::vector<SessionNote> notes;
        EXPECT_EQ(read(state(json), &notes), level_session(2)) << json;
        EXPECT_EQ(notes.size(), 1u) << json;
    }
}

TEST(Sessions, a_map_is_of_made_up_tokens_or_of_its_own) {
    for (const char* zoom : {"1048576,1,1,1,mass", "own,12,7,0.02,max"})
        EXPECT_EQ(read(state(R"("zoom": ")" + std::string(zoom) + "\"")).zoom, zoom);
}

TEST(Sessions, a_painted_mask_fills_its_side_to_the_limit) {
    const PaintedMask few = read(state(R"("side": "3x3", "bits": "AQ==")")).painted;
    EXPECT_EQ(few.rows, 3u);
    EXPECT_EQ(few.cells, (std::vector<uint8_t>{1, 0, 0, 0, 0, 0, 0, 0, 1})) << "what has no bit is visible";
    EXPECT_EQ(read(state(R"("side": "4096x1")")).painted.rows, 4096u);
    EXPECT_EQ(read(state(R"("side": "1x4096")")).painted.keys, 4096u);
    for (const char* side :
         {R"("side": "4097x1")", R"("side": "1x4097")", R"("side": "0x1")", R"("side": "1x0")"}) {
        std::vector<SessionNote> notes;
        EXPECT_EQ(read(state(side), &notes).painted.rows, 0u) << side;
        EXPECT_EQ(notes.size(), 1u) << side;
    }
}

TEST(Sessions, of_a_key_given_twice_the_second_counts) {
    std::vector<SessionNote> notes;
    EXPECT_EQ(read(state(R"("seed": 4)", R"(, "desktop": {"seed": 5})"), &notes).seed, 5u);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].text, "seed is given twice: the second counts");
}

// A file of anything costs what its size asks for: keys, parts, tensors and matrices that no session has are
// noted, the first of them with their names.
TEST(Sessions, what_no_session_has_is_noted_in_linear_time) {
    constexpr int kMany = 60000;
    const auto many = [](const std::string& before, const std::string& after, const std::string& between) {
        std::string text;
        for (int n = 0; n < kMany; ++n) text += (n ? between : "") + before + std::to_string(n) + after;
        return text;
    };
    const std::string keys = many("\"k", "\": 1", ", "), same = many("\"seed\": ", "", ", ");
    const std::string tensors = R"(, "tensors": {)" + keys + "}", parts = ", " + keys;
    const std::string locked = R"(, "locked": [)" + many(R"({"state": {"seed": )", "}}", ", ") + "]";
    const std::string files[] = {state(keys), state(same), state("", parts), state("", locked)};
    for (const std::string& file : files) {
        std::vector<SessionNote> notes;
        const auto start = std::chrono::steady_clock::now();
        const Session s = read(file, &notes);
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4)) << file.substr(0, 100);
        EXPECT_GE(notes.size(), 1u);
        EXPECT_LE(notes.size(), 101u);
        EXPECT_LE(s.locked.size(), 64u);
    }
    EXPECT_FALSE(read_session(state("", tensors)));  // q and k are missing
    for (const std::string& address : {many("k", "=1", "&"), many("seed=", "", "&")}) {
        const Result<ReadSession> one = read_address(address);
        ASSERT_TRUE(one);
        EXPECT_GE(one->notes.size(), 1u);
        EXPECT_LE(one->notes.size(), 101u);
    }
    std::vector<SessionNote> notes;
    EXPECT_EQ(read(state(same), &notes).seed, uint64_t(kMany - 1));
    ASSERT_EQ(notes.size(), 1u);
    read(state(keys), &notes);
    ASSERT_EQ(notes.size(), 21u);
    EXPECT_EQ(notes[0].text, "a session has no key k0; it is left out");
    EXPECT_EQ(notes[20].text, std::to_string(kMany - 20) + " more keys are unknown; they are left out");
}

TEST(Sessions, tensors_in_files_are_the_folders_own_and_the_saved_ones) {
    const test::Scratch scratch;
    const std::filesystem::path inner = scratch / "inner";
    std::filesystem::create_directories(inner);
    TensorSet set;
    set.tensors.push_back(make_tensor("x", {2, 2}, std::vector<float>(4, 0.5f)).value());
    set.tensors.push_back(make_tensor("none", {1, 0, 4}, std::vector<float>()).value());
    for (const auto& path : {scratch / "out.safetensors", inner / "in.safetensors"})
        ASSERT_TRUE(save_safetensors(path, set));
    std::filesystem::create_symlink(scratch / "out.safetensors", inner / "link.safetensors");
    const auto load = [&](const std::string& path, const std::string& name, const std::string& sha256,
                          SessionFiles which) {
        Session s;
        SessionTensors tensors;
        tensors.q = tensors.k = SessionTensor{{}, {}, path, name, sha256};
        s.tensors = std::make_shared<const SessionTensors>(tensors);
        Result<std::vector<SessionNote>> notes = load_session_tensors(s, inner, which);
        if (!notes) return notes.error().text;
        EXPECT_EQ(s.tensors->q.values.size(), 4u);
        EXPECT_TRUE(session_model(s));
        return notes->empty() ? std::string() : (*notes)[0].text;
    };
    const std::string outside = (scratch / "out.safetensors").string();
    for (const std::string& path :
         {std::string("../out.safetensors"), std::string("../inner/../out.safetensors"),
          std::string("link.safetensors"), outside}) {
        EXPECT_NE(load(path, "x", "", SessionFiles::inside).find("is outside of the session's folder"),
                  std::string::npos)
            << path;
        EXPECT_EQ(load(path, "x", "", SessionFiles::anywhere), "") << path;
    }
    EXPECT_EQ(load("in.safetensors", "x", "", SessionFiles::inside), "");
    EXPECT_EQ(load("../inner/in.safetensors", "x", "", SessionFiles::inside), "");
    EXPECT_NE(load("in.safetensors", "x", std::string(64, '0'), SessionFiles::inside).find("SHA-256"),
              std::string::npos);
    const Result<std::string> own = sha256_of_file(inner / "in.safetensors");
    ASSERT_TRUE(own);
    EXPECT_EQ(load("in.safetensors", "x", *own, SessionFiles::inside), "");
    EXPECT_NE(load("in.safetensors", "none", "", SessionFiles::inside).find("has no elements"),
              std::string::npos);
    // A program that makes a session without q.
    Session s;
    s.tensors = std::make_shared<const SessionTensors>();
    const Result<SessionModel> nothing = session_model(s);
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().text, "q or k is missing or has no elements; both are needed");
}

TEST(Sessions, halves_of_characters_become_one_that_says_so) {
    std::vector<SessionNote> notes;
    EXPECT_EQ(read(state(R"("text": "a\ud83d \uDC00b \\ud800 \ud83d\ude00")"), &notes).text,
              "a\xef\xbf\xbd \xef\xbf\xbd"
              "b \\ud800 \xf0\x9f\x98\x80");
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].text, "2 halves of characters (lone surrogates) are read as U+FFFD");
}

TEST(Sessions, hidden_keys_are_kept_once) {
    const Session s = read(state(R"("hidden": [3, 1, 3, 1])"));
    EXPECT_EQ(s.hidden_keys, (std::vector<uint32_t>{1, 3}));
}

TEST(Sessions, tensors_are_whole_or_refused) {
    const auto error = [](const std::string& tensors) {
        const Result<ReadSession> result = read_session(state("", ", \"tensors\": {" + tensors + "}"));
        return result ? std::string() : result.error().text;
    };
    const std::string one = R"({"shape": [1, 1, 2], "f32": "AACAPwAAgD8="})", q = "\"q\": " + one;
    EXPECT_EQ(error(q + ", \"k\": " + one), "");
    EXPECT_NE(error(q).find("q or k is missing from the session's tensors"), std::string::npos) << error(q);
    EXPECT_NE(error("\"k\": " + one).find("q or k is missing from the session's tensors"), std::string::npos);
    EXPECT_NE(
        error(q + R"(, "k": {"shape": [2], "f32": "AACAPwAAgD8="})").find("must be [heads, tokens, width]"),
        std::string::npos);
    for (const char* data : {"AACAPw==", "AACAPwAAgA==", "AACAPwAAgD8AAIA/"}) {
        const std::string text =
            error(q + R"(, "k": {"shape": [1, 1, 2], "f32": ")" + std::string(data) + "\"}");
        EXPECT_NE(text.find("bytes; its shape needs 8"), std::string::npos) << data << ": " << text;
    }
}

TEST(Sessions, a_program_names_what_it_does_not_show) {
    constexpr std::string_view kUnseen[] = {"zoom", "rope", "view"};
    std::vector<SessionNote> notes;
    read(state(R"("view": "", "zoom": "4096,1,1,1,mass")", R"(, "desktop": {"rope": true})"), &notes,
         {"this page", kUnseen});
    ASSERT_EQ(notes.size(), 2u);
    EXPECT_EQ(notes[0].text.find("this page does not show zoom (the deep zoom"), 0u);
    EXPECT_EQ(notes[1].key, "rope");
}

TEST(Sessions, addresses_are_read_like_those_of_a_browser) {
    const Result<ReadSession> read =
        read_address("v=1&level=3&text=a%20b+c%2Bd&alibi=1&&mask=window&win=1&x");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->session.text, "a b c+d");
    EXPECT_TRUE(read->session.alibi && read->session.causal && read->session.windowed);
    ASSERT_EQ(read->notes.size(), 1u);
    EXPECT_EQ(read->notes[0].key, "x");
    EXPECT_EQ(read_address("v=2").error().text, "the address has version 2; this program reads version 1");
    EXPECT_EQ(read_address("")->session, level_session(2));
    // Bytes that are not valid UTF-8 do no harm: the written text is read again.
    const Session broken = read_address("text=%ff%41")->session;
    EXPECT_EQ(broken.text,
              "\xef\xbf\xbd"
              "A");
    EXPECT_EQ(fovea::read_session(write_session(broken))->session, broken);
}

TEST(SessionTables, every_stage_has_its_name_and_points_to_others) {
    constexpr const char* kNames[] = {
        "inputs",   "normed",       "w_query",   "w_key",     "w_value",   "queries",     "keys",
        "values",   "scores",       "scaled",    "capped",    "masked",    "weights_all", "masked_weights",
        "row_sums", "weights",      "keep",      "dropped",   "context",   "lse",         "w_output",
        "output",   "attended",     "ff_normed", "ff_hidden", "ff_output", "block",       "final",
        "logits",   "probabilities"};
    ASSERT_EQ(stage_table().size(), std::size(kNames));
    for (size_t n = 0; n < std::size(kNames); ++n) {
        EXPECT_EQ(stage_name(StageId(n)), kNames[n]);
        EXPECT_EQ(stage_from_name(kNames[n]), StageId(n));
        for (const StageId near : stage_text(StageId(n)).nearest) EXPECT_NE(near, StageId(n));
    }
    EXPECT_EQ(stage_name(StageId::w_query), "w_query");
    EXPECT_EQ(stage_name(StageId::weights), "weights");
    EXPECT_EQ(stage_name(StageId::probabilities), "probabilities");
    EXPECT_EQ(stage_text(StageId::masked).nearest, std::vector{StageId::weights});
    EXPECT_EQ(stage_from_name("weight"), std::nullopt);
    for (int level = 1; level <= kLevelCount; ++level) EXPECT_FALSE(level_text(level).lead.empty());
}

TEST(Rules, patterns_show_what_their_names_say) {
    for (uint64_t n = 1; n <= 8; ++n) {
        AttentionRules rules;
        rules.pattern = MaskPattern::prefix;
        const std::vector<uint8_t> prefix = visible_cells(rules, n, n);
        rules.pattern = MaskPattern::padding;
        const std::vector<uint8_t> padding = visible_cells(rules, n, n);
        const uint64_t third = (n + 2) / 3;  // a third of the rounded-up prefix
        for (uint64_t i = 0; i < n; ++i)
            for (uint64_t j = 0; j < n; ++j) {
                EXPECT_EQ(prefix[i * n + j] != 0, j <= i || j < third) << n << " " << i << " " << j;
                EXPECT_EQ(padding[i * n + j] != 0, j < n - std::max<uint64_t>(n / 3, 1)) << n << " " << j;
            }
    }
}

TEST(Rules, paint_keeps_its_cells_when_the_number_of_tokens_changes) {
    AttentionRules rules;
    rules.pattern = MaskPattern::painted;
    rules.painted = {{1, 1, 0, 1}, 2, 2};
    rules.under = "causal";
    EXPECT_EQ(visible_cells(rules, 2, 2), (std::vector<uint8_t>{1, 1, 0, 1}));
    EXPECT_EQ(visible_cells(rules, 3, 3), (std::vector<uint8_t>{1, 1, 0, 0, 1, 0, 1, 1, 1}));
    EXPECT_EQ(visible_cells(rules, 1, 2), (std::vector<uint8_t>{1, 1}));
    rules.painted.rows = rules.painted.keys = 0;  // as files had it before
    EXPECT_EQ(visible_cells(rules, 2, 3), (std::vector<uint8_t>{1, 1, 0, 1, 1, 1}));
}

std::vector<std::string> texts(std::string_view text, Tokenizer how = Tokenizer::words) {
    std::vector<std::string> out;
    for (const Token& token : split_text(text, how)) {
        out.push_back(token.text);
        EXPECT_LE(token.first_byte + token.bytes, text.size());
    }
    return out;
}
using Texts = std::vector<std::string>;

TEST(Tokens, words_marks_and_signs) {
    EXPECT_EQ(
        texts("Don't stop, well-known 'x' -y- x_1 3.14"),
        (Texts{"Don't", "stop", ",", "well-known", "'", "x", "'", "-", "y", "-", "x_1", "3", ".", "14"}));
    EXPECT_EQ(texts("it\u2019s \u00abso\u00bb\u2026 \u20ac5\u00a0!"),
              (Texts{"it\u2019s", "\u00ab", "so", "\u00bb", "\u2026", "\u20ac", "5", "!"}));
    EXPECT_EQ(texts("e\u0301t\u00e9 \u0928\u092e\u0938\u094d\u0924\u0947"),
              (Texts{"e\u0301t\u00e9", "\u0928\u092e\u0938\u094d\u0924\u0947"}));
    EXPECT_EQ(texts("\u6211\u7231\u4f60\u3002\u304b\u3099a"),
              (Texts{"\u6211", "\u7231", "\u4f60", "\u3002", "\u304b\u3099", "a"}));
    EXPECT_EQ(texts("\U0001F469\u200d\U0001F467\U0001F44D\U0001F3FD\U0001F1E9\U0001F1EA\U0001F1EB1\ufe0f"
                    "\u20e3\u2764\ufe0f"),
              (Texts{"\U0001F469\u200d\U0001F467", "\U0001F44D\U0001F3FD", "\U0001F1E9\U0001F1EA",
                     "\U0001F1EB", "1\ufe0f\u20e3", "\u2764\ufe0f"}));
    EXPECT_EQ(texts(" \t\n\u3000\u2003"), Texts{});
    // Format characters belong to the word (Unicode Standard Annex 29, WB4): marks of direction, embeddings,
    // isolates, joiners, soft hyphens. A format character by itself is not a token.
    for (const char* const mark :
         {"\u00ad", "\u061c", "\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202e", "\u2060", "\u2064",
          "\u2066", "\u2069", "\ufff9", "\U0001d173"}) {
        const std::string m = mark;
        EXPECT_EQ(texts("a " + m + " b"), (Texts{"a", "b"})) << m;
        EXPECT_EQ(texts("a" + m + "b !" + m), (Texts{"a" + m + "b", "!" + m})) << m;
        EXPECT_EQ(texts(m + "\u05e9\u05dc" + m), (Texts{m + "\u05e9\u05dc" + m})) << m;
    }
    EXPECT_EQ(texts("\u061ba\u2010b \u2026"), (Texts{"\u061b", "a\u2010b", "\u2026"}));
    EXPECT_EQ(texts("a\xff\xe2\x82z"), (Texts{"a", "\ufffd", "\ufffd", "\ufffd", "z"}));
}

TEST(Tokens, characters_and_bytes) {
    EXPECT_EQ(texts("a \u00e9\n\xff", Tokenizer::characters),
              (Texts{"a", "\u2423", "\u00e9", "0a", "\ufffd"}));
    EXPECT_EQ(texts("a \u00e9\n", Tokenizer::bytes), (Texts{"a", "\u2423", "c3", "a9", "0a"}));
}

TEST(Tokens, each_knows_its_place) {
    const std::vector<Token> tokens = split_text("\u00e9t\u00e9, x", Tokenizer::words);
    EXPECT_EQ(tokens[0], (Token{"\u00e9t\u00e9", 0, 5}));
    EXPECT_EQ(tokens[2], (Token{"x", 7, 1}));
}

TEST(Tokens, limits_are_told) {
    Session s;
    for (int i = 0; i < 130; ++i) s.text += " x";
    const SessionTokens long_text = session_tokens(s);
    EXPECT_EQ(long_text.tokens.size(), 128u);
    ASSERT_EQ(long_text.notes.size(), 1u);
    EXPECT_EQ(long_text.notes[0].text, "the text has 136 tokens; level 2 shows the first 128");
    // A map takes more of them.
    EXPECT_EQ(session_tokens(s, 136).tokens.size(), 136u);
    EXPECT_TRUE(session_tokens(s, 136).notes.empty());
    const Result<SessionModel> whole = session_model(s, nullptr, nullptr, 130);
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->input.x.rows(), 130u);
    ASSERT_EQ(whole->notes.size(), 1u);
    s = level_session(7);
    s.length = 3;
    EXPECT_EQ(session_tokens(s).notes[0].text, "the text has 6 tokens; the first 3 are taken");
}

TEST(Json, values_round_trip_and_refusals_name_the_byte) {
    const Result<JsonValue> json = parse_json(R"({"a": [1, -2.5e3, "xé\n", true, null], "a": {}})");
    ASSERT_TRUE(json);
    EXPECT_EQ((*json)["a"].items()[1].number(), -2500.0);
    EXPECT_EQ((*json)["a"].items()[2].text(), "x\u00e9\n");
    EXPECT_EQ(json->members().size(), 2u);
    EXPECT_EQ(parse_json("[1,]").error().text, "byte 3: not a JSON value");
    EXPECT_EQ(parse_json("\xef\xbb\xbf{}").error().text,
              "byte 0: begins with a byte order mark: save it as UTF-8 without one");
    EXPECT_EQ(JsonObject().text("k\"", "v").number("n", 0.1).boolean("b", false).done(),
              R"({"k\"": "v", "n": 0.1, "b": false})");
    const std::vector<std::byte> bytes = {std::byte{0xfb}, std::byte{0xff}};
    EXPECT_EQ(to_base64(bytes, false), "+/8=");
    EXPECT_EQ(to_base64(bytes, true), "-_8");
    EXPECT_EQ(from_base64("-_8"), from_base64("+/8="));
    EXPECT_FALSE(from_base64("a"));
    EXPECT_FALSE(from_base64("ab!d"));
}

}  // namespace
}  // namespace fovea
