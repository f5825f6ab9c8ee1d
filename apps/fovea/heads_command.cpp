// fovea heads: what every head of a model does over the texts of a corpus.
#include "commands.hpp"

#include "arguments.hpp"
#include "heads_survey.hpp"
#include "model_report.hpp"
#include "output_file.hpp"
#include "progress.hpp"

#include <fovea/thread_pool.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>

#ifdef __GLIBC__
#include <malloc.h>
#endif

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

// One engine for each text that runs at a time: as many as there are threads, fewer if their memory would
// pass a limit. Threads that are left over help.
Result<std::vector<std::unique_ptr<Runner>>> open_engines(const Arguments& a, const HeadsModel& model,
                                                          uint64_t length, uint64_t texts) {
    constexpr uint64_t kMostBytes = uint64_t{768} << 20;
    std::vector<std::unique_ptr<Runner>> engines;
    Result<std::unique_ptr<Runner>> one = open_runner(a);
    if (!one) return one.error();
    const FoveaParallel* const parallel = names_device(a) ? nullptr : (*one)->parallel();
    const uint64_t threads = parallel ? parallel->worker_count : 1;
    const uint64_t count = std::clamp<uint64_t>(kMostBytes / std::max<uint64_t>(1, model.run_bytes(length)),
                                                1, std::min(threads, texts));
    if (count == 1) engines.push_back(std::move(*one));
    while (engines.size() < count)
        engines.push_back(make_cpu_runner(std::make_unique<ThreadPool>(
            uint32_t(threads / count + (engines.size() < threads % count)), ThreadPool::kBetweenCalls)));
    return engines;
}

// The tensors of a layer come and go thousands of times. Their pages stay in the process, or the system would
// clear them again each time: a tenth of the CPU time.
void keep_freed_memory() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20), mallopt(M_TRIM_THRESHOLD, 512 << 20);
#endif
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

    // Runs the texts that the journal does not have, one on each engine at a time. Results are used in the
    // order of the texts, so they do not depend on the engines or on how often the run was stopped.
    Result<void> run(HeadsJournal& journal, std::span<const std::unique_ptr<Runner>> engines,
                     const TraceOptions& options) {
        constexpr uint64_t kAhead = 4;  // texts of each engine that wait for an earlier one
        Progress progress("heads", Progress::Elsewhere::lines);
        const auto start = std::chrono::steady_clock::now();
        const uint64_t first = done_, all = corpus_.size();
        uint64_t next = done_;
        std::map<uint64_t, RanText> waiting;
        std::vector<double> parts(engines.size());  // share of an engine's text that is done
        std::condition_variable went_on;
        Result<void> state;
        const auto tell = [&] {
            const double ran =
                std::accumulate(parts.begin(), parts.end(), double(done_ - first + waiting.size()));
            const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
            progress(
                (double(first) + ran) / double(all),
                std::to_string(done_) + " of " + std::to_string(all) + " texts" +
                    (ran > 0 ? ", " + time_text(passed.count() / ran * (double(all - first) - ran)) + " left"
                             : ""));
        };
        const auto work = [&](uint32_t worker) {
            TraceOptions own = options;
            own.engine = engines[worker].get();
            std::unique_lock lock(mutex_);
            for (;;) {
                went_on.wait(lock,
                             [&] { return !state || next < done_ + kAhead * engines.size() || next == all; });
                if (!state || next == all) return;
                const uint64_t text = next++;
                lock.unlock();
                RanText ran = run_text(text, own, [&](double part) {
                    const std::lock_guard told(mutex_);
                    parts[worker] = part, tell();
                });
                lock.lock();
                parts[worker] = 0;
                waiting.emplace(text, std::move(ran));
                for (auto at = waiting.begin(); state && at != waiting.end() && at->first == done_;
                     at = waiting.erase(at))
                    state = use(journal, at->second);
                went_on.notify_all();
            }
        };
        ThreadPool(uint32_t(engines.size()))
            .run(
                uint32_t(engines.size()),
                [](void* arg, uint32_t i, uint32_t) { (*static_cast<decltype(&work)>(arg))(i); },
                const_cast<void*>(static_cast<const void*>(&work)));
        return state;
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
    // The results of a text, with the rows of all heads that may show it.
    struct RanText {
        Result<void> state;
        TextRecord record;
        std::vector<SparseRows> rows;
    };
    template <class Tell>
    RanText run_text(uint64_t n, const TraceOptions& options, const Tell& tell) {
        RanText out;
        const Result<std::string> text = corpus_.text(n);
        Result<std::vector<uint32_t>> ids =
            text ? model_.tokens(*text) : Result<std::vector<uint32_t>>(text.error());
        if (!ids) {
            out.state = ids.error();
            return out;
        }
        ids->resize(std::min<size_t>(ids->size(), found_.length));
        if (ids->size() < 2) return out;
        out.record.counts = survey_counts(*ids);
        const auto use = [&](uint64_t layer, Trace& trace, uint32_t in_trace) -> Result<void> {
            tell(double(layer) / double(model_.layers));
            Result<LayerSurvey> survey = LayerSurvey::open(trace, in_trace, *ids, *options.engine);
            if (!survey) return survey.error();
            const Result<std::vector<HeadSums>> sums = survey->sums();
            if (!sums) return sums.error();
            out.record.sums.insert(out.record.sums.end(), sums->begin(), sums->end());
            for (const uint32_t head : wanted(n, layer * model_.heads, *sums)) {
                Result<SparseRows> kept = survey->sparse_rows(uint32_t(head % model_.heads));
                if (!kept) return kept.error();
                out.rows.push_back(std::move(*kept));
                out.record.samples.emplace_back(head, 0);
            }
            return {};
        };
        out.state = model_.run(*ids, options, use);
        return out;
    }

    // Heads from `first` on that may show text n, as far as the texts say that are used.
    std::vector<uint32_t> wanted(uint64_t n, uint64_t first, std::span<const HeadSums> sums) {
        const std::lock_guard lock(mutex_);
        std::vector<uint32_t> heads;
        for (size_t h = 0; h < sums.size(); ++h)
            if (samplers_[first + h].wants(n, float(sums[h].largest))) heads.push_back(uint32_t(first + h));
        return heads;
    }

    // Writes the next text, of which all before are used, into the journal and adds it.
    Result<void> use(HeadsJournal& journal, RanText& text) {
        if (!text.state) return text.state;
        if (Result<void> r = journal.append(text.record, text.rows); !r) return r;
        add(text.record);
        return {};
    }

    const HeadsModel& model_;
    const TextCorpus& corpus_;
    HeadsFound found_;
    std::vector<HeadSampler> samplers_;
    uint64_t done_ = 0;
    std::mutex mutex_;  // guards the state that changes while texts run
};

// Writes all files into a new folder and then moves them. If a move fails, the journal stays and the same
// command writes and moves all again.
Result<void> write_all(const HeadsFound& found, const fs::path& out) {
    const fs::path folder = out / kUnfinished;
    const fs::path tree = folder / tree_name(*found.model) / "headvis" / path_part(found.corpus->name());
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
    Progress progress("writing", Progress::Elsewhere::lines);
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
    Result<std::vector<std::unique_ptr<Runner>>> engines = open_engines(a, *model, *length, corpus->size());
    if (!engines) return engines.error();
    if (Result<void> r = tell_memory(model->run_bytes(*length) * engines->size()); !r) return r.error();
    TraceOptions options;
    options.keeps_stages = false;
    if (names_device(a)) options.arithmetic = Arithmetic::engine;

    const fs::path out(a.text("--out"));
    const Result<bool> made = prepare_folder(out);
    if (!made) return made.error();
    keep_freed_memory();
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
                                             {"device", engines->front()->name()}};
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
    Result<void> ran = survey.run(*journal, *engines, options);
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
