// Written by tests/layers/random_hashes.py; do not edit.
#pragma once

#include <cstdint>

namespace fovea::test {

struct RandomHash {
    const char* rule;
    std::uint64_t seed;
    std::uint64_t fnv1a;
};

inline constexpr int kRandomHashCount = 100000;
inline constexpr RandomHash kRandomHashes[] = {
    {"words", 0U, 0x0edaeee80ae578e3U},
    {"words", 123U, 0xf572417bb24ab341U},
    {"words", 789U, 0xc7f2bf38705b0423U},
    {"words", 2147483647U, 0x9e2cef886d9ae152U},
    {"words", 18446744073709551611U, 0xcdfde37a8b880369U},
    {"rand", 0U, 0x9eb14a9a6bc5b384U},
    {"rand", 123U, 0xf873e23766ec80fcU},
    {"rand", 789U, 0xae48bd55105c169fU},
    {"rand", 2147483647U, 0xa3b576757a7984ecU},
    {"rand", 18446744073709551611U, 0x6789693bedd22aabU},
    {"uniform", 0U, 0xd586c207fe92666bU},
    {"uniform", 123U, 0xf73a97c710e329e7U},
    {"uniform", 789U, 0xe49a63ee6fffe8ccU},
    {"uniform", 2147483647U, 0xa92538c9c40ee991U},
    {"uniform", 18446744073709551611U, 0xcfa6cd186595051bU},
    {"linear_3", 0U, 0x1922d08bbe0e6cfcU},
    {"linear_3", 123U, 0x48a093c9ab1e2924U},
    {"linear_3", 789U, 0x38f6a20afbfd5251U},
    {"linear_3", 2147483647U, 0xc128c95b4db2d4e9U},
    {"linear_3", 18446744073709551611U, 0xb6b12827dbc8ca4cU},
    {"linear_768", 0U, 0x31d47f70114c19f4U},
    {"linear_768", 123U, 0xe80cead003c1ddd8U},
    {"linear_768", 789U, 0xd539429acbd0eec1U},
    {"linear_768", 2147483647U, 0x13ecde73a233b7c1U},
    {"linear_768", 18446744073709551611U, 0x10327fefa7b5d97cU},
    {"randn_in_blocks", 0U, 0x2fc5e4b24869ecaaU},
    {"randn_in_blocks", 123U, 0xf455631a0e640982U},
    {"randn_in_blocks", 789U, 0xde24924e5eaa4bf3U},
    {"randn_in_blocks", 2147483647U, 0x6a19ee9abea39db7U},
    {"randn_in_blocks", 18446744073709551611U, 0xcbec61294ac3779cU},
    {"randn_with_rest", 0U, 0x291f8a61d1c8afbbU},
    {"randn_with_rest", 123U, 0x4334eefd77a05a4fU},
    {"randn_with_rest", 789U, 0x2584ea064826e0eaU},
    {"randn_with_rest", 2147483647U, 0xcc8af6d4190b56faU},
    {"randn_with_rest", 18446744073709551611U, 0x0bfc45c2f49dda99U},
    {"randn_in_pairs", 0U, 0xd9f58044783cbbefU},
    {"randn_in_pairs", 123U, 0xd0d3f7135a9bc070U},
    {"randn_in_pairs", 789U, 0x98566ce6063ab923U},
    {"randn_in_pairs", 2147483647U, 0x2738ef85e08f1db2U},
    {"randn_in_pairs", 18446744073709551611U, 0x8b399b60a6a0d96aU},
    {"native_0.2", 0U, 0x10c72e01e7dc78d0U},
    {"native_0.2", 123U, 0x56e63d77fea1ceb1U},
    {"native_0.2", 789U, 0xb8f5679a4829a4c0U},
    {"native_0.2", 2147483647U, 0x809f209073fd2261U},
    {"native_0.2", 18446744073709551611U, 0x2bb8ce3d58738ad4U},
    {"native_0.5", 0U, 0xdd0163d7737287eaU},
    {"native_0.5", 123U, 0xdfe3dcfc358c6357U},
    {"native_0.5", 789U, 0x386a7d2c6503e228U},
    {"native_0.5", 2147483647U, 0x7065f670823e0111U},
    {"native_0.5", 18446744073709551611U, 0x3ca42fe1a33e1234U},
    {"mkl_0.1", 0U, 0x9c751829d2abf7f8U},
    {"mkl_0.1", 123U, 0x6759f13506e05eafU},
    {"mkl_0.1", 789U, 0xaedd890849128c6cU},
    {"mkl_0.1", 2147483647U, 0x307d276d95ef675dU},
    {"mkl_0.1", 18446744073709551611U, 0x489a97ecfa4b6048U},
    {"mkl_0.5", 0U, 0xae9626ff38a3f890U},
    {"mkl_0.5", 123U, 0xa516c6cf3bfc7a98U},
    {"mkl_0.5", 789U, 0xbde9e166c5cda663U},
    {"mkl_0.5", 2147483647U, 0x36e7dbdacde90b2aU},
    {"mkl_0.5", 18446744073709551611U, 0xd63a3dc3ead61b15U},
};

}  // namespace fovea::test
