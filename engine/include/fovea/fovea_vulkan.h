/* SPDX-License-Identifier: Apache-2.0
 *
 * Fovea on a host's own Vulkan device: attention recorded into the host's own command buffers.
 *
 * Contract
 * - Lifetime. The context outlives its plans; a plan outlives the execution of command buffers that recorded it.
 *   Structs passed in are read during the call only, except the handles, which are borrowed until the context goes.
 * - Barriers. Fovea puts none before its first and none after its last command. It records compute dispatches only: no
 *   copy, fill or update. So the scope before is: COMPUTE_SHADER, SHADER_READ of the inputs, SHADER_READ|WRITE of the
 *   workspace and outputs. The scope after is: COMPUTE_SHADER, SHADER_WRITE of the outputs. Between its own dispatches
 *   it uses one global memory barrier, compute write -> compute read|write (vkCmdPipelineBarrier, core 1.0).
 *   Slices that share workspace need the same barrier between them; one record call puts it itself, a host that
 *   records slices in several calls does (foveaCmdSliceBarrier). With synchronization2 these are COMPUTE_SHADER with
 *   SHADER_STORAGE_READ and SHADER_STORAGE_WRITE.
 * - State disturbed: the compute pipeline, its push constants and descriptor set 0 of the compute bind point. Graphics
 *   state survives. Must be recorded outside a render pass and outside dynamic rendering.
 * - Names. With VK_EXT_debug_utils enabled on the instance, pipelines are named after their shaders, and each foveaCmdRun
 *   opens a label that says which slices it records.
 * - Contents. The workspace is undefined before and after, so it may alias any transient of the host. Outputs are
 *   written whole, and nothing outside the declared strides is touched.
 * - Frames in flight. A recorded plan reads its buffers when the GPU runs it, not when it is recorded. So whatever the CPU
 *   writes again for the next frame needs a copy for each frame in flight: BATCH_TABLE, BLOCK_TABLE, POSITIONS, masks and
 *   other inputs that the CPU fills, and query pools and descriptor pools. One copy is enough for the KV cache, the
 *   workspace and whatever only the GPU writes, with a barrier between the frames. Append reads lengths before its rows,
 *   attention lengths after them: one decode step has two tables, so three frames in flight have six.
 * - Slices may be recorded in any order, over any number of command buffers and frames, and more than once; each costs
 *   at most FoveaPlanInfo::max_slice_flops, which FoveaAttentionDesc::max_slice_cost bounds.
 * - Threads. Context and plans are immutable after creation and re-entrant: several threads may record one plan, each
 *   into a command buffer of its own, and compile different plans of one context. A FoveaDescriptorArena is a
 *   VkDescriptorPool of the host and needs the host's lock. Fovea creates no thread and takes no queue.
 * - Loading. No vk* symbol is linked: everything goes through the two getters of FoveaVulkanHost.
 */
#ifndef FOVEA_FOVEA_VULKAN_H
#define FOVEA_FOVEA_VULKAN_H

#ifdef FOVEA_NO_VULKAN
#error "this build of Fovea has no Vulkan backend: configure it with -D FOVEA_VULKAN=ON"
#endif

#include <fovea/fovea.h>
#include <vulkan/vulkan_core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- before the device exists: what should the host enable? ---------------------------------------------------------- */

enum { FOVEA_MAX_NEEDED_EXTENSIONS = 24 };

/* One thing worth enabling, and what it buys. Strings live as long as the library. */
typedef struct FoveaDeviceNeed {
    const char* extension; /* device extension name, or null for a core feature */
    const char* feature;   /* "storageBuffer16BitAccess", ... or null */
    uint32_t required;     /* 1: a device must be created with it */
    uint32_t available;    /* 1: this physical device has it */
    const char* buys;
} FoveaDeviceNeed;

typedef struct FoveaDeviceNeeds { /* all of them */
    uint32_t struct_size;
    uint32_t count;
    FoveaDeviceNeed items[FOVEA_MAX_NEEDED_EXTENSIONS];
} FoveaDeviceNeeds;

/* `api_version` is the one the instance was created with. Fails with the reason if the device is below the floor
 * (Vulkan 1.1, a compute queue, 128 invocations, 16 KiB shared memory, 128 bytes of push constants, 4 storage buffers in a
 * shader; docs/guides/embedding.md lists every limit). `allocator` (null: malloc) serves a list that lives during the call. */
FOVEA_API FoveaResult foveaQueryDeviceNeeds(PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkInstance instance,
                                            uint32_t api_version, VkPhysicalDevice physical_device,
                                            const FoveaHostAllocator* allocator, FoveaDeviceNeeds* out,
                                            FoveaDiag* diag);

/* Room for what an application passes to vkCreateDevice: its own wishes and Fovea's. Feature structs are written into
 * `room`. Nothing in it points into itself: it may be copied and moved. It does not grow in later versions. */
enum { FOVEA_MAX_ENABLED_EXTENSIONS = 64, FOVEA_ENABLE_ROOM_WORDS = 128 };
typedef struct FoveaDeviceEnables {
    uint32_t struct_size;
    uint32_t extension_count; /* in: how many names the host has put into `extensions`; out: with Fovea's after them */
    const char* extensions[FOVEA_MAX_ENABLED_EXTENSIONS]; /* no name twice */
    VkPhysicalDeviceFeatures2* features; /* the application's own, with its chain, or null; see foveaEnabledFeatures */
    uint32_t room_used, room_first;      /* 0 at first */
    uint64_t room[FOVEA_ENABLE_ROOM_WORDS];
} FoveaDeviceEnables;

/* Adds all that `needs` found available: names to the list; features to the structs of the application's chain that hold
 * them (VkPhysicalDeviceVulkan12Features, ...), and for the others structs in `room`. What the application enabled stays
 * enabled. Pass `extensions` and foveaEnabledFeatures() to vkCreateDevice, and again as FoveaVulkanHost::enabled_extensions
 * and enabled_features. The application's headers need not know the structs. Thread safety: none is shared. */
FOVEA_API FoveaResult foveaEnableNeeds(const FoveaDeviceNeeds* needs, FoveaDeviceEnables* enables, FoveaDiag* diag);
/* Returns the features of both for VkDeviceCreateInfo::pNext: a copy of the application's VkPhysicalDeviceFeatures2 in
 * `room`, then Fovea's structs, then the application's chain. Valid while `enables` stays where it is; after a copy or a
 * move, call it again on that. Before foveaEnableNeeds: `features`. Null for null. */
FOVEA_API VkPhysicalDeviceFeatures2* foveaEnabledFeatures(FoveaDeviceEnables* enables);

/* ---- the context: one for each VkDevice ------------------------------------------------------------------------------- */

typedef struct FoveaContext_T* FoveaContext; /* the pipelines made for one VkDevice */

typedef struct FoveaVulkanHost { /* what the host has, and how it made it */
    uint32_t struct_size;
    uint32_t api_version; /* VkApplicationInfo::apiVersion of the instance, not the header's. A higher one is refused */
                          /*   where the device's getter lets it be seen */
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    PFN_vkGetDeviceProcAddr get_device_proc_addr;   /* null: asked from the instance getter */
    const VkPhysicalDeviceFeatures2* enabled_features; /* as passed to vkCreateDevice, with its pNext chain; null: none */
    const char* const* enabled_extensions;          /* device extensions, as passed to vkCreateDevice */
    uint32_t enabled_extension_count;
    uint32_t flags;                                 /* must be 0 */
    const VkAllocationCallbacks* vk_allocator;      /* copied; optional */
    const FoveaHostAllocator* host_allocator;       /* copied; optional */
    VkPipelineCache pipeline_cache;                 /* the host's, optional; else the context has one of its own */
    const void* cache_data;                         /* from foveaGetCacheData of an earlier run; optional. A blob that */
    size_t cache_size;                              /*   does not fit device, driver or library is ignored, see */
} FoveaVulkanHost;                                  /*   foveaCacheWasAccepted */

/* Creates no queue object, allocates no device memory, submits nothing. Compiles nothing yet. */
FOVEA_API FoveaResult foveaCreateContext(const FoveaVulkanHost* host, FoveaContext* out, FoveaDiag* diag);
/* Legal after device loss; never waits. Null is ignored. */
FOVEA_API void foveaDestroyContext(FoveaContext context);
/* The device as the host enabled it, for the foveaPlan* functions. The same at every call. */
FOVEA_API FoveaResult foveaContextFacts(FoveaContext context, FoveaDeviceFacts* out, FoveaDiag* diag);

/* The context's pipeline cache with a header of Fovea's own (magic, ABI, vendor, device, driver, cache UUID, length,
 * hash). *size: in the room of `data`, out the bytes needed or written; data null asks for the size. */
FOVEA_API FoveaResult foveaGetCacheData(FoveaContext context, void* data, size_t* size, FoveaDiag* diag);
/* 1: the context began with FoveaVulkanHost::cache_data. 0: none was given, or it did not fit. */
FOVEA_API uint32_t foveaCacheWasAccepted(FoveaContext context);

/* ---- plans on a context ------------------------------------------------------------------------------------------------ */

/* Builds (or finds in the context) the pipelines of a plan made from this context's facts, or from lesser ones. May take
 * long: compile plans ahead of the first frame. After it the plan is immutable. Calling it twice is harmless; a plan
 * belongs to one context. Looks at every slice: a plan of more than 2^20 is refused (FOVEA_LIMIT_EXCEEDED). */
FOVEA_API FoveaResult foveaCompilePlan(FoveaContext context, FoveaPlan plan, FoveaDiag* diag);

typedef struct FoveaBuffer { /* a range of a buffer of the host */
    VkBuffer buffer;       /* usage STORAGE_BUFFER */
    uint64_t offset, size; /* bytes; offset a multiple of the device's storage offset alignment; VK_WHOLE_SIZE is refused */
} FoveaBuffer;

/* Only where push descriptors are missing: a pool of the host, from which one set is allocated for each dispatch
 * recorded. Reset it when the command buffers that used it have finished. Sizes: FoveaPlanInfo::dispatches_per_slice
 * sets of FOVEA_MAX_DISPATCH_BINDINGS storage buffers for each slice recorded. One call takes at most
 * FOVEA_MAX_ARENA_SETS sets. A call refused for lack of room in the pool may have taken some. */
enum { FOVEA_MAX_ARENA_SETS = 512 };
typedef struct FoveaDescriptorArena {
    VkDescriptorPool pool;
} FoveaDescriptorArena;

typedef struct FoveaRecord { /* one foveaCmdRun */
    uint32_t struct_size;
    uint32_t binding_count; /* length of `bindings`, indexed by FoveaBinding */
    VkCommandBuffer cmd;    /* recording, primary or secondary, of a queue family with compute */
    const FoveaBuffer* bindings;
    FoveaBuffer workspace;  /* FoveaPlanInfo::workspace_bytes; not needed where that is 0 */
    uint64_t first_slice, slice_count; /* slice_count 0: all from first_slice on */
    VkQueryPool timestamps;            /* optional, of VK_QUERY_TYPE_TIMESTAMP: 2 for each slice recorded, before and */
    uint32_t first_query;              /*   after it, from this query on. The host has reset them */
    uint32_t dispatch_timestamps;      /* 0, or 1: one before each slice and one after each of its dispatches instead */
    FoveaDescriptorArena arena;        /* only without push descriptors */
} FoveaRecord;

/* Records slices. Every argument is checked before the first vkCmd*: a refused call has recorded nothing. Calls vkCmd*
 * only and, with an arena, vkAllocateDescriptorSets before the first vkCmd* and vkUpdateDescriptorSets once for each set,
 * before the command that binds it. Allocates no host memory. */
FOVEA_API FoveaResult foveaCmdRun(FoveaPlan plan, const FoveaRecord* record, FoveaDiag* diag);

/* The barrier between slices that share workspace, for hosts that record them in several calls. */
FOVEA_API void foveaCmdSliceBarrier(FoveaPlan plan, VkCommandBuffer cmd);

/* Initialisers as in fovea.h: struct_size set, all else zero. */
FOVEA_INITIALISER(FoveaDeviceNeeds, foveaDeviceNeeds)
FOVEA_INITIALISER(FoveaDeviceEnables, foveaDeviceEnables)
FOVEA_INITIALISER(FoveaVulkanHost, foveaVulkanHost)
FOVEA_INITIALISER(FoveaRecord, foveaRecord)

#ifdef __cplusplus
}
#endif
#endif
