// Attention of opsets 23 to 25 in terms of the engine: one attention call, a call of append for each part of
// a cache, and a second attention call only for scores past the valid length. Where upstream's texts and code
// disagree, the specification is followed: see docs/concepts/numerics.md.
#include "onnx/node_runner.hpp"
#include "onnx/tensor_values.hpp"
#include "problem/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace fovea::onnx {
namespace {

enum InputPlace : size_t { q_in, k_in, v_in, mask_in, past_key_in, past_value_in, nonpad_in };
enum OutputPlace : size_t { y_out, present_key_out, present_value_out, scores_out };

Error invalid(std::string field, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, std::move(field), std::move(text)};
}

struct Options {
    bool causal = false;
    int64_t q_heads = 0, kv_heads = 0, mode = 0, left = -1, right = -1;
    bool has_scale = false;
    float scale = 0, softcap = 0;
};

Result<Options> read_options(const Node& node) {
    const Result<AttributeReader> a = AttributeReader::make(
        node, {"is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap",
               "softmax_precision", "left_window_size", "right_window_size"});
    if (!a) return a.error();
    constexpr int64_t limit = 1 << 20, far = int64_t{1} << 40;
    const Result<int64_t> causal = a->integer("is_causal", 0, 0, 1),
                          q_heads = a->integer("q_num_heads", 0, 0, limit),
                          kv_heads = a->integer("kv_num_heads", 0, 0, limit),
                          mode = a->integer("qk_matmul_output_mode", 0, 0, 3),
                          left = a->integer("left_window_size", -1, -1, far),
                          right = a->integer("right_window_size", -1, -1, far),
                          precision = a->integer("softmax_precision", 1, 1, 16);
    for (const Result<int64_t>* r : {&causal, &q_heads, &kv_heads, &mode, &left, &right, &precision})
        if (!*r) return r->error();
    const Result<float> scale = a->real("scale", 0), softcap = a->real("softcap", 0);
    if (!scale) return scale.error();
    if (!softcap) return softcap.error();
    // The engine's softmax is float32 or better whatever is asked for; narrower types only allow less.
    if (*precision != 1 && *precision != 10 && *precision != 11 && *precision != 16)
        return invalid("softmax_precision", std::to_string(*precision) + " is no floating-point type");
    // The sign of a softcap cancels in c * tanh(x / c).
    return Options{*causal != 0,    *q_heads, *kv_heads,          *mode, *left, *right,
                   a->has("scale"), *scale,   std::fabs(*softcap)};
}

struct Shape {
    bool flat = false;  // 3D inputs: heads are side by side in the last axis
    int64_t batch = 0, q_heads = 0, kv_heads = 0, queries = 0, new_keys = 0, past = 0, keys = 0, dim = 0,
            v_dim = 0;
};

// One of Q, K, V as (batch, heads, rows, dim).
struct Axes {
    int64_t batch, heads, rows, dim;
};
Result<Axes> axes_of(const Tensor& t, bool flat, int64_t heads, const char* name) {
    if (!flat) return Axes{t.dims[0], t.dims[1], t.dims[2], t.dims[3]};
    if (heads == 0 || t.dims[2] % heads != 0)
        return invalid(name, "the number of heads, " + std::to_string(heads) +
                                 ", does not divide the last axis of " + t.shape_text());
    return Axes{t.dims[0], heads, t.dims[1], t.dims[2] / heads};
}

class AttentionNode {
  public:
    AttentionNode(Engine& engine, const Model& model, const Tensors& inputs, const AttentionChoice& choice)
        : engine_(engine),
          model_(model),
          inputs_(inputs),
          most_bytes_(choice.most_bytes),
          desc_(foveaAttentionDesc()) {
        desc_.kernel = choice.kernel;
        desc_.precision = choice.precision;
    }

    Result<Tensors> run() {
        using Step = Result<void> (AttentionNode::*)();
        for (const Step step :
             {&AttentionNode::read_shapes, &AttentionNode::convert_inputs, &AttentionNode::join_past,
              &AttentionNode::describe, &AttentionNode::add_lengths, &AttentionNode::add_mask,
              &AttentionNode::compute, &AttentionNode::compute_all_scores})
            if (Result<void> done = (this->*step)(); !done) return done.error();
        return outputs();
    }

  private:
    const Tensor* input(size_t place) const {
        return place < inputs_.size() && inputs_[place] ? &*inputs_[place] : nullptr;
    }
    bool wants(size_t place) const {
        return place < model_.node.outputs.size() && !model_.node.outputs[place].empty();
    }

    Result<void> read_shapes() {
        const Result<Options> options = read_options(model_.node);
        if (!options) return options.error();
        options_ = *options;
        const Tensor *q = input(q_in), *k = input(k_in), *v = input(v_in);
        if (!q || !k || !v) return invalid("inputs", "Q, K and V are required");
        shape_.flat = q->dims.size() == 3;
        for (const Tensor* t : {q, k, v}) {
            if (t->dims.size() != (shape_.flat ? 3u : 4u))
                return invalid("Q", "Q, K and V must all have 3 axes or all have 4");
            for (const int64_t dim : t->dims)
                if (dim > INT32_MAX) return invalid("Q", t->shape_text() + " is too large");
        }
        const Result<Axes> qa = axes_of(*q, shape_.flat, options_.q_heads, "q_num_heads"),
                           ka = axes_of(*k, shape_.flat, options_.kv_heads, "kv_num_heads"),
                           va = axes_of(*v, shape_.flat, options_.kv_heads, "kv_num_heads");
        for (const Result<Axes>* r : {&qa, &ka, &va})
            if (!*r) return r->error();
        if (ka->batch != qa->batch || va->batch != qa->batch || va->heads != ka->heads ||
            va->rows != ka->rows || ka->dim != qa->dim)
            return invalid(
                "K", k->shape_text() + " and V " + v->shape_text() + " do not fit Q " + q->shape_text());
        shape_ = {shape_.flat, qa->batch, qa->heads, ka->heads, qa->rows,
                  ka->rows,    0,         ka->rows,  ka->dim,   va->dim};
        return read_past();
    }

    Result<void> read_past() {
        const Tensor *key = input(past_key_in), *value = input(past_value_in);
        if (!key && !value) return {};
        if (!key || !value) return invalid("past_key", "past_key and past_value come together");
        if (input(nonpad_in)) return invalid("nonpad_kv_seqlen", "not together with a past");
        if (key->dims.size() != 4 || value->dims.size() != 4 || key->dims[2] > INT32_MAX)
            return invalid("past_key", "past_key and past_value have 4 axes");
        shape_.past = key->dims[2];
        shape_.keys = shape_.past + shape_.new_keys;
        const std::vector<int64_t> k_dims{shape_.batch, shape_.kv_heads, shape_.past, shape_.dim},
            v_dims{shape_.batch, shape_.kv_heads, shape_.past, shape_.v_dim};
        if (key->dims != k_dims || value->dims != v_dims)
            return invalid("past_key", key->shape_text() + " and past_value " + value->shape_text() +
                                           " do not fit K and V");
        if (key->type != input(k_in)->type || value->type != input(v_in)->type)
            return invalid("past_key", "the past has another element type than K and V");
        return {};
    }

    // Strides of a tensor that is given in the form of the node.
    FoveaStrides strides(int64_t heads, int64_t rows, int64_t dim) const {
        if (!shape_.flat) return {};
        return {rows * heads * dim, dim, heads * dim};
    }

    Result<void> convert_inputs() {
        const std::pair<HostTensor*, InputPlace> tensors[] = {{&q_, q_in}, {&k_, k_in}, {&v_, v_in}};
        constexpr const char* names[] = {"Q", "K", "V"};
        for (const auto& [host, place] : tensors) {
            Result<HostTensor> converted = to_host(*input(place), names[place]);
            if (!converted) return converted.error();
            *host = std::move(*converted);
        }
        desc_.k_strides = strides(shape_.kv_heads, shape_.new_keys, shape_.dim);
        desc_.v_strides = strides(shape_.kv_heads, shape_.new_keys, shape_.v_dim);
        // The engine reads a scale of 0 as the default; a query of zeros is the same thing.
        if (options_.has_scale && options_.scale == 0)
            std::fill(q_.bytes.begin(), q_.bytes.end(), std::byte(0));
        return {};
    }

    // K and V become caches of past and new rows, packed (batch, heads, rows, dim).
    Result<void> join_past() {
        if (!input(past_key_in) && !wants(present_key_out) && !wants(present_value_out)) return {};
        Result<HostTensor> key = joined(k_, input(past_key_in), desc_.k_strides, shape_.dim);
        if (!key) return key.error();
        Result<HostTensor> value = joined(v_, input(past_value_in), desc_.v_strides, shape_.v_dim);
        if (!value) return value.error();
        k_ = std::move(*key), v_ = std::move(*value);
        desc_.k_strides = desc_.v_strides = {};
        return {};
    }

    // A tensor whose sizes are products of several inputs' sizes, and so not bounded by the bytes of any.
    Result<void> make(HostTensor& out, FoveaDtype type, std::span<const int64_t> dims, const char* name) {
        uint64_t bytes = dtype_bytes(type);
        for (const int64_t dim : dims) {
            if (dim != 0 && bytes > most_bytes_ / uint64_t(dim))
                return invalid(name, "the shapes of the inputs ask for more than " +
                                         std::to_string(most_bytes_) + " bytes; give smaller inputs");
            bytes *= uint64_t(dim);
        }
        out = make_host(type, bytes / dtype_bytes(type));
        return {};
    }

    Result<HostTensor> joined(HostTensor& fresh, const Tensor* past, const FoveaStrides& fresh_strides,
                              int64_t dim) {
        HostTensor cache;
        const int64_t dims[] = {shape_.batch, shape_.kv_heads, shape_.keys, dim};
        if (Result<void> made = make(cache, fresh.type, dims, "present"); !made) return made.error();
        if (past) {
            Result<HostTensor> rows = to_host(*past, "past");
            if (!rows) return rows;
            if (Result<void> done = append(cache, *rows, {}, 0, shape_.past, dim); !done) return done.error();
        }
        if (Result<void> done = append(cache, fresh, fresh_strides, shape_.past, shape_.new_keys, dim); !done)
            return done.error();
        return cache;
    }

    Result<void> append(HostTensor& cache, HostTensor& rows, const FoveaStrides& rows_strides, int64_t first,
                        int64_t count, int64_t dim) {
        if (count == 0 || cache.bytes.empty()) return {};
        FoveaAppendDesc desc{};
        desc.struct_size = sizeof desc;
        desc.x_type = desc.y_type = cache.type;
        desc.batch = uint32_t(shape_.batch), desc.heads = uint32_t(shape_.kv_heads), desc.dim = uint32_t(dim);
        desc.len = uint64_t(count), desc.first_row = uint64_t(first), desc.capacity = uint64_t(shape_.keys);
        desc.x_strides = rows_strides;
        HostBindings bindings{};
        bindings[FOVEA_BIND_X] = rows.buffer();
        bindings[FOVEA_BIND_Y] = cache.buffer();
        const Result<RunReport> report =
            engine_.run_on_host(plan_append(engine_.properties(), desc), bindings);
        if (!report) return report.error();
        return {};
    }

    Result<void> describe() {
        FoveaAttentionDesc& d = desc_;
        d.batch = uint32_t(shape_.batch);
        d.heads_q = uint32_t(shape_.q_heads), d.heads_kv = uint32_t(shape_.kv_heads);
        d.dim_qk = uint32_t(shape_.dim), d.dim_v = uint32_t(shape_.v_dim);
        d.len_q = uint64_t(shape_.queries), d.len_kv = uint64_t(shape_.keys);
        d.q_type = q_.type, d.k_type = k_.type, d.v_type = v_.type, d.o_type = q_.type;
        d.q_strides = strides(shape_.q_heads, shape_.queries, shape_.dim);
        d.o_strides = strides(shape_.q_heads, shape_.queries, shape_.v_dim);
        d.scale = options_.has_scale && options_.scale == 0 ? 1.0f : options_.scale;
        d.softcap = options_.softcap;
        if (options_.causal) d.flags |= FOVEA_FLAG_CAUSAL;
        if (options_.left >= 0 || options_.right >= 0) {
            d.flags |= FOVEA_FLAG_WINDOW;
            d.window_left = options_.left, d.window_right = options_.right;
        }
        d.align = shape_.past ? FOVEA_ALIGN_OFFSET : FOVEA_ALIGN_TOP_LEFT;
        d.q_offset = shape_.past;
        constexpr uint32_t matrices[] = {FOVEA_OUTPUT_SCORES, FOVEA_OUTPUT_CAPPED, FOVEA_OUTPUT_MASKED,
                                         FOVEA_OUTPUT_WEIGHTS};
        d.outputs = FOVEA_OUTPUT_O;
        if (wants(scores_out)) d.outputs |= matrices[options_.mode];
        // Before anything is allocated that these sizes ask for: an input without elements may have any
        // shape.
        Diag diag;
        if (foveaCheckAttention(nullptr, &d, &diag) != FOVEA_OK) return diag.error();
        return {};
    }

    // Lengths move the causal frontier with them: query S - 1 is at the last valid key.
    Result<void> add_lengths() {
        const Tensor* nonpad = input(nonpad_in);
        if (!nonpad) return {};
        if (nonpad->dims != std::vector<int64_t>{shape_.batch})
            return invalid("nonpad_kv_seqlen",
                           nonpad->shape_text() + " is not one number for each batch entry");
        const Result<std::vector<int64_t>> lengths = to_integers(*nonpad, "nonpad_kv_seqlen", 0, shape_.keys);
        if (!lengths) return lengths.error();
        for (const int64_t length : *lengths)
            table_.push_back({0, int32_t(shape_.queries), 0, int32_t(length)});
        desc_.flags |= FOVEA_FLAG_VARLEN;
        desc_.align = FOVEA_ALIGN_BOTTOM_RIGHT;
        return {};
    }

    Result<void> add_mask() {
        const Tensor* mask = input(mask_in);
        if (!mask) return {};
        if (mask->dims.size() > 4) return invalid("attn_mask", mask->shape_text() + " has more than 4 axes");
        int64_t extent[4] = {1, 1, 1, 1};
        std::copy(mask->dims.begin(), mask->dims.end(), extent + 4 - mask->dims.size());
        const int64_t full[4] = {shape_.batch, shape_.q_heads, shape_.queries, shape_.keys};
        for (int axis = 0; axis < 4; ++axis) {
            const bool shorter =
                axis == 3 && model_.opset >= 24 && extent[axis] > 0 && extent[axis] < full[axis];
            if (extent[axis] != 1 && extent[axis] != full[axis] && !shorter)
                return invalid("attn_mask", mask->shape_text() + " does not broadcast to the scores");
        }
        const bool boolean = mask->type == ElementType::boolean;
        if (Result<void> read = read_mask(*mask, boolean); !read) return read;
        if (extent[3] == 1 && full[3] > 1) {
            extent[3] = full[3];
            if (Result<void> made = repeat_column(extent); !made) return made;
        }
        FoveaMatrixDesc& m = boolean ? desc_.mask : desc_.bias;
        m.present = 1;
        m.type = mask_.type;
        m.batch = uint32_t(extent[0]), m.heads = uint32_t(extent[1]);
        m.rows = uint64_t(extent[2]), m.keys = uint64_t(extent[3]);
        return {};
    }

    Result<void> read_mask(const Tensor& mask, bool boolean) {
        if (boolean) {
            mask_ = to_host_boolean(mask);
            return {};
        }
        const bool stays = mask.type == ElementType::float16 || mask.type == ElementType::bfloat16;
        Result<HostTensor> bias = stays ? to_host(mask, "attn_mask") : to_host_float(mask, "attn_mask");
        if (!bias) return bias.error();
        mask_ = std::move(*bias);
        return {};
    }

    // A last axis of 1 is broadcast; the engine takes it for a mask of one column.
    Result<void> repeat_column(const int64_t (&extent)[4]) {
        const size_t size = dtype_bytes(mask_.type), columns = size_t(extent[3]);
        const HostTensor column = mask_;
        if (Result<void> made = make(mask_, column.type, extent, "attn_mask"); !made) return made;
        const size_t rows = size_t(input(mask_in)->elements());
        for (size_t row = 0; row < rows; ++row)
            for (size_t j = 0; j < columns; ++j)
                memcpy(mask_.bytes.data() + (row * columns + j) * size, column.bytes.data() + row * size,
                       size);
        return {};
    }

    FoveaBinding scores_binding() const { return FoveaBinding(FOVEA_BIND_SCORES + options_.mode); }

    // Binds the inputs that `desc` enables; a binding that a call does not read is rejected.
    void bind(const FoveaAttentionDesc& desc, HostBindings& bindings) {
        bindings[FOVEA_BIND_Q] = q_.buffer();
        bindings[FOVEA_BIND_K] = k_.buffer();
        bindings[FOVEA_BIND_V] = v_.buffer();
        bindings[FOVEA_BIND_O] = o_.buffer();
        if (desc.mask.present) bindings[FOVEA_BIND_MASK] = mask_.buffer();
        if (desc.bias.present) bindings[FOVEA_BIND_BIAS] = mask_.buffer();
        if (desc.flags & FOVEA_FLAG_VARLEN)
            bindings[FOVEA_BIND_SEQUENCES] = {table_.data(), table_.size() * sizeof(FoveaSequence)};
        bindings[scores_binding()] = scores_.buffer();
    }

    Result<void> compute() {
        int64_t dims[] = {shape_.batch, shape_.q_heads, shape_.queries, shape_.v_dim};
        if (Result<void> made = make(o_, desc_.o_type, dims, "Y"); !made) return made;
        dims[3] = shape_.keys;
        if (wants(scores_out))
            if (Result<void> made = make(scores_, FOVEA_F32, dims, "qk_matmul_output"); !made) return made;
        HostBindings bindings{};
        bind(desc_, bindings);
        const Result<RunReport> report = engine_.attention(desc_, bindings);
        if (!report) return report.error();
        return {};
    }

    // Modes 0 and 1 show the scores of all keys of the buffer; the engine leaves out those past the length.
    Result<void> compute_all_scores() {
        if (table_.empty() || !wants(scores_out) || options_.mode > 1) return {};
        FoveaAttentionDesc all = desc_;
        all.flags &= ~uint32_t{FOVEA_FLAG_VARLEN};
        all.align = FOVEA_ALIGN_TOP_LEFT;
        all.mask = all.bias = {};
        all.outputs = options_.mode == 0 ? FOVEA_OUTPUT_SCORES : FOVEA_OUTPUT_CAPPED;
        HostBindings bindings{};
        bind(all, bindings);
        bindings[FOVEA_BIND_O] = {};
        const Result<RunReport> report = engine_.attention(all, bindings);
        if (!report) return report.error();
        return {};
    }

    Result<Tensors> outputs() {
        const Tensor *q = input(q_in), *k = input(k_in), *v = input(v_in);
        std::vector<int64_t> y_dims{shape_.batch, shape_.q_heads, shape_.queries, shape_.v_dim};
        if (shape_.flat) y_dims = {shape_.batch, shape_.queries, shape_.q_heads * shape_.v_dim};
        Tensors tensors(model_.node.outputs.size());
        if (wants(y_out)) tensors[y_out] = from_host(o_, q->type, std::move(y_dims));
        if (wants(present_key_out))
            tensors[present_key_out] =
                from_host(k_, k->type, {shape_.batch, shape_.kv_heads, shape_.keys, shape_.dim});
        if (wants(present_value_out))
            tensors[present_value_out] =
                from_host(v_, v->type, {shape_.batch, shape_.kv_heads, shape_.keys, shape_.v_dim});
        if (wants(scores_out))
            tensors[scores_out] =
                from_host(scores_, q->type, {shape_.batch, shape_.q_heads, shape_.queries, shape_.keys});
        return tensors;
    }

    Engine& engine_;
    const Model& model_;
    const Tensors& inputs_;
    const uint64_t most_bytes_;
    Options options_;
    Shape shape_;
    FoveaAttentionDesc desc_;
    HostTensor q_, k_, v_, o_, mask_, scores_;
    std::vector<FoveaSequence> table_;
};

}  // namespace

Result<Tensors> run_attention(Engine& engine, const Model& model, const Tensors& inputs,
                              const AttentionChoice& choice) {
    return AttentionNode(engine, model, inputs, choice).run();
}

}  // namespace fovea::onnx
