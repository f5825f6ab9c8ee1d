// Reads the interface of a SPIR-V module: bindings, push constants, specialization constants, shared memory,
// capabilities. Modules must have passed spirv-val; a malformed one gives an empty result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

namespace fovea::test {

struct SpirvModule {
    struct Binding {
        uint32_t set = 0;
        bool read_only = true;   // every variable of the binding is NonWritable
        uint32_t variables = 0;  // number of its declared variables
    };
    std::map<uint32_t, Binding> bindings;
    std::set<uint32_t> spec_ids;
    uint32_t workgroup_size_spec_id = UINT32_MAX;
    uint32_t push_bytes = 0;
    uint64_t shared_bytes = 0;
    std::set<uint32_t> capabilities;  // OpCapability operands
    uint32_t version = 0;

    static SpirvModule read(std::span<const uint32_t> words);
};

}  // namespace fovea::test
