// Written by tests/model/random_hashes.py; do not edit.
#pragma once

#include <cstdint>

namespace fovea::test {

struct RandomHash {
    const char* rule;
    uint64_t seed;
    uint64_t fnv1a;
};

inline constexpr int kRandomHashCount = 100000;
inline constexpr RandomHash kRandomHashes[] = {
    {"words", 0u, 0x0edaeee80ae578e3u},
    {"words", 123u, 0xf572417bb24ab341u},
    {"words", 789u, 0xc7f2bf38705b0423u},
    {"words", 2147483647u, 0x9e2cef886d9ae152u},
    {"words", 18446744073709551611u, 0xcdfde37a8b880369u},
    {"rand", 0u, 0x9eb14a9a6bc5b384u},
    {"rand", 123u, 0xf873e23766ec80fcu},
    {"rand", 789u, 0xae48bd55105c169fu},
    {"rand", 2147483647u, 0xa3b576757a7984ecu},
    {"rand", 18446744073709551611u, 0x6789693bedd22aabu},
    {"uniform", 0u, 0xd586c207fe92666bu},
    {"uniform", 123u, 0xf73a97c710e329e7u},
    {"uniform", 789u, 0xe49a63ee6fffe8ccu},
    {"uniform", 2147483647u, 0xa92538c9c40ee991u},
    {"uniform", 18446744073709551611u, 0xcfa6cd186595051bu},
    {"linear_3", 0u, 0x1922d08bbe0e6cfcu},
    {"linear_3", 123u, 0x48a093c9ab1e2924u},
    {"linear_3", 789u, 0x38f6a20afbfd5251u},
    {"linear_3", 2147483647u, 0xc128c95b4db2d4e9u},
    {"linear_3", 18446744073709551611u, 0xb6b12827dbc8ca4cu},
    {"linear_768", 0u, 0x31d47f70114c19f4u},
    {"linear_768", 123u, 0xe80cead003c1ddd8u},
    {"linear_768", 789u, 0xd539429acbd0eec1u},
    {"linear_768", 2147483647u, 0x13ecde73a233b7c1u},
    {"linear_768", 18446744073709551611u, 0x10327fefa7b5d97cu},
    {"randn_in_blocks", 0u, 0x2fc5e4b24869ecaau},
    {"randn_in_blocks", 123u, 0xf455631a0e640982u},
    {"randn_in_blocks", 789u, 0xde24924e5eaa4bf3u},
    {"randn_in_blocks", 2147483647u, 0x6a19ee9abea39db7u},
    {"randn_in_blocks", 18446744073709551611u, 0xcbec61294ac3779cu},
    {"randn_with_rest", 0u, 0x291f8a61d1c8afbbu},
    {"randn_with_rest", 123u, 0x4334eefd77a05a4fu},
    {"randn_with_rest", 789u, 0x2584ea064826e0eau},
    {"randn_with_rest", 2147483647u, 0xcc8af6d4190b56fau},
    {"randn_with_rest", 18446744073709551611u, 0x0bfc45c2f49dda99u},
    {"randn_in_pairs", 0u, 0xd9f58044783cbbefu},
    {"randn_in_pairs", 123u, 0xd0d3f7135a9bc070u},
    {"randn_in_pairs", 789u, 0x98566ce6063ab923u},
    {"randn_in_pairs", 2147483647u, 0x2738ef85e08f1db2u},
    {"randn_in_pairs", 18446744073709551611u, 0x8b399b60a6a0d96au},
    {"native_0.2", 0u, 0x10c72e01e7dc78d0u},
    {"native_0.2", 123u, 0x56e63d77fea1ceb1u},
    {"native_0.2", 789u, 0xb8f5679a4829a4c0u},
    {"native_0.2", 2147483647u, 0x809f209073fd2261u},
    {"native_0.2", 18446744073709551611u, 0x2bb8ce3d58738ad4u},
    {"native_0.5", 0u, 0xdd0163d7737287eau},
    {"native_0.5", 123u, 0xdfe3dcfc358c6357u},
    {"native_0.5", 789u, 0x386a7d2c6503e228u},
    {"native_0.5", 2147483647u, 0x7065f670823e0111u},
    {"native_0.5", 18446744073709551611u, 0x3ca42fe1a33e1234u},
    {"mkl_0.1", 0u, 0x9c751829d2abf7f8u},
    {"mkl_0.1", 123u, 0x6759f13506e05eafu},
    {"mkl_0.1", 789u, 0xaedd890849128c6cu},
    {"mkl_0.1", 2147483647u, 0x307d276d95ef675du},
    {"mkl_0.1", 18446744073709551611u, 0x489a97ecfa4b6048u},
    {"mkl_0.5", 0u, 0xae9626ff38a3f890u},
    {"mkl_0.5", 123u, 0xa516c6cf3bfc7a98u},
    {"mkl_0.5", 789u, 0xbde9e166c5cda663u},
    {"mkl_0.5", 2147483647u, 0x36e7dbdacde90b2au},
    {"mkl_0.5", 18446744073709551611u, 0xd63a3dc3ead61b15u},
};

}  // namespace fovea::test
