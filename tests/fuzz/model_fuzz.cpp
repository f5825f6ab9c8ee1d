// Models from untrusted files: the bytes are a GGUF file where they begin as one, else a config.json, for
// which the target makes weights of the shapes that it asks for. What opens is run: every block, as float32
// and as stored, and a short text.
#include "fuzz_target.hpp"

#include "files/held_file.hpp"
#include "json_mutator.hpp"
#include "model/checkpoint/families.hpp"
#include "support/random.hpp"

#include <cmath>
#include <cstring>
#include <ctime>

using namespace fovea;

namespace {

constexpr uint64_t kMaxElements = 200'000;  // limit of a model that is run
constexpr double kMaxSeconds = 1;

// A safetensors file of float32 weights that the configuration asks for; some draws change a shape, leave a
// weight out or add one.
class Weights {
  public:
    Weights(const KnownModel& known, uint64_t seed)
        : family_(*known.family), f_(known.config), names_(names_of(family_, false)), random_(seed) {
        spoilt_ = random_.chance(0.3) ? random_.below(40) : UINT64_MAX;
        root_ = std::string(names_.roots[random_.below(random_.chance(0.8) ? 1 : 4)]);
        if (!names_.patches.empty()) {
            patches();
        } else {
            add(names_.table, {24, f_.width});
            if (!names_.positions.empty()) add(names_.positions, {40, f_.width});
            if (!names_.types.empty() && random_.chance(0.7)) add(names_.types, {2, f_.width});
            norm(names_.table_norm);
        }
        for (uint64_t n = 0; n < f_.layers && count_ < kMaxElements; ++n) layer(n);
        norm(names_.final_norm);
        const std::string root = std::move(root_);
        root_.clear();
        if (!names_.unembedding.empty() && random_.chance(0.5)) add(names_.unembedding, {24, f_.width});
        if (!names_.head_dense.empty() && random_.chance(0.5)) {
            linear(names_.head_dense, f_.width, f_.width);
            norm(names_.head_norm);
        }
        root_ = root;
    }

    uint64_t count() const { return count_; }
    std::string file() const {
        std::string out(8, '\0'), header = header_ + "}";
        const uint64_t length = header.size();
        std::memcpy(out.data(), &length, 8);
        out += header;
        for (uint64_t i = 0; i < data_; ++i) {
            const float value = 0.5f * test::bell(test::mix(i));
            out.append(reinterpret_cast<const char*>(&value), 4);
        }
        return out;
    }

  private:
    void put(const std::string& name, Shape shape) {
        if (added_++ == spoilt_ && !shape.empty()) {
            uint64_t& side = shape[random_.below(shape.size())];
            switch (random_.below(4)) {
                case 0:
                    return;  // the weight is missing
                case 1:
                    side += 1;
                    break;
                case 2:
                    side /= 2;
                    break;
                default:
                    shape.push_back(1);
            }
        }
        uint64_t elements = 1;
        for (const uint64_t side : shape)
            elements = side == 0 ? 0 : std::min(elements * side, kMaxElements * 4);
        count_ += elements;
        if (count_ >= kMaxElements) return;
        std::string sides;
        for (const uint64_t side : shape) sides += (sides.empty() ? "" : ",") + std::to_string(side);
        header_ += (header_.size() > 1 ? ",\"" : "\"") + name + "\":{\"dtype\":\"F32\",\"shape\":[" + sides +
                   "],\"data_offsets\":[" + std::to_string(data_ * 4) + "," +
                   std::to_string((data_ + elements) * 4) + "]}";
        data_ += elements;
    }
    void add(std::string_view name, Shape shape) {
        if (!name.empty()) put(root_ + std::string(name) + ".weight", std::move(shape));
    }
    void linear(std::string_view name, uint64_t in, uint64_t out) {
        if (name.empty()) return;
        add(name, family_.layout == WeightLayout::in_out ? Shape{in, out} : Shape{out, in});
        if (random_.chance(0.4)) put(root_ + std::string(name) + ".bias", {out});
    }
    void norm(std::string_view name) {
        if (name.empty()) return;
        add(name, {f_.width});
        if (family_.norm == NormKind::layer && random_.chance(0.8))
            put(root_ + std::string(name) + ".bias", {f_.width});
    }
    void layer(uint64_t n) {
        const auto of = [&](std::string_view name) {
            std::string text(name);
            if (const size_t at = text.find("{}"); at != std::string::npos)
                text.replace(at, 2, std::to_string(n));
            return text;
        };
        const uint64_t q = f_.heads * f_.head_width, kv = f_.kv_heads * f_.head_width;
        if (!(family_.first_without_norm && n == 0)) norm(of(names_.attention_norm));
        linear(of(names_.query), f_.width, q);
        linear(of(names_.key), f_.width, kv);
        linear(of(names_.value), f_.width, kv);
        linear(of(names_.joint), f_.width, q + 2 * kv);
        linear(of(names_.attention_output), q, f_.width);
        for (const std::string_view head : {names_.query_norm, names_.key_norm})
            if (!head.empty()) add(of(head), {f_.head_width});
        norm(of(names_.attention_output_norm));
        norm(of(names_.feed_forward_norm));
        linear(of(names_.up), f_.width, f_.hidden);
        linear(of(names_.gate), f_.width, f_.hidden);
        linear(of(names_.gate_up), f_.width, 2 * f_.hidden);
        linear(of(names_.down), f_.hidden, f_.width);
        norm(of(names_.feed_forward_output_norm));
    }
    void patches() {
        add(names_.patches, {f_.width, 1, 2, 2});
        put(root_ + std::string(names_.patches) + ".bias", {f_.width});
        put(root_ + std::string(names_.picture_row), {1, 1, f_.width});
        put(root_ + std::string(names_.patch_positions), {1, 5, f_.width});
    }

    const Family& family_;
    const ModelConfig& f_;
    const WeightNames& names_;
    test::Random random_;
    std::string root_, header_ = "{";
    uint64_t count_ = 0, data_ = 0, added_ = 0, spoilt_;
};

void run(const CheckpointModel& model, uint64_t seed) {
    const ModelConfig& f = model.config();
    uint64_t elements = 0;
    for (const StoredWeight& weight : model.files().weights) elements += weight.size_bytes / 4;
    if (elements > kMaxElements || f.layers > 64 || !model.missing().empty()) return;
    test::Random random(seed);
    for (uint64_t n = 0; n < f.layers; ++n)
        for (const bool stored : {false, true})
            if (const Result<Block> block = model.block(n, 1 + random.below(100), stored); !block)
                fuzz::check_error(block.error());
    std::vector<uint32_t> ids(1 + random.below(6));
    for (uint32_t& id : ids) id = uint32_t(random.below(26));  // some beyond the vocabulary
    ModelRunOptions options;
    options.with_weights = options.with_hidden = true;
    if (f.patches != 0) {
        const Result<F32Tensor> x = model.embed_patches(F32Tensor({f.patches, f.patch_width}));
        if (!x) return fuzz::check_error(x.error());
        ids.assign(x->rows(), 0);
        options.entering = *x;
    }
    const Result<ModelRun> done = run_model(model, ids, options);
    if (!done) return fuzz::check_error(done.error());
    fuzz::require(done->hidden.size() == f.layers + 1, "a run keeps what it was asked for");
}

void open_and_run(std::span<const NamedFile> files, uint64_t seed) {
    size_t bytes = 0;
    for (const NamedFile& file : files) bytes += file.file->size_bytes();
    const auto model = fuzz::at_cost(bytes, [&] { return CheckpointModel::open(files); });
    if (!model) return fuzz::check_error(model.error());
    const std::clock_t begin = std::clock();
    run(*model, seed);
    fuzz::require(double(std::clock() - begin) < kMaxSeconds * CLOCKS_PER_SEC,
                  "a small model takes a second");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    uint64_t seed = 0;
    for (const char c : bytes) seed = test::mix(seed ^ uint8_t(c));
    if (bytes.starts_with("GGUF")) {
        const NamedFile file{"model.gguf", std::make_shared<test::HeldFile>(bytes)};
        open_and_run({&file, 1}, seed);
        return 0;
    }
    Checkpoint files;
    Result<JsonValue> json = parse_json(bytes, 32, JsonNumbers::python);
    if (!json || json->kind() != JsonValue::Kind::object) return 0;
    files.config = std::move(*json);
    const Result<KnownModel> known = fuzz::at_cost(bytes.size(), [&] { return read_config(files); });
    if (!known) {
        fuzz::check_error(known.error());
        return 0;
    }
    const Weights weights(*known, seed);
    if (weights.count() >= kMaxElements) return 0;
    const NamedFile folder[] = {{"config.json", std::make_shared<test::HeldFile>(bytes)},
                                {"model.safetensors", std::make_shared<test::HeldFile>(weights.file())}};
    open_and_run(folder, seed);
    return 0;
}
