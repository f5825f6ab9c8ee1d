#include "cpu/target.hpp"

#include "cpu/simd_targets.hpp"
#include "problem/abi_struct.hpp"

#include <fovea/fovea.h>

#include <atomic>

#if HWY_ARCH_X86 && defined(_MSC_VER)
#include <intrin.h>
#elif HWY_ARCH_X86
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <unistd.h>
#endif

namespace fovea::cpu {
namespace {

#if HWY_ARCH_X86
#if defined(_MSC_VER)
struct Features {
    bool sse4, avx2, avx512, byte_products, pair_products;
};
Features detect() {
    int basic[4], extended[4] = {};
    __cpuid(basic, 0);
    const int last = basic[0];
    __cpuid(basic, 1);
    if (last >= 7) __cpuidex(extended, 7, 0);
    const auto bit = [](int word, int n) { return (word >> n & 1) != 0; };
    const bool xsave = bit(basic[2], 27);
    const unsigned long long state = xsave ? _xgetbv(0) : 0;
    const bool ymm = (state & 6) == 6, zmm = ymm && (state & 0xe0) == 0xe0;
    Features f{};
    f.sse4 =
        bit(basic[2], 9) && bit(basic[2], 19) && bit(basic[2], 20) && bit(basic[2], 1) && bit(basic[2], 25);
    f.avx2 = f.sse4 && ymm && bit(basic[2], 12) && bit(basic[2], 29) && bit(extended[1], 5) &&
             bit(extended[1], 3) && bit(extended[1], 8);
    f.avx512 = f.avx2 && zmm && bit(extended[1], 16) && bit(extended[1], 17) && bit(extended[1], 28) &&
               bit(extended[1], 30) && bit(extended[1], 31);
    f.byte_products = f.avx512 && bit(extended[2], 11);
    return f;
}
#else
struct Features {
    bool sse4, avx2, avx512, byte_products, pair_products;
};
// Checks features for which not every compiler's __builtin_cpu_supports has a name.
bool has_f16c_and_lzcnt() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_F16C)) return false;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c & bit_LZCNT);
}

// Highway's SSE4 kernels may use AES and carry-less products, its AVX2 kernels F16C and BMI2.
Features detect() {
    Features f{};
    f.sse4 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") &&
             __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") &&
             __builtin_cpu_supports("aes");
    f.avx2 = f.sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c_and_lzcnt();
    f.avx512 = f.avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    f.byte_products = f.avx512 && __builtin_cpu_supports("avx512vnni");
    unsigned a = 0, b = 0, c = 0, d = 0;
    f.pair_products = f.avx512 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1u);
    return f;
}
#endif

// Above the bits of targets.
constexpr uint32_t kByteProducts = 1u << kTargetCount, kPairProducts = kByteProducts << 1;

uint32_t processor_targets() {
    const Features f = detect();
    return (f.byte_products ? kByteProducts : 0) | (f.pair_products ? kPairProducts : 0) |
           1u << kTargetScalar | (f.sse4 ? 1u << kTargetSse4 : 0) | (f.avx2 ? 1u << kTargetAvx2 : 0) |
           (f.avx512 ? 1u << kTargetAvx512 : 0);
}
#else
constexpr uint32_t kByteProducts = 0, kPairProducts = 0;
uint32_t processor_targets() { return ~0u; }  // every compiled target runs
#endif

struct CacheSizes {
    uint64_t l1, l2;
};
CacheSizes cache_sizes() {
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return {l1 > 0 ? uint64_t(l1) : 0, l2 > 0 ? uint64_t(l2) : 0};
#else
    return {0, 0};
#endif
}

}  // namespace

const char* target_name(uint32_t target) {
    switch (target) {
        case kTargetBest:
            return "best";
        case kTargetScalar:
            return "scalar";
        case kTargetSse4:
            return "SSE4";
        case kTargetAvx2:
            return "AVX2";
        case kTargetAvx512:
            return "AVX-512";
        case kTargetNeon:
            return "NEON";
        case kTargetWasm:
            return "WASM";
        case kTargetWasmRelaxed:
            return "WASM relaxed";
        default:
            return "unknown";
    }
}

namespace {
// Bits of targets, kByteProducts and kPairProducts.
uint32_t known_bits() {
    // A virtual machine answers slowly, longer than a plan for one token takes. Every thread finds the same,
    // so that whoever asks first may write it down.
    static constinit std::atomic<uint32_t> known = 0;
    uint32_t targets = known.load(std::memory_order_relaxed);
    if (targets == 0) {
        targets = processor_targets() & (kCompiledTargets | kByteProducts FOVEA_IF_PAIRS(| kPairProducts));
        known.store(targets, std::memory_order_relaxed);
    }
    return targets;
}
}  // namespace

uint32_t runnable_targets() { return known_bits() & kCompiledTargets; }
bool has_byte_products() { return (known_bits() & kByteProducts) != 0; }
bool has_pair_products() { return (known_bits() & kPairProducts) != 0; }

uint32_t best_target() {
    const uint32_t targets = runnable_targets();
    uint32_t best = kTargetScalar;
    for (uint32_t t = kTargetScalar; t < kTargetCount; ++t)
        if (targets >> t & 1) best = t;
    return best;
}

}  // namespace fovea::cpu

using namespace fovea;

FoveaResult foveaCpuProperties(uint32_t threads, FoveaDeviceProperties* out, FoveaDiag* diag) {
    FoveaDeviceProperties properties{};
    properties.struct_size = sizeof properties;
    properties.backend = FOVEA_BACKEND_CPU;
    properties.device_class = FOVEA_CLASS_CPU;
    properties.features = FOVEA_FEATURE_F16_STORAGE;
    if (cpu::has_pair_products()) properties.features |= FOVEA_FEATURE_BF16_INPUTS;
    properties.cpu_threads = threads ? threads : 1;
    properties.cpu_target = cpu::best_target();
    const cpu::CacheSizes caches = cpu::cache_sizes();
    properties.l1_bytes = caches.l1;
    properties.l2_bytes = caches.l2;
    return write_struct(properties, out, "properties", diag);
}

const char* foveaCpuTargetName(uint32_t cpu_target) { return cpu::target_name(cpu_target); }
