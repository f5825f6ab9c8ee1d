// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four random words as
// a pure function of a 128-bit counter and a 64-bit key. Dropout masks, sampling and training draw from it.
// No allocation, no error, safe from any thread.
#pragma once

#include <cstdint>

namespace fovea {

// A counter, or the words drawn for it.
struct Philox4 {
    uint32_t word[4];  // least significant first
};

// Returns the four words of a counter under a key.
inline Philox4 philox4x32_10(Philox4 counter, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t{0xD2511F53u} * counter.word[0];
        const uint64_t b = uint64_t{0xCD9E8D57u} * counter.word[2];
        counter = {{uint32_t(b >> 32) ^ counter.word[1] ^ key0, uint32_t(b),
                    uint32_t(a >> 32) ^ counter.word[3] ^ key1, uint32_t(a)}};
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

}  // namespace fovea
