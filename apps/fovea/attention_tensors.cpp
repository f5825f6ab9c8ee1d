#include "attention_tensors.hpp"

#include "attention_options.hpp"

#include <fovea/files/attention_notes.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace fovea::app {
namespace {

Error bad_tensor(const std::string& tensor, std::string text) {
    return Error{FOVEA_INVALID_ARGUMENT, "tensor '" + tensor + "'", "tensor '" + tensor + "' " + text};
}

// A shape of rank 2, 3 or 4 with ones in front, so that it has 4 axes.
Result<std::vector<uint64_t>> four_axes(const Tensor& t) {
    if (t.shape.size() < 2 || t.shape.size() > 4)
        return bad_tensor(t.name, "has shape " + format_shape(t.shape) + ", which has " +
                                      std::to_string(t.shape.size()) + " axes; it must have 2, 3 or 4");
    std::vector<uint64_t> shape(4 - t.shape.size(), 1);
    shape.insert(shape.end(), t.shape.begin(), t.shape.end());
    return shape;
}

// Keeps the bytes (rounded up to whole words, as the kernels read them) and points a binding at them.
void keep(AttentionCall& call, FoveaBinding binding, std::span<const std::byte> bytes) {
    std::vector<std::byte>& copy = call.storage.emplace_back((bytes.size() + 3) / 4 * 4);
    std::copy(bytes.begin(), bytes.end(), copy.begin());
    call.bindings[binding] = {copy.data(), copy.size()};
}

// The same for the bytes of a tensor. They are used in place if they can be read as whole words there: a file
// may not fit into memory twice, and a rank reads only its part.
void keep(AttentionCall& call, FoveaBinding binding, const Tensor& t) {
    if (!t.owner || t.bytes.size() % 4 || reinterpret_cast<uintptr_t>(t.bytes.data()) % 4)
        return keep(call, binding, t.bytes);
    call.files[binding] = t.owner;
    call.bindings[binding] = {const_cast<std::byte*>(t.bytes.data()), t.bytes.size()};  // an input
}

}  // namespace

Result<void> keep_as_f32(AttentionCall& call, FoveaBinding binding, const Tensor& t) {
    if (t.type == FOVEA_F32) return keep(call, binding, t), Result<void>();
    const Result<std::vector<float>> values = to_f32(t);
    if (!values) return values.error();
    keep(call, binding, std::as_bytes(std::span(*values)));
    uint64_t beyond = 0;
    for (size_t n = 0; t.type == FOVEA_F64 && n < values->size(); ++n) {
        double wide;
        std::memcpy(&wide, t.bytes.data() + n * sizeof wide, sizeof wide);
        beyond += std::isfinite(wide) && !std::isfinite((*values)[n]);
    }
    call.notes.push_back(
        t.name + ": converted from " + std::string(dtype_name(t.type)) + " to f32" +
        (beyond ? "; " + std::to_string(beyond) + " numbers beyond its range became infinite" : ""));
    return {};
}

FoveaDtype element_type_of(FoveaDtype type) {
    return type == FOVEA_F16 ? FOVEA_F16 : type == FOVEA_BF16 ? FOVEA_BF16 : FOVEA_F32;
}

Result<FoveaDtype> keep_float(AttentionCall& call, FoveaBinding binding, const Tensor& t) {
    if (t.type == FOVEA_F16 || t.type == FOVEA_BF16) {
        keep(call, binding, t);
        return t.type == FOVEA_F16 ? FOVEA_F16 : FOVEA_BF16;
    }
    if (t.type != FOVEA_F32 && t.type != FOVEA_F64)
        return bad_tensor(t.name,
                          "is " + std::string(dtype_name(t.type)) + "; it must be f32, f16, bf16 or f64");
    if (Result<void> r = keep_as_f32(call, binding, t); !r) return r.error();
    return FOVEA_F32;
}

Result<void> cache_keys_and_values(AttentionCall& call, FoveaDtype type, bool rotated, Engine& engine) {
    FoveaAttentionDesc& d = call.desc;
    const struct {
        FoveaBinding binding;
        FoveaDtype& type;
        const FoveaStrides& strides;
        uint32_t dim;
    } tensors[] = {{FOVEA_BIND_K, d.k_type, d.k_strides, d.dim_qk},
                   {FOVEA_BIND_V, d.v_type, d.v_strides, d.dim_v}};
    uint64_t bytes = 0;
    for (const auto& t : tensors) {
        FoveaAppendDesc append{};
        append.struct_size = sizeof append;
        append.x_type = t.type, append.y_type = type, append.rotate = rotated;
        append.batch = d.batch, append.heads = d.heads_kv, append.dim = t.dim;
        append.len = d.len_kv, append.capacity = std::max<uint64_t>(d.len_kv, 1);
        if (d.len_kv > 0) append.x_strides = append.y_strides = t.strides;  // else its one row stays empty
        const Result<Plan> plan = plan_append(engine.properties(), append);
        if (!plan && plan.error().field == "dim")
            return Error{FOVEA_INVALID_ARGUMENT, "--cache-type",
                         "--cache-type " + std::string(dtype_name(type)) +
                             " needs a head size that is a multiple of 32; " +
                             (t.binding == FOVEA_BIND_K ? "k" : "v") + " has " + std::to_string(t.dim)};
        if (!plan) return plan.error();
        std::vector<std::byte>& cache = call.storage.emplace_back(plan->info().binding_bytes[FOVEA_BIND_Y]);
        HostBindings bindings{};
        bindings[FOVEA_BIND_X] = call.bindings[t.binding];
        bindings[FOVEA_BIND_Y] = {cache.data(), cache.size()};
        const Result<RunReport> report = engine.run_on_host(*plan, bindings);
        if (!report) return report.error();
        call.bindings[t.binding] = bindings[FOVEA_BIND_Y];
        t.type = type;
        bytes += plan->info().tensor_bytes[FOVEA_BIND_Y];
    }
    if (rotated) d.flags |= FOVEA_FLAG_ROTATED_CACHE;
    call.notes.push_back("k and v: a cache of " + std::to_string(bytes) + " bytes");
    return {};
}

namespace {

struct Axes {
    uint64_t batch, heads, rows, columns;
    FoveaStrides strides;
};

Result<Axes> qkv_axes(const Tensor& t, bool rows_first) {
    Result<std::vector<uint64_t>> shape = four_axes(t);
    if (!shape) return shape.error();
    std::vector<uint64_t>& s = *shape;
    // Both layouts read [H, L, D] and [L, D] the same, except for the order of H and L.
    if (rows_first && t.shape.size() >= 3) std::swap(s[1], s[2]);
    Axes axes{s[0], s[1], s[2], s[3], {}};
    const auto d = int64_t(s[3]), h = int64_t(s[1]), l = int64_t(s[2]);
    axes.strides = rows_first ? FoveaStrides{l * h * d, d, h * d} : FoveaStrides{h * l * d, l * d, d};
    return axes;
}

Result<uint32_t> count32(const Tensor& t, uint64_t value, const char* what) {
    if (value > UINT32_MAX)
        return bad_tensor(t.name, std::string("has a ") + what + " of " + std::to_string(value) +
                                      "; it must be below 2^32");
    return uint32_t(value);
}

Result<void> read_qkv(const TensorSet& file, bool rows_first, AttentionCall& call) {
    const char* names[3] = {"q", "k", "v"};
    const FoveaBinding bindings[3] = {FOVEA_BIND_Q, FOVEA_BIND_K, FOVEA_BIND_V};
    Axes axes[3];
    FoveaDtype types[3];
    for (int n = 0; n < 3; ++n) {
        const Tensor* t = file.find(names[n]);
        if (!t)
            return bad_tensor(names[n], file.why_missing(names[n]) + "; tensors named q, k and v are needed");
        const Result<Axes> a = qkv_axes(*t, rows_first);
        if (!a) return a.error();
        axes[n] = *a;
        const Result<FoveaDtype> type = keep_float(call, bindings[n], *t);
        if (!type) return type.error();
        types[n] = *type;
    }
    const Tensor &q = *file.find("q"), &k = *file.find("k"), &v = *file.find("v");
    if (k.shape.size() != q.shape.size() || v.shape.size() != q.shape.size())
        return bad_tensor("k", "has shape " + format_shape(k.shape) + ", q " + format_shape(q.shape) +
                                   " and v " + format_shape(v.shape) + "; all three must have as many axes");
    if (axes[1].batch != axes[0].batch || axes[2].batch != axes[0].batch)
        return bad_tensor("k", "has shape " + format_shape(k.shape) + ", v " + format_shape(v.shape) +
                                   " and q " + format_shape(q.shape) +
                                   "; the first axis, the batch, must be the same");
    if (axes[2].heads != axes[1].heads || axes[2].rows != axes[1].rows)
        return bad_tensor("v", "has shape " + format_shape(v.shape) +
                                   "; it must have as many heads and rows as k, " + format_shape(k.shape));
    if (axes[1].columns != axes[0].columns)
        return bad_tensor("k", "has a head size of " + std::to_string(axes[1].columns) + " and q has " +
                                   std::to_string(axes[0].columns) + "; the two must be equal");
    if (axes[1].heads > 0 && axes[0].heads % axes[1].heads != 0)
        return bad_tensor("q", "has " + std::to_string(axes[0].heads) + " heads and k has " +
                                   std::to_string(axes[1].heads) +
                                   "; the heads of q must be a multiple of those of k");
    FoveaAttentionDesc& d = call.desc;
    const Result<uint32_t> counts[5] = {
        count32(q, axes[0].batch, "batch"), count32(q, axes[0].heads, "heads"),
        count32(k, axes[1].heads, "heads"), count32(q, axes[0].columns, "head size"),
        count32(v, axes[2].columns, "head size")};
    for (const Result<uint32_t>& c : counts)
        if (!c) return c.error();
    d.batch = *counts[0], d.heads_q = *counts[1], d.heads_kv = *counts[2], d.dim_qk = *counts[3],
    d.dim_v = *counts[4];
    d.len_q = axes[0].rows, d.len_kv = axes[1].rows;
    d.q_type = types[0], d.k_type = types[1], d.v_type = types[2], d.o_type = types[0];
    d.q_strides = axes[0].strides, d.k_strides = axes[1].strides, d.v_strides = axes[2].strides;
    if (rows_first) {
        const auto dv = int64_t(d.dim_v), h = int64_t(d.heads_q), l = int64_t(d.len_q);
        d.o_strides = {l * h * dv, dv, h * dv};
    }
    call.rank = q.shape.size();
    call.rows_first = rows_first;
    return {};
}

Result<void> describe_matrix(const FoveaAttentionDesc& call, const Tensor& t, FoveaMatrixDesc& m) {
    const Result<std::vector<uint64_t>> shape = four_axes(t);
    if (!shape) return shape.error();
    const std::vector<uint64_t>& s = *shape;
    for (int axis = 0; axis < 2; ++axis)
        if (s[size_t(axis)] > UINT32_MAX)
            return bad_tensor(t.name,
                              "has shape " + format_shape(t.shape) + "; each axis must be below 2^32");
    // The library takes 0 for "all of them", and masks everything past a single column, which other libraries
    // broadcast.
    if (s[0] == 0 || s[1] == 0 || (s[2] == 0 && call.len_q > 0) || (s[3] == 0 && call.len_kv > 0))
        return bad_tensor(t.name, "has shape " + format_shape(t.shape) + "; each axis must be at least 1");
    if (s[3] == 1 && call.len_kv > 1)
        return bad_tensor(t.name, "has shape " + format_shape(t.shape) + ", one column for " +
                                      std::to_string(call.len_kv) +
                                      " keys; give a column for each key, as the last axis is not broadcast");
    m.present = 1;
    m.batch = uint32_t(s[0]), m.heads = uint32_t(s[1]), m.rows = s[2], m.keys = s[3];
    m.strides = {int64_t(s[1] * s[2] * s[3]), int64_t(s[2] * s[3]), int64_t(s[3])};
    return {};
}

bool is_boolean(const Tensor& t) { return t.type == FOVEA_BOOL || t.type == FOVEA_U8; }

Result<void> read_booleans(AttentionCall& call, const Tensor& t, FoveaMatrixDesc& m, FoveaBinding binding) {
    if (Result<void> r = describe_matrix(call.desc, t, m); !r) return r;
    m.type = FOVEA_U8;
    keep(call, binding, t);
    return {};
}

// `needed`: what the tensor may be.
Result<void> read_bias(AttentionCall& call, const Tensor& t, const char* needed) {
    FoveaMatrixDesc& m = call.desc.bias;
    if (m.present)
        return bad_tensor(t.name,
                          "is given with a mask of a float type, which is added as well; give one of them");
    const Result<FoveaDtype> type = keep_float(call, FOVEA_BIND_BIAS, t);
    if (!type) return bad_tensor(t.name, "is " + std::string(dtype_name(t.type)) + "; it must be " + needed);
    if (Result<void> r = describe_matrix(call.desc, t, m); !r) return r;
    m.type = *type;
    return {};
}

Result<void> read_matrices(const TensorSet& file, AttentionCall& call) {
    FoveaAttentionDesc& d = call.desc;
    if (const Tensor* t = file.find("mask"))
        if (Result<void> r = is_boolean(*t) ? read_booleans(call, *t, d.mask, FOVEA_BIND_MASK)
                                            : read_bias(call, *t, "bool, u8 or a float type");
            !r)
            return r;
    if (const Tensor* t = file.find("bias"))
        if (Result<void> r = read_bias(call, *t, "a float type (a boolean one is called mask)"); !r) return r;
    if (const Tensor* t = file.find("dropout_mask")) {
        if (!is_boolean(*t))
            return bad_tensor(t->name, "is " + std::string(dtype_name(t->type)) + "; it must be bool or u8");
        return read_booleans(call, *t, d.dropout_mask, FOVEA_BIND_DROPOUT_MASK);
    }
    return {};
}

Result<void> read_vector(AttentionCall& call, const Tensor& t, uint32_t flag, FoveaBinding binding) {
    if (t.shape.size() != 1 || t.shape[0] != call.desc.heads_q)
        return bad_tensor(t.name, "has shape " + format_shape(t.shape) + "; it must be [" +
                                      std::to_string(call.desc.heads_q) + "], one for each query head");
    call.desc.flags |= flag;
    return keep_as_f32(call, binding, t);
}

Result<std::vector<int32_t>> read_lengths(const Tensor& t, uint32_t batch, uint64_t limit) {
    if (t.shape.size() != 1 || t.shape[0] != batch)
        return bad_tensor(t.name, "has shape " + format_shape(t.shape) + "; it must be [" +
                                      std::to_string(batch) + "], one for each batch entry");
    std::vector<int32_t> lengths(batch);
    for (uint32_t b = 0; b < batch; ++b) {
        int64_t value = 0;
        if (t.type == FOVEA_I32) {
            int32_t narrow = 0;
            std::memcpy(&narrow, t.bytes.data() + 4 * b, 4);
            value = narrow;
        } else if (t.type == FOVEA_I64) {
            std::memcpy(&value, t.bytes.data() + 8 * b, 8);
        } else {
            return bad_tensor(t.name, "is " + std::string(dtype_name(t.type)) + "; it must be i32 or i64");
        }
        if (value < 0 || uint64_t(value) > limit)
            return bad_tensor(t.name, "has " + std::to_string(value) + " as element " + std::to_string(b) +
                                          "; it must be from 0 to " + std::to_string(limit));
        lengths[b] = int32_t(value);
    }
    return lengths;
}

Result<void> read_sequences(const TensorSet& file, AttentionCall& call) {
    const Tensor *kv = file.find("kv_lengths"), *q = file.find("q_lengths");
    if (!kv && !q) return {};
    FoveaAttentionDesc& d = call.desc;
    std::vector<FoveaSequence> table(d.batch, FoveaSequence{0, int32_t(d.len_q), 0, int32_t(d.len_kv)});
    if (kv) {
        const Result<std::vector<int32_t>> lengths = read_lengths(*kv, d.batch, d.len_kv);
        if (!lengths) return lengths.error();
        for (uint32_t b = 0; b < d.batch; ++b) table[b].kv_length = (*lengths)[b];
    }
    if (q) {
        const Result<std::vector<int32_t>> lengths = read_lengths(*q, d.batch, d.len_q);
        if (!lengths) return lengths.error();
        for (uint32_t b = 0; b < d.batch; ++b) table[b].q_length = (*lengths)[b];
    }
    d.flags |= FOVEA_FLAG_VARLEN;
    keep(call, FOVEA_BIND_SEQUENCES, std::as_bytes(std::span(table)));
    return {};
}

void take_notes(const AttentionNotes& notes, AttentionCall& call) {
    using Causal = AttentionNotes::Causal;
    FoveaAttentionDesc& d = call.desc;
    d.scale = notes.scale.value_or(0.0f), d.softcap = notes.softcap.value_or(0.0f);
    const Causal causal = notes.causal.value_or(Causal::none);
    if (causal != Causal::none) {
        d.flags |= FOVEA_FLAG_CAUSAL;
        d.align = causal == Causal::top_left ? FOVEA_ALIGN_TOP_LEFT : FOVEA_ALIGN_BOTTOM_RIGHT;
    }
    if (notes.window) {
        d.flags |= FOVEA_FLAG_WINDOW;
        d.window_left = (*notes.window)[0], d.window_right = (*notes.window)[1];
    }
    if (!notes.text.empty())
        call.notes.push_back("the file's metadata say: " + notes.text + "; options replace them");
}

}  // namespace

Result<void> read_attention_tensors(const TensorSet& file, std::optional<bool> rows_first,
                                    AttentionCall& call) {
    call.storage.reserve(32);
    const Result<AttentionNotes> notes = attention_notes(file);
    if (!notes) return notes.error();
    if (!rows_first) rows_first = notes->rows_first;
    if (Result<void> r = read_qkv(file, rows_first.value_or(false), call); !r) return r;
    take_notes(*notes, call);
    if (Result<void> r = read_matrices(file, call); !r) return r;
    if (const Tensor* t = file.find("sinks"))
        if (Result<void> r = read_vector(call, *t, FOVEA_FLAG_SINKS, FOVEA_BIND_SINKS); !r) return r;
    if (const Tensor* t = file.find("alibi"))
        if (Result<void> r = read_vector(call, *t, FOVEA_FLAG_ALIBI, FOVEA_BIND_ALIBI); !r) return r;
    return read_sequences(file, call);
}

void note_unused_tensors(const TensorSet& file, AttentionCall& call,
                         std::initializer_list<std::string_view> also) {
    constexpr std::string_view kRead[] = {"q",     "k",     "v",          "mask",     "bias", "dropout_mask",
                                          "sinks", "alibi", "kv_lengths", "q_lengths"};
    std::string names;
    for (const Tensor& tensor : file.tensors) {
        if (std::find(std::begin(kRead), std::end(kRead), tensor.name) != std::end(kRead) ||
            std::find(also.begin(), also.end(), tensor.name) != also.end())
            continue;
        const bool full = names.size() > 400;
        names += (names.empty() ? "" : ", ") + (full ? "..." : tensor.name.substr(0, 120));
        if (full) break;
    }
    if (!names.empty()) call.notes.push_back("not read: " + names);
}

Result<void> allocate_result(AttentionCall& call, FoveaBinding binding, uint64_t size_bytes,
                             const char* option, std::string_view name) {
    auto& memory = call.results.emplace_back(
        static_cast<std::byte*>(std::calloc(size_t(std::max<uint64_t>(size_bytes, 1)), 1)));
    if (!memory)
        return Error{FOVEA_OUT_OF_HOST_MEMORY, option,
                     "not enough memory: output '" + std::string(name) + "' needs " +
                         std::to_string(size_bytes) + " bytes"};
    call.bindings[binding] = {memory.get(), size_bytes};
    return {};
}

Result<void> allocate_outputs(AttentionCall& call) {
    const FoveaAttentionDesc& d = call.desc;
    FoveaAttentionDesc sizes =
        d;  // any plan knows the sizes of the bindings; the plain kernel takes every problem
    sizes.kernel = FOVEA_KERNEL_PLAIN;
    const Result<Plan> plan = plan_cpu(sizes);
    if (!plan) return plan.error();
    const FoveaPlanInfo info = plan->info();
    for (const OutputName& output : output_names()) {
        if (!(info.output_mask >> output.binding & 1)) continue;
        if (Result<void> r = allocate_result(call, output.binding, info.binding_bytes[output.binding],
                                             "--outputs", output.name);
            !r)
            return r;
    }
    return {};
}

namespace {

std::vector<uint64_t> output_shape(const AttentionCall& call, FoveaBinding binding) {
    const FoveaAttentionDesc& d = call.desc;
    std::vector<uint64_t> shape;
    if (call.rank == 4) shape.push_back(d.batch);
    if (call.rank >= 3) shape.push_back(d.heads_q);
    shape.push_back(d.len_q);
    if (binding == FOVEA_BIND_O && call.rows_first && call.rank >= 3)
        std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    if (binding == FOVEA_BIND_O)
        shape.push_back(d.dim_v);
    else if (binding == FOVEA_BIND_ROW_STATS)
        shape.push_back(4);
    else if (binding != FOVEA_BIND_LSE)
        shape.push_back(d.len_kv);
    return shape;
}

// max weight, entropy, index of the largest, visible keys: the two counts become floats, exact below 2^24.
std::vector<std::byte> row_stats_as_floats(std::span<const std::byte> bytes) {
    std::vector<std::byte> result(bytes.size());
    for (size_t at = 0; at + sizeof(FoveaRowStats) <= bytes.size(); at += sizeof(FoveaRowStats)) {
        FoveaRowStats stats;
        std::memcpy(&stats, bytes.data() + at, sizeof stats);
        const float argmax = stats.argmax_key == UINT32_MAX ? -1.0f : float(stats.argmax_key);
        const float row[4] = {stats.max_weight, stats.entropy, argmax, float(stats.visible_keys)};
        std::memcpy(result.data() + at, row, sizeof row);
    }
    return result;
}

}  // namespace

Result<TensorSet> output_tensors(const AttentionCall& call) {
    TensorSet set;
    for (const OutputName& output : output_names()) {
        const FoveaHostBuffer& buffer = call.bindings[output.binding];
        const bool asked =
            call.desc.outputs ? call.desc.outputs & output.output : output.output == FOVEA_OUTPUT_O;
        if (!asked) continue;
        std::span<const std::byte> bytes(static_cast<const std::byte*>(buffer.data), buffer.size_bytes);
        std::vector<std::byte> stats;
        if (output.binding == FOVEA_BIND_ROW_STATS) bytes = stats = row_stats_as_floats(bytes);
        const FoveaDtype type = output.binding == FOVEA_BIND_O ? call.desc.o_type : FOVEA_F32;
        Result<Tensor> tensor = make_tensor(std::string(output.name), element_type_of(type),
                                            output_shape(call, output.binding), bytes);
        if (!tensor) return tensor.error();
        set.tensors.push_back(std::move(*tensor));
    }
    return set;
}

}  // namespace fovea::app
