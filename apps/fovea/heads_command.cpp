// fovea heads: what every head of a model does over the texts of a corpus.
#include "commands.hpp"

#include "arguments.hpp"
#include "heads_survey.hpp"
#include "model_report.hpp"
#include "output_file.hpp"
#include "progress.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace fovea::app {
namespace {

namespace fs = std::filesystem;

constexpr OptionSpec kHeadsOptions[] = {
    {"--corpus", "FILE", "texts in UTF-8: one on each line, or .jsonl with a member \"text\" in each line"},
    {"--out", "DIR", "a new folder for the results; that of a run that was stopped goes on"},
    {"--length", "N", "tokens of a text that are used (default 512, at most what the model takes)"},
    {"--texts", "N", "use the first N texts (default: all)"},
    {"--page", "URL", "the web page in which samples open (default: fovea.html in DIR, if you put it there)"},
    {"--backend", "auto|cpu|vulkan|reference", "where to compute (default: cpu)"},
    {"--device", "N|NAME", "a device by its number in `fovea devices`, or by a part of its name"},
    {"--threads", "N", "threads to compute on (default: all of the machine)"},
    {"--help", "", "this text"}};

// No path_part() begins with a point, so no model's folder has one of these names.
constexpr const char *kJournal = ".heads.journal", *kUnfinished = ".unfinished";

Result<uint64_t> length_of(const Arguments& a, const HeadsModel& model) {
    const uint64_t most = model.longest ? model.longest : uint64_t{1} << 20;
    const Result<uint64_t> length = a.unsigned_integer("--length", std::min<uint64_t>(512, most));
    if (!length) return length;
    if (*length < 2 || *length > most)
        return bad("--length", "--length is " + std::to_string(*length) + "; it must be from 2 to " +
                                   std::to_string(most) + ", the most tokens that this model takes");
    return length;
}

// The folder is there and is new, or has a journal. True if it was made here.
Result<bool> prepare_folder(const fs::path& out) {
    const std::string name = printable_name(out.string(), 400);
    std::error_code code;
    if (fs::exists(out, code)) {
        if (!fs::is_directory(out, code))
            return bad("--out", name + " exists and is not a folder; give a new name");
        if (!fs::is_empty(out, code) && !fs::exists(out / kJournal, code))
            return bad("--out", name + " is not empty; give a new folder");
        return false;
    }
    fs::create_directory(out, code);
    if (code)
        return Error{
            FOVEA_IO_ERROR, "--out",
            name + " cannot be made: " + code.message() + "; give a folder inside one that you can write to"};
    return true;
}

std::string time_text(double seconds) {
    const auto minutes = uint64_t(seconds / 60);
    if (minutes >= 60) return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
    return minutes ? std::to_string(minutes) + " min" : std::to_string(uint64_t(seconds)) + " s";
}

class Survey {
  public:
    Survey(const HeadsModel& model, const TextCorpus& corpus, uint64_t length)
        : model_(model), corpus_(corpus) {
        found_.model = &model, found_.corpus = &corpus, found_.length = length;
        for (uint64_t n = 0; n < model.layers * model.heads; ++n) {
            samplers_.emplace_back(n, corpus.size());
            found_.heads.emplace_back();
            found_.heads[n].layer = n / model.heads, found_.heads[n].head = n % model.heads;
        }
    }

    // Runs the texts that the journal does not have. Texts come in order, so sums and samples are the same
    // however often the run was stopped.
    Result<void> run(HeadsJournal& journal, Runner& engine, const TraceOptions& options) {
        Progress progress("heads");
        const auto start = std::chrono::steady_clock::now();
        const uint64_t first = done_;
        while (done_ < corpus_.size()) {
            const auto tell = [&](double part) {
                const double ran = double(done_ - first) + part, left = double(corpus_.size() - first) - ran;
                const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
                progress((double(done_) + part) / double(corpus_.size()),
                         "text " + std::to_string(done_ + 1) + " of " + std::to_string(corpus_.size()) +
                             (ran > 0 ? ", " + time_text(passed.count() / ran * left) + " left" : ""));
            };
            TextRecord record;
            std::vector<SparseRows> rows;
            if (Result<void> r = run_text(engine, options, record, rows, tell); !r) return r;
            if (Result<void> r = journal.append(record, rows); !r) return r;
            add(record);
        }
        return {};
    }

    void add(const TextRecord& record) {
        const uint64_t text = done_++;
        if (record.counts.rows == 0) return;
        ++found_.texts;
        found_.counts += record.counts;
        for (size_t n = 0; n < found_.heads.size(); ++n) {
            found_.heads[n].sums += record.sums[n];
            found_.heads[n].activations.push_back(float(record.sums[n].largest));
        }
        for (const auto& [head, place] : record.samples) {
            samplers_[head].add(text, float(record.sums[head].largest));
            found_.heads[head].places[text] = place;
        }
    }

    HeadsFound& found() {
        for (size_t n = 0; n < found_.heads.size(); ++n) {
            HeadFound& head = found_.heads[n];
            head.metrics = head_metrics(head.sums, found_.counts);
            head.role = survey_role(head.metrics);
            head.samples = samplers_[n].samples(head.activations);
        }
        return found_;
    }
    uint64_t done() const { return done_; }

  private:
    template <class Tell>
    Result<void> run_text(Runner& engine, const TraceOptions& options, TextRecord& record,
                          std::vector<SparseRows>& rows, const Tell& tell) {
        const Result<std::string> text = corpus_.text(done_);
        if (!text) return text.error();
        Result<std::vector<uint32_t>> ids = model_.tokens(*text);
        if (!ids) return ids.error();
        ids->resize(std::min<size_t>(ids->size(), found_.length));
        if (ids->size() < 2) return {};
        record.counts = survey_counts(*ids);
        return model_.run(*ids, options,
                          [&](uint64_t layer, Trace& trace, uint32_t in_trace) -> Result<void> {
                              tell(double(layer) / double(model_.layers));
                              Result<LayerSurvey> survey = LayerSurvey::open(trace, in_trace, *ids, engine);
                              if (!survey) return survey.error();
                              Result<std::vector<HeadSums>> sums = survey->sums();
                              if (!sums) return sums.error();
                              for (uint32_t h = 0; h < sums->size(); ++h) {
                                  const auto head = uint32_t(layer * model_.heads + h);
                                  if (!samplers_[head].wants(done_, float((*sums)[h].largest))) continue;
                                  Result<SparseRows> kept = survey->sparse_rows(h);
                                  if (!kept) return kept.error();
                                  rows.push_back(std::move(*kept));
                                  record.samples.emplace_back(head, 0);
                              }
                              record.sums.insert(record.sums.end(), sums->begin(), sums->end());
                              return {};
                          });
    }

    const HeadsModel& model_;
    const TextCorpus& corpus_;
    HeadsFound found_;
    std::vector<HeadSampler> samplers_;
    uint64_t done_ = 0;
};

// Writes all files into a new folder and then moves them. If a move fails, the journal stays and the same
// command writes and moves all again.
Result<void> write_all(const HeadsFound& found, const fs::path& out) {
    const fs::path folder = out / kUnfinished;
    const fs::path tree =
        folder / path_part(found.model->name()) / "headvis" / path_part(found.corpus->name());
    std::error_code code;
    const auto failed = [&] {
        return Error{FOVEA_IO_ERROR, "--out",
                     printable_name(out.string(), 400) + " cannot be written: " + code.message()};
    };
    fs::remove_all(folder, code);
    for (const fs::path& one : {tree / "heads", tree / "attributions", folder / "pages"})
        if (fs::create_directories(one, code); code) return failed();
    if (Result<void> r = write_headvis_files(found, tree); !r) return r;
    if (Result<void> r = write_heads_csv(found, folder); !r) return r;
    if (Result<void> r = write_report_index(found, folder); !r) return r;
    Progress progress("writing");
    for (size_t n = 0; n < found.heads.size(); ++n) {
        progress(double(n) / double(found.heads.size()));
        const Result<std::vector<ShownSample>> samples = shown_samples(found, found.heads[n]);
        if (!samples) return samples.error();
        if (Result<void> r = write_headvis_head(found, found.heads[n], *samples, tree); !r) return r;
        if (Result<void> r = write_report_head(found, found.heads[n], *samples, folder); !r) return r;
    }
    const HeldInterrupts held;
    std::vector<fs::path> entries;
    for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
        entries.push_back(at->path());
    if (code) return failed();
    for (const fs::path& one : entries) {
        const fs::path to = out / one.filename();
        fs::remove_all(to, code);
        if (fs::rename(one, to, code); code) return failed();
    }
    fs::remove(folder, code);
    return {};
}

Result<int> survey_heads(const Arguments& a) {
    if (a.positional().size() != 1)
        return bad("model",
                   a.positional().empty()
                       ? "the model is missing; give its folder, its .gguf file or the name of a task"
                       : "`fovea heads` takes one model; leave '" + printable_name(a.positional()[1], 400) +
                             "' out");
    for (const std::string_view option : {"--corpus", "--out"})
        if (!a.has(option))
            return bad(option, std::string(option) + " is missing; give " +
                                   (option == "--out" ? "a folder for the results" : "a file of texts"));
    const Result<uint64_t> texts = a.unsigned_integer("--texts", 0);
    if (!texts) return texts.error();
    if (a.has("--texts") && *texts == 0) return bad("--texts", "--texts is 0; it must be at least 1");
    const Result<HeadsModel> model = HeadsModel::open(a.positional()[0]);
    if (!model) return model.error();
    const Result<uint64_t> length = length_of(a, *model);
    if (!length) return length.error();
    const Result<TextCorpus> corpus = TextCorpus::open(fs::path(a.text("--corpus")), *texts);
    if (!corpus) return corpus.error();
    const Result<std::unique_ptr<Runner>> engine = open_runner(a);
    if (!engine) return engine.error();
    if (Result<void> r = tell_memory(model->run_bytes(*length)); !r) return r.error();
    TraceOptions options;
    options.engine = engine->get();
    if (names_device(a)) options.arithmetic = Arithmetic::engine;

    const fs::path out(a.text("--out"));
    const Result<bool> made = prepare_folder(out);
    if (!made) return made.error();
    Survey survey(*model, *corpus, *length);
    const std::string version = std::to_string(FOVEA_VERSION_MAJOR) + "." +
                                std::to_string(FOVEA_VERSION_MINOR) + "." +
                                std::to_string(FOVEA_VERSION_PATCH);
    const HeadsJournal::Identity identity = {{"version", version},
                                             {"model", model->name()},
                                             {"model fingerprint", model->fingerprint()},
                                             {"corpus", corpus->name()},
                                             {"corpus fingerprint", corpus->fingerprint()},
                                             {"number of texts", std::to_string(corpus->size())},
                                             {"length", std::to_string(*length)},
                                             {"device", (*engine)->name()}};
    Result<HeadsJournal> journal = HeadsJournal::open(out / kJournal, identity, model->layers * model->heads,
                                                      [&](const TextRecord& record) { survey.add(record); });
    std::error_code code;
    if (!journal) {
        if (*made) fs::remove(out, code);
        return journal.error();
    }
    if (survey.done() > 0)
        std::fprintf(stderr, "fovea: note: %llu of %zu texts are done already\n",
                     static_cast<unsigned long long>(survey.done()), corpus->size());
    Result<void> ran = survey.run(*journal, **engine, options);
    HeadsFound& found = survey.found();
    if (ran && found.texts == 0)
        ran = bad("--corpus", printable_name(a.text("--corpus"), 400) + " has no text of at least 2 tokens");
    found.journal = &*journal;
    found.page = a.has("--page") ? std::string(a.text("--page")) : "fovea.html";
    if (ran) ran = write_all(found, out);
    if (!ran) {
        fs::remove_all(out / kUnfinished, code);
        // Nothing to go on from: the folder is left as it was.
        if (found.texts == 0) {
            journal->close();
            fs::remove(out / kJournal, code);
            if (*made) fs::remove(out, code);
        }
        Error error = ran.error();
        if (found.texts > 0)
            error.text += "; the texts that are done are kept, and the same command goes on from there";
        return error;
    }
    journal->close();
    fs::remove(out / kJournal, code);
    std::printf("%s: %zu heads over %llu texts, %llu tokens\nwrote: %s\n", model->name().c_str(),
                found.heads.size(), static_cast<unsigned long long>(found.texts),
                static_cast<unsigned long long>(found.counts.rows), (out / "index.html").string().c_str());
    return 0;
}

void print_heads_help() {
    std::printf(
        "usage: fovea heads MODEL --corpus FILE --out DIR [options]\n\nWhat every head of a model does over "
        "many "
        "texts: six metrics, its role, and the texts that show it. MODEL is a\nmodel that `fovea model` "
        "takes, a file "
        "that `fovea train --out` wrote, or a task whose model the library has.\nDIR gets index.html (all "
        "heads by "
        "role, a page for each), heads.csv, and MODEL/headvis/CORPUS, the files of HeadVis\n(Luger, Kamath "
        "et al., "
        "2026), so that its viewer and its loaders open them. A run that was stopped goes on with the\nsame "
        "command. "
        "Results do not depend on the number of threads.\n\n");
    print_options(kHeadsOptions);
}

}  // namespace

int heads_command(Words words) { return run_command(words, kHeadsOptions, print_heads_help, survey_heads); }

}  // namespace fovea::app
