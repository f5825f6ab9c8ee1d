#pragma once
// Mutators for formats with checksums, and for JSON: a changed byte would otherwise nearly always stop at the
// checksum or at the syntax, and the code after that would never be fuzzed. libFuzzer has LLVMFuzzerMutate,
// and the replay one of the same meaning.
#include <cstddef>
#include <cstdint>
#include <cstring>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
