/* SPDX-License-Identifier: Apache-2.0
 *
 * Fovea on an application's Vulkan device: records plans into the application's command buffers.
 *
 * The conventions of <fovea/fovea.h> apply. A complete program is samples/first/main.c.
 *
 * Contract
 * - Lifetime. A context must outlive its plans. A plan must outlive the execution of the command buffers that recorded it.
 *   Structs are read only during the call, except the Vulkan handles in FoveaVulkanDevice, which the context uses until it
 *   is destroyed.
 * - Barriers. Fovea records no barrier before its first command and none after its last one. It records only compute
 *   dispatches: no copy, fill or update. Before them, the application must make inputs visible to COMPUTE_SHADER /
 *   SHADER_READ, and the workspace and outputs to SHADER_READ|WRITE. After them, outputs were written by COMPUTE_SHADER /
 *   SHADER_WRITE. Between its dispatches Fovea records one global memory barrier, compute write -> compute read|write
 *   (vkCmdPipelineBarrier, core 1.0). Slices that share the workspace need the same barrier between them. One call of
 *   foveaCmdRun records it. Between two calls the application records it, by foveaCmdSliceBarrier or by itself.
 *   With synchronization2 the accesses are SHADER_STORAGE_READ and SHADER_STORAGE_WRITE.
 * - State. Recording changes the compute pipeline, its push constants and descriptor set 0 of the compute bind point;
 *   graphics state is kept. It must happen outside a render pass and outside dynamic rendering.
 * - Names. With VK_EXT_debug_utils on the instance, pipelines have the names of their shaders. Each foveaCmdRun opens a label
 *   with the slices that it records.
 * - Contents. No slice reads what another one left in the workspace. So it need not keep its contents between slices or
 *   frames, and may alias transient memory. Outputs are complete when every slice has run; nothing outside the declared
 *   strides is touched.
 * - Frames in flight. A recorded plan reads its buffers when the GPU executes it, not when it is recorded. Whatever the CPU
 *   writes again for the next frame needs one copy for each frame in flight: SEQUENCES, BLOCK_TABLE, POSITIONS, masks and
 *   other inputs that the CPU fills, and query pools and descriptor pools. One copy is enough for the KV cache, the
 *   workspace and everything that only the GPU writes, with a barrier between the frames. Append reads the lengths before
 *   its new rows, attention the lengths after them: one decode step has two SEQUENCES tables, three frames have six.
 * - Slices. They may be recorded in any order, into any number of command buffers and frames, and more than once. Each
 *   costs at most FoveaPlanInfo::max_slice_flops, which FoveaAttentionDesc::max_slice_cost bounds.
 * - Threads. A context does not change after creation, a plan not after foveaCompilePlan. Several threads may record one
 *   plan, each into a different command buffer, and compile different plans of one context. A FoveaDescriptorPool is the
 *   application's VkDescriptorPool: access to it must be externally synchronized. Recording never waits for a thread that
 *   compiles. Fovea creates no thread and uses no queue.
 * - Device loss. From the call on that finds it, foveaCompilePlan, foveaCmdRun and foveaGetPipelineCacheData return
 *   FOVEA_DEVICE_LOST, and foveaCmdSliceBarrier records nothing. All other functions work as before.
 * - Loading. The library links no vk* symbol. It loads every function by the two getters of FoveaVulkanDevice.
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

/* ---- before the device is created: recommended features --------------------------------------------------------------- */

enum { FOVEA_MAX_RECOMMENDED_FEATURES = 24 }; /* length of FoveaRecommendedFeatures::items */

/* A device extension or feature that is worth enabling. Texts live as long as the library. */
typedef struct FoveaRecommendedFeature {
    const char* extension; /* name of the device extension; null: a core feature */
    const char* feature;   /* name of the feature, "storageBuffer16BitAccess" for example; null: only the extension */
    uint32_t required;     /* 1: a device must be created with it */
    uint32_t available;    /* 1: this physical device has it */
    const char* benefit;   /* the kernels or speed that it enables, as text */
} FoveaRecommendedFeature;

/* All recommended features of a physical device, available or not. */
typedef struct FoveaRecommendedFeatures {
    uint32_t struct_size; /* sizeof(FoveaRecommendedFeatures) */
    uint32_t count;       /* used elements of `items` */
    FoveaRecommendedFeature items[FOVEA_MAX_RECOMMENDED_FEATURES];
} FoveaRecommendedFeatures;

/* Returns the extensions and features that are worth enabling on a physical device.
 *   api_version   VkApplicationInfo::apiVersion of the instance
 *   allocator     provides a list that lives during the call; null: malloc
 *   out           receives the features; struct_size must be set
 * Errors: FOVEA_UNSUPPORTED or FOVEA_LIMIT_EXCEEDED with the reason if the device is below the minimum requirements: Vulkan
 * 1.1, a compute queue, 128 invocations, 16 KiB shared memory, 128 bytes of push constants, 4 storage buffers in a shader
 * (docs/reference/devices.md has every limit). FOVEA_INVALID_ARGUMENT, FOVEA_OUT_OF_HOST_MEMORY, FOVEA_VULKAN_ERROR.
 * Thread-safe. */
FOVEA_API FoveaResult foveaQueryRecommendedFeatures(PFN_vkGetInstanceProcAddr get_instance_proc_addr, VkInstance instance,
                                                    uint32_t api_version, VkPhysicalDevice physical_device,
                                                    const FoveaHostAllocator* allocator, FoveaRecommendedFeatures* out,
                                                    FoveaDiag* diag);

enum { FOVEA_MAX_ENABLED_EXTENSIONS = 64, FOVEA_ENABLED_ROOM_WORDS = 128 }; /* sizes in FoveaEnabledFeatures */

/* The extensions and features for vkCreateDevice: the application's and Fovea's. It holds no pointer to itself, so it may be
 * copied and moved. It does not grow in later versions. */
typedef struct FoveaEnabledFeatures {
    uint32_t struct_size;     /* sizeof(FoveaEnabledFeatures) */
    uint32_t extension_count; /* in: the application's names in `extensions`; out: with Fovea's added */
    const char* extensions[FOVEA_MAX_ENABLED_EXTENSIONS]; /* no name twice */
    VkPhysicalDeviceFeatures2* features; /* the application's features with their pNext chain, or null */
    uint32_t room_used, room_first;      /* must be 0 at first; used by the library */
    uint64_t room[FOVEA_ENABLED_ROOM_WORDS]; /* Fovea's feature structs */
} FoveaEnabledFeatures;

/* Adds every available item of `recommended` to `enabled`: names to `extensions`; features to the structs of the application's
 * chain that contain them (VkPhysicalDeviceVulkan12Features, ...), or else to structs in `room`. What the application enabled
 * stays enabled. Pass `extensions` and foveaEnabledFeatures2() to vkCreateDevice, and again as
 * FoveaVulkanDevice::enabled_extensions and enabled_features. The application's headers need not know the structs.
 * Errors: FOVEA_LIMIT_EXCEEDED if `extensions` or `room` is too small, FOVEA_INVALID_ARGUMENT, FOVEA_ABI_MISMATCH; then
 * nothing was added. `enabled` and its chain must be externally synchronized. */
FOVEA_API FoveaResult foveaEnableRecommendedFeatures(const FoveaRecommendedFeatures* recommended,
                                                     FoveaEnabledFeatures* enabled, FoveaDiag* diag);
/* Returns the features for VkDeviceCreateInfo::pNext: a copy of the application's VkPhysicalDeviceFeatures2 in `room`, then
 * Fovea's structs, then the application's chain. It is valid until `enabled` moves or is copied: then call it again with
 * the new one. Before foveaEnableRecommendedFeatures it returns `features`; null for null. `enabled` must be externally
 * synchronized. */
FOVEA_API VkPhysicalDeviceFeatures2* foveaEnabledFeatures2(FoveaEnabledFeatures* enabled);

/* ---- the context: one for each VkDevice ------------------------------------------------------------------------------- */

/* The pipelines made for one VkDevice. */
typedef struct FoveaContext_T* FoveaContext;

/* An application's VkDevice, and how it was created. */
typedef struct FoveaVulkanDevice {
    uint32_t struct_size; /* sizeof(FoveaVulkanDevice) */
    uint32_t api_version; /* VkApplicationInfo::apiVersion of the instance, not the header's. A higher one is an error */
                          /*   where the device's getter reveals it */
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    PFN_vkGetDeviceProcAddr get_device_proc_addr;   /* null: loaded by the instance's getter */
    const VkPhysicalDeviceFeatures2* enabled_features; /* as passed to vkCreateDevice, with its pNext chain; null: none */
    const char* const* enabled_extensions;          /* device extensions, as passed to vkCreateDevice */
    uint32_t enabled_extension_count;
    uint32_t flags;                                 /* must be 0 */
    const VkAllocationCallbacks* vk_allocator;      /* copied; may be null */
    const FoveaHostAllocator* host_allocator;       /* copied; null: malloc */
    VkPipelineCache pipeline_cache;                 /* the application's; null: the context creates one */
    const void* pipeline_cache_data;                /* from foveaGetPipelineCacheData of an earlier run, or null. Ignored */
    size_t pipeline_cache_size;                     /*   with pipeline_cache; or if from another device, driver or ABI */
} FoveaVulkanDevice;

/* Makes a context of a device. Creates no queue, allocates no device memory, submits nothing and compiles nothing yet.
 *   vulkan   the device; read during the call, its handles are used until foveaDestroyContext
 *   out      receives the context; null after an error
 * Errors: FOVEA_INVALID_ARGUMENT, FOVEA_UNSUPPORTED or FOVEA_LIMIT_EXCEEDED below the minimum requirements,
 * FOVEA_OUT_OF_HOST_MEMORY, FOVEA_VULKAN_ERROR, FOVEA_ABI_MISMATCH. Thread-safe. */
FOVEA_API FoveaResult foveaCreateContext(const FoveaVulkanDevice* vulkan, FoveaContext* out, FoveaDiag* diag);
/* Destroys a context; null is ignored. Its plans must be gone. It may be called after device loss and never waits.
 * Externally synchronized. */
FOVEA_API void foveaDestroyContext(FoveaContext context);
/* Returns the properties of the device as the application enabled it, for the foveaPlan* functions. They are the same at
 * every call. Errors: FOVEA_INVALID_ARGUMENT, FOVEA_ABI_MISMATCH. Thread-safe. */
FOVEA_API FoveaResult foveaContextProperties(FoveaContext context, FoveaDeviceProperties* out, FoveaDiag* diag);

/* Returns the context's pipeline cache (FoveaVulkanDevice::pipeline_cache, if it was given), after a header that identifies
 * the device, the driver and FOVEA_ABI_VERSION.
 *   data   receives the bytes; null: only ask for the size
 *   size   in: the room of `data`; out: the bytes written, or the room needed
 * Errors: FOVEA_LIMIT_EXCEEDED if the room is too small or the cache grew meanwhile (ask for the size again),
 * FOVEA_INVALID_ARGUMENT, FOVEA_DEVICE_LOST, FOVEA_VULKAN_ERROR. Thread-safe. */
FOVEA_API FoveaResult foveaGetPipelineCacheData(FoveaContext context, void* data, size_t* size, FoveaDiag* diag);
/* Returns 1 if the context began with FoveaVulkanDevice::pipeline_cache_data, 0 if there was none or it did not fit.
 * Thread-safe. */
FOVEA_API uint32_t foveaPipelineCacheWasAccepted(FoveaContext context);

/* ---- plans on a context ------------------------------------------------------------------------------------------------ */

/* Builds the pipelines of a plan, or finds them in the context. This may take long: compile plans before the first frame.
 * Afterwards the plan does not change. Compiling a plan again has no effect; a plan belongs to one context.
 *   plan   made from this context's properties or lesser ones: no other feature, no higher limit, no smaller alignment
 * Errors: FOVEA_LIMIT_EXCEEDED for a plan of more than 2^20 slices or beyond the device's limits, FOVEA_UNSUPPORTED,
 * FOVEA_INVALID_ARGUMENT, FOVEA_OUT_OF_HOST_MEMORY, FOVEA_DEVICE_LOST, FOVEA_VULKAN_ERROR. The plan must be externally
 * synchronized; different plans may be compiled at the same time. */
FOVEA_API FoveaResult foveaCompilePlan(FoveaContext context, FoveaPlan plan, FoveaDiag* diag);

/* A range of the application's buffer. */
typedef struct FoveaBuffer {
    VkBuffer buffer;       /* usage STORAGE_BUFFER */
    uint64_t offset, size; /* bytes; offset: a multiple of storage_offset_alignment; VK_WHOLE_SIZE is an error */
} FoveaBuffer;

/* A descriptor pool of the application. With push descriptors (FOVEA_FEATURE_PUSH_DESCRIPTORS) it is ignored. Without them
 * recording allocates one set for each dispatch. Reset the pool when the command buffers that use its sets have finished. It
 * needs, for each slice recorded, FoveaPlanInfo::dispatches_per_slice sets of FOVEA_MAX_DISPATCH_BINDINGS storage buffers.
 * No set has more than 8; the constant leaves room for later versions. One call records at most FOVEA_MAX_DESCRIPTOR_SETS
 * sets. A call that fails for lack of room may have allocated some. */
enum { FOVEA_MAX_DESCRIPTOR_SETS = 512 };
/* A descriptor pool; see FOVEA_MAX_DESCRIPTOR_SETS. */
typedef struct FoveaDescriptorPool {
    VkDescriptorPool pool;
} FoveaDescriptorPool;

/* The arguments of foveaCmdRun. */
typedef struct FoveaRecord {
    uint32_t struct_size;   /* sizeof(FoveaRecord) */
    uint32_t binding_count; /* length of `bindings`, indexed by FoveaBinding; at most FOVEA_BIND_COUNT */
    VkCommandBuffer cmd;    /* in the recording state, primary or secondary, of a queue family with compute */
    const FoveaBuffer* bindings;
    FoveaBuffer workspace;  /* FoveaPlanInfo::workspace_bytes; not used if that is 0 */
    uint64_t first_slice, slice_count; /* the slices to record; slice_count 0: all from first_slice on */
    VkQueryPool timestamps;            /* null, or VK_QUERY_TYPE_TIMESTAMP: two queries for each slice, before and after it. */
    uint32_t first_query;              /*   The first query to use; the application must have reset them */
    uint32_t dispatch_timestamps;      /* 0; or 1: one query before each slice and one after each of its dispatches */
    FoveaDescriptorPool descriptor_pool; /* ignored with push descriptors */
} FoveaRecord;

/* Records slices of a compiled plan. Every argument is checked before the first vkCmd*, so a call that fails has recorded
 * nothing. It allocates no host memory and calls only vkCmd* functions. With a descriptor pool it also calls
 * vkAllocateDescriptorSets before the first vkCmd*, and vkUpdateDescriptorSets for each set before the command that binds it.
 * Errors: FOVEA_INVALID_ARGUMENT and FOVEA_LIMIT_EXCEEDED for the arguments, FOVEA_UNSUPPORTED for timestamps on a device
 * without them, FOVEA_DEVICE_LOST, FOVEA_VULKAN_ERROR. The command buffer and the descriptor pool must be externally
 * synchronized; the plan may be recorded by several threads. */
FOVEA_API FoveaResult foveaCmdRun(FoveaPlan plan, const FoveaRecord* record, FoveaDiag* diag);

/* Records the barrier between slices that share the workspace, for applications that record them in several calls. The
 * command buffer must be externally synchronized. */
FOVEA_API void foveaCmdSliceBarrier(FoveaPlan plan, VkCommandBuffer cmd);

/* ---- checking the driver ---------------------------------------------------------------------------------------------- */

enum {
    FOVEA_CHECK_BUFFER_BYTES = 1 << 20, /* least size of FoveaDeviceCheck::buffer */
    FOVEA_CHECK_DESCRIPTOR_SETS = 64    /* sets of FOVEA_MAX_DISPATCH_BINDINGS storage buffers that one submission needs */
};

/* The arguments of foveaCheckDevice: the kernels to check, and the memory and queue that the application lends. */
typedef struct FoveaDeviceCheck {
    uint32_t struct_size; /* sizeof(FoveaDeviceCheck) */
    uint32_t seed;        /* makes the random inputs */
    FoveaBuffer buffer;   /* host-visible memory, at least FOVEA_CHECK_BUFFER_BYTES. Memory that is not host-coherent is */
                          /*   flushed by `begin` and invalidated by `run`. Its contents are lost */
    void* mapped;         /* host address of the buffer's first byte in use, at buffer.offset */
    void* user;           /* passed to both functions */
    /* Begins a command buffer of a queue family with compute, and hands it out. Without push descriptors it also hands out a
     * pool with room for FOVEA_CHECK_DESCRIPTOR_SETS sets. */
    FoveaResult (*begin)(void* user, VkCommandBuffer* cmd, FoveaDescriptorPool* pool, FoveaDiag* diag);
    /* Ends this command buffer, submits it and waits. */
    FoveaResult (*run)(void* user, FoveaDiag* diag);
    /* The kernels to check, as in FoveaDeviceProperties::failed_shaders. All zero: every kernel that a plan may use. */
    uint64_t shaders[FOVEA_CHECK_CLASS_COUNT];
} FoveaDeviceCheck;

/* The result of a check. Give failed_shaders to the planner: copy it to FoveaDeviceProperties::failed_shaders. It is valid
 * for this device, driver version and library; keep it as the pipeline cache is kept. */
typedef struct FoveaCheckReport {
    uint32_t struct_size;   /* sizeof(FoveaCheckReport) */
    uint32_t problem_count; /* problems that were run */
    uint64_t checked_shaders[FOVEA_CHECK_CLASS_COUNT];
    uint64_t failed_shaders[FOVEA_CHECK_CLASS_COUNT];
    char text[2048];        /* the first wrong result of each failed kernel, lines ended by \n; cut to fit */
} FoveaCheckReport;

/* Runs about 20 small problems for each kernel and class of types, and compares each result, row by row, with the float64
 * reference. If a driver computes wrong values, the call succeeds, and the report names the kernels. Compiles the
 * pipelines of the problems, which takes most of the time on the first run.
 *   report   receives the result; struct_size must be set
 * Errors: FOVEA_INVALID_ARGUMENT, FOVEA_OUT_OF_HOST_MEMORY, FOVEA_DEVICE_LOST, FOVEA_VULKAN_ERROR, FOVEA_ABI_MISMATCH, and
 * what `begin` and `run` return. Thread-safe, if the buffer and the queue are not used elsewhere at the same time. */
FOVEA_API FoveaResult foveaCheckDevice(FoveaContext context, const FoveaDeviceCheck* check, FoveaCheckReport* report,
                                       FoveaDiag* diag);

/* Initializers as in fovea.h: struct_size set, all other fields zero. */
FOVEA_INITIALIZER(FoveaRecommendedFeatures, foveaRecommendedFeatures)
FOVEA_INITIALIZER(FoveaEnabledFeatures, foveaEnabledFeatures)
FOVEA_INITIALIZER(FoveaVulkanDevice, foveaVulkanDevice)
FOVEA_INITIALIZER(FoveaRecord, foveaRecord)
FOVEA_INITIALIZER(FoveaDeviceCheck, foveaDeviceCheck)
FOVEA_INITIALIZER(FoveaCheckReport, foveaCheckReport)

#ifdef __cplusplus
}
#endif
#endif
