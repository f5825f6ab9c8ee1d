#include <limits>

#include "scratch.hpp"

namespace fovea::test {
namespace {

template <class T>
Tensor edges(std::string name, FoveaDtype type) {
    using Limits = std::numeric_limits<T>;
    return tensor_of<T>(std::move(name), type, {2, 3},
                        {T(0), T(1), Limits::lowest(), Limits::max(), T(7), T(100)});
}

}  // namespace

TensorSet every_type() {
    using Half = uint16_t;
    TensorSet set;
    set.tensors = {tensor_of<uint8_t>("bool", FOVEA_BOOL, {3}, {0, 1, 1}),
                   edges<uint8_t>("u8", FOVEA_U8),
                   edges<int8_t>("i8", FOVEA_I8),
                   edges<int16_t>("i16", FOVEA_I16),
                   edges<int32_t>("i32", FOVEA_I32),
                   edges<int64_t>("i64", FOVEA_I64),
                   edges<uint16_t>("u16", FOVEA_U16),
                   edges<uint32_t>("u32", FOVEA_U32),
                   edges<uint64_t>("u64", FOVEA_U64),
                   tensor_of<Half>("f16", FOVEA_F16, {4}, {0x3c00, 0xfc00, 0x7e00, 0x0001}),
                   tensor_of<Half>("bf16", FOVEA_BF16, {2, 2}, {0x3f80, 0xff80, 0x7fc0, 0x0001}),
                   edges<float>("f32", FOVEA_F32),
                   edges<double>("f64", FOVEA_F64),
                   tensor_of<float>("scalar", FOVEA_F32, {}, {2.5f}),
                   tensor_of<float>("empty", FOVEA_F32, {0, 5}, {})};
    return set;
}

}  // namespace fovea::test
