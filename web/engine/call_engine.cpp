#include "call_engine.h"

#include "engine_state.hpp"
#include "gpu_plan.hpp"

#include <fovea/inspect/json.hpp>

#include <cmath>
#include <map>
#include <span>
#include <vector>

namespace {

using namespace fovea;
using namespace fovea::web;

// The page's kernels are made for values of so many columns (web/tools/kernels.mjs), whatever the keys have.
constexpr uint32_t kMapValueWidth = 64;

enum Operation : int32_t { kAttention, kMapTile, kMerge };

// A call that is being described.
struct Described {
    FoveaAttentionDesc call = foveaAttentionDesc();
    FoveaMapTileDesc tile = foveaMapTileDesc();
    FoveaMergeDesc merge = foveaMergeDesc();
};
struct Field {
    const char* name;
    void (*set)(Described& d, double value);
};

#define FIELD(part, member)                                                                  \
    Field {                                                                                  \
#member, [](Described & d, double v) { d.part.member = decltype(d.part.member)(v); } \
    }
#define STRIDES(part, member) FIELD(part, member.batch), FIELD(part, member.head), FIELD(part, member.row)
#define MATRIX(member)                                                                 \
    FIELD(call, member.present), FIELD(call, member.type), FIELD(call, member.batch),  \
        FIELD(call, member.heads), FIELD(call, member.rows), FIELD(call, member.keys), \
        STRIDES(call, member.strides)

constexpr Field kCallFields[] = {FIELD(call, flags),
                                 FIELD(call, batch),
                                 FIELD(call, heads_q),
                                 FIELD(call, heads_kv),
                                 FIELD(call, dim_qk),
                                 FIELD(call, dim_v),
                                 FIELD(call, outputs),
                                 FIELD(call, len_q),
                                 FIELD(call, len_kv),
                                 STRIDES(call, q_strides),
                                 STRIDES(call, k_strides),
                                 STRIDES(call, v_strides),
                                 STRIDES(call, o_strides),
                                 FIELD(call, scale),
                                 FIELD(call, softcap),
                                 FIELD(call, align),
                                 FIELD(call, q_offset),
                                 FIELD(call, window_left),
                                 FIELD(call, window_right),
                                 MATRIX(mask),
                                 MATRIX(bias),
                                 MATRIX(dropout_mask),
                                 FIELD(call, dropout_p),
                                 FIELD(call, dropout_seed),
                                 FIELD(call, dropout_offset),
                                 FIELD(call, packed_rows_q),
                                 FIELD(call, packed_rows_kv),
                                 FIELD(call, page_size),
                                 FIELD(call, page_count),
                                 FIELD(call, block_table_pages),
                                 FIELD(call, kernel),
                                 FIELD(call, max_slice_cost),
                                 FIELD(call, workspace_limit),
                                 FIELD(call, first_query),
                                 FIELD(call, first_key),
                                 FIELD(call, first_batch_head)};
constexpr Field kTileFields[] = {FIELD(tile, batch),     FIELD(tile, first_head), FIELD(tile, head_count),
                                 FIELD(tile, first_row), FIELD(tile, row_count),  FIELD(tile, first_key),
                                 FIELD(tile, key_count), FIELD(tile, width),      FIELD(tile, height),
                                 FIELD(tile, outputs),   FIELD(tile, sampled)};
constexpr Field kMergeFields[] = {FIELD(merge, parts), FIELD(merge, batch), FIELD(merge, heads),
                                  FIELD(merge, dim), FIELD(merge, len)};

#undef FIELD
#undef STRIDES
#undef MATRIX

// A tile's call comes first, then the tile; its names begin with "tile.".
std::vector<std::pair<std::string, Field>> fields_of(int32_t operation) {
    std::vector<std::pair<std::string, Field>> fields;
    if (operation == kMerge)
        for (const Field& f : kMergeFields) fields.emplace_back(f.name, f);
    else
        for (const Field& f : kCallFields) fields.emplace_back(f.name, f);
    if (operation == kMapTile)
        for (const Field& f : kTileFields) fields.emplace_back(std::string("tile.") + f.name, f);
    return fields;
}

struct Planned {
    Plan plan;
    bool on_gpu = false;
    std::vector<uint32_t> words;  // words of the last requested slice
};

std::map<int32_t, Planned>& plans() {
    static std::map<int32_t, Planned> all;
    return all;
}

Planned* planned(int32_t number) {
    const auto found = plans().find(number);
    if (found != plans().end()) return &found->second;
    refuse_call("plan is " + std::to_string(number) + ", which does not exist; make it first");
    return nullptr;
}

GpuLimits limits_of(const double* n) {
    return {uint32_t(n[0]), uint32_t(n[1]), uint32_t(n[2]), uint32_t(n[3]), uint64_t(n[4])};
}

int32_t kept(Result<Plan> plan, bool on_gpu) {
    static int32_t last = 0;
    if (!plan) return refuse_call(plan.error().text);
    if (!*plan) return refuse_call("");
    Planned made;
    made.plan = std::move(*plan);
    made.on_gpu = on_gpu;
    plans().insert_or_assign(++last, std::move(made));
    return last;
}

FoveaDeviceProperties properties_for(const double* limits) {
    return limits ? gpu_properties(limits_of(limits)) : open_runner().properties();
}

double address_of(const void* data) { return double(reinterpret_cast<uintptr_t>(data)); }

std::string span_json(const void* data, size_t count) {
    return JsonObject().number("address", address_of(data)).number("count", double(count)).done();
}

DeepZoom* map_or_refusal() {
    DeepZoom* map = open_map();
    if (!map) refuse_call("no map is open; call webMapBegin first");
    return map;
}

}  // namespace

const char* webCallFields(int32_t operation) {
    return answer_text(
        array_json(fields_of(operation), [](const auto& field) { return json_string(field.first); }));
}

int32_t webCallPlan(int32_t operation, const double* values, const double* limits) {
    Described d;
    const auto fields = fields_of(operation);
    for (size_t n = 0; n < fields.size(); ++n)
        if (!std::isnan(values[n])) fields[n].second.set(d, values[n]);
    const FoveaDeviceProperties properties = properties_for(limits);
    switch (operation) {
        case kAttention:
            return kept(plan_attention(properties, d.call), limits != nullptr);
        case kMapTile:
            return kept(plan_map_tile(properties, d.call, d.tile), limits != nullptr);
        case kMerge:
            if (!limits) d.merge.kernel = FOVEA_KERNEL_PLAIN;  // the other one is left out
            return kept(plan_merge(properties, d.merge), limits != nullptr);
    }
    return refuse_call("operation is " + std::to_string(operation) + ", which is not supported");
}

const char* webCallInfo(int32_t number) {
    const Planned* p = planned(number);
    if (!p) return nullptr;
    const FoveaPlanInfo info = p->plan.info();
    std::string bindings;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(info.binding_mask >> i & 1)) continue;
        bindings += (bindings.empty() ? "" : ",") + JsonObject()
                                                        .number("number", i)
                                                        .number("bytes", double(info.binding_bytes[i]))
                                                        .number("tensor", double(info.tensor_bytes[i]))
                                                        .number("written", double(info.output_mask >> i & 1))
                                                        .done();
    }
    return answer_text(JsonObject()
                           .text("kernel", foveaKernelName(info.kernel))
                           .text("reason", info.reason)
                           .number("slices", double(info.slice_count))
                           .number("flops", info.flops)
                           .raw("bindings", "[" + bindings + "]")
                           .done());
}

const uint32_t* webCallSlice(int32_t number, double slice) {
    Planned* p = planned(number);
    if (!p) return nullptr;
    if (!p->on_gpu) return refuse_call("the plan is for the CPU; make one for the GPU"), nullptr;
    p->words.assign(1, 0);
    if (Result<void> done = append_gpu_slice(p->plan, uint64_t(slice), p->words); !done)
        return refuse_call(done.error().text), nullptr;
    p->words[0] = uint32_t(p->words.size() - 1);
    return p->words.data();
}

int32_t webCallRun(int32_t number, const uint32_t* buffers) {
    Planned* p = planned(number);
    if (!p) return 0;
    if (p->on_gpu) return refuse_call("the plan is for a GPU; make one for the CPU");
    const FoveaPlanInfo info = p->plan.info();
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if ((info.binding_mask >> i & 1) && buffers[i])
            bindings[i] = {reinterpret_cast<void*>(uintptr_t(buffers[i])), info.binding_bytes[i]};
    if (Result<void> done = open_runner().run(p->plan, bindings); !done)
        return refuse_call(done.error().text);
    return 1;
}

void webCallEnd(int32_t number) { plans().erase(number); }

int32_t webGpuMapForward(const double* limits, double max_flops) {
    DeepZoom* map = map_or_refusal();
    if (!map) return 0;
    return kept(map->plan_forward(gpu_properties(limits_of(limits)), kMapValueWidth, max_flops), true);
}

const char* webGpuMapTensors(void) {
    DeepZoom* map = map_or_refusal();
    if (!map) return nullptr;
    std::string inputs;
    for (uint32_t binding = 0; binding < FOVEA_BIND_COUNT; ++binding) {
        const FoveaHostBuffer& buffer = map->input(binding);
        if (buffer.data && binding != FOVEA_BIND_V)
            inputs += (inputs.empty() ? "" : ",") + JsonObject()
                                                        .number("binding", binding)
                                                        .number("address", address_of(buffer.data))
                                                        .number("bytes", double(buffer.size_bytes))
                                                        .done();
    }
    return answer_text(JsonObject()
                           .raw("inputs", "[" + inputs + "]")
                           .raw("lse", span_json(map->lse().data(), map->lse().size()))
                           .done());
}

int32_t webGpuMapPlan(const double* limits, double max_flops) {
    DeepZoom* map = map_or_refusal();
    return map ? kept(map->plan_tile(gpu_properties(limits_of(limits)), max_flops), true) : 0;
}

const char* webGpuMapTile(void) {
    DeepZoom* map = map_or_refusal();
    if (!map) return nullptr;
    if (!map->has_tile()) return refuse_call(""), nullptr;
    return answer_text(JsonObject()
                           .raw("shown", map_state_json(false))
                           .raw("mass", span_json(map->pixels().mass.data(), map->pixels().mass.size()))
                           .raw("max", span_json(map->pixels().max.data(), map->pixels().max.size()))
                           .done());
}

const char* webGpuMapStore(void) {
    DeepZoom* map = map_or_refusal();
    if (!map) return nullptr;
    map->store_tile();
    return answer_text(map_state_json(true));
}

void webGpuMapGiveUp(void) {
    if (DeepZoom* map = open_map()) map->give_up_tile();
}
