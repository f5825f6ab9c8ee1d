// The properties of the types of elements, one row for each FoveaDtype: the one table that the library, the
// readers of files and the programs ask.
#pragma once

#include <fovea/fovea.h>

#include <cstdint>
#include <iterator>

namespace fovea {

// Elements of a row that are stored together, and their bytes. An element is never in two blocks.
struct StorageBlock {
    uint32_t numbers, bytes;
};

// The readers of a type's tensors.
enum DtypeUse : uint32_t {
    kUseNumbers = 1u << 0,  // tensors that operations compute with: q, k, v, o, x, y
    kUseCache = 1u << 1,    // k and v of attention, append's and gather's caches
    kUseLinear = 1u << 2,   // linear's W
    kUseFile = 1u << 3,     // weights in a model's files
    kUseElement = 1u << 4,  // tensors in files, of elements that npy or safetensors have
};

// One row of the table of types.
struct DtypeInfo {
    FoveaDtype type;     // the row's type
    const char* name;    // in files, options and messages: "q4_k"
    StorageBlock block;  // elements and bytes of a block
    uint32_t uses;       // DtypeUse
};
// By number.
inline constexpr DtypeInfo kDtypes[] = {
    {FOVEA_F32, "f32", {1, 4}, kUseNumbers | kUseLinear | kUseFile | kUseElement},
    {FOVEA_F16, "f16", {1, 2}, kUseNumbers | kUseLinear | kUseFile | kUseElement},
    {FOVEA_U8, "u8", {1, 1}, kUseElement},
    {FOVEA_I32, "i32", {1, 4}, kUseElement},
    {FOVEA_BF16, "bf16", {1, 2}, kUseNumbers | kUseLinear | kUseFile | kUseElement},
    {FOVEA_F8_E4M3, "f8_e4m3", {1, 1}, kUseCache},
    {FOVEA_F8_E5M2, "f8_e5m2", {1, 1}, kUseCache},
    {FOVEA_Q8_0, "q8_0", {32, 34}, kUseCache | kUseLinear | kUseFile},
    {FOVEA_Q4_0, "q4_0", {32, 18}, kUseCache | kUseLinear | kUseFile},
    {FOVEA_Q4_K, "q4_k", {256, 144}, kUseLinear | kUseFile},
    {FOVEA_Q5_K, "q5_k", {256, 176}, kUseLinear | kUseFile},
    {FOVEA_Q6_K, "q6_k", {256, 210}, kUseLinear | kUseFile},
    {FOVEA_BOOL, "bool", {1, 1}, kUseElement},
    {FOVEA_I8, "i8", {1, 1}, kUseElement},
    {FOVEA_I16, "i16", {1, 2}, kUseElement},
    {FOVEA_I64, "i64", {1, 8}, kUseElement},
    {FOVEA_U16, "u16", {1, 2}, kUseElement},
    {FOVEA_U32, "u32", {1, 4}, kUseElement},
    {FOVEA_U64, "u64", {1, 8}, kUseElement},
    {FOVEA_F64, "f64", {1, 8}, kUseFile | kUseElement},
    {FOVEA_Q4_1, "q4_1", {32, 20}, kUseLinear | kUseFile},
    {FOVEA_Q5_0, "q5_0", {32, 22}, kUseLinear | kUseFile},
    {FOVEA_Q5_1, "q5_1", {32, 24}, kUseLinear | kUseFile},
    {FOVEA_DTYPE_OTHER, "other", {0, 0}, 0},
};

// Returns the row of FOVEA_DTYPE_OTHER for a value outside FoveaDtype.
constexpr const DtypeInfo& dtype_info(int type) {
    return kDtypes[type >= 0 && type < FOVEA_DTYPE_OTHER ? type : FOVEA_DTYPE_OTHER];
}
constexpr const char* dtype_name(FoveaDtype type) { return dtype_info(type).name; }
// Bytes of one block: of one element, where the type has no blocks.
constexpr uint32_t dtype_bytes(FoveaDtype type) { return dtype_info(type).block.bytes; }
// True if `type`, any number, is one that a reader of `use` takes.
constexpr bool has_use(int type, DtypeUse use) { return (dtype_info(type).uses & use) != 0; }

// True if each row is where dtype_info() looks for it.
constexpr bool dtypes_are_in_order() {
    for (int n = 0; n < int(std::size(kDtypes)); ++n)
        if (kDtypes[n].type != n) return false;
    return true;
}
static_assert(std::size(kDtypes) == FOVEA_DTYPE_OTHER + 1 && dtypes_are_in_order());

}  // namespace fovea
