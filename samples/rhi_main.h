/* The functions of rhi.c for the program in rhi_vulkan.c. */
#ifndef FOVEA_SAMPLES_RHI_MAIN_H
#define FOVEA_SAMPLES_RHI_MAIN_H

#include "rhi.h"

#include <fovea/fovea.h>

FoveaResult play_plan(Rhi* rhi, FoveaPlan plan, RhiBuffer* const* buffers, FoveaDiag* diag);
FoveaDeviceProperties properties_of_any_device(void);

#endif
