#include "document/imported_file.hpp"

#include <fovea/files.hpp>
#include <fovea/files/json.hpp>
#include <fovea/inspect.hpp>
#include <fovea/model.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace fovea::visualizer {
namespace {

constexpr uint64_t kMaxTableElements = 4u << 20, kMaxInputElements = 1u << 28;
constexpr size_t kMaxTables = 48;
constexpr uint64_t kMaxLength = 1u << 20, kMaxHeads = 1024;

Error wrong(const std::string& field, const std::string& text) {
    return Error{FOVEA_INVALID_ARGUMENT, field, text};
}

// ["The", " cat"], as the export script writes it; characters that would break a line become spaces.
std::vector<std::string> json_texts(std::string_view json) {
    std::vector<std::string> texts;
    const Result<JsonValue> read = parse_json(json);
    if (!read) return texts;
    for (const JsonValue& item : read->items()) {
        if (texts.size() == kMaxLength) break;
        for (char& c : texts.emplace_back(item.text()))
            if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    }
    return texts;
}

constexpr uint32_t kMaxLayers = 100000;

// Where the digits of the layer begin and end within a name.
std::optional<std::pair<size_t, size_t>> layer_digits(std::string_view name) {
    for (const std::string_view key : {"h.", "layers."}) {
        const size_t at = name.find(key);
        if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) continue;
        const size_t begin = at + key.size();
        size_t end = begin;
        while (end < name.size() && end - begin < 6 && name[end] >= '0' && name[end] <= '9') ++end;
        if (end > begin) return std::pair{begin, end};
    }
    return {};
}

uint32_t count_layers(const TensorSet& set) {
    uint32_t count = 0;
    for (const Tensor& t : set.tensors)
        if (const std::optional<uint32_t> layer = layer_in(t.name)) count = std::max(count, *layer + 1);
    return count;
}

std::string lower(std::string text) {
    for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

// The tensor whose name is one of these, or ends in one of them after a dot, slash or underscore.
std::string named(const TensorSet& set, std::initializer_list<const char*> names) {
    for (const std::string wanted : names)
        for (const Tensor& t : set.tensors)
            if (lower(t.name) == wanted) return t.name;
    for (const std::string wanted : names) {
        for (const Tensor& t : set.tensors) {
            const std::string name = lower(t.name);
            if (name.size() > wanted.size() && name.ends_with(wanted) &&
                std::string_view("._/").find(name[name.size() - wanted.size() - 1]) != std::string_view::npos)
                return t.name;
        }
    }
    return {};
}

Result<void> check_size(const Tensor& t, const std::string& field) {
    if (element_count(t) <= kMaxInputElements) return {};
    return wrong(field, field + " has " + format_count(element_count(t)) + " elements; the limit is " +
                            format_count(kMaxInputElements));
}

// [H, L, D] of a tensor of rank 2 to 4, by layout; the first batch entry.
Result<F32Tensor> as_heads(const ImportedFile& file, const std::string& name, const ImportMapping& m) {
    const Tensor* t = file.set.find(name);
    if (!t) return wrong("tensor", "the file has no tensor '" + printable_name(name) + "'");
    const std::string field = "tensor '" + printable_name(name) + "'";
    if (Result<void> r = check_size(*t, field); !r) return r.error();
    std::vector<uint64_t> shape = t->shape;
    if (shape.size() < 2 || shape.size() > 4)
        return wrong(field, field + " has shape " + format_shape(t->shape) +
                                "; it must be [L, D], [H, L, D] or [B, H, L, D]");
    Result<std::vector<float>> values = to_f32(*t);
    if (!values) return values.error();
    for (const uint64_t n : shape)
        if (n == 0)
            return wrong(field,
                         field + " has shape " + format_shape(t->shape) + "; each axis must be at least 1");
    uint64_t count = 1;
    if (shape.size() == 4) {
        shape.erase(shape.begin());
        for (const uint64_t n : shape) count *= n;
        values->resize(count);
    }
    if (shape.size() == 2) {
        if (m.heads == 0 || shape[1] % m.heads != 0)
            return wrong(field, field + " is " + std::to_string(shape[1]) +
                                    " wide; it must be a multiple of the number of heads, " +
                                    std::to_string(m.heads));
        const F32Tensor rows({1, shape[0], shape[1]}, std::move(*values));
        F32Tensor split = split_heads(rows, m.heads);
        return reshaped(std::move(split), {m.heads, shape[0], shape[1] / m.heads});
    }
    if (m.layout == TensorLayout::heads_first) return F32Tensor(shape, std::move(*values));
    const F32Tensor rows({1, shape[0], shape[1] * shape[2]}, std::move(*values));
    return reshaped(split_heads(rows, shape[1]), {shape[1], shape[0], shape[2]});
}

Result<void> check_together(const ImportMapping& m, const F32Tensor& q, const F32Tensor& k,
                            const F32Tensor& v) {
    const auto text = [](const F32Tensor& t) { return format_shape(t.shape); };
    if (q.shape[2] != k.shape[2])
        return wrong("tensor '" + printable_name(m.k) + "'", "queries are " + std::to_string(q.shape[2]) +
                                                                 " wide, keys " + std::to_string(k.shape[2]) +
                                                                 " (tensor '" + printable_name(m.k) +
                                                                 "'); they must be equal");
    if (k.shape[0] != v.shape[0] || k.shape[1] != v.shape[1])
        return wrong("tensor '" + printable_name(m.v) + "'",
                     "tensor '" + printable_name(m.v) + "' has shape " + text(v) + " and the keys " +
                         text(k) + "; heads and tokens must be equal");
    if (q.shape[0] % k.shape[0] != 0)
        return wrong("tensor '" + printable_name(m.q) + "'",
                     "tensor '" + printable_name(m.q) + "' has " + std::to_string(q.shape[0]) +
                         " heads; they must be a multiple of the key heads, " + std::to_string(k.shape[0]));
    if (q.shape[0] > kMaxHeads || q.shape[1] > kMaxLength || k.shape[1] > kMaxLength)
        return wrong("tensor '" + printable_name(m.q) + "'",
                     "tensor '" + printable_name(m.q) + "' has shape " + text(q) + "; the limit is " +
                         std::to_string(kMaxHeads) + " heads or " + std::to_string(kMaxLength) + " tokens");
    return {};
}

Result<void> rotate(Projected& p) {
    if (p.q.shape[2] % 2 != 0)
        return wrong("rotate",
                     "rotary embedding needs heads of even width; switch it off, or open another tensor");
    for (F32Tensor* t : {&p.q, &p.k}) *t = strict::rotated(std::move(*t), Rope{});
    return {};
}

Result<void> take_qkv(Projected& p, const ImportedFile& file, const ImportMapping& m) {
    const std::string names[] = {name_in_layer(m.q, m.layer), name_in_layer(m.k, m.layer),
                                 name_in_layer(m.v, m.layer)};
    Result<F32Tensor> q = as_heads(file, names[0], m), k = as_heads(file, names[1], m);
    Result<F32Tensor> v = m.v.empty() ? k : as_heads(file, names[2], m);
    for (const Result<F32Tensor>* r : {&q, &k, &v})
        if (!*r) return r->error();
    if (Result<void> r = check_together(m, *q, *k, *v); !r) return r;
    p.q = std::move(*q), p.k = std::move(*k), p.v = std::move(*v);
    return {};
}

// [L, 3 H D], [L, 3, H, D] or [3, H, L, D], with or without a batch in front.
Result<void> take_fused(Projected& p, const ImportedFile& file, const ImportMapping& m) {
    const std::string name = name_in_layer(m.fused, m.layer);
    const Tensor* t = file.set.find(name);
    const std::string field = "tensor '" + printable_name(name) + "'";
    if (!t) return wrong("tensor", "the file has no tensor '" + printable_name(name) + "'");
    if (Result<void> r = check_size(*t, field); !r) return r;
    Result<std::vector<float>> values = to_f32(*t);
    if (!values) return values.error();
    std::vector<uint64_t> shape = t->shape;
    if (shape.size() == 3 || shape.size() == 5) shape.erase(shape.begin());
    uint64_t count = 1;
    for (const uint64_t n : shape) count *= n;
    const bool flat = shape.size() == 2;
    const bool parts_first = shape.size() == 4 && shape[0] == 3;
    if (count == 0 || !(flat || parts_first || (shape.size() == 4 && shape[1] == 3)) ||
        (flat && (m.heads == 0 || shape[1] % (3 * uint64_t{m.heads}) != 0)))
        return wrong(field, field + " has shape " + format_shape(t->shape) + "; it must be [L, 3 H D] with " +
                                std::to_string(m.heads) + " heads, [L, 3, H, D] or [3, H, L, D]");
    values->resize(count);
    std::array<F32Tensor, 3> parts;
    if (parts_first) {
        const size_t one = count / 3;
        for (size_t i = 0; i < 3; ++i)
            parts[i] = F32Tensor({shape[1], shape[2], shape[3]},
                                 std::vector<float>(values->begin() + ptrdiff_t(i * one),
                                                    values->begin() + ptrdiff_t((i + 1) * one)));
    } else {
        const uint64_t heads = flat ? m.heads : shape[2], width = count / shape[0] / 3;
        const F32Tensor rows({1, shape[0], 3 * width}, std::move(*values));
        for (uint64_t i = 0; i < 3; ++i)
            parts[i] = reshaped(split_heads(slice_columns(rows, i * width, width), heads),
                                {heads, shape[0], width / heads});
    }
    for (size_t i = 0; i < 3; ++i) {
        const char what = i < m.order.size() ? m.order[i] : "qkv"[i];
        (what == 'k' ? p.k : what == 'v' ? p.v : p.q) = parts[i];
    }
    if (p.q.rank() != 3 || p.k.rank() != 3 || p.v.rank() != 3)
        return wrong("order", "order is '" + m.order + "'; it must be q, k and v in any order, such as qkv");
    return {};
}

// A model's layer on the text: the vectors of its words are drawn from their letters, of the model's width.
Result<void> run_model_layer(Projected& p, const ImportedFile& file, const Settings& s) {
    const auto model = std::make_shared<Model>();
    uint64_t width = 0;
    const auto load = [&](auto loaded, auto make_block) -> Result<void> {
        if (!loaded) return loaded.error();
        width = loaded->embed_dim;
        model->blocks.push_back(make_block(std::move(*loaded)));
        return {};
    };
    if (Result<void> r = s.mapping.kind == ImportKind::gpt2
                             ? load(load_gpt2_attention(file.path, s.mapping.layer), gpt2_block)
                             : load(load_llama_attention(file.path, s.mapping.layer),
                                    [](LlamaAttention w) { return llama_block(std::move(w)); });
        !r)
        return r;
    ModelInput input;
    for (const std::string& text : p.tokens) input.tokens.push_back({text, 0, 0});
    input.x = drawn_vectors(input.tokens, width, false);
    if (const Tensor* states = file.set.find("hidden_states"))
        if (states->shape.size() == 3 && states->shape[2] == width)
            if (const Result<std::vector<float>> values = to_f32(*states))
                input.x = F32Tensor({states->shape[1], width},
                                    {values->begin(), values->begin() + ptrdiff_t(states->shape[1] * width)});
    Result<Trace> trace = Trace::open(model, std::move(input));
    if (!trace) return trace.error();
    for (const auto& [id, to] : {std::pair{StageId::inputs, static_cast<F32Tensor*>(nullptr)},
                                 {StageId::w_query, nullptr},
                                 {StageId::w_key, nullptr},
                                 {StageId::w_value, nullptr},
                                 {StageId::queries, &p.q},
                                 {StageId::keys, &p.k},
                                 {StageId::values, &p.v}}) {
        Result<F32Tensor> made = trace->whole_stage(id);
        if (!made) return made.error();
        if (to) {
            const Shape heads = {made->rank() == 3 ? made->shape[0] : 1, made->shape[made->rank() - 2],
                                 made->columns()};
            *to = reshaped(std::move(*made), heads);
            continue;
        }
        const std::string layer = "layer " + std::to_string(s.mapping.layer);
        p.stages.push_back({id, id == StageId::inputs ? "a vector for each token" : layer, std::move(*made)});
    }
    return {};
}

constexpr uint64_t kMaxExtraCells = 1u << 28;

struct Wanted {  // The tensors of the call.
    uint64_t heads, rows, keys;
};

// A file's optional inputs of a call are the tensors `mask`, `bias`, `sinks` [H] and `alibi` [H] with the
// queries' prefix. A mask is bool or u8, 1 is visible; floats are added. One that does not fit is left out
// with a warning.

// Finds "layers.3.mask" for "layers.3.q".
const Tensor* find_beside(const ImportedFile& file, const ImportMapping& m, const std::string& name) {
    const std::string q = name_in_layer(m.kind == ImportKind::fused ? m.fused : m.q, m.layer);
    const size_t end = q.find_last_of("./");
    return file.set.find((end == std::string::npos ? "" : q.substr(0, end + 1)) + name);
}

struct Cells {
    uint64_t heads = 0,
             rows = 0;  // the call's, or 1 for a broadcast; no heads: it does not fit
    std::vector<float> values;
};

// Reads [.., heads or 1, rows or 1, keys]; where there are several batch entries, the first.
Cells cells_of(const Tensor& t, const Wanted& w) {
    std::vector<uint64_t> shape = t.shape;
    if (shape.size() == 4) shape.erase(shape.begin());
    while (shape.size() < 3) shape.insert(shape.begin(), 1);
    const bool fits = shape.size() == 3 && (shape[0] == 1 || shape[0] == w.heads) &&
                      (shape[1] == 1 || shape[1] == w.rows) && shape[2] == w.keys && w.keys > 0 &&
                      element_count(t) <= kMaxExtraCells;
    if (!fits) return {};
    Result<std::vector<float>> values = to_f32(t);
    if (!values) return {};
    values->resize(shape[0] * shape[1] * w.keys);
    return {shape[0], shape[1], std::move(*values)};
}

// One for each head, whatever the shape around them.
std::vector<float> one_a_head(const Tensor& t, uint64_t heads) {
    if (element_count(t) != heads) return {};
    Result<std::vector<float>> values = to_f32(t);
    return values ? std::move(*values) : std::vector<float>{};
}

void take_bias(CallExtras& extras, Cells cells) {
    extras.bias_heads = cells.heads, extras.bias_rows = cells.rows;
    extras.bias = std::move(cells.values);
}

// A mask of values is added.
void take_mask(CallExtras& extras, const Tensor& t, Cells cells) {
    if (t.type != FOVEA_BOOL && t.type != FOVEA_U8) return take_bias(extras, std::move(cells));
    extras.mask_heads = cells.heads, extras.mask_rows = cells.rows;
    extras.mask.resize(cells.values.size());
    std::transform(cells.values.begin(), cells.values.end(), extras.mask.begin(),
                   [](float v) { return v != 0; });
}

bool has_own_slopes(const ImportedFile& file, const ImportMapping& m) {
    return (m.kind == ImportKind::qkv || m.kind == ImportKind::fused) && find_beside(file, m, "alibi");
}

void read_extras(Projected& p, const ImportedFile& file, const ImportMapping& m) {
    if (m.kind != ImportKind::qkv && m.kind != ImportKind::fused) return;
    const Wanted wanted{p.q.shape[0], p.q.shape[1], p.k.shape[1]};
    const auto refuse = [&](const Tensor& t) {
        p.warnings.push_back("tensor '" + printable_name(t.name) + "' of shape " + format_shape(t.shape) +
                             " does not fit " + std::to_string(wanted.heads) + " heads of " +
                             format_count(wanted.rows) + " x " + format_count(wanted.keys) +
                             " scores: the shown weights are without it");
    };
    for (const char* name : {"mask", "bias"}) {
        const Tensor* t = find_beside(file, m, name);
        if (!t) continue;
        Cells cells = cells_of(*t, wanted);
        if (cells.heads == 0) {
            refuse(*t);
        } else if (std::string_view(name) == "mask") {
            take_mask(p.extras, *t, std::move(cells));
        } else if (!p.extras.bias.empty()) {
            p.warnings.push_back(
                "the file adds a mask of numbers and a bias: the shown weights are without the bias");
        } else {
            take_bias(p.extras, std::move(cells));
        }
    }
    for (const auto& [name, values] : {std::pair{"sinks", &p.extras.sinks}, {"alibi", &p.extras.alibi}}) {
        const Tensor* t = find_beside(file, m, name);
        if (!t) continue;
        *values = one_a_head(*t, wanted.heads);
        if (values->empty()) refuse(*t);
    }
}

void name_tokens(Projected& p, const ImportedFile& file) {
    const uint64_t length = p.k.shape[1];
    if (p.tokens.size() == length) return;  // a model's weights use the text's tokens
    p.tokens = file.tokens;
    if (p.tokens.size() > length) p.tokens.resize(length);
    if (file.tokens.size() != length && !file.tokens.empty())
        p.warnings.push_back("the file names " + std::to_string(file.tokens.size()) + " tokens and has " +
                             std::to_string(length) + " keys: the others are numbered");
    for (uint64_t i = p.tokens.size(); i < length; ++i) p.tokens.push_back(std::to_string(i));
}

}  // namespace

std::optional<uint32_t> layer_in(std::string_view name) {
    const auto digits = layer_digits(name);
    if (!digits) return {};
    uint32_t layer = 0;
    std::from_chars(&name[digits->first], name.data() + digits->second, layer);
    return layer < kMaxLayers ? std::optional(layer) : std::nullopt;
}

std::string name_in_layer(const std::string& name, uint32_t layer) {
    const auto digits = layer_digits(name);
    if (!digits) return name;
    return name.substr(0, digits->first) + std::to_string(layer) + name.substr(digits->second);
}

std::vector<uint32_t> layers_of(const Settings& s) {
    std::vector<uint32_t> layers;
    if (!s.file || s.mapping.kind == ImportKind::tables) return layers;
    const auto add = [&](std::string_view name) {
        if (const std::optional<uint32_t> layer = layer_in(name)) layers.push_back(*layer);
    };
    const ImportMapping& m = s.mapping;
    const std::string& named = m.kind == ImportKind::fused ? m.fused : m.q;
    for (const Tensor& t : s.file->set.tensors) {
        const bool weights = m.kind == ImportKind::gpt2 || m.kind == ImportKind::llama;
        const std::optional<uint32_t> layer = layer_in(t.name);
        if (!layer) continue;
        // A model's layers are those whose attention is in the file.
        if (weights ? t.name.find("attn") != std::string::npos : name_in_layer(named, *layer) == t.name)
            add(t.name);
    }
    std::sort(layers.begin(), layers.end());
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
    return layers;
}

Result<std::shared_ptr<const ImportedFile>> open_import(const std::filesystem::path& path) {
    Result<TensorSet> set = load_tensors(path);
    if (!set) {
        Error error = set.error();
        if (error.code == FOVEA_UNSUPPORTED && error.field == "file")
            error.text +=
                "; a session is called .fovea, a model is a folder with config.json or called .gguf";
        return error;
    }
    if (set->tensors.empty())
        return wrong(path.filename().string(),
                     printable_name(path.filename().string(), 400) + " has no tensors");
    auto file = std::make_shared<ImportedFile>();
    file->path = path.string();
    Result<AttentionNotes> notes = attention_notes(*set);
    if (!notes) return notes.error();
    file->notes = std::move(*notes);
    file->set = std::move(*set);
    if (const std::string* tokens = file->set.find_metadata("tokens")) file->tokens = json_texts(*tokens);
    file->layers = count_layers(file->set);
    return std::shared_ptr<const ImportedFile>(std::move(file));
}

ImportMapping guess_mapping(const ImportedFile& file) {
    ImportMapping m;
    m.q = named(file.set, {"q", "query", "queries", "query_states"});
    m.k = named(file.set, {"k", "key", "keys", "key_states"});
    m.v = named(file.set, {"v", "value", "values", "value_states"});
    m.fused = named(file.set, {"qkv", "query_key_value", "fused", "c_attn_out"});
    if (!m.q.empty() && !m.k.empty()) {
        m.kind = ImportKind::qkv;
    } else if (!m.fused.empty()) {
        m.kind = ImportKind::fused;
    } else if (file.layers > 0) {
        const bool conv = std::any_of(file.set.tensors.begin(), file.set.tensors.end(), [](const Tensor& t) {
            return t.name.find(".attn.c_attn.weight") != std::string::npos;
        });
        m.kind = conv ? ImportKind::gpt2 : ImportKind::llama;
    }
    const std::string& first = m.kind == ImportKind::fused ? m.fused : m.q;
    if (m.kind == ImportKind::qkv || m.kind == ImportKind::fused) m.layer = layer_in(first).value_or(0);
    if (const Tensor* q = file.set.find(m.q)) {
        // Heads are fewer than tokens, as a rule; the notes know better.
        const size_t rank = q->shape.size();
        if (rank >= 3 && q->shape[rank - 3] > q->shape[rank - 2]) m.layout = TensorLayout::tokens_first;
    }
    if (file.notes.rows_first)
        m.layout = *file.notes.rows_first ? TensorLayout::tokens_first : TensorLayout::heads_first;
    if (file.notes.scale) m.divisor = 1 / *file.notes.scale;
    return m;
}

Settings settings_for(std::shared_ptr<const ImportedFile> file, const Settings& before) {
    Settings s = before;
    s.mapping = guess_mapping(*file);
    s.pattern = MaskPattern::none;
    s.painted = {};
    if (s.mapping.kind != ImportKind::tables) {
        s.scale = "auto";
        s.temperature = 1;
        s.alibi = s.windowed = s.rope = false;
        s.softcap = s.dropout_p = 0;
        s.route = MaskRoute::before;
        s.causal = s.mapping.kind == ImportKind::gpt2 || s.mapping.kind == ImportKind::llama;
        s.alibi = has_own_slopes(*file, s.mapping);
        if (file->notes.causal) s.causal = *file->notes.causal != AttentionNotes::Causal::none;
        if (file->notes.softcap) s.softcap = *file->notes.softcap;
        if (file->notes.window) {
            s.windowed = true;
            s.window_left = (*file->notes.window)[0], s.window_right = (*file->notes.window)[1];
        }
    }
    s.file = std::move(file);
    return s;
}

Result<Projected> project_import(const Settings& s) {
    const ImportedFile& file = *s.file;
    const ImportMapping& m = s.mapping;
    Projected p;
    Result<void> done;
    if (m.kind == ImportKind::qkv) {
        done = take_qkv(p, file, m);
    } else if (m.kind == ImportKind::fused) {
        done = take_fused(p, file, m);
    } else {
        p.tokens = file.tokens.empty() ? text_tokens(s) : file.tokens;
        if (p.tokens.empty()) return wrong("text", "the text has no token; type at least one word");
        done = run_model_layer(p, file, s);
    }
    if (!done) return done.error();
    if (file.notes.causal == AttentionNotes::Causal::bottom_right && p.q.shape[1] != p.k.shape[1])
        return wrong("metadata", "metadata causal is 'bottom-right', which is not supported here for " +
                                     std::to_string(p.q.shape[1]) + " queries and " +
                                     std::to_string(p.k.shape[1]) + " keys: there must be as many of both");
    if (m.rotate && m.kind != ImportKind::llama)
        if (Result<void> r = rotate(p); !r) return r.error();
    read_extras(p, file, m);
    name_tokens(p, file);
    const auto formula = [&](const std::string& name) {
        return printable_name(name_in_layer(name, m.layer), 40);
    };
    p.stages.push_back({StageId::queries, formula(m.q), p.q});
    p.stages.push_back({StageId::keys, formula(m.k), p.k});
    p.stages.push_back({StageId::values, formula(m.v), p.v});
    return p;
}

std::vector<FileTable> import_tables(const Settings& s) {
    std::vector<FileTable> tables;
    const ImportMapping& m = s.mapping;
    for (const Tensor& t : s.file->set.tensors) {
        // Tensors of other layers come with their layer.
        const std::optional<uint32_t> layer = layer_in(t.name);
        const bool layered = layer && (m.kind == ImportKind::qkv || m.kind == ImportKind::fused);
        if (layered && *layer != m.layer) continue;
        const bool used = m.kind == ImportKind::qkv &&
                          (t.name == name_in_layer(m.q, m.layer) || t.name == name_in_layer(m.k, m.layer) ||
                           t.name == name_in_layer(m.v, m.layer));
        std::vector<uint64_t> shape = t.shape;
        if (shape.size() == 4) shape.erase(shape.begin());
        if (shape.size() == 1) shape.insert(shape.begin(), 1);
        uint64_t count = 1;
        for (const uint64_t n : shape) count *= n;
        if (used || shape.size() < 2 || shape.size() > 3 || count == 0 ||
            element_count(t) > kMaxTableElements || tables.size() == kMaxTables)
            continue;
        Result<std::vector<float>> values = to_f32(t);
        if (!values) continue;
        values->resize(count);
        tables.push_back({"file: " + printable_name(t.name, 60),
                          std::string(dtype_name(t.type)) + " " + format_shape(t.shape),
                          F32Tensor(shape, std::move(*values))});
    }
    return tables;
}

}  // namespace fovea::visualizer
