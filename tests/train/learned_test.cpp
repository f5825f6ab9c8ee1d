// The weights that the library carries: that they are good, that their command makes them again, and that
// every way to run them says the same.
#include <fovea/model/learned.hpp>
#include <fovea/model/session.hpp>
#include <fovea/model/trace.hpp>
#include <fovea/train.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace fovea {
namespace {

struct Carried {
    TensorSet file;
    Task task;
    TrainState state;
};

Carried carried(std::string_view task) {
    Result<TensorSet> file = parse_safetensors(learned_weights(task));
    EXPECT_TRUE(file) << file.error().text;
    Result<TrainState> state = read_state(*file);
    EXPECT_TRUE(state) << state.error().text;
    Result<Task> read = read_task(*file);
    EXPECT_TRUE(read) << read.error().text;
    return {std::move(*file), std::move(*read), std::move(*state)};
}

// The tasks whose sequences are drawn. The one that reads was checked on its text, which tests do not have:
// text_test.cpp covers its steps, and below are checks of only its weights.
std::vector<std::string> tasks_that_draw() {
    std::vector<std::string> tasks = learned_tasks();
    std::erase(tasks, "text");
    return tasks;
}

Trainer trainer_of(const Carried& model) {
    Result<Trainer> trainer = Trainer::open(model.task);
    EXPECT_TRUE(trainer) << trainer.error().text;
    return std::move(*trainer);
}

TEST(Learned, there_is_a_model_for_every_task) {
    std::set<std::string> tasks{""};
    for (uint32_t kind = 0; kind < kTaskKinds; ++kind) tasks.emplace(task_name(TaskKind(kind)));
    for (const SessionKey& key : session_keys()) {
        if (key.key != "task") continue;
        EXPECT_EQ(std::set<std::string>(key.choices.begin(), key.choices.end()), tasks);
    }
    tasks.erase("");
    const std::vector<std::string> carried_tasks = learned_tasks();
    EXPECT_EQ(std::set<std::string>(carried_tasks.begin(), carried_tasks.end()), tasks);
    for (const std::string& task : learned_tasks()) {
        const Result<LearnedModel> learned = learned_model(task);
        ASSERT_TRUE(learned) << learned.error().text;
        EXPECT_FALSE(learned->title.empty()) << task;
        EXPECT_FALSE(learned->look_at.empty()) << task;
        EXPECT_FALSE(learned->sample.empty()) << task;
        EXPECT_EQ(learned->head_labels.size(),
                  learned->model->blocks.size() * learned->model->blocks[0].attention.heads);
    }
    const Result<LearnedModel> none = learned_model("juggle");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().text,
              "task is 'juggle'; it must be one of induction, recall, reverse, sort, text");
}

TEST(Learned, the_weights_pass_the_gates_of_their_tasks) {
    for (const std::string& name : tasks_that_draw()) {
        const Carried model = carried(name);
        Trainer trainer = trainer_of(model);
        const Result<StepReport> report = trainer.evaluate(model.state);
        ASSERT_TRUE(report) << report.error().text;
        EXPECT_TRUE(reaches(*report, trainer.task().goal)) << name << ": accuracy " << report->accuracy;
        std::string labels;
        for (const HeadScores& head : report->heads)
            labels += (labels.empty() ? "" : ", ") + head_label(head).text;
        EXPECT_EQ(labels, *model.file.find_metadata("head_labels")) << name;
    }
}

// Kernels of another instruction set add in another order: there the run must only pass the gates.
TEST(Learned, the_same_command_on_the_same_processor_makes_the_same_bits) {
    for (const std::string& name : tasks_that_draw()) {
        const Carried model = carried(name);
        Trainer trainer = trainer_of(model);
        TrainState state = start_training(trainer.task(), model.state.seed);
        while (state.step < model.state.step) ASSERT_TRUE(trainer.step(state));
        const Result<TensorSet> again = weight_tensors(state);
        ASSERT_TRUE(again) << again.error().text;
        if (std::string("CPU (") + foveaCpuTargetName(cpu_properties(1)->cpu_target) + ")" ==
            *model.file.find_metadata("device")) {
            for (const Tensor& tensor : again->tensors) {
                const Tensor* committed = model.file.find(tensor.name);
                ASSERT_TRUE(committed) << tensor.name;
                EXPECT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(), committed->bytes.begin(),
                                       committed->bytes.end()))
                    << name << ", " << tensor.name;
            }
        }
        const Result<StepReport> report = trainer.evaluate(state);
        ASSERT_TRUE(report) << report.error().text;
        EXPECT_TRUE(reaches(*report, trainer.task().goal)) << name << ": accuracy " << report->accuracy;
    }
}

TEST(Learned, without_its_previous_token_head_induction_fails) {
    const Carried model = carried("induction");
    Trainer trainer = trainer_of(model);
    const StepReport whole = *trainer.evaluate(model.state);
    const BestHead previous = best_head(whole, HeadScore::previous);
    ForwardOptions without;
    without.heads_off = uint64_t{1} << previous.head;
    const Result<StepReport> lesioned = trainer.evaluate(model.state, without);
    ASSERT_TRUE(lesioned) << lesioned.error().text;
    EXPECT_GE(whole.accuracy, 0.99);
    EXPECT_LE(lesioned->accuracy, 0.5);
}

// The trainer's own forward pass and the trace of the model that every program shows.
TEST(Learned, the_trace_shows_the_weights_and_probabilities_that_the_trainer_computes) {
    for (const std::string& name : learned_tasks()) {
        const Carried file = carried(name);
        const LearnedModel learned = *learned_model(name);
        Trainer trainer = trainer_of(file);
        const Result<Probe> probe = trainer.probe(file.state, learned.sample);
        ASSERT_TRUE(probe) << probe.error().text;
        Result<ModelInput> input = learned_input(learned, learned.sample);
        ASSERT_TRUE(input) << input.error().text;
        Result<Trace> trace = Trace::open(learned.model, std::move(*input));
        ASSERT_TRUE(trace) << trace.error().text;
        const size_t length = learned.sample.size();
        size_t head_number = 0;
        for (uint32_t layer = 0; layer < trace->layers(); ++layer)
            for (uint32_t head = 0; head < trace->heads(layer); ++head, ++head_number) {
                const Result<F32Tensor> weights = trace->stage(StageId::weights, head, layer);
                ASSERT_TRUE(weights) << weights.error().text;
                for (size_t n = 0; n < length * length; ++n)
                    ASSERT_NEAR(weights->values[n], probe->weights[head_number * length * length + n], 1e-4)
                        << name << ", layer " << layer << ", head " << head << ", cell " << n;
            }
        const Result<F32Tensor> next = trace->stage(StageId::probabilities, 0, trace->layers() - 1);
        ASSERT_TRUE(next) << next.error().text;
        for (size_t n = 0; n < next->values.size(); ++n)
            ASSERT_NEAR(next->values[n], probe->probabilities[n], 1e-4) << name << ", number " << n;
        EXPECT_GE(probe->accuracy, name == "text" ? 0.2 : 0.9) << name;
    }
}

// Nats a token that the model of text needs for a sentence.
double surprise(Trainer& trainer, const TrainState& state, const LearnedModel& learned,
                std::string_view text) {
    const Result<std::vector<uint32_t>> tokens = learned_tokens(learned, text);
    EXPECT_TRUE(tokens) << tokens.error().text;
    const Result<Probe> probe = trainer.probe(state, *tokens);
    EXPECT_TRUE(probe) << probe.error().text;
    return probe->loss;
}

TEST(Learned, the_model_of_text_reads_english) {
    EXPECT_LT(learned_weights("text").size(), 2'000'000u);
    const Carried model = carried("text");
    EXPECT_GE(model.state.weights.size(), 400'000u);
    const LearnedModel learned = *learned_model("text");
    Trainer trainer = trainer_of(model);
    // Sentences that are in no Bible, and their words in another order. Guessing costs 7.6.
    const struct {
        const char *sentence, *shuffled;
    } pairs[] = {{"And the woman said unto the king, My son is in the city.",
                  "And woman the king unto the said, in city is the My son."},
                 {"He went out of the house and took his brother with him.",
                  "He of and house went him brother out the took with his."}};
    for (const auto& p : pairs) {
        const double sense = surprise(trainer, model.state, learned, p.sentence);
        EXPECT_LT(sense, 4) << p.sentence;
        EXPECT_GT(surprise(trainer, model.state, learned, p.shuffled), sense + 1) << p.sentence;
    }
}

TEST(Learned, words_of_one_kind_are_near_each_other_in_the_model_of_text) {
    const LearnedModel learned = *learned_model("text");
    const F32Tensor& rows = learned.model->unembedding.weight;
    const auto token = [&](const std::string& word) {
        return learned.tokenizer->encode(" " + word).at(0).token;
    };
    const auto cosine = [&](uint32_t a, uint32_t b) {
        double product = 0, aa = 0, bb = 0;
        for (size_t n = 0; n < rows.columns(); ++n) {
            const double x = rows.row(a)[n], y = rows.row(b)[n];
            product += x * y, aa += x * x, bb += y * y;
        }
        return product / std::sqrt(aa * bb);
    };
    const struct {
        const char *word, *near, *other;
    } triples[] = {{"three", "seven", "king"},
                   {"north", "south", "said"},
                   {"father", "brother", "silver"},
                   {"David", "Saul", "water"},
                   {"went", "came", "three"}};
    for (const auto& t : triples)
        EXPECT_GT(cosine(token(t.word), token(t.near)), cosine(token(t.word), token(t.other)) + 0.2)
            << t.word;
}

TEST(Learned, a_file_that_is_not_one_is_refused_by_name) {
    const Result<TensorSet> good = parse_safetensors(learned_weights("reverse"));
    ASSERT_TRUE(good);
    const auto refusal = [&](auto change) {
        TensorSet bad = *good;
        change(bad);
        const Result<LearnedModel> model = read_learned_model(bad);
        const Result<TrainState> state = read_state(bad);
        return (model ? std::string("read") : model.error().text) + " / " +
               (state ? std::string("read") : state.error().text);
    };
    const auto without_note = [](const char* key) {
        return [key](TensorSet& set) {
            std::erase_if(set.metadata, [&](const auto& note) { return note.first == key; });
        };
    };
    EXPECT_NE(refusal(without_note("heads")).find("note 'heads'"), std::string::npos);
    EXPECT_NE(refusal(without_note("vocabulary")).find("note 'vocabulary'"), std::string::npos);
    EXPECT_NE(refusal(without_note("seed")).find("note 'seed'"), std::string::npos);
    EXPECT_NE(refusal(without_note("task")).find("note 'task'"), std::string::npos);
    const auto lost = [](TensorSet& set) {
        std::erase_if(set.tensors, [](const Tensor& t) { return t.name == "layers.0.query.weight"; });
    };
    EXPECT_EQ(refusal(lost),
              "tensor 'layers.0.query.weight' is not in the file / tensor 'layers.0.query.weight' is not "
              "in the file");
    const auto not_a_number = [](TensorSet& set) {
        std::vector<float> values(512 + 32, 0.0f);
        values[7] = std::nanf("");
        for (Tensor& tensor : set.tensors)
            if (tensor.name == "embedding.weight") tensor = *make_tensor(tensor.name, {17, 32}, values);
    };
    EXPECT_EQ(refusal(not_a_number),
              "tensor 'embedding.weight' has an element that is not finite / tensor "
              "'embedding.weight' has an element that is not finite");
}

// Each change by itself; the models of "reverse" have learned positions, 17 words and 32 columns.
TEST(Learned, a_file_whose_parts_do_not_fit_each_other_is_refused) {
    struct Change {
        const char* name;  // name of a note or a tensor
        const char* text;  // text of the note; null: the tensor gets `shape`
        Shape shape;       // empty: the tensor does not exist
        const char* refused;
    };
    const Change kChanges[] = {
        {"task", "a\tb", {}, "note 'task' is 'a\\x09b'; it must be"},
        {"heads", "0", {}, "note 'heads' is 0; layer 0 has 32 rows of queries"},
        {"heads", "1000", {}, "note 'heads' is 1000; layer 0 has 32 rows"},
        {"positions", "sine", {}, "note 'positions' is 'sine'; it must be none, learned or rotary"},
        {"vocabulary", "a", {}, "note 'vocabulary' has 1 words"},
        {"embedding.weight", nullptr, {1, 32}, "the embedding has 1 rows of 32"},
        {"embedding.weight", nullptr, {17, 31}, "31"},
        {"positions.weight", nullptr, {24, 31}, "tensor 'positions.weight' has rows of 31 elements"},
        {"positions.weight", nullptr, {}, "tensor 'positions.weight' is not in the file"},
        {"unembedding.weight", nullptr, {16, 32}, "tensor 'unembedding.weight' gives 16 scores"},
        {"unembedding.weight", nullptr, {}, "tensor 'unembedding.weight' gives 0 scores"},
        {"layers.0.key.weight", nullptr, {31, 32}, "layer 0 has matrices whose shapes do not fit each other"},
        {"layers.64.query.weight", nullptr, {32, 32}, "layers has more than 64"},
    };
    const Result<TensorSet> good = parse_safetensors(learned_weights("reverse"));
    ASSERT_TRUE(good);
    for (const Change& c : kChanges) {
        TensorSet file = *good;
        for (auto& [key, text] : file.metadata)
            if (c.text && key == c.name) text = c.text;
        if (!c.text) std::erase_if(file.tensors, [&](const Tensor& t) { return t.name == c.name; });
        if (!c.shape.empty())
            file.tensors.push_back(
                make_tensor(c.name, c.shape, std::vector<float>(c.shape[0] * c.shape[1])).value());
        const Result<LearnedModel> read = read_learned_model(file);
        ASSERT_FALSE(read) << c.name;
        EXPECT_NE(read.error().text.find(c.refused), std::string::npos) << read.error().text;
    }
}

TEST(Learned, words_become_tokens_and_an_unknown_one_is_named) {
    const LearnedModel learned = *learned_model("sort");
    EXPECT_EQ(*learned_tokens(learned, "3 31  ="), (std::vector<uint32_t>{3, 31, 32}));
    const Result<std::vector<uint32_t>> unknown = learned_tokens(learned, "3 bananas");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().text, "'bananas' is not a token of the task sort");
}

// Returns a stage of a session with a task, in layer `layer` and head `head`.
F32Tensor shown(const Session& session, StageId stage, uint32_t head, uint32_t layer) {
    Result<SessionModel> made = session_model(session);
    EXPECT_TRUE(made) << made.error().text;
    Result<Trace> trace = Trace::open(made->model, std::move(made->input));
    EXPECT_TRUE(trace) << trace.error().text;
    Result<F32Tensor> values = trace->stage(stage, head, layer);
    EXPECT_TRUE(values) << values.error().text;
    return std::move(*values);
}

TEST(Learned, a_session_with_a_task_shows_the_model_that_learned_it_under_the_sessions_rules) {
    for (const std::string& task : learned_tasks()) {
        const Session s = level_session(2, task);
        EXPECT_EQ(s.task, task);
        const LearnedModel learned = *learned_model(task);
        Result<SessionModel> made = session_model(s);
        ASSERT_TRUE(made) << made.error().text;
        EXPECT_TRUE(made->notes.empty()) << task << ": " << made->notes[0].text;
        EXPECT_EQ(made->learned->head_labels, learned.head_labels);
        const Result<ModelInput> input = learned_input(learned, learned_text(learned, s.text).tokens);
        Result<Trace> plain = Trace::open(learned.model, *input);
        ASSERT_TRUE(plain);
        const uint32_t heads = plain->heads(), layer = s.head / heads;
        const F32Tensor weights = shown(s, StageId::weights, s.head % heads, layer);
        EXPECT_EQ(weights.values, plain->stage(StageId::weights, s.head % heads, layer)->values) << task;
        EXPECT_GT(weights.row(s.row)[s.column], 0.5f)
            << task << ": its first picture picks what is to be seen";
    }
    Session hot = level_session(2, "induction");
    hot.temperature = 10;
    EXPECT_LT(shown(hot, StageId::weights, 0, 1).row(hot.row)[hot.column], 0.3f);
    hot.causal = false;
    EXPECT_GT(shown(hot, StageId::weights, 0, 0).row(0)[5], 0.0f)
        << "without a mask the first token sees the others";
}

TEST(Learned, a_head_that_is_off_gives_nothing_and_the_model_forgets) {
    Session s = level_session(2, "induction");
    const LearnedModel learned = *learned_model("induction");
    const auto sure_of_f = [&] { return shown(s, StageId::probabilities, 0, 1).row(14)[5]; };
    EXPECT_GT(sure_of_f(), 0.85f);
    s.heads_off = 1;  // the head for the previous token
    EXPECT_LT(sure_of_f(), 0.5f);
    s.heads_off = 16;
    const Result<SessionModel> made = session_model(s);
    ASSERT_TRUE(made);
    ASSERT_EQ(made->notes.size(), 1u);
    EXPECT_EQ(made->notes[0].text, "off is 16; the model has 4 heads, and the other bits say nothing");
}

TEST(Learned, a_text_is_taken_apart_into_tokens_and_what_is_none_is_told) {
    const LearnedModel letters = *learned_model("induction"), pairs = *learned_model("recall"),
                       places = *learned_model("reverse");
    const auto of = [](const LearnedModel& learned, std::string_view text) {
        std::string words;
        for (const uint32_t token : learned_text(learned, text).tokens)
            words += (words.empty() ? "" : " ") + learned.model->vocabulary[token];
        return words;
    };
    EXPECT_EQ(of(letters, "fox fo"), "<start> f o x f o");
    EXPECT_EQ(of(letters, "<start> f"), "<start> f");
    EXPECT_EQ(of(letters, "FOX"), "<start> F o x");  // F is a token, O and X are not
    EXPECT_EQ(of(pairs, "i10 a2"), "i 10 a 2");
    EXPECT_EQ(learned_text(letters, "f\xc3\xb6x!").left_out, "\xc3\xb6!");
    Session s = level_session(2, "reverse");
    s.text = "abcdefghijklabcdefghijklabcdefghijkl?";
    const Result<SessionModel> cut = session_model(s);
    ASSERT_TRUE(cut) << cut.error().text;
    EXPECT_EQ(cut->input.tokens.size(), most_learned_tokens(places));
    ASSERT_EQ(cut->notes.size(), 2u);
    EXPECT_EQ(cut->notes[0].text, "left out, as it is not a token of the task reverse: ?");
    s.text = "??";
    const Result<SessionModel> none = session_model(s);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().text, "the text has no token of the task reverse; its tokens are a, b and so on");
}

}  // namespace
}  // namespace fovea
