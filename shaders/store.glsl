// Writing a tensor: float32 by default, float16 with FOVEA_STORE_F16. Defines NAME_store(e, value).
#ifdef FOVEA_STORE_F16
#define FOVEA_OUTPUT_TENSOR(NAME, SLOT)                                                                \
    layout(set = 0, binding = SLOT, std430) writeonly buffer NAME##_out { uint16_t NAME##_halves[]; }; \
    void NAME##_store(uint e, float value) { NAME##_halves[e] = uint16_t(float16_bits(value)); }
#else
#define FOVEA_OUTPUT_TENSOR(NAME, SLOT)                                                             \
    layout(set = 0, binding = SLOT, std430) writeonly buffer NAME##_out { float NAME##_floats[]; }; \
    void NAME##_store(uint e, float value) { NAME##_floats[e] = value; }
#endif
