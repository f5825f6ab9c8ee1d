// Inputs that a call binds each by itself or, where a kernel may not bind so many buffers, reads from the
// workspace, where gather.comp put them. Which of the two is a constant of the pipeline.
//   FOVEA_GATHERS  the kernel reads FlashExtra; the others have every input bound
#ifndef FOVEA_GATHERED_GLSL
#define FOVEA_GATHERED_GLSL

#ifdef FOVEA_GATHERS
layout(constant_id = FOVEA_SPEC_CALL) const uint kCall = kGeneralCall;
const bool kGeneral = (kCall & kGeneralCall) != 0u;
layout(set = 0, binding = FOVEA_SLOT_EXTRA, std430) readonly buffer Extra {
    FlashExtra extra;
    uint behind_extra[];
};

// NAME(n): word n of an input. AT: its place among the gathered ones.
#define FOVEA_WORDS(NAME, SLOT, GATHERED, AT)                                                     \
    layout(set = 0, binding = SLOT, std430) readonly buffer NAME##_bound { uint NAME##_list[]; }; \
    uint NAME(uint n) {                                                                           \
        if ((kCall & GATHERED) != 0u) return behind_extra[AT + n];                                \
        return NAME##_list[n];                                                                    \
    }
#else
#define FOVEA_WORDS(NAME, SLOT, GATHERED, AT)                                                     \
    layout(set = 0, binding = SLOT, std430) readonly buffer NAME##_bound { uint NAME##_list[]; }; \
    uint NAME(uint n) { return NAME##_list[n]; }
#endif

#define FOVEA_SINKS                                        \
    FOVEA_WORDS(sink_bits, FOVEA_SLOT_SINKS, kGatherSinks, \
                extra.at.heads + (extra.heads_q + kGatherStep - 1u) / kGatherStep * kGatherStep)

#endif
