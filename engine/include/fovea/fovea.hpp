// SPDX-License-Identifier: Apache-2.0
//
// C++20 face of <fovea/fovea.h>: header only, no exceptions, move-only handles.
//
//   fovea::Attention call;
//   call.batch(2).heads(8, 2).lengths(77, 301).dims(80, 48).causal(fovea::Align::bottom_right);
//   fovea::Result<fovea::Plan> plan = fovea::plan_cpu(call);
//   if (!plan) report(plan.error().text);
#pragma once

#include <fovea/fovea.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fovea {

struct Error {  // the reason for the missing value
    FoveaResult code = FOVEA_INVALID_ARGUMENT;
    std::string field;  // the invalid input: "dim_qk", "tensor 'q'", a file name
    std::string text;   // one line for a person: value given and limit
    int32_t vk_result = 0;
};

// A value or the reason why there is none. Asking the wrong one is a bug in the caller and ends the program.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const { return state_.index() == 0; }
    bool has_value() const { return state_.index() == 0; }

    T& value() & { return *expect(std::get_if<0>(&state_)); }
    const T& value() const& { return *expect(std::get_if<0>(&state_)); }
    T&& value() && { return std::move(*expect(std::get_if<0>(&state_))); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    const Error& error() const { return *expect(std::get_if<1>(&state_)); }

  private:
    template <class P>
    static P* expect(P* p) {
        if (!p) std::abort();
        return p;
    }
    std::variant<T, Error> state_;
};

// Success or the reason of the failure, for calls without a value.
template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}
    explicit operator bool() const { return !error_; }
    bool has_value() const { return !error_; }
    const Error& error() const {
        if (!error_) std::abort();
        return *error_;
    }

  private:
    std::optional<Error> error_;
};

// A FoveaDiag ready to be passed, and its conversion to an Error.
struct Diag : FoveaDiag {
    Diag() : FoveaDiag{} { struct_size = sizeof(FoveaDiag); }
    Error error() const { return Error{code, field, text, vk_result}; }
};

// foveaKernelName.
inline const char* kernel_name(FoveaKernel kernel) { return foveaKernelName(kernel); }
// The kernel of that name; the error lists the names that there are.
inline Result<FoveaKernel> kernel_from_name(std::string_view name) {
    std::string known;
    for (int n = FOVEA_KERNEL_AUTO; n < FOVEA_KERNEL_COUNT; ++n) {
        const auto kernel = static_cast<FoveaKernel>(n);
        if (name == foveaKernelName(kernel)) return kernel;
        known += (known.empty() ? "" : ", ") + std::string(foveaKernelName(kernel));
    }
    return Error{FOVEA_INVALID_ARGUMENT, "kernel",
                 "kernel '" + std::string(name) + "' is not one of " + known};
}

enum class Align {  // FoveaAlign
    unstated = FOVEA_ALIGN_DEFAULT,
    top_left = FOVEA_ALIGN_TOP_LEFT,
    bottom_right = FOVEA_ALIGN_BOTTOM_RIGHT
};

// One attention call, built by naming what differs from the defaults: q [batch, query heads, queries, dim],
// k [batch, key_value heads, keys, dim], v and o with rows of `value`. Batch, heads, lengths and dims must be
// given; the rest as in FoveaAttentionDesc. `desc` is the C description itself, for what has no name here
// (strides, masks, sequence and block tables, budgets). Nothing is checked before a plan is made.
class Attention {
  public:
    FoveaAttentionDesc desc = foveaAttentionDesc();

    Attention& batch(uint32_t count) { return desc.batch = count, *this; }
    Attention& heads(uint32_t query, uint32_t key_value) {
        desc.heads_q = query;
        desc.heads_kv = key_value;
        return *this;
    }
    Attention& heads(uint32_t count) { return heads(count, count); }
    Attention& lengths(uint64_t queries, uint64_t keys) {
        desc.len_q = queries;
        desc.len_kv = keys;
        return *this;
    }
    Attention& dims(uint32_t query_key, uint32_t value) {
        desc.dim_qk = query_key;
        desc.dim_v = value;
        return *this;
    }
    Attention& dims(uint32_t count) { return dims(count, count); }
    Attention& types(FoveaDtype all) {
        desc.q_type = desc.k_type = desc.v_type = desc.o_type = all;
        return *this;
    }
    // 0: 1 / sqrt(dims).
    Attention& scale(float factor) { return desc.scale = factor, *this; }
    // Scores become cap * tanh(score / cap). 0: none.
    Attention& softcap(float cap) { return desc.softcap = cap, *this; }
    // Keys after the query's position are masked. If the numbers of keys and queries differ, a call must
    // state `which` end is aligned.
    Attention& causal(Align which = Align::unstated) {
        desc.flags |= FOVEA_FLAG_CAUSAL;
        return align(which);
    }
    Attention& align(Align which) { return desc.align = static_cast<FoveaAlign>(which), *this; }
    // Places query 0 at key `offset`, which may be negative. Call it after causal(): it replaces that
    // alignment.
    Attention& q_offset(int64_t offset) {
        desc.align = FOVEA_ALIGN_OFFSET;
        desc.q_offset = offset;
        return *this;
    }
    // Keys from `left` before to `right` after the query's position are visible; -1: all of that side.
    Attention& window(int64_t left, int64_t right) {
        desc.flags |= FOVEA_FLAG_WINDOW;
        desc.window_left = left;
        desc.window_right = right;
        return *this;
    }
    // p in [0, 1); the mask is a function of seed, offset and coordinates, see fovea.h.
    Attention& dropout(float p, uint64_t seed, uint64_t offset = 0) {
        desc.dropout_p = p;
        desc.dropout_seed = seed;
        desc.dropout_offset = offset;
        return *this;
    }
    // Call it after dropout(): this call is a part of another, whose mask it draws; `key` is a multiple of 4.
    Attention& dropout_from(uint64_t query, uint64_t key, uint64_t batch_head = 0) {
        desc.first_query = query;
        desc.first_key = key;
        desc.first_batch_head = batch_head;
        return *this;
    }
    // FOVEA_OUTPUT_* bits; 0 means o only.
    Attention& outputs(uint32_t output_bits) { return desc.outputs = output_bits, *this; }
    Attention& kernel(FoveaKernel which) { return desc.kernel = which, *this; }
    Attention& precision(FoveaPrecision which) { return desc.precision = which, *this; }
    operator const FoveaAttentionDesc&() const { return desc; }
};

// All gradients of q, k and v, packed float32, none accumulated; change what differs.
inline FoveaAttentionBackwardDesc attention_backward(uint32_t gradients = 0) {
    FoveaAttentionBackwardDesc desc = foveaAttentionBackwardDesc();
    desc.gradients = gradients;
    return desc;
}

// Owns a FoveaPlan. Immutable: its functions may run on any number of threads. An empty plan answers nothing.
class Plan {
  public:
    Plan() = default;
    explicit Plan(FoveaPlan handle) : handle_(handle) {}
    Plan(Plan&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Plan& operator=(Plan&& other) noexcept {
        if (this != &other) {
            foveaDestroyPlan(handle_);
            handle_ = std::exchange(other.handle_, nullptr);
        }
        return *this;
    }
    ~Plan() { foveaDestroyPlan(handle_); }

    FoveaPlan get() const { return handle_; }
    explicit operator bool() const { return handle_ != nullptr; }

    FoveaPlanInfo info() const {
        FoveaPlanInfo result{};
        result.struct_size = sizeof result;
        foveaGetPlanInfo(handle_, &result, nullptr);
        return result;
    }
    // Kernel and reasons, tiles, slices, workspace, bindings; lines for a person.
    std::string explain() const {
        std::string text(foveaExplainPlan(handle_, nullptr, 0), '\0');
        foveaExplainPlan(handle_, text.data(), text.size());
        if (!text.empty()) text.pop_back();  // the terminator
        return text;
    }
    // Runs slices of a CPU plan on the caller's buffers, see FoveaCpuRun. After an error nothing was written.
    Result<void> run_cpu(const FoveaCpuRun& run) const {
        Diag diag;
        if (foveaRunCpu(handle_, &run, &diag) != FOVEA_OK) return diag.error();
        return {};
    }

  private:
    FoveaPlan handle_ = nullptr;
};

// The SPIR-V of a dispatch with the storage buffers that it binds, see foveaDispatchCode.
inline Result<std::vector<uint32_t>> dispatch_code(const FoveaDispatch& dispatch) {
    Diag diag;
    size_t count = 0;
    if (foveaDispatchCode(&dispatch, nullptr, &count, &diag) != FOVEA_OK) return diag.error();
    std::vector<uint32_t> words(count);
    if (foveaDispatchCode(&dispatch, words.data(), &count, &diag) != FOVEA_OK) return diag.error();
    words.resize(count);
    return words;
}

// Memory that plans for the CPU work in, kept from run to run; grows, never shrinks. For one run at a time.
class Workspace {
  public:
    Workspace() = default;
    Workspace(Workspace&& other) noexcept { swap(other); }
    Workspace& operator=(Workspace&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Workspace() { release(); }

    // Returns a buffer with the size and alignment that a plan of this `info` needs, with undefined contents.
    // It is valid until the next call. On FOVEA_OUT_OF_HOST_MEMORY the workspace is empty.
    Result<FoveaHostBuffer> reserve(const FoveaPlanInfo& info) {
        if (info.workspace_bytes == 0) return FoveaHostBuffer{};
        if (info.workspace_bytes > size_bytes_ || info.workspace_alignment > kAlignment) {
            release();
            if (info.workspace_bytes <= SIZE_MAX / 2 && info.workspace_alignment <= kAlignment)
                memory_ = ::operator new (static_cast<size_t>(info.workspace_bytes),
                                          std::align_val_t{kAlignment}, std::nothrow);
            if (!memory_)
                return Error{
                    FOVEA_OUT_OF_HOST_MEMORY, "workspace",
                    "no host memory for a workspace of " + std::to_string(info.workspace_bytes) + " bytes"};
            size_bytes_ = info.workspace_bytes;
        }
        return FoveaHostBuffer{memory_, info.workspace_bytes};
    }
    uint64_t size_bytes() const { return size_bytes_; }

  private:
    static constexpr size_t kAlignment = 256;
    void swap(Workspace& other) {
        std::swap(memory_, other.memory_);
        std::swap(size_bytes_, other.size_bytes_);
    }
    void release() {
        ::operator delete (memory_, std::align_val_t{kAlignment});
        memory_ = nullptr, size_bytes_ = 0;
    }
    void* memory_ = nullptr;
    uint64_t size_bytes_ = 0;
};

// Runs slices of a CPU plan, all of them where `slice_count` is 0, on FOVEA_BIND_COUNT bindings with
// `workspace`. `parallel` null: on the calling thread. Errors: foveaRunCpu's, before anything is written, and
// Workspace::reserve's.
inline Result<void> run_on_host(const Plan& plan, const FoveaHostBuffer* bindings, Workspace& workspace,
                                const FoveaParallel* parallel = nullptr, uint64_t first_slice = 0,
                                uint64_t slice_count = 0) {
    const Result<FoveaHostBuffer> memory = workspace.reserve(plan.info());
    if (!memory) return memory.error();
    FoveaCpuRun run{};
    run.struct_size = sizeof run;
    run.binding_count = FOVEA_BIND_COUNT;
    run.bindings = bindings;
    run.workspace = *memory;
    run.parallel = parallel;
    run.first_slice = first_slice;
    run.slice_count = slice_count;
    return plan.run_cpu(run);
}

// Returns the properties of this CPU, for an application that lends `threads` workers.
inline Result<FoveaDeviceProperties> cpu_properties(uint32_t threads = 1) {
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    Diag diag;
    if (foveaCpuProperties(threads, &properties, &diag) != FOVEA_OK) return diag.error();
    return properties;
}

namespace detail {
// The plan that one of the foveaPlan* functions makes of the descriptions that it takes.
template <class Make, class... Desc>
Result<Plan> make_plan(Make make, const FoveaDeviceProperties& properties, const Desc&... desc) {
    FoveaPlan handle = nullptr;
    Diag diag;
    if (make(&properties, &desc..., nullptr, &handle, &diag) != FOVEA_OK) return diag.error();
    return Plan(handle);
}
}  // namespace detail

// Make plans. They reject calls that no device, or not this one, can run; the error has the field's name, its
// value and the limit.
inline Result<Plan> plan_attention(const FoveaDeviceProperties& properties, const FoveaAttentionDesc& desc) {
    return detail::make_plan(foveaPlanAttention, properties, desc);
}
inline Result<Plan> plan_attention_backward(const FoveaDeviceProperties& properties,
                                            const FoveaAttentionDesc& forward,
                                            const FoveaAttentionBackwardDesc& backward) {
    return detail::make_plan(foveaPlanAttentionBackward, properties, forward, backward);
}
inline Result<Plan> plan_rope(const FoveaDeviceProperties& properties, const FoveaRopeDesc& desc) {
    return detail::make_plan(foveaPlanRope, properties, desc);
}
inline Result<Plan> plan_linear(const FoveaDeviceProperties& properties, const FoveaLinearDesc& desc) {
    return detail::make_plan(foveaPlanLinear, properties, desc);
}
inline Result<Plan> plan_append(const FoveaDeviceProperties& properties, const FoveaAppendDesc& desc) {
    return detail::make_plan(foveaPlanAppend, properties, desc);
}
inline Result<Plan> plan_gather(const FoveaDeviceProperties& properties, const FoveaGatherDesc& desc) {
    return detail::make_plan(foveaPlanGather, properties, desc);
}
inline Result<Plan> plan_merge(const FoveaDeviceProperties& properties, const FoveaMergeDesc& desc) {
    return detail::make_plan(foveaPlanMerge, properties, desc);
}
inline Result<Plan> plan_map_tile(const FoveaDeviceProperties& properties,
                                  const FoveaAttentionDesc& attention, const FoveaMapTileDesc& tile) {
    return detail::make_plan(foveaPlanMapTile, properties, attention, tile);
}

// Makes a plan for this CPU. Run it with at most `threads` workers.
inline Result<Plan> plan_cpu(const FoveaAttentionDesc& desc, uint32_t threads = 1) {
    Result<FoveaDeviceProperties> properties = cpu_properties(threads);
    if (!properties) return properties.error();
    return plan_attention(*properties, desc);
}

}  // namespace fovea
