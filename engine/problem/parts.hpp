// Parts that a module may leave out, because what calls it never asks for them. Such a module compiles the
// tables that name the parts (cpu/kernels.cpp, cpu/run.cpp, api/plan_api.cpp) once more, with FOVEA_LEFT_OUT
// defined as their sum: -DFOVEA_LEFT_OUT=kGradients+kMerges. A call that wants a kernel that is left out
// takes the plain loops.
#pragma once

namespace fovea {

enum Part : unsigned {
    kGradients = 1,
    kMerges = 2,
    kCaches = 4,  // append and gather
    kDecoding = 8,
    kMapTiles = 16,
    kPlainLoops = 32,  // kernels plain and reference: a call that takes them must not be run
    kVulkanPlans = 64,
    kStoredRows = 128,  // linear's kernel for few rows
    kIntegers = 256     // linear's products of int8
};

#ifndef FOVEA_LEFT_OUT
#define FOVEA_LEFT_OUT 0
#endif
constexpr bool has(Part part) { return !((FOVEA_LEFT_OUT)&part); }

}  // namespace fovea
