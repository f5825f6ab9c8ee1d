// Untrusted sessions: the bytes are a .fovea file where they begin as one, else the part of an address after
// '#'. What is read is within the limits of the table of keys, is written and read again as it is, and
// becomes a model whose stage can be shown. Tensors in files are looked for in the corpus, which has such of
// every rank.
#include "fuzz_target.hpp"

#include <fovea/model/learned.hpp>
#include <fovea/model/trace.hpp>

#include <cmath>
#include <map>

#include "json_mutator.hpp"
#include "model/session/session_checks.hpp"

using namespace fovea;

namespace {

constexpr size_t kMaxTokens = 16;

void check_notes(const std::vector<SessionNote>& notes) {
    for (const SessionNote& note : notes) {
        fuzz::require(!note.text.empty(), "a note has a text");
        for (const char c : note.text)
            fuzz::require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a note is one printable line");
    }
}

void check_keys(const Session& session) {
    for (const SessionKey& key : session_keys()) {
        const std::string text = session_key_text(session, key);
        if (key.type == "choice")
            fuzz::require(std::ranges::find(key.choices, text) != key.choices.end(),
                          "a choice is of the table");
        if (key.type != "integer" && key.type != "number") continue;
        const double value = std::strtod(text.c_str(), nullptr);
        fuzz::require(value >= key.low && value <= key.high, "a number is within the limits of the table");
    }
}

void check_tensors(const Session& session) {
    if (!session.tensors) return;
    for (const SessionTensor* t : {&session.tensors->q, &session.tensors->k, &session.tensors->v}) {
        if (t->shape.empty() && t->values.size() <= 1) continue;  // none, or a single number
        uint64_t count = 1;
        for (const uint64_t side : t->shape) count *= side;
        fuzz::require(!t->path.empty() || t->values.size() == count, "values match the shape");
    }
}

// The library's models of tasks, each read once.
std::shared_ptr<const LearnedModel> model_of(const std::string& task) {
    static std::map<std::string, std::shared_ptr<const LearnedModel>> known;
    if (task.empty() || known.contains(task)) return known[task];
    Result<LearnedModel> read = learned_model(task);
    return known[task] = read ? std::make_shared<const LearnedModel>(std::move(*read)) : nullptr;
}

void show(Session session) {
    if (const auto loaded = load_session_tensors(session, FOVEA_FUZZ_FILES); !loaded)
        return fuzz::check_error(loaded.error());
    check_tensors(session);
    const Result<SessionModel> model = session_model(session, nullptr, model_of(session.task), kMaxTokens);
    if (!model) return fuzz::check_error(model.error());
    check_notes(model->notes);
    Result<Trace> trace = Trace::open(model->model, model->input);
    if (!trace) return fuzz::check_error(trace.error());
    if (trace->rows() > 4 * kMaxTokens || trace->keys() > 4 * kMaxTokens) return;
    const Result<F32Tensor> stage = trace->stage(trace->nearest_stage(session.stage), session.head);
    if (!stage) fuzz::check_error(stage.error());
}

template <class Write, class Read>
void check_again(const Session& session, Write write, Read read) {
    const std::string text = write(session);
    const Result<ReadSession> again = read(text, SessionReader{});
    fuzz::require(again.has_value() && write(again->session) == text,
                  "a session survives saving and loading");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const bool file = text.starts_with('{');
    const Result<ReadSession> read =
        fuzz::at_cost(size, [&] { return file ? read_session(text) : read_address(text); });
    if (!read) {
        fuzz::check_error(read.error());
        return 0;
    }
    check_notes(read->notes);
    check_again(read->session, write_session, read_session);
    check_again(read->session, write_address, read_address);
    std::vector<Session> all = {read->session};
    all.insert(all.end(), read->session.kept.begin(), read->session.kept.end());
    all.insert(all.end(), read->session.locked.begin(), read->session.locked.end());
    for (const Session& session : all) {
        check_keys(session);
        check_tensors(session);
        show(session);
    }
    return 0;
}
