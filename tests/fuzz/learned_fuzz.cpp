// Untrusted models that learned a task. The reader of safetensors has a target already: here the bytes are
// JSON,
// {"notes": {...}, "tensors": {NAME: [SIDES]}, "off": N, "texts": [...]}, so that a change of one number is a
// file whose bytes fit its shapes.
#include "fuzz_target.hpp"

#include <fovea/model/learned.hpp>
#include <fovea/model/session.hpp>
#include <fovea/model/trace.hpp>

#include "json_mutator.hpp"
#include "support/random.hpp"

using namespace fovea;

namespace {

constexpr uint64_t kMaxElements = 1 << 14, kMaxTokens = 64;

// Nothing where the tensors would be larger than this target's time allows.
std::optional<TensorSet> file_of(const JsonValue& json) {
    TensorSet file;
    for (const auto& [key, value] : json["notes"].members())
        file.metadata.emplace_back(key, value.scalar_text());
    uint64_t all = 0;
    for (const auto& [name, sides] : json["tensors"].members()) {
        Shape shape;
        uint64_t count = 1;
        for (const JsonValue& side : sides.items()) {
            const double number = side.number();
            if (!(number >= 0 && number <= kMaxElements)) return std::nullopt;
            shape.push_back(uint64_t(number));
            if ((count *= uint64_t(number)) > kMaxElements) return std::nullopt;
        }
        if ((all += count) > kMaxElements || file.find(name)) return std::nullopt;
        std::vector<float> values(count);
        for (uint64_t n = 0; n < count; ++n) values[n] = 0.3f * test::bell(test::hash(all, n));
        Result<Tensor> tensor = make_tensor(name, std::move(shape), std::move(values));
        fuzz::require(tensor.has_value(), "a tensor of its shape's size is made");
        file.tensors.push_back(std::move(*tensor));
    }
    return file;
}

void show(std::shared_ptr<const LearnedModel> learned, std::string_view text, uint32_t off) {
    Session session = level_session(2, learned->task);
    session.task = learned->task;
    session.text = text;
    session.heads_off = off;
    const Result<SessionModel> model = learned_session(session, learned);
    if (!model) return fuzz::check_error(model.error());
    if (model->input.tokens.size() > kMaxTokens) return;
    Result<Trace> trace = Trace::open(model->model, model->input);
    if (!trace) return fuzz::check_error(trace.error());
    for (uint32_t layer = 0; layer < trace->layers(); ++layer)
        for (const StageId stage : {StageId::weights, StageId::logits})
            if (const auto shown = trace->stage(trace->nearest_stage(stage, layer), 0, layer); !shown)
                fuzz::check_error(shown.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const Result<JsonValue> json = parse_json({reinterpret_cast<const char*>(data), size});
    if (!json) return 0;
    const std::optional<TensorSet> file = file_of(*json);
    if (!file) return 0;
    size_t bytes = size;
    for (const Tensor& tensor : file->tensors) bytes += tensor.bytes.size();
    Result<LearnedModel> read = fuzz::at_cost(bytes, [&] { return read_learned_model(*file); });
    if (!read) {
        fuzz::check_error(read.error());
        return 0;
    }
    const auto learned = std::make_shared<const LearnedModel>(std::move(*read));
    for (const uint32_t token : learned->sample)
        fuzz::require(token < learned->model->vocabulary.size(), "a sample is of the vocabulary");
    if (learned->sample.size() <= kMaxTokens)
        if (const auto input = learned_input(*learned, learned->sample); !input)
            fuzz::check_error(input.error());
    for (const JsonValue& text : (*json)["texts"].items())
        show(learned, text.text(), uint32_t(std::min(std::max((*json)["off"].number(), 0.0), 4e9)));
    return 0;
}
