/* Shared by the samples on the CPU: exit on an error, running a plan, timing, reproducible numbers. */
#ifndef FOVEA_SAMPLES_CPU_H
#define FOVEA_SAMPLES_CPU_H

#include <fovea/fovea.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void require(int ok, const char* what) {
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static inline FoveaDeviceProperties processor(uint32_t threads) {
    FoveaDiag diag = foveaDiag();
    FoveaDeviceProperties properties = foveaDeviceProperties();
    require(foveaCpuProperties(threads, &properties, &diag) == FOVEA_OK, diag.text);
    return properties;
}

/* Every slice. A program that runs a plan often keeps the workspace. */
static inline void run_plan(FoveaPlan plan, const FoveaHostBuffer* bindings) {
    FoveaDiag diag = foveaDiag();
    FoveaPlanInfo info = foveaPlanInfo();
    require(foveaGetPlanInfo(plan, &info, &diag) == FOVEA_OK, diag.text);
    char* workspace = malloc(info.workspace_bytes + info.workspace_alignment);
    require(workspace != NULL, "out of memory");
    FoveaCpuRun call = foveaCpuRun();
    call.bindings = bindings;
    call.binding_count = FOVEA_BIND_COUNT;
    call.workspace.data =
        workspace + (info.workspace_alignment - (uintptr_t)workspace % info.workspace_alignment);
    call.workspace.size_bytes = info.workspace_bytes;
    require(foveaRunCpu(plan, &call, &diag) == FOVEA_OK, diag.text);
    free(workspace);
}

/* Returns the CPU time of this program so far. */
static inline double milliseconds(void) { return 1e3 * (double)clock() / CLOCKS_PER_SEC; }

/* In [-1, 1), the same for the same question. */
static inline float number(uint32_t what, uint32_t index) {
    uint32_t x = (what * 977 + index) * 2654435761u;
    x ^= x >> 15;
    return (float)(x * 2246822519u >> 8) / 8388608.0f - 1.0f;
}

#endif
