/* One attention call with the runtime (fovea_runtime.h): opens the default device, plans, runs on host
 * memory, closes. Tensors are f32 and packed; `bindings` has FOVEA_BIND_COUNT elements. */
#ifndef FOVEA_SAMPLES_RUNTIME_CALL_H
#define FOVEA_SAMPLES_RUNTIME_CALL_H

#include <fovea/fovea_runtime.h>

/* [attend with the runtime] */
static inline FoveaResult attend(const FoveaAttentionDesc* call, const FoveaHostBuffer* bindings,
                                 FoveaDiag* diag) {
    FoveaEngine engine = NULL;
    FoveaPlan plan = NULL;
    FoveaRun run = foveaRunDesc();
    FoveaResult result =
        foveaOpenEngine(NULL, &engine, diag); /* foveaEngineReason says which device and why */
    if (result != FOVEA_OK) return result;
    result = foveaPlanAttention(foveaEngineProperties(engine), call, NULL, &plan, diag);
    run.binding_count = FOVEA_BIND_COUNT;
    run.host = bindings;
    if (result == FOVEA_OK) result = foveaRun(engine, plan, &run, NULL, diag);
    foveaDestroyPlan(plan);
    foveaCloseEngine(engine);
    return result;
}
/* [end attend with the runtime] */

#endif
