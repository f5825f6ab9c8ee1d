#include "arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <version>
#if !defined(__cpp_lib_to_chars)
#include <locale>
#include <sstream>
#endif

namespace fovea::app {
namespace {

template <class T>
Result<T> parse_whole(std::string_view text, std::string_view name, const char* kind) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty())
        return bad(name, "'" + std::string(text) + "' is not " + kind);
    return value;
}

// "-x", but neither "-" nor a negative number.
bool is_short_option(std::string_view word) {
    return word.size() > 1 && word[0] == '-' && word[1] != '-' && word[1] != '.' &&
           !(word[1] >= '0' && word[1] <= '9');
}

}  // namespace

Error bad(std::string_view field, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, std::string(field), std::move(text)};
}

Result<Arguments> Arguments::parse(std::span<const std::string_view> words,
                                   std::span<const OptionSpec> specs) {
    Arguments result;
    for (size_t i = 0; i < words.size(); ++i) {
        std::string_view word = words[i];
        if (word == "-h") word = "--help";
        if (is_short_option(word)) return bad(word, "no such option; --help lists them");
        if (word.substr(0, 2) != "--" || word.size() == 2) {
            result.positional_.push_back(word);
            continue;
        }
        const size_t equals = word.find('=');
        const std::string_view name = word.substr(0, equals);
        const auto spec =
            std::find_if(specs.begin(), specs.end(), [&](const OptionSpec& s) { return s.name == name; });
        if (spec == specs.end()) {
            const bool takes_text =
                std::any_of(specs.begin(), specs.end(), [](const auto& s) { return s.name == "--text"; });
            return bad(name, name == "--prompt" && takes_text
                                 ? "no such option; a text to begin with is given with --text"
                                 : "no such option; --help lists them");
        }
        if (result.has(name) && !spec->repeats)
            return bad(name, std::string(name) + " is given twice; give it once");
        std::string_view value;
        bool is_given = equals != std::string_view::npos;
        if (spec->value.empty() && equals != std::string_view::npos)
            return bad(name, std::string(name) + " takes no value; leave '=" +
                                 std::string(word.substr(equals + 1)) + "' out");
        if (!spec->value.empty()) {
            if (equals != std::string_view::npos)
                value = word.substr(equals + 1);
            else if (i + 1 < words.size() && words[i + 1].substr(0, 2) != "--")
                value = words[++i], is_given = true;
            if (value.empty() && !(is_given && spec->value == "TEXT"))
                return bad(name, std::string(name) + " needs a value: " + std::string(spec->value));
        }
        result.options_.emplace(spec->name, value);
        result.given_.emplace_back(spec->name, value);
    }
    return result;
}

std::string_view Arguments::text(std::string_view name) const {
    const auto it = options_.find(name);
    return it == options_.end() ? std::string_view{} : it->second;
}

std::string_view Arguments::first_of(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names)
        if (has(name)) return name;
    return {};
}

Result<int64_t> Arguments::integer(std::string_view name, int64_t fallback) const {
    return has(name) ? parse_integer(text(name), name) : Result<int64_t>(fallback);
}

Result<uint64_t> Arguments::unsigned_integer(std::string_view name, uint64_t fallback) const {
    return has(name) ? parse_whole<uint64_t>(text(name), name, "an integer of at least 0")
                     : Result<uint64_t>(fallback);
}

Result<double> Arguments::number(std::string_view name, double fallback) const {
    return has(name) ? parse_number(text(name), name) : Result<double>(fallback);
}

Result<void> check_list(const Arguments& arguments, std::string_view option,
                        const std::vector<std::string>& known, bool letters) {
    if (!arguments.has(option)) return {};
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
    for (const std::string_view name : split(arguments.text(option), ',')) {
        const bool is_known = std::any_of(known.begin(), known.end(), [&](const std::string& k) {
            return name == k || (letters && name.size() == 1 && name[0] == k[0]);
        });
        if (!is_known) return bad(option, "'" + std::string(name) + "' is not one of " + names);
    }
    return {};
}

Result<double> seconds_option(const Arguments& arguments, double fallback) {
    const Result<double> seconds = arguments.number("--seconds", fallback);
    if (seconds && !(*seconds >= 0 && *seconds <= 3600))
        return bad("--seconds", "--seconds is " + std::string(arguments.text("--seconds")) +
                                    "; it must be from 0 to 3600");
    return seconds;
}

Result<int64_t> parse_integer(std::string_view text, std::string_view name) {
    return parse_whole<int64_t>(text, name, "an integer");
}

Result<double> parse_number(std::string_view text, std::string_view name) {
#if defined(__cpp_lib_to_chars)
    return parse_whole<double>(text, name, "a number");
#else
    // libc++ went without floating-point from_chars for long.
    std::istringstream stream{std::string(text)};
    stream.imbue(std::locale::classic());
    double value = 0;
    stream >> std::noskipws >> value;
    if (stream.fail() || stream.peek() != std::istringstream::traits_type::eof())
        return bad(name, "'" + std::string(text) + "' is not a number");
    return value;
#endif
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

void print_options(std::span<const OptionSpec> specs) {
    for (const OptionSpec& spec : specs) {
        const std::string left =
            std::string(spec.name) + (spec.value.empty() ? "" : " ") + std::string(spec.value);
        std::printf("  %-36s %.*s\n", left.c_str(), int(spec.help.size()), spec.help.data());
    }
}

std::string message_of(const Error& error) {
    const bool names_option = error.field.starts_with("-") && !error.text.starts_with(error.field);
    return names_option ? error.field + ": " + error.text : error.text;
}

int refuse(const Error& error) {
    std::fprintf(stderr, "fovea: error: %s\n", message_of(error).c_str());
    return 2;
}

int run_command(std::span<const std::string_view> words, std::span<const OptionSpec> specs,
                const std::function<void()>& print_help,
                const std::function<Result<int>(const Arguments&)>& run) {
    const Result<Arguments> arguments = Arguments::parse(words, specs);
    if (!arguments) return refuse(arguments.error());
    if (arguments->has("--help")) {
        print_help();
        return 0;
    }
    const Result<int> code = run(*arguments);
    return code ? *code : refuse(code.error());
}

}  // namespace fovea::app
