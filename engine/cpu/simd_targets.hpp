// Which Highway targets are compiled, and their ids. Included first in every kernel file, before
// <hwy/foreach_target.h>. Highway's own run-time dispatch keeps global state; here plans hold the pointers
// instead, so that nothing is linked from Highway, only its headers are used.
#pragma once

#include "cpu/target.hpp"

// One target for each vector width is enough: the newer sets add nothing to these kernels but build time.
// Scalable vectors (SVE) cannot be held in arrays, which the register tiles are. By bit, because names differ
// between versions of Highway: AVX3_SPR, (reserved), AVX3_ZEN4, AVX3_DL, SSSE3, SSE2; everything of Arm but
// NEON.
#ifndef FOVEA_OTHER_TARGETS  // than the building machine's, see FOVEA_CPU
#define FOVEA_OTHER_TARGETS 0
#endif
#define HWY_DISABLED_TARGETS                                                                               \
    (FOVEA_OTHER_TARGETS | (1LL << 4) | (1LL << 5) | (1LL << 6) | (1LL << 7) | (1LL << 12) | (1LL << 14) | \
     (0x3ffLL << 18))
// The fallback is one lane in every version and with every compiler, never an emulated vector.
#define HWY_BROKEN_EMU128 1

#include <hwy/detect_compiler_arch.h>
#if !HWY_ARCH_X86
#define HWY_COMPILE_ONLY_STATIC
#endif
#include <hwy/detect_targets.h>

// FOVEA_IF_<target>(x) is x where the target is compiled, else nothing. FOVEA_TARGET_ID is the id of the
// target that the current pass of a kernel file compiles.
#if HWY_TARGETS & HWY_AVX3
#define FOVEA_IF_AVX512(x) x
#else
#define FOVEA_IF_AVX512(x)
#endif
#if HWY_TARGETS & HWY_AVX2
#define FOVEA_IF_AVX2(x) x
#else
#define FOVEA_IF_AVX2(x)
#endif
#if HWY_TARGETS & HWY_SSE4
#define FOVEA_IF_SSE4(x) x
#else
#define FOVEA_IF_SSE4(x)
#endif
#if HWY_TARGETS & HWY_SCALAR
#define FOVEA_IF_SCALAR(x) x
#else
#define FOVEA_IF_SCALAR(x)
#endif
// Targets of architectures with only one: the namespace is Highway's static one.
#if HWY_ARCH_WASM && (HWY_TARGETS & HWY_WASM)
#define FOVEA_IF_STATIC(x) x
#if defined(__wasm_relaxed_simd__)
#define FOVEA_STATIC_TARGET_ID ::fovea::cpu::kTargetWasmRelaxed
#else
#define FOVEA_STATIC_TARGET_ID ::fovea::cpu::kTargetWasm
#endif
#elif HWY_ARCH_ARM && !(HWY_TARGETS & HWY_SCALAR)
#define FOVEA_IF_STATIC(x) x
#define FOVEA_STATIC_TARGET_ID ::fovea::cpu::kTargetNeon
#else
#define FOVEA_IF_STATIC(x)
#define FOVEA_STATIC_TARGET_ID ::fovea::cpu::kTargetScalar
#endif

#define FOVEA_TARGET_ID                                                 \
    (HWY_TARGET == HWY_AVX3     ? uint32_t{::fovea::cpu::kTargetAvx512} \
     : HWY_TARGET == HWY_AVX2   ? uint32_t{::fovea::cpu::kTargetAvx2}   \
     : HWY_TARGET == HWY_SSE4   ? uint32_t{::fovea::cpu::kTargetSse4}   \
     : HWY_TARGET == HWY_SCALAR ? uint32_t{::fovea::cpu::kTargetScalar} \
                                : uint32_t{FOVEA_STATIC_TARGET_ID})

// For a file whose targets are separate objects, see CMakeLists.txt. Its own object has only the compiler's
// static target (FOVEA_OBJECT_TARGET is 0); the other objects have the passes of <hwy/foreach_target.h> for
// FOVEA_OBJECT_TARGET, if it is compiled.
#ifdef FOVEA_OBJECT_TARGET
#if HWY_TARGETS & FOVEA_OBJECT_TARGET
#undef HWY_TARGETS
#define HWY_TARGETS (FOVEA_OBJECT_TARGET | HWY_STATIC_TARGET)
#else
#undef HWY_TARGETS
#define HWY_TARGETS HWY_STATIC_TARGET
#endif
#endif

// Declares NAME for every target with its type in the static one, for a file whose targets are separate
// objects.
#define FOVEA_DECLARE_TARGETS(NAME)                                           \
    FOVEA_IF_AVX512(namespace N_AVX3 { decltype(HWY_NAMESPACE::NAME) NAME; }) \
    FOVEA_IF_AVX2(namespace N_AVX2 { decltype(HWY_NAMESPACE::NAME) NAME; })   \
    FOVEA_IF_SSE4(namespace N_SSE4 { decltype(HWY_NAMESPACE::NAME) NAME; })

// Body of a function `select(uint32_t target)` in namespace fovea::cpu, after the last pass of a kernel file:
// the instance of NAME for that target, or null.
#define FOVEA_SELECT_TARGET(target, NAME)                                           \
    switch (target) {                                                               \
        FOVEA_IF_AVX512(case kTargetAvx512 : return &N_AVX3::NAME;)                 \
        FOVEA_IF_AVX2(case kTargetAvx2 : return &N_AVX2::NAME;)                     \
        FOVEA_IF_SSE4(case kTargetSse4 : return &N_SSE4::NAME;)                     \
        FOVEA_IF_SCALAR(case kTargetScalar : return &N_SCALAR::NAME;)               \
        FOVEA_IF_STATIC(case FOVEA_STATIC_TARGET_ID : return &HWY_NAMESPACE::NAME;) \
        default:                                                                    \
            return nullptr;                                                         \
    }

// The same for kernels with products of pairs of bfloat16. Only AVX-512 has them, with compilers that accept
// the instruction as simd_inl.hpp writes it.
#if defined(__GNUC__)
#define FOVEA_IF_PAIRS(x) FOVEA_IF_AVX512(x)
#else
#define FOVEA_IF_PAIRS(x)
#endif
#define FOVEA_SELECT_TARGET_OF_PAIRS(target, NAME)                 \
    switch (target) {                                              \
        FOVEA_IF_PAIRS(case kTargetAvx512 : return &N_AVX3::NAME;) \
        default:                                                   \
            return nullptr;                                        \
    }

namespace fovea::cpu {

constexpr uint32_t kCompiledTargets = 0u FOVEA_IF_AVX512(| 1u << kTargetAvx512)
    FOVEA_IF_AVX2(| 1u << kTargetAvx2) FOVEA_IF_SSE4(| 1u << kTargetSse4)
        FOVEA_IF_SCALAR(| 1u << kTargetScalar) FOVEA_IF_STATIC(| 1u << FOVEA_STATIC_TARGET_ID);

}  // namespace fovea::cpu
