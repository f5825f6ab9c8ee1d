/* One attention call on the CPU using only the C API: 4 queries, all keys equal, causal. So each row of the
 * result is the mean of its visible values. Returns 0 if it is. */
#include <fovea/fovea.h>

#include <stdio.h>
#include <string.h>

static int attend(void) {
    float q[4 * 2], k[4 * 2], v[4 * 2] = {0, 0, 1, 0, 2, 0, 3, 0}, o[4 * 2];
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT];
    FoveaDeviceProperties properties;
    FoveaAttentionDesc desc = foveaAttentionDesc();
    FoveaPlanInfo info;
    FoveaCpuRun run;
    FoveaPlan plan = NULL;
    FoveaDiag diag;
    static double workspace[1 << 16]; /* 512 KiB, more than this call asks for */
    int i;

    for (i = 0; i < 8; ++i) q[i] = k[i] = 1;
    memset(&properties, 0, sizeof properties);
    memset(&info, 0, sizeof info);
    memset(&run, 0, sizeof run);
    memset(&diag, 0, sizeof diag);
    memset(bindings, 0, sizeof bindings);
    properties.struct_size = sizeof properties;
    info.struct_size = sizeof info;
    run.struct_size = sizeof run;
    diag.struct_size = sizeof diag;

    desc.batch = desc.heads_q = desc.heads_kv = 1;
    desc.len_q = desc.len_kv = 4;
    desc.dim_qk = desc.dim_v = 2;
    desc.flags = FOVEA_FLAG_CAUSAL;
    if (foveaCpuProperties(1, &properties, &diag) != FOVEA_OK ||
        foveaPlanAttention(&properties, &desc, NULL, &plan, &diag) != FOVEA_OK ||
        foveaGetPlanInfo(plan, &info, &diag) != FOVEA_OK) {
        printf("%s\n", diag.text);
        return 1;
    }
    bindings[FOVEA_BIND_Q].data = q;
    bindings[FOVEA_BIND_K].data = k;
    bindings[FOVEA_BIND_V].data = v;
    bindings[FOVEA_BIND_O].data = o;
    for (i = FOVEA_BIND_Q; i <= FOVEA_BIND_O; ++i) bindings[i].size_bytes = sizeof q;
    run.binding_count = FOVEA_BIND_COUNT;
    run.bindings = bindings;
    run.workspace.data = workspace + (64 - (uintptr_t)workspace % 64) % 64 / sizeof(double);
    run.workspace.size_bytes = info.workspace_bytes;
    if (info.workspace_bytes + 64 > sizeof workspace) return 1;
    if (foveaRunCpu(plan, &run, &diag) != FOVEA_OK) {
        printf("%s\n", diag.text);
        return 1;
    }
    foveaDestroyPlan(plan);
    printf("attention: %.2f %.2f %.2f %.2f\n", o[0], o[2], o[4], o[6]);
    return !(o[0] == 0.0f && o[2] == 0.5f && o[4] == 1.0f && o[6] == 1.5f);
}
