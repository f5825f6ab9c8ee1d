#include "model/block_run.hpp"

#include <algorithm>
#include <vector>

namespace fovea {
namespace {

// Rows of weights that become float32 at a time, in bytes of float32.
constexpr uint64_t kStretchBytes = uint64_t{16} << 20;

// True if linear() can read the bytes as they are: blocks byte by byte, elements with their alignment.
bool is_readable(const StoredWeight& weight) {
    if (!has_use(weight.type, kUseLinear) || weight.rows() == 0 || weight.columns() == 0 || weight.file)
        return false;
    const StorageBlock block = dtype_info(weight.type).block;
    return block.numbers > 1 || reinterpret_cast<uintptr_t>(weight.bytes.data()) % block.bytes == 0;
}

}  // namespace

FoveaLinearDesc linear_of(const StoredWeight& weight, const F32Tensor& bias, const F32Tensor& x) {
    FoveaLinearDesc call{};
    call.struct_size = sizeof call;
    call.w_type = weight.type;
    call.n_in = uint32_t(weight.columns()), call.n_out = uint32_t(weight.rows()), call.rows = x.rows();
    call.has_bias = !bias.values.empty();
    return call;
}

// By linear(), in float32 a stretch at a time where that does not read the type.
static Result<void> product_on(Runner& engine, const StoredWeight& weight, const F32Tensor& bias,
                               const F32Tensor& x, F32Tensor& y) {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_X] = {const_cast<float*>(x.values.data()), x.values.size() * 4};
    if (is_readable(weight)) {
        bindings[FOVEA_BIND_WEIGHT] = {const_cast<std::byte*>(weight.bytes.data()), weight.bytes.size()};
        if (!bias.values.empty())
            bindings[FOVEA_BIND_BIAS] = {const_cast<float*>(bias.values.data()), bias.values.size() * 4};
        bindings[FOVEA_BIND_Y] = {y.values.data(), y.values.size() * 4};
        FoveaLinearDesc call = linear_of(weight, bias, x);
        call.kernel = engine.stored_kernel(x.rows());
        if (dtype_info(weight.type).block.numbers > 1) call.precision = engine.stored_precision();
        Result<void> run = engine.linear(call, bindings);
        // A build for a page leaves out some of the types for many rows.
        if (run || run.error().code != FOVEA_UNSUPPORTED) return run;
    }
    const uint64_t columns = weight.columns(), count = weight.rows();
    const uint64_t step = std::max<uint64_t>(1, kStretchBytes / (4 * std::max<uint64_t>(1, columns)));
    for (uint64_t first = 0; first < count; first += step) {
        const uint64_t rows = std::min(step, count - first);
        std::vector<float> part(rows * columns);
        if (Result<void> r = read_rows(weight, first, part); !r) return r;
        FoveaLinearDesc call = linear_of(weight, bias, x);
        call.w_type = FOVEA_F32;
        call.n_out = uint32_t(rows);
        F32Tensor some({x.rows(), rows});
        bindings[FOVEA_BIND_WEIGHT] = {part.data(), part.size() * 4};
        if (call.has_bias)
            bindings[FOVEA_BIND_BIAS] = {const_cast<float*>(bias.values.data()) + first, rows * 4};
        bindings[FOVEA_BIND_Y] = {some.values.data(), some.values.size() * 4};
        if (Result<void> r = engine.linear(call, bindings); !r) return r;
        for (uint64_t i = 0; i < x.rows(); ++i)
            std::copy(some.row(i).begin(), some.row(i).end(), y.row(i).begin() + int64_t(first));
    }
    return {};
}

Result<void> Runner::stored_linears(std::span<const StoredProduct> products, const F32Tensor& x) {
#ifdef FOVEA_NO_STORED_WEIGHTS
    return products.empty() ? Result<void>{} : read_rows(*products[0].weight, 0, {});
#endif
    for (const StoredProduct& one : products)
        if (Result<void> r = product_on(*this, *one.weight, *one.bias, x, *one.y); !r) return r;
    return {};
}

}  // namespace fovea
