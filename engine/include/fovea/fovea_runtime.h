/* SPDX-License-Identifier: Apache-2.0
 *
 * The Fovea runtime, in C: finds and opens devices, owns memory and threads, submits and waits. It is for applications that
 * have no Vulkan device, and for other languages (the Python package uses it). C++ applications may use
 * <fovea/runtime.hpp>, applications with a Vulkan device <fovea/fovea_vulkan.h>. <fovea/fovea_inspect.h> inspects results.
 *
 * The library is `libfovea_runtime.so`. It contains all of `libfovea.so`: link one or the other. Its functions are listed in
 * engine/api/exported_symbols.txt and engine/runtime/exported_symbols.txt. The static form is `libfovea_runtime.a` together
 * with `libfovea.a`; a C++ compiler must link it.
 *
 * Order of calls: foveaOpenEngine, foveaPlanAttention, foveaGetPlanInfo (the size of each buffer), foveaRun,
 * foveaDestroyPlan, foveaCloseEngine. A complete function is samples/runtime_call.h.
 *
 * The conventions of <fovea/fovea.h> apply: struct_size comes first, zero is the default, and a call that fails changes
 * nothing, except that it sets its output handle to null. Errors are a FoveaResult and an optional FoveaDiag. Any
 * function may return FOVEA_OUT_OF_HOST_MEMORY. No C++ exception leaves a function, and none prints. Sizes are in bytes,
 * times in seconds. Texts are UTF-8 and end with 0. A text belongs to the object that returned it and lives as long.
 *
 * Thread safety: an engine and everything made from it (buffers, runs) must be externally synchronized. Different engines
 * are independent. Plans do not change and may be shared.
 */
#ifndef FOVEA_FOVEA_RUNTIME_H
#define FOVEA_FOVEA_RUNTIME_H

#include <fovea/fovea.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the devices of this machine ----------------------------------------------------------------------------------- */

/* A description of one device. Its texts belong to the list or engine that filled it. */
typedef struct FoveaDeviceInfo {
    uint32_t struct_size; /* sizeof(FoveaDeviceInfo) */
    uint32_t number;     /* for FoveaEngineOptions::device. The CPU is 0; Vulkan devices follow in the loader's order */
    uint32_t usable;     /* 0 or 1 */
    FoveaBackend backend;
    const char* name;    /* "CPU (AVX2)", "llvmpipe (LLVM 15.0.6, 256 bits)", ... */
    const char* driver;  /* Vulkan: name and version of the driver, API version; else "" */
    const char* refusal; /* why the device is not usable; else "" */
    const char* notes;   /* missing recommended features and their benefit, lines ended by \n; or "" */
} FoveaDeviceInfo;

/* The devices found by one search. A list does not change. */
typedef struct FoveaDeviceList_T* FoveaDeviceList;

/* Finds every backend and device of this machine, usable or not, the CPU first. It loads the Vulkan drivers.
 *   cpu_threads   workers of the CPU backend; 0: one for each CPU core that this process may use
 *   out           receives the list; release it with foveaDestroyDeviceList. Null after an error
 * Thread-safe. */
FOVEA_API FoveaResult foveaListDevices(uint32_t cpu_threads, FoveaDeviceList* out, FoveaDiag* diag);
/* Returns the number of devices of a list; 0 for null. Thread-safe. */
FOVEA_API uint32_t foveaDeviceCount(FoveaDeviceList list);
/* Returns one device of a list.
 *   index        below foveaDeviceCount
 *   info         receives the description; struct_size must be set
 *   properties   receives what the planner would use, or null
 * Errors: FOVEA_INVALID_ARGUMENT, FOVEA_ABI_MISMATCH. Thread-safe. */
FOVEA_API FoveaResult foveaGetDevice(FoveaDeviceList list, uint32_t index, FoveaDeviceInfo* info,
                                     FoveaDeviceProperties* properties, FoveaDiag* diag);
/* Destroys a list and its texts; null is ignored. Externally synchronized. */
FOVEA_API void foveaDestroyDeviceList(FoveaDeviceList list);

/* ---- an engine: one device with its memory and threads -------------------------------------------------------------- */

/* The kind of device to open. */
typedef enum FoveaBackendChoice {
    FOVEA_BACKEND_CHOICE_AUTO = 0,      /* a hardware Vulkan device, else the CPU; software Vulkan drivers only if named */
    FOVEA_BACKEND_CHOICE_CPU = 1,
    FOVEA_BACKEND_CHOICE_VULKAN = 2,    /* any Vulkan device, in this order: discrete, integrated, software */
    FOVEA_BACKEND_CHOICE_REFERENCE = 3  /* the CPU in float64: the kernel REFERENCE for every call */
} FoveaBackendChoice;

/* The drivers that an engine checks (foveaCheckDevice of fovea_vulkan.h): each kernel once, at the first run of a plan that
 * uses it. A kernel that fails is off: the run plans its call again without it, and so does the planner afterwards. */
typedef enum FoveaDriverChecks {
    FOVEA_DRIVER_CHECKS_HARDWARE = 0, /* software drivers need seconds to compile the check's pipelines */
    FOVEA_DRIVER_CHECKS_ALL = 1,
    FOVEA_DRIVER_CHECKS_NONE = 2
} FoveaDriverChecks;

/* The device of an engine. All zero: the default device. */
typedef struct FoveaEngineOptions {
    uint32_t struct_size;    /* sizeof(FoveaEngineOptions) */
    FoveaBackendChoice backend;
    uint32_t has_device;     /* 0 or 1. 1: `device` is used */
    uint32_t device;         /* a FoveaDeviceInfo::number, which must fit `backend` */
    const char* device_name; /* instead of the number: a part of one FoveaDeviceInfo::name, in any case; or null */
    const char* tuning_file; /* a file of `./dev bench tune` for this device and driver; or null */
    uint32_t cpu_threads;    /* workers of the CPU backend; 0: one for each CPU core that this process may use */
    uint32_t validation;     /* 0 or 1. 1: Khronos validation with synchronization validation, see foveaEngineMessages */
    const char* check_folder; /* a folder that keeps the results of checks for later engines; or null */
    FoveaDriverChecks driver_checks;
    uint32_t reserved0;      /* must be 0 */
} FoveaEngineOptions;

/* One open device. */
typedef struct FoveaEngine_T* FoveaEngine;

/* Opens a device.
 *   options   null: all defaults
 *   out       receives the engine; close it with foveaCloseEngine. Null after an error
 * Errors: FOVEA_INVALID_ARGUMENT and FOVEA_UNSUPPORTED for a device that does not exist or is not usable. FOVEA_IO_ERROR and
 * FOVEA_INVALID_ARGUMENT name the tuning file, its field and line. FOVEA_VULKAN_ERROR. Thread-safe. */
FOVEA_API FoveaResult foveaOpenEngine(const FoveaEngineOptions* options, FoveaEngine* out, FoveaDiag* diag);
/* Closes an engine; null is ignored. Its plans and buffers must be gone. Externally synchronized. */
FOVEA_API void foveaCloseEngine(FoveaEngine engine);
/* Returns the opened device.
 *   info         receives the description; struct_size must be set
 *   properties   receives what the planner uses, or null
 * Errors: FOVEA_INVALID_ARGUMENT, FOVEA_ABI_MISMATCH. Externally synchronized. */
FOVEA_API FoveaResult foveaEngineDevice(FoveaEngine engine, FoveaDeviceInfo* info, FoveaDeviceProperties* properties,
                                        FoveaDiag* diag);
/* Returns the device's properties with what was measured so far, for the functions that plan:
 * foveaPlanAttention(foveaEngineProperties(engine), ...). Slices are sized from the measured throughput of the device. A plan
 * must be destroyed before its engine. Null for null, else never null; lives as long as the engine. Externally
 * synchronized. */
FOVEA_API const FoveaDeviceProperties* foveaEngineProperties(FoveaEngine engine);
/* Returns a sentence that says why this device was chosen. Never null. Externally synchronized. */
FOVEA_API const char* foveaEngineReason(FoveaEngine engine);
/* Returns the messages of the validation layer since the last call, lines ended by \n; "" if there are none. Never null;
 * lives until the next call. Externally synchronized. */
FOVEA_API const char* foveaEngineMessages(FoveaEngine engine);

/* ---- memory of an engine --------------------------------------------------------------------------------------------- */

/* A buffer of an engine. It must be destroyed before its engine. */
typedef struct FoveaEngineBuffer_T* FoveaEngineBuffer;

/* Allocates device memory (host memory on the CPU), filled with zeros.
 *   out   receives the buffer; destroy it with foveaDestroyBuffer. Null after an error
 * Errors: FOVEA_OUT_OF_DEVICE_MEMORY above the device's memory budget, with the values; FOVEA_LIMIT_EXCEEDED above the
 * largest allocation of the device; on the CPU FOVEA_OUT_OF_HOST_MEMORY, also above the memory that this process may use.
 * Externally synchronized. */
FOVEA_API FoveaResult foveaCreateBuffer(FoveaEngine engine, uint64_t size_bytes, FoveaEngineBuffer* out, FoveaDiag* diag);
/* Destroys a buffer; null is ignored. Externally synchronized. */
FOVEA_API void foveaDestroyBuffer(FoveaEngineBuffer buffer);
/* Returns the size of a buffer in bytes; 0 for null. Externally synchronized. */
FOVEA_API uint64_t foveaBufferSize(FoveaEngineBuffer buffer);
/* Copies host memory into a buffer and waits.
 *   size_bytes, offset   bytes; offset + size_bytes must be within the buffer
 * Errors: FOVEA_INVALID_ARGUMENT, FOVEA_DEVICE_LOST, FOVEA_TIMEOUT, FOVEA_VULKAN_ERROR. Externally synchronized. */
FOVEA_API FoveaResult foveaUpload(FoveaEngineBuffer buffer, const void* data, uint64_t size_bytes, uint64_t offset,
                                  FoveaDiag* diag);
/* Copies a buffer into host memory and waits. Arguments and errors are those of foveaUpload. Externally synchronized. */
FOVEA_API FoveaResult foveaDownload(FoveaEngineBuffer buffer, void* data, uint64_t size_bytes, uint64_t offset,
                                    FoveaDiag* diag);

/* ---- running --------------------------------------------------------------------------------------------------------- */

/* A progress callback. foveaRun calls it between slices, on the calling thread.
 *   done   the finished share, above 0 and at most 1
 * Return 0 to cancel (FOVEA_CANCELLED: outputs are undefined, the engine stays usable), any other number to go on. */
typedef int32_t (*FoveaProgress)(void* user, double done);

/* The arguments of foveaRun. Exactly one of `host` and `buffers` must be given. */
typedef struct FoveaRun {
    uint32_t struct_size;             /* sizeof(FoveaRun) */
    uint32_t binding_count;           /* length of the array, indexed by FoveaBinding; at most FOVEA_BIND_COUNT */
    /* Host memory of at least FoveaPlanInfo::binding_bytes each; bytes after FoveaPlanInfo::tensor_bytes are not written.
     * On Vulkan it is copied to the device and back. */
    const FoveaHostBuffer* host;
    /* Buffers of this engine of at least FoveaPlanInfo::binding_bytes each; null where the plan needs none. */
    const FoveaEngineBuffer* buffers;
    FoveaProgress progress;           /* or null: the CPU then runs all slices at once, which is fastest */
    void* user;                       /* passed to `progress` */
    uint64_t slice_shuffle_seed;      /* not 0: runs the slices in a random order, which does not change the result */
    double timeout_seconds;           /* for each wait; FOVEA_TIMEOUT names slice and kernel. 0: one minute, and ten for a */
                                      /*   software driver, which compiles during the first submission */
} FoveaRun;

/* The report of a run. */
typedef struct FoveaRunReport {
    uint32_t struct_size;  /* sizeof(FoveaRunReport) */
    FoveaBackend backend;
    FoveaKernel kernel;    /* the kernel that ran */
    uint32_t reserved0;
    uint64_t slices, workspace_bytes, device_bytes; /* slices run; bytes of workspace; bytes of device memory */
    double seconds;        /* wall time of the call, copies included */
    double device_seconds; /* Vulkan: sum of the slices by timestamps, 0 without them. CPU: time in kernels */
} FoveaRunReport;

/* Runs a plan made from this engine's properties, and waits. The engine provides the workspace.
 *   report   receives what ran, or null
 * Errors: FOVEA_INVALID_ARGUMENT and FOVEA_LIMIT_EXCEEDED for the bindings, before anything is written; FOVEA_CANCELLED,
 * FOVEA_TIMEOUT, FOVEA_OUT_OF_DEVICE_MEMORY, FOVEA_VULKAN_ERROR; FOVEA_DEVICE_LOST, which every later call returns again.
 * Externally synchronized. */
FOVEA_API FoveaResult foveaRun(FoveaEngine engine, FoveaPlan plan, const FoveaRun* run, FoveaRunReport* report,
                               FoveaDiag* diag);

/* ---- initializers: struct_size set, all other fields zero -------------------------------------------------------------- */

FOVEA_INITIALIZER(FoveaDeviceInfo, foveaDeviceInfo)
FOVEA_INITIALIZER(FoveaEngineOptions, foveaEngineOptions)
FOVEA_INITIALIZER(FoveaRun, foveaRunDesc)
FOVEA_INITIALIZER(FoveaRunReport, foveaRunReport)

#ifdef __cplusplus
}
#endif
#endif
