#include "model/opened_model.hpp"

#include <fovea/inspect.hpp>

#include <algorithm>
#include <charconv>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace fovea::visualizer {

uint64_t machine_memory() {
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages > 0 && size > 0) return uint64_t(pages) * uint64_t(size);
#endif
    return 0;
}

bool is_model_path(const std::filesystem::path& path) {
    std::error_code error;
    return path.extension() == ".gguf" || std::filesystem::is_regular_file(path / "config.json", error);
}

Result<std::shared_ptr<const OpenedModel>> open_model(const std::filesystem::path& path) {
    Result<CheckpointModel> weights = CheckpointModel::open(path);
    if (!weights) return weights.error();
    if (weights->facts().patches != 0)
        return Error{
            FOVEA_UNSUPPORTED, "model",
            printable_name(path.string(), 400) + ": a " + weights->facts().family +
                " model reads pictures; the window shows models of text (fovea model --patches runs it)"};
    // A head that is missing leaves what is to be seen of the heads as it is.
    for (const std::string& name : weights->missing())
        if (!name.starts_with("lm_head") && !name.starts_with("embed_out") && !name.starts_with("output."))
            return Error{FOVEA_INVALID_ARGUMENT, "tensor",
                         "no tensor '" + printable_name(name) + "' in " + printable_name(path.string(), 400)};
    if (const uint64_t memory = machine_memory(); memory > 0 && weights->block_bytes() > memory)
        return Error{FOVEA_OUT_OF_HOST_MEMORY, "model",
                     printable_name(path.string(), 400) + ": one layer takes " +
                         format_bytes(weights->block_bytes()) + "; this machine has " + format_bytes(memory)};
    auto model = std::make_shared<OpenedModel>(OpenedModel{path.string(), "", std::move(*weights), {}, {}});
    std::filesystem::path plain = path;
    if (!plain.has_filename()) plain = plain.parent_path();  // a folder with a stroke at its end
    model->name = printable_name(plain.filename().string(), 60);
    Result<TextTokenizer> tokenizer = TextTokenizer::open(model->weights.files());
    if (tokenizer)
        model->tokenizer = std::move(*tokenizer);
    else
        model->why_no_text = tokenizer.error().text;
    return std::shared_ptr<const OpenedModel>(std::move(model));
}

Result<std::vector<uint32_t>> tokens_of(const OpenedModel& model, std::string_view text) {
    if (model.tokenizer) {
        Result<std::vector<uint32_t>> ids = model.tokenizer->encode(text);
        if (ids && ids->empty())
            return Error{FOVEA_INVALID_ARGUMENT, "text", "there is no token in the text"};
        return ids;
    }
    std::vector<uint32_t> ids;
    while (!text.empty()) {
        const size_t end = std::min(text.find_first_of(" ,\t"), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.empty()) continue;
        uint32_t id = 0;
        const auto [last, code] = std::from_chars(word.data(), word.data() + word.size(), id);
        if (code != std::errc() || last != word.data() + word.size())
            return Error{FOVEA_INVALID_ARGUMENT, "text",
                         "'" + printable_name(word, 40) + "' is no token number; " + model.why_no_text +
                             ", so that numbers from 0 to " +
                             std::to_string(model.weights.facts().vocabulary - 1) + " are typed"};
        ids.push_back(id);
    }
    if (ids.empty()) return Error{FOVEA_INVALID_ARGUMENT, "text", "there is no token number in the text"};
    return ids;
}

std::string token_text(const OpenedModel& model, uint32_t id) {
    if (!model.tokenizer) return std::to_string(id);
    const uint32_t one[] = {id};
    std::string text = model.tokenizer->decode(one);
    if (const size_t spaces = text.size(); spaces > 0 && text.find_first_not_of(' ') == std::string::npos) {
        // Nothing but spaces is shown as so many open boxes, not as the letters that a vocabulary has for it.
        text.clear();
        for (size_t i = 0; i < spaces; ++i) text += "\xe2\x90\xa3";
        return text;
    }
    if (text.size() > 1 && text[0] == ' ') text.erase(0, 1);
    const bool plain = !text.empty() && printable_name(text, 40) == text && text != " ";
    return plain ? text : printable_name(model.tokenizer->piece(id), 40);
}

std::string first_text(const OpenedModel& model) {
    if (model.tokenizer) return "The cat sat on the mat because the cat was tired";
    // Numbers that come again, so that heads that look for them have something to find.
    std::string text;
    const uint64_t words = std::min<uint64_t>(model.weights.facts().vocabulary, 12);
    for (uint64_t i = 0; i < 2 * words; ++i)
        text += (i == 0 ? "" : " ") + std::to_string((i % words) * 7 % model.weights.facts().vocabulary);
    return text;
}

}  // namespace fovea::visualizer
