#include "plan/vulkan/gather.hpp"

#include "plan/vulkan/dispatch.hpp"
#include "problem/checked.hpp"

#include <algorithm>
#include <iterator>

namespace fovea {
namespace {

constexpr uint64_t kMaxGroups = 256;
constexpr uint64_t kStepBytes = 4 * shader::kGatherStep;
static_assert(kStepBytes % kWorkspaceAlignment == 0);

struct Input {
    uint32_t bit;
    FoveaBinding source;
};
// In the order of their sizes; the first four are bound as a whole.
constexpr Input kTable[] = {
    {shader::kGatherSequences, FOVEA_BIND_SEQUENCES},
    {shader::kGatherBlockTable, FOVEA_BIND_BLOCK_TABLE},
    {shader::kGatherAlibi, FOVEA_BIND_ALIBI},
    {shader::kGatherSinks, FOVEA_BIND_SINKS},
    {shader::kGatherLse, FOVEA_BIND_LSE},
    {shader::kGatherDLse, FOVEA_BIND_DLSE},
    {shader::kGatherDropoutMask, FOVEA_BIND_DROPOUT_MASK},
    {shader::kGatherMask, FOVEA_BIND_MASK},
    {shader::kGatherBias, FOVEA_BIND_BIAS},
};

const MatrixView& matrix_of(const Problem& p, FoveaBinding source) {
    return source == FOVEA_BIND_MASK ? p.mask : source == FOVEA_BIND_BIAS ? p.bias : p.dropout_mask;
}

bool is_input(const FoveaPlan_T& plan, FoveaBinding source) {
    const Problem& p = plan.problem;
    switch (source) {
        case FOVEA_BIND_SEQUENCES:
            return p.sequences && p.binding_bytes[source] > 0;
        case FOVEA_BIND_BLOCK_TABLE:
            return p.page_size != 0 && p.binding_bytes[source] > 0;
        case FOVEA_BIND_ALIBI:
            return p.alibi;
        case FOVEA_BIND_SINKS:
            return p.sinks;
        case FOVEA_BIND_LSE:
            return p.len_q > 0 &&
                   (plan.operation == Operation::map_tile || plan.operation == Operation::backward);
        case FOVEA_BIND_DLSE:
            return p.len_q > 0 && plan.operation == Operation::backward && plan.backward.lse_gradient;
        default:
            return p.len_q > 0 && matrix_of(p, source).present && matrix_of(p, source).keys > 0;
    }
}

bool is_gathered(const FoveaPlan_T& plan, const Input& input) {
    return (plan.vulkan.gathered & input.bit) && is_input(plan, input.source);
}

uint64_t room_for(const FoveaPlan_T& plan, FoveaBinding source, const BlockShape& block) {
    const Problem& p = plan.problem;
    const uint64_t alignment = window_alignment(plan.properties);
    switch (source) {
        case FOVEA_BIND_SEQUENCES:
        case FOVEA_BIND_BLOCK_TABLE:
        case FOVEA_BIND_ALIBI:
        case FOVEA_BIND_SINKS:
            return p.binding_bytes[source];
        case FOVEA_BIND_LSE:
        case FOVEA_BIND_DLSE:
            return ((block.batches - 1) * p.heads_q + block.heads_q - 1) * uint64_t(p.len_q) * 4 +
                   block.rows * 4 + alignment;
        default: {
            const MatrixView& m = matrix_of(p, source);
            return largest_window(m.strides, block.batches, block.heads_q, block.rows, uint64_t(m.keys),
                                  dtype_bytes(m.type), alignment);
        }
    }
}

Window binding_window(const Problem& p, FoveaBinding source, const BlockWindows& windows) {
    switch (source) {
        case FOVEA_BIND_SEQUENCES:
        case FOVEA_BIND_BLOCK_TABLE:
        case FOVEA_BIND_ALIBI:
        case FOVEA_BIND_SINKS:
            return windows.whole(source);
        case FOVEA_BIND_LSE:
        case FOVEA_BIND_DLSE:
            return windows.lse;
        default:
            return windows.matrix(matrix_of(p, source));
    }
}

}  // namespace

uint32_t storage_buffer_limit(const FoveaDeviceProperties& properties) {
    return properties.max_storage_buffers ? std::min(properties.max_storage_buffers, kMaxStorageBuffers)
                                          : kMaxStorageBuffers;
}

uint32_t next_to_gather(const FoveaPlan_T& plan) {
    for (const Input& input : kTable)
        if (!(plan.vulkan.gathered & input.bit) && is_input(plan, input.source)) return input.bit;
    return 0;
}

uint32_t always_gathered(const FoveaDeviceProperties& properties) {
    uint32_t all = 0;
    if (is_software(properties))
        for (const Input& input : kTable) all |= input.bit;
    return all;
}

uint32_t gathered_count(const FoveaPlan_T& plan) {
    return uint32_t(std::count_if(std::begin(kTable), std::end(kTable),
                                  [&](const Input& input) { return is_gathered(plan, input); }));
}

Gathering::Gathering(const FoveaPlan_T& plan, const BlockShape& largest, uint64_t extra_offset,
                     uint64_t begin)
    : plan_(plan), extra_offset_(extra_offset), end_(begin) {
    static_assert(std::size(kTable) == kInputs);
    if (gathered_count(plan) == 0) return;
    end_ = align_up(end_, kWorkspaceAlignment);
    for (uint32_t i = 0; i < kInputs; ++i) {
        const Input& input = kTable[i];
        place_[i] = end_;
        // ALiBi slopes and sinks share one place of GatheredAt: each keeps its room, gathered or not.
        const bool of_heads = input.bit == shader::kGatherAlibi || input.bit == shader::kGatherSinks;
        if (of_heads)
            end_ += align_up(uint64_t{plan.problem.heads_q} * 4, kStepBytes);
        else if (is_gathered(plan, input))
            end_ += align_up(room_for(plan, input.source, largest), kStepBytes);
    }
}

shader::GatheredAt Gathering::places() const {
    if (gathered_count(plan_) == 0) return {};
    const auto words = [&](uint32_t i) {
        return uint32_t((place_[i] - extra_offset_) / 4 - shader::kExtraWords);
    };
    return {words(0), words(1), words(2), words(4), words(5), words(6), words(7), words(8)};
}

void Gathering::fill(const BlockWindows& windows, FoveaDispatch* out, uint32_t& count) const {
    for (uint32_t i = 0; i < kInputs; ++i) {
        const Input& input = kTable[i];
        if (!is_gathered(plan_, input)) continue;
        Window from = binding_window(plan_.problem, input.source, windows);
        round_for_words(from);
        DispatchBuilder d(out[count++], Shader::gather);
        const shader::GatherPush push{uint32_t(from.size / 4)};
        d.input(FOVEA_SLOT_UNGATHERED, input.source, from);
        d.output(FOVEA_SLOT_EXTRA, FOVEA_BIND_WORKSPACE, {place_[i], from.size, 0});
        d.spec(FOVEA_SPEC_THREADS, shader::kGatherThreads);
        d.push(push);
        const uint64_t groups = ceil_div(uint64_t{push.words}, uint64_t{shader::kGatherThreads});
        d.groups(std::min<uint64_t>({groups, kMaxGroups, plan_.properties.max_workgroup_count[0]}), 1, 1);
    }
}

}  // namespace fovea
