// Runs the command line in a folder of its own and keeps what it said.
#pragma once

#include "files/scratch.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace fovea::test {

struct CommandRun {
    int exit_code = -1;
    std::string output, error;
};

// `arguments` as a shell takes them; "IN" and "OUT" stand for files in the folder.
inline CommandRun run_command(const Scratch& scratch, std::string arguments) {
    for (const auto& [word, name] : {std::pair{"IN", "in.safetensors"}, std::pair{"OUT", "out.safetensors"}})
        if (const size_t at = arguments.find(word); at != arguments.npos)
            arguments.replace(at, std::string_view(word).size(), '"' + (scratch / name).string() + '"');
    const std::string command = std::string("\"") + FOVEA_CLI + "\" " + arguments + " > \"" +
                                (scratch / "stdout").string() + "\" 2> \"" + (scratch / "stderr").string() +
                                "\"";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(scratch / "stdout"),
            read_file(scratch / "stderr")};
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
