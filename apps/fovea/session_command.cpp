// fovea session: prints the values that a session file shows.
#include "commands.hpp"

#include "arguments.hpp"

#include <fovea/files.hpp>
#include <fovea/model.hpp>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

namespace fovea::app {
namespace {

constexpr OptionSpec kSessionOptions[] = {
    {"--stage", "S", "the stage to print: scores, weights, context, ... (default: the session's own)"},
    {"--head", "N", "its head (default 0)"},
    {"--list", "", "name the stages with their shapes and formulas instead"},
    {"--any-file", "",
     "reads tensors from files outside of the session's folder, too, if the session names such"},
    {"--help", "", "this text"}};

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

Result<std::string> text_of(const std::filesystem::path& path) {
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    const std::error_code opened(errno, std::generic_category());
    std::error_code error;
    const uint64_t size = std::filesystem::file_size(path, error);
    if (!file || error)
        return Error{
            FOVEA_IO_ERROR, path.string(),
            printable_name(path.string(), 400) + " cannot be opened: " + (error ? error : opened).message()};
    if (size > kMaxBytes)
        return Error{
            FOVEA_LIMIT_EXCEEDED, path.string(),
            printable_name(path.string(), 400) + " has more than 1 GiB, the limit of a session file"};
    std::string text(size, '\0');
    file.read(text.data(), std::streamsize(size));
    text.resize(size_t(file.gcount()));
    return text;
}

void tell(const std::vector<SessionNote>& notes) {
    for (const SessionNote& note : notes) std::fprintf(stderr, "fovea: note: %s\n", note.text.c_str());
}

// The session with the tensors that its file names; notes are told.
Result<ReadSession> opened(const std::filesystem::path& path, const Arguments& arguments) {
    const Result<std::string> json = text_of(path);
    if (!json) return json.error();
    Result<ReadSession> read = read_session(*json);
    if (!read) return read;
    Result<std::vector<SessionNote>> notes =
        load_session_tensors(read->session, std::filesystem::absolute(path).parent_path(),
                             arguments.has("--any-file") ? SessionFiles::anywhere : SessionFiles::inside);
    if (!notes) return notes.error();
    read->notes.insert(read->notes.end(), notes->begin(), notes->end());
    return read;
}

Result<void> list_stages(ReadSession read) {
    Result<SessionModel> made = session_model(read.session);
    if (!made) return made.error();
    const Result<Trace> trace = Trace::open(made->model, std::move(made->input));
    if (!trace) return trace.error();
    for (const TraceStage& stage : trace->stages()) {
        const std::string heads = stage.heads > 1 ? std::to_string(stage.heads) + " x " : "";
        const std::string shape = heads + std::to_string(stage.rows) + " x " + std::to_string(stage.columns);
        std::printf("%-15s %-16s %s\n", stage_name(stage.id).c_str(), shape.c_str(), stage.formula.c_str());
    }
    tell(read.notes), tell(made->notes);
    return {};
}

Result<void> print_stage(ReadSession read, std::string_view stage, uint32_t head) {
    const Result<SessionStageText> made = session_stage_text(std::move(read), stage, head);
    if (!made) return made.error();
    tell(made->notes);
    std::fwrite(made->text.data(), 1, made->text.size(), stdout);
    return {};
}

Result<int> run_session(const Arguments& arguments) {
    if (arguments.positional().size() != 1)
        return Error{FOVEA_INVALID_ARGUMENT, "FILE",
                     arguments.positional().empty()
                         ? "the session file is missing; give one that ends in .fovea"
                         : "session takes one file, but " + std::to_string(arguments.positional().size()) +
                               " are given"};
    const std::filesystem::path path(arguments.positional()[0]);
    if (const std::string_view other = arguments.first_of({"--stage", "--head"});
        arguments.has("--list") && !other.empty())
        return Error{FOVEA_INVALID_ARGUMENT, "--list",
                     "--list cannot be combined with " + std::string(other)};
    const Result<uint64_t> head = arguments.unsigned_integer("--head", 0);
    if (!head) return head.error();
    if (*head > std::numeric_limits<uint32_t>::max())
        return Error{FOVEA_INVALID_ARGUMENT, "--head",
                     "--head is " + std::to_string(*head) + "; it must be at most 4294967295"};
    Result<ReadSession> read = opened(path, arguments);
    Result<void> done = !read ? Result<void>(read.error())
                        : arguments.has("--list")
                            ? list_stages(std::move(*read))
                            : print_stage(std::move(*read), arguments.text("--stage"), uint32_t(*head));
    if (done) return 0;
    Error error = done.error();
    // An error about an option of the command line is about that option; all others are about the file.
    if ((error.field == "stage" && arguments.has("--stage")) || (error.field == "head" && *head > 0))
        return error;
    const std::string name = printable_name(path.string(), 400);
    if (!error.text.starts_with(name)) error.text = name + ": " + error.text;
    error.field = name;
    return error;
}

void print_session_help() {
    std::printf(
        "usage: fovea session FILE.fovea [options]\n\nPrints one stage of what a session file shows: one row "
        "a "
        "line, numbers as "
        "%%.9g. What of the file could not be\ntaken as it stands is told on standard error.\n\n");
    print_options(kSessionOptions);
}

}  // namespace

int session_command(Words words) {
    return run_command(words, kSessionOptions, print_session_help, run_session);
}

}  // namespace fovea::app
