// Defines the features of GLSL that WGSL lacks, in two forms. With FOVEA_WGSL a module is on its way to a
// browser (web/tools/wgsl.mjs); without it each macro is GLSL's own function or operator, so that Vulkan's
// SPIR-V is what it would be without this file.
//   FOVEA_MINUS_INFINITY   WGSL refuses a constant that is not finite, and may assume that no value is; so it
//                          is made while the kernel runs, and recognized only by its bits
//   FOVEA_IS_NAN, FOVEA_IS_SPECIAL                     whether a float is NaN; whether it is NaN or infinite
//   fovea_multiply_wide(a, b, high, low), fovea_add_carry(a, b, carry)   64 bits from 32
#ifndef FOVEA_WGSL_GLSL
#define FOVEA_WGSL_GLSL

#ifdef FOVEA_WGSL

// No dispatch has 2^31 workgroups, but no compiler knows that.
#define FOVEA_MINUS_INFINITY uintBitsToFloat(kMinusInfinity | (gl_NumWorkGroups.x >> 31))
#define FOVEA_IS_NAN(x) ((floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u)
#define FOVEA_IS_SPECIAL(x) ((floatBitsToUint(x) & 0x7f800000u) == 0x7f800000u)

// The high word from products of halves.
void fovea_multiply_wide(uint a, uint b, out uint high, out uint low) {
    const uint a0 = a & 0xffffu, a1 = a >> 16, b0 = b & 0xffffu, b1 = b >> 16;
    const uint middle = a1 * b0 + (a0 * b0 >> 16), other = a0 * b1 + (middle & 0xffffu);
    high = a1 * b1 + (middle >> 16) + (other >> 16);
    low = a * b;
}

uint fovea_add_carry(uint a, uint b, out uint carry) {
    const uint sum = a + b;
    carry = sum < a ? 1u : 0u;
    return sum;
}

#else

#define FOVEA_MINUS_INFINITY uintBitsToFloat(kMinusInfinity)
#define FOVEA_IS_NAN(x) isnan(x)
#define FOVEA_IS_SPECIAL(x) (isnan(x) || isinf(x))
#define fovea_multiply_wide umulExtended
#define fovea_add_carry uaddCarry

#endif
#endif
