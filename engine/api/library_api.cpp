#include "problem/abi_struct.hpp"
#include "problem/philox.hpp"

#include <fovea/fovea.h>
#include <fovea/half.hpp>

using namespace fovea;

const char* foveaResultText(FoveaResult code) {
    switch (enum_number(code)) {
        case FOVEA_OK:
            return "success";
        case FOVEA_INVALID_ARGUMENT:
            return "invalid argument";
        case FOVEA_UNSUPPORTED:
            return "unsupported";
        case FOVEA_LIMIT_EXCEEDED:
            return "limit exceeded";
        case FOVEA_SIZE_OVERFLOW:
            return "size overflow";
        case FOVEA_OUT_OF_HOST_MEMORY:
            return "out of host memory";
        case FOVEA_OUT_OF_DEVICE_MEMORY:
            return "out of device memory";
        case FOVEA_DEVICE_LOST:
            return "device lost";
        case FOVEA_VULKAN_ERROR:
            return "Vulkan error";
        case FOVEA_ABI_MISMATCH:
            return "ABI mismatch";
        case FOVEA_IO_ERROR:
            return "input/output error";
        case FOVEA_CANCELLED:
            return "cancelled";
        case FOVEA_TIMEOUT:
            return "timeout";
    }
    return "unknown result";
}

const char* foveaKernelName(FoveaKernel kernel) {
    switch (enum_number(kernel)) {
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

uint32_t foveaAbiVersion(void) { return FOVEA_ABI_VERSION; }

uint32_t foveaDropoutKeeps(float dropout_p, uint64_t seed, uint64_t offset, uint64_t batch_head,
                           uint64_t query, uint64_t key) {
    if (!(dropout_p < 1)) return 0;  // NaN too
    if (!(dropout_p > 0)) return 1;
    Problem p{};
    p.dropout_seed = seed;
    p.dropout_offset = offset;
    p.drop_threshold = uint32_t(double(dropout_p) * 4294967296.0);
    return dropout_keeps(p, uint32_t(batch_head), uint32_t(query), uint32_t(key)) ? 1u : 0u;
}

uint16_t foveaFloatToHalf(float value) { return float_to_half(value); }
float foveaHalfToFloat(uint16_t half) { return half_to_float(half); }
uint16_t foveaFloatToBfloat(float value) { return float_to_bfloat(value); }
float foveaBfloatToFloat(uint16_t bfloat) { return bfloat_to_float(bfloat); }
