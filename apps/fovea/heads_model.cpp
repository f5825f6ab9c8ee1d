#include "heads_model.hpp"

#include <fovea/inspect/head_survey.hpp>
#include <fovea/inspect/text_corpus.hpp>
#include <fovea/model/checkpoint_model.hpp>

#include <algorithm>
#include <filesystem>

#include "files/utf8.hpp"

namespace fovea::app {

namespace fs = std::filesystem;

namespace {

// The files that decide what a model computes and how it splits texts, by name. Others come and go.
std::vector<fs::path> deciding_files(const Checkpoint& files) {
    if (files.gguf && files.parts.empty()) return {files.path};
    constexpr size_t kNumber = 6;  // "-00001", then "-of-00003.gguf"
    const std::string first = files.path.filename().string(), of = "-of-";
    const size_t end = files.gguf ? first.rfind(of) : 0, begin = end - std::min(end, kNumber);
    std::vector<fs::path> all;
    std::error_code code;
    const bool is_folder = fs::is_directory(files.path, code);
    const fs::path folder = files.gguf ? fs::absolute(files.path, code).parent_path() : files.folder;
    for (fs::directory_iterator at(folder, code), last; !code && at != last; at.increment(code)) {
        const std::string name = at->path().filename().string(), kind = at->path().extension().string();
        const bool is_part = name.size() == first.size() && name.starts_with(first.substr(0, begin)) &&
                             name.ends_with(first.substr(end));
        const bool is_weights = kind == ".safetensors" && (is_folder || name == first);
        if (files.gguf ? is_part : is_weights || kind == ".json" || kind == ".model")
            all.push_back(at->path());
    }
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

Result<HeadsModel> HeadsModel::open(std::string_view word) {
    HeadsModel out;
    const fs::path path(word);
    std::error_code code;
    const std::vector<std::string> tasks = learned_tasks();
    const bool is_task =
        !fs::exists(path, code) && std::find(tasks.begin(), tasks.end(), word) != tasks.end();
    if (is_task || (path.extension() == ".safetensors" && fs::is_regular_file(path, code))) {
        const Result<TensorSet> file = is_task ? Result<TensorSet>(TensorSet()) : load_safetensors(path);
        if (!file) return file.error();
        Result<LearnedModel> learned = is_task ? learned_model(word) : read_learned_model(*file);
        if (!learned) return learned.error();
        out.task_ = learned->task;
        out.name_ = is_task ? out.task_ : path.stem().string();
        out.fingerprint_ = is_task ? "library" : model_fingerprint({&path, 1});
        const AttentionPart& a = learned->model->blocks.at(0).attention;
        out.layers = learned->model->blocks.size(), out.heads = a.heads, out.kv_heads = a.kv_heads;
        out.head_width = a.query.d_out() / a.heads, out.longest = most_learned_tokens(*learned);
        out.learned_ = std::move(*learned);
        return out;
    }
    Result<TextModel> published = open_text_model(path);
    if (!published) return published.error();
    const ModelConfig& f = published->weights.config();
    const fs::path whole = fs::weakly_canonical(path, code);
    out.name_ = fs::is_directory(whole, code) ? whole.filename().string() : whole.stem().string();
    out.fingerprint_ = model_fingerprint(deciding_files(published->weights.files()));
    out.layers = f.layers, out.heads = f.heads, out.kv_heads = f.kv_heads;
    out.head_width = f.head_width, out.longest = f.context;
    out.published_ = std::move(*published);
    return out;
}

Result<std::vector<uint32_t>> HeadsModel::tokens(std::string_view text) const {
    if (learned_) return learned_text(*learned_, text).tokens;
    if (published_->tokenizer) return published_->tokenizer->encode(text);
    if (text.find_first_not_of(" ,\t") == std::string_view::npos) return std::vector<uint32_t>();
    return tokens_of(*published_, text);
}

std::vector<std::string> HeadsModel::token_texts(std::span<const uint32_t> ids) const {
    std::vector<std::string> out;
    std::vector<uint32_t> pair;  // the last token of the text and this one: spaces depend on both
    std::string before;
    for (const uint32_t id : ids) {
        if (!published_) {
            const std::vector<std::string>& words = learned_->model->vocabulary;
            out.push_back(id < words.size() ? words[id] : std::to_string(id));
        } else if (!published_->tokenizer) {
            out.push_back(" " + std::to_string(id));
        } else {
            pair.push_back(id);
            const std::string both = published_->tokenizer->decode(pair);
            std::string text = both.starts_with(before) ? both.substr(before.size()) : std::string();
            // A token that the model adds, or a part of a character.
            if (text.empty() || files::utf8_fault(text) < text.size())
                text = token_text(*published_->tokenizer, id);
            out.push_back(text.empty() ? "#" + std::to_string(id) : text);
            before = published_->tokenizer->decode(std::span(&id, 1));
            pair.assign(before.empty() ? 0 : 1, id);
        }
    }
    return out;
}

std::string HeadsModel::typed(std::span<const uint32_t> ids) const {
    if (published_ && published_->tokenizer) return published_->tokenizer->decode(ids);
    const bool spaced = published_ || (task_ != "text" && task_ != "induction" && task_ != "reverse");
    std::string text;
    for (std::string token : token_texts(ids)) {
        if (token.size() > 2 && token.front() == '<' && token.back() == '>') continue;
        if (token.starts_with(' ')) token.erase(0, 1);
        text += (spaced && !text.empty() ? " " : "") + token;
    }
    return text;
}

Result<void> HeadsModel::run(
    std::span<const uint32_t> ids, const TraceOptions& options,
    const std::function<Result<void>(uint64_t layer, Trace& trace, uint32_t in_trace)>& use) const {
    if (published_) {
        ModelRunOptions run;
        run.trace = options;
        run.with_logits = false;
        run.on_layer = [&](uint64_t layer, Trace& trace) { return use(layer, trace, 0); };
        const Result<ModelRun> ran = run_model(published_->weights, ids, run);
        return ran ? Result<void>() : Result<void>(ran.error());
    }
    Result<ModelInput> input = learned_input(*learned_, ids);
    if (!input) return input.error();
    Result<Trace> trace = Trace::open(learned_->model, std::move(*input), options);
    if (!trace) return trace.error();
    for (uint32_t n = 0; n < layers; ++n)
        if (Result<void> r = use(n, *trace, n); !r) return r;
    return {};
}

uint64_t HeadsModel::run_bytes(uint64_t tokens) const {
    const uint64_t survey = LayerSurvey::bytes(tokens, heads, kv_heads, head_width);
    ModelRunOptions run;
    run.with_logits = false;
    return survey + (published_ ? run_model_bytes(published_->weights, tokens, run) : 0);
}

}  // namespace fovea::app
