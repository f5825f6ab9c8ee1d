/* SPDX-License-Identifier: Apache-2.0
 *
 * Fovea for programs that have no device of their own, in C: it finds devices, opens one, owns memory and threads, submits
 * and waits. The door for other languages (python/ is one); C++ programs have <fovea/runtime.hpp>, and programs with a
 * Vulkan device <fovea/fovea_vulkan.h>. <fovea/fovea_inspect.h> looks into what was computed.
 *
 * The library is `libfovea_runtime.so`. It holds all of `libfovea.so`, so a program links one or the other. The functions
 * that it shows are listed in engine/api/exported_symbols.txt and engine/runtime/exported_symbols.txt. Statically it is
 * `libfovea_runtime.a` beside `libfovea.a`, linked by a C++ compiler.
 *
 * A call from start to end: foveaOpenEngine, foveaPlanAttention, foveaGetPlanInfo (how large each buffer must be),
 * foveaRun, foveaDestroyPlan, foveaCloseEngine. Whole at the end of this file.
 *
 * Conventions are those of <fovea/fovea.h>: struct_size comes first and zero means "the default"; a refused call has
 * changed nothing but that the handle it should have made is null; errors are a FoveaResult and, in the optional
 * FoveaDiag, the field, its value and the limit in one line. Memory that runs out is FOVEA_OUT_OF_HOST_MEMORY; no C++
 * exception leaves a function, and none prints. Sizes are bytes, times seconds.
 * Texts are UTF-8 and end with 0. A returned text belongs to the object that it was asked of, and lives as long as that.
 *
 * Thread safety: an engine, what it made and what it is doing belong to one thread at a time. Different engines are
 * independent. Plans do not change and may be shared.
 */
#ifndef FOVEA_FOVEA_RUNTIME_H
#define FOVEA_FOVEA_RUNTIME_H

#include <fovea/fovea.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- which devices are there? -------------------------------------------------------------------------------------- */

/* All that can be said of one device of this machine. Texts belong to the list or engine that filled it. */
typedef struct FoveaDeviceInfo {
    uint32_t struct_size;
    uint32_t number;     /* what FoveaEngineOptions::device takes; the CPU is 0, Vulkan devices follow in the loader's order */
    uint32_t usable;     /* 0 or 1 */
    FoveaBackend backend;
    const char* name;    /* "CPU (AVX2)", "llvmpipe (LLVM 15.0.6, 256 bits)", ... */
    const char* driver;  /* Vulkan: driver name and version, API version; else "" */
    const char* refusal; /* why not usable; else "" */
    const char* notes;   /* features that are missing and what they would buy, lines ended by \n; or "" */
} FoveaDeviceInfo;

typedef struct FoveaDeviceList_T* FoveaDeviceList; /* what was found; does not change */

/* Every backend and device of this machine, usable or not, the CPU first; Vulkan drivers are woken for it.
 * cpu_threads 0: one for each processor that this process may use. */
FOVEA_API FoveaResult foveaListDevices(uint32_t cpu_threads, FoveaDeviceList* out, FoveaDiag* diag);
FOVEA_API uint32_t foveaDeviceCount(FoveaDeviceList list);
/* index < foveaDeviceCount. `facts`, or null, is what the planner would see. */
FOVEA_API FoveaResult foveaGetDevice(FoveaDeviceList list, uint32_t index, FoveaDeviceInfo* info, FoveaDeviceFacts* facts,
                                     FoveaDiag* diag);
/* Null is ignored. */
FOVEA_API void foveaDestroyDeviceList(FoveaDeviceList list);

/* ---- an engine: one device with its memory and threads -------------------------------------------------------------- */

typedef enum FoveaBackendChoice {  /* which kind of device */
    FOVEA_CHOOSE_AUTOMATIC = 0,    /* Vulkan on a hardware device, else the CPU; a software Vulkan driver only by name */
    FOVEA_CHOOSE_CPU = 1,
    FOVEA_CHOOSE_VULKAN = 2,       /* any Vulkan device, software drivers too: discrete, integrated, software */
    FOVEA_CHOOSE_REFERENCE = 3     /* the CPU in float64 */
} FoveaBackendChoice;

typedef struct FoveaEngineOptions { /* where to run */
    uint32_t struct_size;
    FoveaBackendChoice backend;
    uint32_t has_device;     /* 0 or 1. 1: `device` counts */
    uint32_t device;         /* a FoveaDeviceInfo::number, which must fit `backend` */
    const char* device_name; /* instead of the number: a part of one FoveaDeviceInfo::name, in any case; or null */
    const char* tuning_file; /* what `./dev bench tune` wrote for this device and driver; or null */
    uint32_t cpu_threads;    /* 0: one for each processor that this process may use */
    uint32_t validation;     /* 0 or 1. 1: Khronos validation with synchronization validation, see foveaEngineMessages */
} FoveaEngineOptions;

typedef struct FoveaEngine_T* FoveaEngine; /* one open device */

/* `options` null: all defaults. FOVEA_IO_ERROR and FOVEA_INVALID_ARGUMENT name the tuning file, its field and line. */
FOVEA_API FoveaResult foveaOpenEngine(const FoveaEngineOptions* options, FoveaEngine* out, FoveaDiag* diag);
/* Null is ignored. Plans and buffers of the engine must be gone. */
FOVEA_API void foveaCloseEngine(FoveaEngine engine);
/* The device that was opened. `facts`, or null, is what the planner sees. */
FOVEA_API FoveaResult foveaEngineDevice(FoveaEngine engine, FoveaDeviceInfo* info, FoveaDeviceFacts* facts, FoveaDiag* diag);
/* The device's properties with what was measured so far, for the functions of fovea.h that plan:
 * foveaPlanAttention(foveaEngineFacts(engine), ...). Slices are as large as the device was measured to do in a short time,
 * and an engine of FOVEA_CHOOSE_REFERENCE takes the kernel REFERENCE. A plan must go before its engine. Null for null, else
 * never; lives as long as the engine. */
FOVEA_API const FoveaDeviceFacts* foveaEngineFacts(FoveaEngine engine);
/* Why this device: a sentence; never null. */
FOVEA_API const char* foveaEngineReason(FoveaEngine engine);
/* What the validation layer said since the last call, lines ended by \n; "" where there is nothing. Never null; lives until
 * the next call. */
FOVEA_API const char* foveaEngineMessages(FoveaEngine engine);

/* ---- memory of an engine --------------------------------------------------------------------------------------------- */

typedef struct FoveaEngineBuffer_T* FoveaEngineBuffer; /* must go before its engine */

/* Device memory (plain memory on the CPU), zero-filled. FOVEA_OUT_OF_DEVICE_MEMORY with the numbers where the device's
 * budget does not allow it, FOVEA_LIMIT_EXCEEDED above what the device allocates at a time; on the CPU
 * FOVEA_OUT_OF_HOST_MEMORY, also above the memory that this process may use. */
FOVEA_API FoveaResult foveaCreateBuffer(FoveaEngine engine, uint64_t size_bytes, FoveaEngineBuffer* out, FoveaDiag* diag);
/* Null is ignored. */
FOVEA_API void foveaDestroyBuffer(FoveaEngineBuffer buffer);
FOVEA_API uint64_t foveaBufferSize(FoveaEngineBuffer buffer);
/* Both copy and wait. offset + size_bytes must be within the buffer. */
FOVEA_API FoveaResult foveaUpload(FoveaEngineBuffer buffer, const void* data, uint64_t size_bytes, uint64_t offset,
                                  FoveaDiag* diag);
FOVEA_API FoveaResult foveaDownload(FoveaEngineBuffer buffer, void* data, uint64_t size_bytes, uint64_t offset,
                                    FoveaDiag* diag);

/* ---- running --------------------------------------------------------------------------------------------------------- */

/* Called on the thread that called foveaRun, between slices, with the done share, above 0 and up to 1. 0 cancels
 * (FOVEA_CANCELLED; outputs are then undefined and the engine stays usable); any other number goes on. */
typedef int32_t (*FoveaProgress)(void* user, double done);

typedef struct FoveaRun { /* one foveaRun. Of `host` and `buffers`, one must be given and the other null */
    uint32_t struct_size;
    uint32_t binding_count;           /* length of the array, indexed by FoveaBinding; at most FOVEA_BIND_COUNT */
    /* Memory of the host, at least FoveaPlanInfo::binding_bytes each; of a tensor, nothing after FoveaPlanInfo::tensor_bytes
     * is written. Vulkan copies it to the device and back. */
    const FoveaHostBuffer* host;
    /* Memory of this engine, null where the plan needs none; at least FoveaPlanInfo::binding_bytes each. */
    const FoveaEngineBuffer* buffers;
    FoveaProgress progress;           /* or null: the CPU then runs all slices at once, which is fastest */
    void* user;                       /* handed to `progress` */
    uint64_t slice_shuffle_seed;      /* not 0: slices in a random order, which changes no result */
    double timeout_seconds;           /* for any one wait; FOVEA_TIMEOUT names slice and kernel. 0: a minute, and ten for a */
                                      /*   driver of software, which compiles within the first submission */
} FoveaRun;

typedef struct FoveaRunReport { /* what ran */
    uint32_t struct_size;
    FoveaBackend backend;
    FoveaKernel kernel;
    uint32_t reserved0;
    uint64_t slices, workspace_bytes, device_bytes;
    double seconds;        /* wall time of the call, transfers included */
    double device_seconds; /* Vulkan: sum of the slices by timestamps, 0 where there are none. CPU: time in kernels */
} FoveaRunReport;

/* Runs a plan of this engine and waits. The workspace is the engine's. `report` may be null. Nothing was written where a
 * binding is refused; FOVEA_DEVICE_LOST is said again by every later call. */
FOVEA_API FoveaResult foveaRun(FoveaEngine engine, FoveaPlan plan, const FoveaRun* run, FoveaRunReport* report,
                               FoveaDiag* diag);

/* ---- initialisers: struct_size set, all else zero --------------------------------------------------------------------- */

FOVEA_INITIALISER(FoveaDeviceInfo, foveaDeviceInfo)
FOVEA_INITIALISER(FoveaEngineOptions, foveaEngineOptions)
FOVEA_INITIALISER(FoveaRun, foveaRunDesc)
FOVEA_INITIALISER(FoveaRunReport, foveaRunReport)

/* Example: one call from start to end; tensors are f32 and packed. It is compiled and run by the test
 * consumer.runtime_c as it stands here.
 *
 *     static FoveaResult attend(const FoveaAttentionDesc* call, const FoveaHostBuffer* bindings, FoveaDiag* diag) {
 *         FoveaEngine engine = NULL;
 *         FoveaPlan plan = NULL;
 *         FoveaRun run = foveaRunDesc();
 *         FoveaResult result = foveaOpenEngine(NULL, &engine, diag);  // foveaEngineReason says which device and why
 *         if (result != FOVEA_OK) return result;
 *         result = foveaPlanAttention(foveaEngineFacts(engine), call, NULL, &plan, diag);
 *         run.binding_count = FOVEA_BIND_COUNT;
 *         run.host = bindings;
 *         if (result == FOVEA_OK) result = foveaRun(engine, plan, &run, NULL, diag);
 *         foveaDestroyPlan(plan);
 *         foveaCloseEngine(engine);
 *         return result;
 *     }
 */

#ifdef __cplusplus
}
#endif
#endif
