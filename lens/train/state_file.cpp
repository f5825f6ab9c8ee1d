#include <fovea/train/state_file.hpp>
#include <fovea/train/training_text.hpp>

#include <charconv>
#include <cmath>

namespace fovea {
namespace {

Error bad(std::string field, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, field, field + " " + std::move(text)};
}

// Writes a state's description as the metadata of a safetensors file: the task's options, and everything from
// which read_learned_model() makes a model.
void write_notes(const TrainState& state, const Task& task, TensorSet& set) {
    const TaskOptions& o = state.options;
    const auto yes_no = [](bool value) { return std::string(value ? "yes" : "no"); };
    std::string vocabulary, sample;
    for (const std::string& word : task.vocabulary) vocabulary += (vocabulary.empty() ? "" : " ") + word;
    for (const uint32_t token : task.sample) sample += (sample.empty() ? "" : " ") + task.vocabulary[token];
    if (task.text) sample = task.text->tokenizer().decode(task.sample);
    set.metadata = {{"task", std::string(task_name(o.kind))},
                    {"first_token", yes_no(o.first_token)},
                    {"copy_only", yes_no(o.copy_only)},
                    {"query_key_bias", yes_no(o.query_key_bias)},
                    {"positions", std::string(positions_name(o.positions))},
                    {"seed", std::to_string(state.seed)},
                    {"step", std::to_string(state.step)},
                    {"heads", std::to_string(task.model.heads)},
                    {"rope_theta", std::to_string(task.model.rope_theta)},
                    {"vocabulary", vocabulary},
                    {"sample", sample}};
    if (task.text) set.metadata.emplace_back("tokenizer", "text");
}

Result<std::string_view> note(const TensorSet& file, std::string_view key) {
    const std::string* text = file.find_metadata(key);
    if (!text) return bad("note '" + std::string(key) + "'", "is not in the file");
    return std::string_view(*text);
}

Result<bool> yes_no_note(const TensorSet& file, std::string_view key) {
    const Result<std::string_view> text = note(file, key);
    if (!text) return text.error();
    if (*text != "yes" && *text != "no")
        return bad("note '" + std::string(key) + "'",
                   "is '" + printable_name(*text) + "'; it must be yes or no");
    return *text == "yes";
}

template <class Number>
Result<Number> number_note(const TensorSet& file, std::string_view key) {
    const Result<std::string_view> text = note(file, key);
    if (!text) return text.error();
    Number value = 0;
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), value);
    if (code != std::errc() || end != text->data() + text->size())
        return bad("note '" + std::string(key) + "'",
                   "is '" + printable_name(*text) + "'; it must be an integer");
    return value;
}

Result<TaskOptions> read_options(const TensorSet& file) {
    const Result<std::string_view> task = note(file, "task"), positions = note(file, "positions");
    if (!task) return task.error();
    if (!positions) return positions.error();
    const Result<TaskKind> kind = task_from_name(*task);
    if (!kind)
        return bad("note 'task'", "is '" + printable_name(*task) + "', which is not the name of a task");
    const Result<Positions> places = positions_from_name(*positions);
    if (!places)
        return bad("note 'positions'",
                   "is '" + printable_name(*positions) + "', not none, learned or rotary");
    const Result<bool> first = yes_no_note(file, "first_token"), copy = yes_no_note(file, "copy_only"),
                       bias = yes_no_note(file, "query_key_bias");
    for (const Result<bool>* flag : {&first, &copy, &bias})
        if (!*flag) return flag->error();
    return TaskOptions{*kind, *first, *copy, *bias, *places};
}

Result<void> add_tensors(const Task& task, const std::vector<float>& values, const std::string& prefix,
                         bool half, TensorSet& set) {
    for (const WeightEntry& entry : weight_entries(task.model)) {
        if (entry.offset + entry.count > values.size())
            return bad("state.weights", "has " + std::to_string(values.size()) + " elements; '" + entry.name +
                                            "' of its task ends at element " +
                                            std::to_string(entry.offset + entry.count));
        const std::span<const float> part(values.data() + entry.offset, entry.count);
        std::vector<uint16_t> halves;
        std::span<const std::byte> bytes = std::as_bytes(part);
        if (half) {
            for (const float value : part) halves.push_back(foveaFloatToHalf(value));
            bytes = std::as_bytes(std::span<const uint16_t>(halves));
        }
        Result<Tensor> tensor =
            make_tensor(prefix + entry.name, half ? FOVEA_F16 : FOVEA_F32, entry.shape, bytes);
        if (!tensor) return tensor.error();
        set.tensors.push_back(std::move(*tensor));
    }
    return {};
}

Result<void> read_tensors(const TensorSet& file, const TaskModel& model, const std::string& prefix,
                          std::vector<float>& values) {
    for (const WeightEntry& entry : weight_entries(model)) {
        const Tensor* tensor = file.find(prefix + entry.name);
        const std::string field = "tensor '" + prefix + entry.name + "'";
        if (!tensor) return bad(field, "is not in the file");
        if (tensor->shape != entry.shape)
            return bad(field, "does not have the shape that the task's model needs");
        const Result<std::vector<float>> numbers = to_f32(*tensor);
        if (!numbers) return numbers.error();
        for (const float number : *numbers)
            if (!std::isfinite(number)) return bad(field, "has an element that is not finite");
        values.insert(values.end(), numbers->begin(), numbers->end());
    }
    return {};
}

}  // namespace

Result<TensorSet> state_tensors(const Task& task, const TrainState& state) {
    TensorSet set;
    write_notes(state, task, set);
    Result<void> r = add_tensors(task, state.weights, "", false, set);
    if (r) r = add_tensors(task, state.mean, "adam.mean.", false, set);
    if (r) r = add_tensors(task, state.square, "adam.square.", false, set);
    if (!r) return r.error();
    return set;
}

Result<TensorSet> weight_tensors(const Task& task, const TrainState& state) {
    TensorSet set;
    write_notes(state, task, set);
    if (Result<void> r = add_tensors(task, state.weights, "", true, set); !r) return r.error();
    return set;
}

Result<TensorSet> state_tensors(const TrainState& state) {
    const Result<Task> task = make_task(state.options);
    if (!task) return task.error();
    return state_tensors(*task, state);
}

Result<TensorSet> weight_tensors(const TrainState& state) {
    const Result<Task> task = make_task(state.options);
    if (!task) return task.error();
    return weight_tensors(*task, state);
}

Result<Task> read_task(const TensorSet& file) {
    const Result<TaskOptions> options = read_options(file);
    if (!options) return options.error();
    if (options->kind != TaskKind::text) return make_task(*options);
    const Result<std::string_view> words = note(file, "vocabulary");
    if (!words) return words.error();
    std::vector<std::string> vocabulary;
    for (size_t at = 0; at <= words->size();) {
        const size_t end = std::min(words->find(' ', at), words->size());
        vocabulary.emplace_back(words->substr(at, end - at));
        at = end + 1;
    }
    const Result<std::shared_ptr<const TrainingText>> text =
        TrainingText::of_vocabulary(std::move(vocabulary));
    if (!text) return bad("note 'vocabulary'", text.error().text);
    return make_text_task(*text);
}

Result<TrainState> read_state(const TensorSet& file) {
    const Result<Task> task = read_task(file);
    if (!task) return task.error();
    const Result<uint64_t> seed = number_note<uint64_t>(file, "seed");
    if (!seed) return seed.error();
    const Result<uint32_t> step = number_note<uint32_t>(file, "step");
    if (!step) return step.error();
    TrainState state;
    state.options = task->options;
    state.seed = *seed;
    state.step = *step;
    Result<void> r = read_tensors(file, task->model, "", state.weights);
    const bool has_moments = file.find("adam.mean.embedding.weight") != nullptr;
    if (r && has_moments) r = read_tensors(file, task->model, "adam.mean.", state.mean);
    if (r && has_moments) r = read_tensors(file, task->model, "adam.square.", state.square);
    if (!r) return r.error();
    if (!has_moments) {
        state.mean.assign(state.weights.size(), 0);
        state.square.assign(state.weights.size(), 0);
    }
    for (const float square : state.square)
        if (square < 0) return bad("tensor 'adam.square'", "has an element below 0");
    return state;
}

Result<LearnedModel> state_model(const TrainState& state) {
    const Result<Task> task = make_task(state.options);
    if (!task) return task.error();
    return state_model(*task, state);
}

Result<LearnedModel> state_model(const Task& task, const TrainState& state) {
    const Result<TensorSet> set = state_tensors(task, state);
    if (!set) return set.error();
    return read_learned_model(*set);
}

}  // namespace fovea
