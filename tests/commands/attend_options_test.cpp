// Every option of `attend` and `explain`: --help names it, a good value works, a bad one is rejected with an
// error that names it, and options that --help does not name are rejected.
#include "commands/command_run.hpp"

#include <map>
#include <regex>
#include <set>

namespace fovea::test {
namespace {

struct Values {
    std::string good, bad;  // bad empty: a switch, which takes no value
    std::string field;      // the name in the error; empty: the option's
};

// The options that both commands have.
const std::map<std::string, Values> kCommon = {
    {"--layout", {"blhd", "lbhd", ""}},
    {"--cache-type", {"f8_e4m3", "q9", ""}},
    {"--cache-rotation", {}},
    {"--kernel", {"plain", "quick", ""}},
    {"--scale", {"-0.5", "0", ""}},
    {"--causal", {"bottom-right", "diagonal", ""}},
    {"--q-offset", {"-2", "2x", ""}},
    {"--window", {"3,-1", "3", ""}},
    {"--softcap", {"20", "-1", ""}},
    {"--dropout", {"0.25", "1", ""}},
    {"--seed", {"7", "-7", ""}},
    {"--outputs", {"o,lse,scores,capped,masked,weights,row_stats", "o,heads", ""}},
    {"--precision", {"f16-inputs", "f8", ""}},
    {"--workspace", {"1000000", "many", ""}},
    {"--slice-cost", {"1e6", "-1", ""}},
    {"--backend", {"reference", "gpu", ""}},
    {"--device", {"0", "4000", ""}},
    {"--threads", {"2", "5000", ""}},
    {"--tuning", {"FILE", "", ""}},
};

std::map<std::string, Values> options_of_attend() {
    std::map<std::string, Values> options = kCommon;
    options["--out"] = {"OUT", "", ""};
    options["--validation"] = options["--json"] = options["--help"] = options["--shards"] = {};
    options["--chunk"] = {"4", "0", "chunk"};
    return options;
}
std::map<std::string, Values> options_of_explain() {
    std::map<std::string, Values> options = kCommon;
    options["--batch"] = {"3", "0", "batch"};
    options["--heads"] = {"4,2", "3,2", "heads_q"};
    options["--lengths"] = {"5,9", "5,9,1", ""};
    options["--dims"] = {"8,4", "0", "dim_qk"};
    options["--type"] = {"f16", "f64", ""};
    options["--help"] = {};
    return options;
}

std::set<std::string> options_in_help(const std::string& help) {
    std::set<std::string> names;
    const std::regex line("\n  (--[a-z-]+)");
    for (std::sregex_iterator at(help.begin(), help.end(), line), end; at != end; ++at)
        names.insert((*at)[1].str());
    return names;
}

std::set<std::string> names_of(const std::map<std::string, Values>& options) {
    std::set<std::string> names;
    for (const auto& [name, values] : options) names.insert(name);
    return names;
}

void save_input(const Scratch& scratch) {
    TensorSet set;
    for (const char* name : {"q", "k", "v"}) {
        std::vector<float> values(2 * 3 * 5 * 4);
        for (size_t n = 0; n < values.size(); ++n) values[n] = float(n % 7) * 0.3f - 1 + float(name[0] % 3);
        set.tensors.push_back(make_tensor(name, {2, 3, 5, 4}, values).value());
    }
    ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", set));
}

std::string with(const std::string& name, const std::string& value) {
    return " " + name + (value.empty() ? "" : " " + value);
}

TEST(Attend, help_names_every_option_and_no_other_is_taken) {
    const Scratch scratch;
    for (const auto& [command, options] :
         {std::pair{"attend", options_of_attend()}, std::pair{"explain", options_of_explain()}}) {
        const CommandRun help = run_command(scratch, std::string(command) + " --help");
        EXPECT_EQ(help.exit_code, 0);
        EXPECT_EQ(help.error, "");
        EXPECT_EQ(options_in_help(help.output), names_of(options)) << command;
        for (const char* foreign :
             {"--batch", "--lengths", "--out", "--json", "--sinks", "--page-size", "--x"})
            if (!options.contains(foreign))
                expect_refused(run_command(scratch, std::string(command) + " " + foreign + " 1"), foreign);
    }
}

TEST(Attend, help_of_a_command_is_what_the_command_says) {
    const Scratch scratch;
    for (const char* command : {"attend", "map", "bench"}) {
        const CommandRun asked = run_command(scratch, std::string("help ") + command);
        EXPECT_EQ(asked.exit_code, 0) << asked.error;
        EXPECT_EQ(asked.output, run_command(scratch, std::string(command) + " --help").output) << command;
    }
    const std::string commands = run_command(scratch, "help").output;
    EXPECT_EQ(run_command(scratch, "help help").output, commands);
    EXPECT_EQ(run_command(scratch, "help --help").output, commands);
}

TEST(Attend, every_option_works_and_refuses_by_name) {
    const Scratch scratch;
    save_input(scratch);
    for (const auto& [name, values] : options_of_attend()) {
        SCOPED_TRACE(name);
        std::string line = "attend IN";
        if (name != "--out") line += " --out OUT";
        if (name != "--backend" && name != "--device") line += " --backend cpu";
        if (name == "--seed") line += " --dropout 0.3";
        if (name == "--validation") {  // only for Vulkan
            expect_refused(run_command(scratch, line + " --validation"), "--validation");
            continue;
        }
        if (name == "--tuning") {  // a good one needs a Vulkan device
            expect_refused(run_command(scratch, line + " --tuning no-such-file"),
                           "no-such-file cannot be read");
            continue;
        }
        if (name == "--cache-rotation") {  // attend_tensors_test has rows that it can rotate
            expect_refused(run_command(scratch, line + " --cache-rotation"),
                           "--cache-rotation needs --cache-type");
            continue;
        }
        if (name == "--shards") continue;  // tests/mpi runs it, under mpirun
        if (name == "--chunk") {           // only with --shards
            expect_refused(run_command(scratch, line + " --chunk 4"), "--chunk");
            continue;
        }
        const CommandRun run = run_command(scratch, line + with(name, values.good));
        EXPECT_EQ(run.exit_code, 0) << run.error;
        EXPECT_EQ(std::filesystem::exists(scratch / "out.safetensors"), name != "--help");
        std::filesystem::remove(scratch / "out.safetensors");
        if (name == "--out") continue;
        const bool is_switch = values.good.empty();
        const CommandRun refused =
            run_command(scratch, line + (is_switch ? " " + name + "=1" : with(name, values.bad)));
        expect_refused(refused, values.field.empty() ? name : values.field);
        expect_refused(run_command(scratch, line + with(name, values.good) + with(name, values.good)), name);
        EXPECT_FALSE(std::filesystem::exists(scratch / "out.safetensors"));
    }
}

TEST(Explain, every_option_works_and_refuses_by_name) {
    const Scratch scratch;
    save_input(scratch);
    for (const auto& [name, values] : options_of_explain()) {
        SCOPED_TRACE(name);
        std::string line = name == "--layout" ? "explain IN" : "explain";
        if (name != "--layout" && name != "--lengths") line += " --lengths 6,8";
        if (name != "--backend" && name != "--device") line += " --backend cpu";
        if (name == "--seed") line += " --dropout 0.3";
        if (name == "--window") line += " --q-offset 2";
        if (name == "--cache-rotation") line += " --cache-type q8_0";
        if (name == "--tuning") {  // a good one needs a Vulkan device
            expect_refused(run_command(scratch, line + " --tuning no-such-file"),
                           "no-such-file cannot be read");
            continue;
        }
        const CommandRun run = run_command(scratch, line + with(name, values.good));
        EXPECT_EQ(run.exit_code, 0) << run.error;
        const bool is_switch = values.good.empty();
        expect_refused(run_command(scratch, line + (is_switch ? " " + name + "=1" : with(name, values.bad))),
                       values.field.empty() ? name : values.field);
    }
}

// Kernels, outputs and alignments that --help lists are the ones that are taken.
TEST(Attend, help_lists_the_values_that_are_taken) {
    const Scratch scratch;
    const std::string help = run_command(scratch, "attend --help").output;
    for (const auto& [option, values] :
         {std::pair{"--kernel", "auto staged flash flash_coopmat flash_coopmat2 decode plain reference"},
          std::pair{"--outputs", "o lse scores capped masked weights row_stats"},
          std::pair{"--causal", "none top-left bottom-right"},
          std::pair{"--cache-type", "f32 f16 bf16 f8_e4m3 f8_e5m2 q8_0 q4_0"},
          std::pair{"--precision", "f32 f16-inputs bf16-inputs"}}) {
        std::istringstream words(values);
        for (std::string value; words >> value;) {
            const size_t at = help.find(std::string("\n  ") + option);
            ASSERT_NE(at, help.npos) << option;
            EXPECT_NE(help.substr(at, help.find("\n  --", at + 1) - at).find(value), help.npos)
                << option << " " << value;
            const CommandRun run = run_command(
                scratch, "explain --backend cpu --lengths 6 --dims 32 " + std::string(option) + " " + value);
            if (run.exit_code == 0) continue;
            // A kernel may be another backend's; then the error is the library's, by the field's name.
            EXPECT_STREQ(option, "--kernel") << run.error;
            expect_refused(run, "error: --kernel ");
        }
    }
}

}  // namespace
}  // namespace fovea::test
