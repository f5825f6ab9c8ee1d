// The words of a command line: options by name, the rest by position.
#pragma once

#include <fovea/fovea.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::app {

// One option: its text in --help, and how it is read.
struct OptionSpec {
    std::string_view name;  // "--scale"
    std::string_view
        value;  // "S": the option takes a value called so, "TEXT" an empty one too; empty: a switch
    std::string_view help;  // one line
    bool repeats = false;   // it may be given several times
};

class Arguments {
  public:
    // Rejects an option that is not in `specs`, one without its value, and a repeated one unless it may
    // repeat. A value may begin with a minus; one that begins with two minuses needs an equals sign before
    // it.
    static Result<Arguments> parse(std::span<const std::string_view> words,
                                   std::span<const OptionSpec> specs);

    const std::vector<std::string_view>& positional() const { return positional_; }
    bool has(std::string_view name) const { return options_.count(name) != 0; }
    // The option's value as text; empty where it was not given.
    std::string_view text(std::string_view name) const;
    // An option and its value as often as they were given, in that order.
    const std::vector<std::pair<std::string_view, std::string_view>>& given() const { return given_; }
    // The first of `names` that was given; empty where none was.
    std::string_view first_of(std::initializer_list<std::string_view> names) const;
    // Numbers must be the whole text: "12x" is rejected with the option's name.
    Result<int64_t> integer(std::string_view name, int64_t fallback) const;
    Result<uint64_t> unsigned_integer(std::string_view name, uint64_t fallback) const;
    Result<double> number(std::string_view name, double fallback) const;

  private:
    std::vector<std::string_view> positional_;
    std::map<std::string_view, std::string_view> options_;
    std::vector<std::pair<std::string_view, std::string_view>> given_;
};

// Rejects a comma-separated list with a name that is not in `known`, nor, with `letters`, the first letter of
// one.
Result<void> check_list(const Arguments& arguments, std::string_view option,
                        const std::vector<std::string>& known, bool letters = false);

// --seconds of a benchmark.
Result<double> seconds_option(const Arguments& arguments, double fallback);

Result<int64_t> parse_integer(std::string_view text, std::string_view name);
Result<double> parse_number(std::string_view text, std::string_view name);
std::vector<std::string_view> split(std::string_view text, char separator);

// "  --scale S        factor of q.k ..." for each option.
void print_options(std::span<const OptionSpec> specs);

// Returns the line for a person: the text, after the option that it is about where it does not begin with it.
// Other fields are for programs.
std::string message_of(const Error& error);

// Prints "fovea: error: " and the message to stderr and returns 2, the exit code of every error.
int refuse(const Error& error);
// The error of a wrong option or field, FOVEA_INVALID_ARGUMENT.
Error bad(std::string_view field, std::string text);

// Runs a whole command: parses its words, answers --help and -h by print_help, else runs. Returns the exit
// code of `run`, or that of an error.
int run_command(std::span<const std::string_view> words, std::span<const OptionSpec> specs,
                const std::function<void()>& print_help,
                const std::function<Result<int>(const Arguments&)>& run);

}  // namespace fovea::app
