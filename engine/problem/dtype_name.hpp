// What a type of numbers is called: in plans' words, on the command line and in reports of tests.
#pragma once

#include <fovea/fovea.h>

namespace fovea {

constexpr const char* dtype_name(FoveaDtype type) {
    switch (type) {
        case FOVEA_F32:
            return "f32";
        case FOVEA_F16:
            return "f16";
        case FOVEA_BF16:
            return "bf16";
        case FOVEA_U8:
            return "u8";
        case FOVEA_I32:
            return "i32";
        case FOVEA_F8_E4M3:
            return "f8_e4m3";
        case FOVEA_F8_E5M2:
            return "f8_e5m2";
        case FOVEA_Q8_0:
            return "q8_0";
        case FOVEA_Q4_0:
            return "q4_0";
        case FOVEA_Q4_K:
            return "q4_k";
        case FOVEA_Q5_K:
            return "q5_k";
        case FOVEA_Q6_K:
            return "q6_k";
    }
    return "?";
}

}  // namespace fovea
