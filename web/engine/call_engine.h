/* Calls by their numbers: planned for a browser's GPU, which the page's script then plays, or planned for the
 * CPU and run here. The same rules as in web_engine.h, which the texts and webError() are of; both are one
 * module.
 */
#ifndef FOVEA_CALL_ENGINE_H
#define FOVEA_CALL_ENGINE_H

#include "web_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* JSON: the names of the numbers that describe a call of one operation (0 attention, 1 map tile, 2 merge), in
 * the order in which webCallPlan takes them: members of FoveaAttentionDesc, FoveaMapTileDesc and
 * FoveaMergeDesc. */
WEB_API const char* webCallFields(int32_t operation);
/* Plans a call. values: one number for each name; NaN: not given, which is 0 or packed. limits: 0 for the
 * CPU, else five numbers of the GPU: storage buffers of a kernel, threads and bytes of a workgroup,
 * workgroups in a dimension, bytes of a binding. Returns the plan's number, above 0. */
WEB_API int32_t webCallPlan(int32_t operation, const double* values, const double* limits);
/* JSON: kernel, "reason", number of slices, "flops", and "bindings": number, bytes that the plan wants, bytes
 * of the tensor, whether it is written. */
WEB_API const char* webCallInfo(int32_t plan);
/* For a GPU's plan: returns the dispatches of a slice, in the format of gpu_plan.hpp, after the count of
 * words. */
WEB_API const uint32_t* webCallSlice(int32_t plan, double slice);
/* Runs a CPU's plan. buffers: an address for each FoveaBinding, 0 where there is none; as many bytes as the
 * plan wants. */
WEB_API int32_t webCallRun(int32_t plan, const uint32_t* buffers);
WEB_API void webCallEnd(int32_t plan);

/* The forward pass of the deep zoom's sequence (webMapBegin) and its next tile, as plans for a GPU: in the
 * place of webMapPrepare and webMapStep. max_flops bounds a slice. webGpuMapTensors is JSON: "inputs", a
 * FoveaBinding, address and bytes each, and "lse", address and count of float32; who runs the forward pass
 * binds anything of their size as the values, which play no part in it, and writes lse there. */
WEB_API int32_t webGpuMapForward(const double* limits, double max_flops);
WEB_API const char* webGpuMapTensors(void);
/* The plan of the tile that the view needs next; 0 without a text in webError: none. Its mass (two words a
 * pixel, low first) and largest weight go to the addresses "mass" and "max" of webGpuMapTile, whose "shown"
 * is what webMapStep answers where no tile was finished (0 without a text: a new view has given the tile up),
 * and webGpuMapStore answers as webMapStep; webGpuMapGiveUp where it came to nothing. */
WEB_API int32_t webGpuMapPlan(const double* limits, double max_flops);
WEB_API const char* webGpuMapTile(void);
WEB_API const char* webGpuMapStore(void);
WEB_API void webGpuMapGiveUp(void);

#ifdef __cplusplus
}
#endif
#endif
