// Descriptions of every operation and properties of the device, both wrong in any word: the library says no
// by name, or plans something that stays within the buffers that it asks for and the limits that it was told.
// A small plan for the CPU runs, in buffers of exactly the size it asks for. The bytes choose operation and
// device, then words of sound properties and of a sound description to replace.
#include "fuzz_target.hpp"
#include "shaders/planned.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

using namespace fovea;

namespace {

constexpr size_t kRoom = 4096;  // a newer caller's struct: zeros follow the known fields

struct Bytes {
    const uint8_t* data;
    size_t size;
    uint32_t next(size_t count) {
        uint32_t value = 0;
        for (size_t i = 0; i < count && size > 0; ++i, ++data, --size) value |= uint32_t{*data} << 8 * i;
        return value;
    }
};

// Copies `sound` into its own memory and replaces up to `most_words` of its words.
template <class Struct>
const Struct* spoil(const Struct& sound, Bytes& bytes, size_t most_words, uint64_t (&memory)[kRoom / 8]) {
    std::fill(std::begin(memory), std::end(memory), 0);
    std::memcpy(memory, &sound, sizeof sound);
    for (size_t n = 0; n < most_words && bytes.size >= 5; ++n) {
        const size_t word = bytes.next(1) % (sizeof(Struct) / 4);
        const uint32_t value = bytes.next(4);
        std::memcpy(reinterpret_cast<char*>(memory) + 4 * word, &value, 4);
    }
    auto* spoilt = reinterpret_cast<Struct*>(memory);
    spoilt->struct_size =
        std::min<uint32_t>(spoilt->struct_size, kRoom);  // a caller's struct is as large as it says
    return spoilt;
}

void check_dispatch(const FoveaDispatch& d, const FoveaPlanInfo& info,
                    const FoveaDeviceProperties& properties) {
    for (int axis = 0; axis < 3; ++axis)
        fuzz::require(d.groups[axis] >= 1 && d.groups[axis] <= properties.max_workgroup_count[axis],
                      "a dispatch has groups, and no more than the device takes");
    fuzz::require(d.push_words * 4 <= properties.max_push_bytes, "push constants fit the device");
    for (uint32_t i = 0; i < d.binding_count; ++i) {
        const FoveaDispatchBinding& b = d.bindings[i];
        const uint64_t all =
            b.source == FOVEA_BIND_WORKSPACE ? info.workspace_bytes : info.binding_bytes[b.source];
        fuzz::require(b.size > 0 && b.offset <= all && b.size <= all - b.offset,
                      "a binding stays within its buffer");
        fuzz::require(b.size <= properties.max_storage_range, "a binding fits a descriptor");
        fuzz::require(b.offset % properties.storage_offset_alignment == 0, "a binding's offset is aligned");
    }
}

struct HostBuffer {
    HostBuffer() = default;
    HostBuffer(const HostBuffer&) = delete;
    ~HostBuffer() { ::operator delete(data, kAlignment); }
    void allocate(uint64_t size) {
        data = ::operator new(size, kAlignment);
        std::memset(data, 0, size);
    }
    static constexpr std::align_val_t kAlignment{64};  // alignment of a workspace
    void* data = nullptr;
};

// Zeros in buffers that end where they must; the sanitizers see a step beyond. It may be rejected, as an
// instruction set that is not here is.
void run_here(const Plan& plan, const FoveaPlanInfo& info) {
    constexpr uint64_t kMaxBytes = 1 << 18;
    constexpr double kMaxFlops = 1e6;
    HostBuffer memory[FOVEA_BIND_COUNT];
    FoveaHostBuffer buffers[FOVEA_BIND_COUNT] = {};
    if (info.flops > kMaxFlops || info.slice_count > 1000) return;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        const bool workspace = i == FOVEA_BIND_WORKSPACE;
        if (!workspace && !(info.binding_mask >> i & 1)) continue;
        const uint64_t size = workspace ? info.workspace_bytes : info.binding_bytes[i];
        if (size > kMaxBytes) return;
        if (size == 0) continue;
        memory[i].allocate(size);
        buffers[i] = {memory[i].data, size};
    }
    FoveaCpuRun run{};
    run.struct_size = sizeof run;
    run.binding_count = FOVEA_BIND_COUNT;
    run.bindings = buffers;
    run.workspace = std::exchange(buffers[FOVEA_BIND_WORKSPACE], {});  // it has a separate field
    Diag diag;
    const FoveaResult code = foveaRunCpu(plan.get(), &run, &diag);
    fuzz::require(code == FOVEA_OK || (diag.field[0] && diag.text[0]), "a refused run says why");
}

void check_plan(const Plan& plan, const FoveaDeviceProperties& properties) {
    const FoveaPlanInfo info = plan.info();
    fuzz::require(std::isfinite(info.flops) && info.flops >= 0, "a plan's cost is a number");
    fuzz::require((info.output_mask & ~info.binding_mask) == 0, "what is written is bound");
    fuzz::require(!plan.explain().empty(), "a plan explains itself");
    if (info.slice_count == 0) return;
    if (info.backend == FOVEA_BACKEND_CPU) return run_here(plan, info);
    for (const uint64_t slice : {uint64_t{0}, info.slice_count / 2, info.slice_count - 1})
        for (const FoveaDispatch& d : test::dispatches_of(plan, slice)) check_dispatch(d, info, properties);
    uint32_t count = 0;
    fuzz::require(foveaGetDispatches(plan.get(), info.slice_count, nullptr, &count, nullptr) != FOVEA_OK,
                  "there is no slice behind the last");
}

template <class Desc, class Make>
void run(const Desc& sound, Bytes bytes, const FoveaDeviceProperties& properties, Make make) {
    uint64_t memory[kRoom / 8];
    const Desc* desc = spoil(sound, bytes, bytes.size, memory);
    FoveaPlan handle = nullptr;
    Diag diag;
    const FoveaResult code = make(&properties, desc, nullptr, &handle, &diag);
    const Plan plan(handle);
    fuzz::require((code == FOVEA_OK) == (handle != nullptr),
                  "there is a plan exactly when there is no error");
    if (code == FOVEA_OK) return check_plan(plan, properties);
    fuzz::require(diag.code == code && diag.field[0] && diag.text[0], "an error names a field and says why");
}

// A tile is planned from two descriptions: one of them is wrong.
void run_map_tile(bool spoil_tile, const FoveaAttentionDesc& call, Bytes bytes,
                  const FoveaDeviceProperties& properties) {
    const FoveaMapTileDesc tile{sizeof(FoveaMapTileDesc), 1, 1, 2, 5, 24, 8, 57, 13, 12, 3, 0};
    if (spoil_tile)
        run(tile, bytes, properties,
            [&](const FoveaDeviceProperties* f, const FoveaMapTileDesc* spoilt,
                const FoveaHostAllocator* allocator, FoveaPlan* out,
                FoveaDiag* diag) { return foveaPlanMapTile(f, &call, spoilt, allocator, out, diag); });
    else
        run(call, bytes, properties,
            [&](const FoveaDeviceProperties* f, const FoveaAttentionDesc* spoilt,
                const FoveaHostAllocator* allocator, FoveaPlan* out,
                FoveaDiag* diag) { return foveaPlanMapTile(f, spoilt, &tile, allocator, out, diag); });
}

FoveaDeviceProperties properties_of(uint32_t choice) {
    if (choice == 0) return *cpu_properties(2);
    if (choice == 1) return test::floor_properties();
    FoveaDeviceProperties properties = test::gpu_properties();
    if (choice == 3) test::add_matrices(properties);
    return properties;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Bytes bytes{data, size};
    const uint32_t operation = bytes.next(1) % 8, device = bytes.next(1);
    uint64_t memory[kRoom / 8];
    const FoveaDeviceProperties& properties =
        *spoil(properties_of(device % 4), bytes, device / 4 % 8, memory);
    Attention call;
    call.batch(2).heads(4, 2).lengths(33, 65).dims(24, 16);
    if (operation == 0) {
        run(call.desc, bytes, properties, foveaPlanAttention);
        FoveaAttentionDesc copy = call.desc;
        static_cast<void>(foveaCheckAttention(nullptr, &copy, nullptr));
    } else if (operation == 1) {
        run(FoveaRopeDesc{sizeof(FoveaRopeDesc), FOVEA_F32, FOVEA_F32, 2, 3, 8, 5}, bytes, properties,
            foveaPlanRope);
    } else if (operation == 2) {
        run(FoveaLinearDesc{sizeof(FoveaLinearDesc), FOVEA_F32, FOVEA_F32, FOVEA_F32, 8, 7, 1, 0, 30}, bytes,
            properties, foveaPlanLinear);
    } else if (operation == 3) {
        run(FoveaAppendDesc{sizeof(FoveaAppendDesc), FOVEA_F32, FOVEA_F32, 1, 3, 4, 2, 10, 6}, bytes,
            properties, foveaPlanAppend);
    } else if (operation == 6) {
        run(FoveaMergeDesc{sizeof(FoveaMergeDesc), FOVEA_F32, FOVEA_F32, FOVEA_KERNEL_AUTO, 3, 1, 2, 4, 5},
            bytes, properties, foveaPlanMerge);
    } else if (operation == 7) {
        run(FoveaGatherDesc{sizeof(FoveaGatherDesc), FOVEA_F32, FOVEA_F16, 2, 3, 8, 5, 20}, bytes, properties,
            foveaPlanGather);
    } else {
        run_map_tile(operation == 4, call.desc, bytes, properties);
    }
    return 0;
}
