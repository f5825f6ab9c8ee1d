// How commands treat files: no output replaces an input, a file's metadata apply, a session opens only files
// of its own folder.
#include "command_run.hpp"

#include <chrono>
#include <cmath>

namespace fovea {
namespace {

using namespace test;

TensorSet wave(const std::vector<std::pair<std::string, std::string>>& metadata = {}, uint64_t heads = 2) {
    TensorSet set;
    for (const char* name : {"q", "k", "v", "do"}) {
        std::vector<float> values(heads * 5 * 4);
        for (size_t n = 0; n < values.size(); ++n)
            values[n] = std::sin(float(n + 1) * (name[0] == 'q' ? 0.7f : name[0] == 'k' ? 0.3f : 0.9f));
        set.tensors.push_back(make_tensor(name, {1, heads, 5, 4}, std::move(values)).value());
    }
    set.metadata = metadata;
    return set;
}

TEST(OutputFiles, an_input_is_never_replaced_whatever_its_name) {
    const Scratch scratch;
    namespace fs = std::filesystem;
    const fs::path model = scratch / "model";
    fs::create_directories(model);
    const fs::path families = fs::path(FOVEA_SOURCES) / "tests/model/families/llama2";
    for (const char* name : {"config.json", "model.safetensors"}) fs::copy(families / name, model / name);
    ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", wave()));
    write_file(scratch / "words.txt", "a b c\n");
    const struct {
        std::string words;
        fs::path input;
        const char* extension;
    } all[] = {
        {"attend IN --out ", scratch / "in.safetensors", ".safetensors"},
        {"gradients IN --out ", scratch / "in.safetensors", ".safetensors"},
        {"map IN --png ", scratch / "in.safetensors", ".png"},
        {"map IN --csv ", scratch / "in.safetensors", ".csv"},
        {"model " + model.string() + " --tokens 1,2 --out ", model / "model.safetensors", ".safetensors"},
        {"model " + model.string() + " --tokens 1,2 --out ", model / "config.json", ".safetensors"},
        {"train text --text " + (scratch / "words.txt").string() + " --steps 1 --out ", scratch / "words.txt",
         ".safetensors"},
        {"bench --check " + (scratch / "words.txt").string() + " --write-check ", scratch / "words.txt",
         ".txt"}};
    for (const auto& one : all) {
        const std::string before = read_file(one.input);
        const fs::path soft = scratch / ("soft" + std::string(one.extension)),
                       hard = scratch / ("hard" + std::string(one.extension));
        fs::create_symlink(one.input, soft);
        fs::create_hard_link(one.input, hard);
        std::vector<fs::path> names = {soft, hard, soft.parent_path() / "." / soft.filename()};
        if (one.input.extension() == one.extension) names.push_back(one.input);
        for (const fs::path& name : names) {
            SCOPED_TRACE(one.words + name.string());
            expect_refused(run_command(scratch, one.words + "\"" + name.string() + "\""), "it is the input ");
            EXPECT_EQ(read_file(one.input), before);
        }
        fs::remove(soft), fs::remove(hard);
    }
    expect_refused(run_command(scratch, "attend IN --out -"), "standard output (-) is not supported");
}

// A file of scripts/export_attention.py and the options that say the same.
TEST(AttentionMetadata, count_as_the_options_do_and_options_replace_them) {
    const std::pair<const char*, const char*> kinds[] = {{"scale", "--scale"},
                                                         {"softcap", "--softcap"},
                                                         {"causal", "--causal"},
                                                         {"window", "--window"},
                                                         {"layout", "--layout"}};
    const struct {
        size_t kind;
        const char *value, *other;
    } all[] = {{0, "0.5", "0.25"},          {1, "0.75", "2"},        {2, "top-left", "none"},
               {2, "bottom-right", "none"}, {2, "none", "top-left"}, {3, "1,0", "2,-1"},
               {4, "blhd", "bhld"},         {4, "bhld", "blhd"}};
    const auto run = [](const std::string& command, const TensorSet& set, const std::string& options) {
        const Scratch scratch;
        EXPECT_TRUE(save_safetensors(scratch / "in.safetensors", set));
        const bool draws = command == "map";
        const CommandRun made = run_command(
            scratch, command + " IN --backend cpu " +
                         (draws ? "--csv " + (scratch / "map.csv").string() : std::string("--out OUT")) +
                         " " + options);
        EXPECT_EQ(made.exit_code, 0) << made.error;
        return std::pair(made.output, read_file(scratch / (draws ? "map.csv" : "out.safetensors")));
    };
    for (const auto& one : all) {
        const auto& [key, option] = kinds[one.kind];
        for (const std::string command : {"attend", "gradients", "map"}) {
            SCOPED_TRACE(command + " " + key + " " + one.value);
            const TensorSet plain = wave(), told = wave({{key, one.value}});
            const std::string value = std::string(option) + "=" + one.value,
                              other = std::string(option) + "=" + one.other;
            const auto by_file = run(command, told, "");
            EXPECT_EQ(by_file.second, run(command, plain, value).second);
            EXPECT_NE(by_file.first.find(std::string(key) + " " + one.value), std::string::npos)
                << by_file.first;
            EXPECT_EQ(run(command, told, other).second, run(command, plain, other).second);
        }
    }
    for (const auto& [key, value] : {std::pair{"scale", "0"},
                                     {"scale", "x"},
                                     {"scale", "-1"},
                                     {"softcap", "inf"},
                                     {"causal", "diagonal"},
                                     {"window", "1"},
                                     {"window", "1,-2"},
                                     {"layout", "lbhd"}}) {
        const Scratch scratch;
        ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", wave({{key, value}})));
        for (const char* command : {"attend IN --out OUT", "explain IN", "map IN --csv x.csv"})
            expect_refused(run_command(scratch, command),
                           "metadata " + std::string(key) + " is '" + value + "'; it must be ");
    }
}

std::string session(const std::string& state, const std::string& more = "") {
    return R"({"format": "fovea-session", "version": 1, "state": {)" + state + "}" + more + "}";
}

TEST(SessionFiles, what_is_wrong_names_the_file) {
    const Scratch scratch;
    const auto tensors = [](const std::string& path, const std::string& name, const std::string& sha = "") {
        const std::string one = R"({"path": ")" + path + R"(", "name": ")" + name + "\"" +
                                (sha.empty() ? "" : R"(, "sha256": ")" + sha + "\"") + "}";
        return session("", R"(, "tensors": {"q": )" + one + R"(, "k": )" + one + "}");
    };
    TensorSet set;
    set.tensors.push_back(make_tensor("x", {2, 2}, std::vector<float>(4, 0.5f)).value());
    set.tensors.push_back(make_tensor("none", {1, 0, 4}, std::vector<float>()).value());
    std::filesystem::create_directories(scratch / "inner");
    for (const char* name : {"in.safetensors", "inner/own.safetensors"})
        ASSERT_TRUE(save_safetensors(scratch / name, set));
    std::filesystem::create_symlink(scratch / "in.safetensors", scratch / "inner/link.safetensors");
    const std::string file = (scratch / "inner/s.fovea").string();
    const auto shown = [&](const std::string& text, const std::string& options = "") {
        write_file(file, text);
        return run_command(scratch, "session " + file + " " + options);
    };
    const std::string absolute = (scratch / "in.safetensors").string();
    const std::pair<std::string, const char*> refused[] = {
        {R"({"format": "fovea-session", "version": 99, "state": {}})", "the session has version 99"},
        {"{", "this is not a session file"},
        {tensors("own.safetensors", "none"), "tensor 'none' of the file own.safetensors has no elements"},
        {tensors("own.safetensors", "y"), "has no tensor 'y'"},
        {tensors("../in.safetensors", "x"), "is outside of the session's folder: give --any-file"},
        {tensors("./../in.safetensors", "x"), "is outside of the session's folder"},
        {tensors("link.safetensors", "x"), "is outside of the session's folder"},
        {tensors(absolute, "x"), "is outside of the session's folder"}};
    for (const auto& [text, why] : refused)
        for (const char* option : {"", "--list"}) {
            const CommandRun run = shown(text, option);
            expect_refused(run, why);
            EXPECT_TRUE(run.error.starts_with("fovea: error: " + file + ": ")) << run.error;
        }
    EXPECT_EQ(shown(tensors("own.safetensors", "x")).error, "");
    for (const std::string& path :
         {std::string("../in.safetensors"), std::string("link.safetensors"), absolute})
        EXPECT_EQ(shown(tensors(path, "x"), "--any-file").exit_code, 0) << path;
    const CommandRun changed = shown(tensors("own.safetensors", "x", std::string(64, '0')));
    EXPECT_EQ(changed.exit_code, 0);
    EXPECT_NE(changed.error.find("is not the one that the session was saved with"), std::string::npos);
    const CommandRun half = shown(session(R"("text": "a \ud83d b \udc00 \\ud800 \ud83d\ude00")"));
    EXPECT_EQ(half.exit_code, 0) << half.error;
    EXPECT_NE(half.error.find("2 halves of characters"), std::string::npos) << half.error;
}

}  // namespace
}  // namespace fovea
