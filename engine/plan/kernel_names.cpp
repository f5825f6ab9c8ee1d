#include "plan/kernel_names.hpp"

namespace fovea {

const char* name_of(FoveaKernel kernel) {
    switch (kernel) {
        case FOVEA_KERNEL_AUTO:
            return "auto";
        case FOVEA_KERNEL_STAGED:
            return "staged";
        case FOVEA_KERNEL_FLASH:
            return "flash";
        case FOVEA_KERNEL_FLASH_COOPMAT:
            return "flash_coopmat";
        case FOVEA_KERNEL_FLASH_COOPMAT2:
            return "flash_coopmat2";
        case FOVEA_KERNEL_DECODE:
            return "decode";
        case FOVEA_KERNEL_PLAIN:
            return "plain";
        case FOVEA_KERNEL_REFERENCE:
            return "reference";
    }
    return "unknown";
}

}  // namespace fovea
