// fovea: the command line. One command a file; this one finds it.
#include "commands.hpp"

#include "arguments.hpp"
#include "standard_streams.hpp"

#include <fovea/fovea.h>

#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace {

using fovea::app::Words;

struct Command {
    std::string_view name;
    int (*run)(Words);
    std::string_view help;
};

constexpr Command kCommands[] = {
    {"devices", fovea::app::devices_command,
     "backends and devices, what each can do, which is the default and why"},
    {"doctor", fovea::app::doctor_command, "whether Fovea works on this machine, as a report for a bug"},
    {"attend", fovea::app::attend_command, "attention of the tensors in a file"},
    {"gradients", fovea::app::gradients_command, "gradients of attention: dq, dk, dv from q, k, v, do"},
    {"train", fovea::app::train_command, "trains a small model on a task, and says what its heads do"},
    {"explain", fovea::app::explain_command,
     "the plan of an attention call: kernel, reasons, slices, workspace"},
    {"map", fovea::app::map_command, "a picture of any rectangle of the weights, of contexts of any length"},
    {"lesson", fovea::app::lesson_command, "a worked example, every stage printed as its tutorial prints it"},
    {"model", fovea::app::model_command, "what a model's files hold, and what it computes for given tokens"},
    {"heads", fovea::app::heads_command, "what every head of a model does over many texts, as a report"},
    {"generate", fovea::app::generate_command, "the tokens that a model goes on with"},
    {"session", fovea::app::session_command, "the numbers of a session file (.fovea), stage by stage"},
    {"bench", fovea::app::bench_command, "speed, as a share of this machine's measured peak"},
};

void print_usage(std::FILE* to) {
    std::fprintf(to,
                 "fovea: transformer attention you can see into\n\nusage: fovea COMMAND [ARGUMENTS]   "
                 "(COMMAND --help says more)\n       fovea --version\n\n");
    for (const Command& c : kCommands)
        std::fprintf(to, "  %-12.*s %.*s\n", int(c.name.size()), c.name.data(), int(c.help.size()),
                     c.help.data());
    std::fprintf(to, "\nExit codes: 0 success, 1 a check failed, 2 refused with one line that says why.\n");
}

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h" || word == "help"; }

int run(Words words) {
    if (words.empty()) {
        print_usage(stderr);
        return 2;
    }
    const std::string_view name = words[0];
    if (asks_for_help(name)) {
        if (words.size() > 1 && !asks_for_help(words[1])) {  // `fovea help attend`
            std::vector<std::string_view> asked(words.begin() + 1, words.end());
            asked.push_back("--help");
            return run(asked);
        }
        print_usage(stdout);
        return 0;
    }
    if (name == "--version") {
        std::printf("fovea %d.%d.%d\n", FOVEA_VERSION_MAJOR, FOVEA_VERSION_MINOR, FOVEA_VERSION_PATCH);
        return 0;
    }
    for (const Command& c : kCommands)
        if (c.name == name) return c.run(words.subspan(1));
    std::fprintf(stderr, "fovea: error: no command '%.*s'; `fovea help` lists them\n", int(name.size()),
                 name.data());
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    fovea::app::fill_closed_streams();
    fovea::app::let_large_files_fail();
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    try {
        return fovea::app::check_standard_output(run(words));
    } catch (const std::bad_alloc&) {  // from the standard containers; our own code does not throw
        return fovea::app::refuse({FOVEA_OUT_OF_HOST_MEMORY, "memory",
                                   "there is not enough memory for this command; give it a smaller input"});
    }
}
