// `fovea train`: what it says, what it writes, and that a run can be taken up again.
#include "commands/command_run.hpp"

#include <fovea/files/json.hpp>

namespace fovea::test {
namespace {

JsonValue parsed(const CommandRun& run) {
    EXPECT_EQ(run.exit_code, 0) << run.error;
    Result<JsonValue> value = parse_json(run.output);
    EXPECT_TRUE(value) << run.output;
    return value ? std::move(*value) : JsonValue();
}

TEST(Train, says_in_json_what_was_learned_and_by_which_heads) {
    const Scratch scratch;
    const JsonValue reverse = parsed(run_command(scratch, "train reverse --json"));
    EXPECT_EQ(reverse["task"].text(), "reverse");
    EXPECT_EQ(reverse["steps"].number(), 100);
    EXPECT_GE(reverse["accuracy"].number(), 0.98);
    EXPECT_LT(reverse["loss"].number(), 0.2);
    EXPECT_GE(reverse["mirror"].number(), 0.8);
    EXPECT_TRUE(reverse["learned"].boolean());
    EXPECT_EQ(reverse["heads"].items()[0]["label"].text(), "mirror image");

    const JsonValue induction = parsed(run_command(scratch, "train induction --steps 2 --seed 3 --json"));
    EXPECT_EQ(induction["steps"].number(), 2);
    EXPECT_EQ(induction["seed"].number(), 3);
    EXPECT_FALSE(induction["learned"].boolean());
    EXPECT_EQ(induction["heads"].items().size(), 4u);
    for (const char* score : {"previous", "induction", "sink"}) {
        double most = 0;
        for (const JsonValue& head : induction["heads"].items()) most = std::max(most, head[score].number());
        EXPECT_EQ(induction[score].number(), most) << score;
        EXPECT_GT(most, 0) << score;
    }
}

TEST(Train, goes_on_from_a_file_as_if_never_stopped) {
    const Scratch scratch;
    const std::string folder = "\"" + scratch.folder().string() + "/";
    EXPECT_EQ(run_command(scratch, "train recall --seed 5 --steps 5 --out " + folder + "whole.safetensors\"")
                  .exit_code,
              0);
    EXPECT_EQ(run_command(scratch, "train recall --seed 5 --steps 2 --out IN").exit_code, 0);
    const JsonValue rest =
        parsed(run_command(scratch, "train recall --resume IN --steps 3 --out OUT --json"));
    EXPECT_EQ(rest["steps"].number(), 5);
    EXPECT_EQ(rest["seed"].number(), 5);
    EXPECT_EQ(read_file(scratch / "out.safetensors"), read_file(scratch / "whole.safetensors"));
    EXPECT_FALSE(read_file(scratch / "out.safetensors") == read_file(scratch / "in.safetensors"));
}

TEST(Train, half_writes_the_weights_alone_in_float16) {
    const Scratch scratch;
    ASSERT_EQ(run_command(scratch, "train sort --steps 1 --half --out OUT").exit_code, 0);
    const Result<TensorSet> file = load_tensors(scratch / "out.safetensors");
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_FALSE(file->find("adam.mean.embedding.weight"));
    for (const Tensor& tensor : file->tensors) EXPECT_EQ(tensor.type, FOVEA_F16) << tensor.name;
    EXPECT_EQ(*file->find_metadata("made_by"), "fovea train sort --steps 1 --seed 1 --half");
}

TEST(Train, refuses_by_name_what_it_cannot_do) {
    const Scratch scratch;
    expect_refused(run_command(scratch, "train"), "the task is missing");
    expect_refused(run_command(scratch, "train juggle"),
                   "task is 'juggle'; it must be one of induction, sort, reverse, recall");
    expect_refused(run_command(scratch, "train sort --copy-only"), "--copy-only");
    expect_refused(run_command(scratch, "train sort --text IN"), "--text");
    expect_refused(run_command(scratch, "train text"), "--text is missing");
    expect_refused(run_command(scratch, "train text --text IN"), "cannot be read");
    expect_refused(run_command(scratch, "train text --text IN --no-bias"), "--no-bias");
    expect_refused(run_command(scratch, "train sort --positions up"), "--positions");
    expect_refused(run_command(scratch, "train sort --steps -1"), "--steps");
    expect_refused(run_command(scratch, "train sort --half"), "--half");
    expect_refused(run_command(scratch, "train sort --resume IN"), "in.safetensors");
    ASSERT_EQ(run_command(scratch, "train sort --steps 0 --out IN").exit_code, 0);
    expect_refused(run_command(scratch, "train reverse --resume IN"),
                   "is a state of the task sort, not of reverse");
    expect_refused(run_command(scratch, "train sort --resume IN --seed 3"), "--seed");
    expect_refused(run_command(scratch, "train sort --steps 4294967295 --resume IN --steps 1"), "--steps");
}

TEST(Train, writes_nothing_where_it_refuses) {
    const Scratch scratch;
    expect_refused(run_command(scratch, "train sort --seed x --out OUT"), "--seed");
    EXPECT_EQ(read_file(scratch / "out.safetensors"), "");
}

TEST(Lesson, of_a_task_names_the_heads_of_the_model_in_the_library_and_draws_them) {
    const Scratch scratch;
    const std::string picture = "\"" + (scratch / "heads.png").string() + "\"";
    const CommandRun run = run_command(scratch, "lesson induction --png " + picture);
    ASSERT_EQ(run.exit_code, 0) << run.error;
    for (const char* part : {"induction: Going on with a word that is repeated", "what to look at",
                             "previous token", "induction", "fovea train induction --steps"})
        EXPECT_NE(run.output.find(part), std::string::npos) << part;
    const Result<Tensor> image = load_png(scratch / "heads.png");
    ASSERT_TRUE(image) << image.error().text;
    EXPECT_GT(image->shape[1], 1000u);
    expect_refused(run_command(scratch, "lesson sort --check"), "--check");
    EXPECT_NE(run_command(scratch, "lesson --list").output.find("learned Sorting numbers"),
              std::string::npos);
}

}  // namespace
}  // namespace fovea::test
