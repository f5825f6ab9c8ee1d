// Runs the command line in a new folder and keeps its output.
#pragma once

#include "files/scratch.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <string>
#include <utility>

namespace fovea::test {

struct CommandRun {
    int exit_code = -1;
    std::string output, error;
};

// Runs a shell line in which the words FOVEA, IN and OUT are replaced by the program and by files in the
// folder.
inline CommandRun run_shell(const Scratch& scratch, std::string script) {
    const auto quoted = [](const std::string& path) { return "$1\"" + path + '"'; };
    const std::pair<const char*, std::string> words[] = {{"FOVEA", FOVEA_CLI},
                                                         {"IN", (scratch / "in.safetensors").string()},
                                                         {"OUT", (scratch / "out.safetensors").string()}};
    for (const auto& [word, path] : words)
        script =
            std::regex_replace(script, std::regex("(^| )" + std::string(word) + "(?= |$)"), quoted(path));
    const std::string command = "( " + script + " ) > \"" + (scratch / "stdout").string() + "\" 2> \"" +
                                (scratch / "stderr").string() + "\"";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(scratch / "stdout"),
            read_file(scratch / "stderr")};
}

// The program with `arguments` as a shell takes them.
inline CommandRun run_command(const Scratch& scratch, const std::string& arguments) {
    return run_shell(scratch, "FOVEA " + arguments);
}

// Exit code 2, nothing on standard output, one line that begins with "fovea: error: " and has `part`.
inline void expect_refused(const CommandRun& run, const std::string& part) {
    EXPECT_EQ(run.exit_code, 2) << run.error;
    EXPECT_EQ(run.output, "");
    EXPECT_TRUE(run.error.starts_with("fovea: error: ")) << run.error;
    EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << run.error;
    EXPECT_NE(run.error.find(part), std::string::npos) << run.error;
}

}  // namespace fovea::test
