/* The five functions of an engine's own rendering interface that a Fovea plan asks for. Godot's
 * RenderingDevice, bgfx, NRI and wgpu have each of them by another name (docs/lab/embedding.md says
 * which). */
#ifndef FOVEA_SAMPLES_RHI_H
#define FOVEA_SAMPLES_RHI_H

#include <stddef.h>
#include <stdint.h>

typedef struct Rhi Rhi;
typedef struct RhiBuffer RhiBuffer;
typedef struct RhiShader RhiShader;

typedef struct RhiShaderDesc {
    const uint32_t* spirv;
    size_t word_count;
    const uint32_t* constants; /* specialization constants 0 .. constant_count-1 */
    uint32_t constant_count;
    uint32_t slot_mask;     /* bit n: storage buffer n of set 0 */
    uint32_t push_bytes;    /* push constants, from byte 0 */
    uint32_t subgroup_size; /* to be required with full subgroups; 0: the driver's own choice */
} RhiShaderDesc;

typedef struct RhiBinding {
    uint32_t slot;
    const RhiBuffer* buffer;
    uint64_t offset, size; /* bytes */
} RhiBinding;

RhiBuffer* rhi_buffer(Rhi* rhi, uint64_t bytes);
RhiShader* rhi_shader(Rhi* rhi, const RhiShaderDesc* desc);
void rhi_constants(Rhi* rhi, const RhiShader* shader, const void* data, uint32_t bytes);
void rhi_dispatch(Rhi* rhi, const RhiShader* shader, const RhiBinding* bindings, uint32_t count,
                  const uint32_t groups[3]);
void rhi_barrier(Rhi* rhi); /* compute writes before it are seen by compute reads and writes after it */

#endif
