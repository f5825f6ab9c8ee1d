#include <limits>

#include "scratch.hpp"

namespace fovea::test {
namespace {

template <class T>
Tensor edges(std::string name, ElementType type) {
    using Limits = std::numeric_limits<T>;
    return tensor_of<T>(std::move(name), type, {2, 3},
                        {T(0), T(1), Limits::lowest(), Limits::max(), T(7), T(100)});
}

}  // namespace

TensorSet every_type() {
    using Half = uint16_t;
    TensorSet set;
    set.tensors = {tensor_of<uint8_t>("bool", ElementType::boolean, {3}, {0, 1, 1}),
                   edges<uint8_t>("u8", ElementType::u8),
                   edges<int8_t>("i8", ElementType::i8),
                   edges<int16_t>("i16", ElementType::i16),
                   edges<int32_t>("i32", ElementType::i32),
                   edges<int64_t>("i64", ElementType::i64),
                   edges<uint16_t>("u16", ElementType::u16),
                   edges<uint32_t>("u32", ElementType::u32),
                   edges<uint64_t>("u64", ElementType::u64),
                   tensor_of<Half>("f16", ElementType::f16, {4}, {0x3c00, 0xfc00, 0x7e00, 0x0001}),
                   tensor_of<Half>("bf16", ElementType::bf16, {2, 2}, {0x3f80, 0xff80, 0x7fc0, 0x0001}),
                   edges<float>("f32", ElementType::f32),
                   edges<double>("f64", ElementType::f64),
                   tensor_of<float>("scalar", ElementType::f32, {}, {2.5f}),
                   tensor_of<float>("empty", ElementType::f32, {0, 5}, {})};
    return set;
}

}  // namespace fovea::test
