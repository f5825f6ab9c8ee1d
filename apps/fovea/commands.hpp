// The commands of `fovea`. Each gets the words after its name and returns the exit code: 0 success, 1 a
// failed check (a lesson's digits, a share of a benchmark), 2 an error with one line on stderr.
#pragma once

#include <span>
#include <string_view>

namespace fovea::app {

using Words = std::span<const std::string_view>;

int devices_command(Words words);
int doctor_command(Words words);
int attend_command(Words words);
int bench_command(Words words);  // speed as a share of what this machine reaches in the same process
int gradients_command(Words words);
int train_command(Words words);
int explain_command(Words words);
int generate_command(Words words);
int heads_command(Words words);
int lesson_command(Words words);
int map_command(Words words);
int model_command(Words words);
int session_command(Words words);

}  // namespace fovea::app
