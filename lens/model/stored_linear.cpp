#include "model/stored_linear.hpp"

#include <algorithm>

#include "cpu/block_rows.hpp"
#include "problem/checked.hpp"
#include "problem/parallel.hpp"
#include "problem/problem.hpp"

namespace fovea {
namespace {

// Bytes of weights that one task reads at most. It reads each of its stretches of memory from end to end, so
// that larger ones are read faster.
constexpr uint64_t kTaskBytes = uint64_t{512} << 10;
// Rows of weights that become float32 at a time, in bytes of float32.
constexpr uint64_t kStretchBytes = uint64_t{16} << 20;

uint64_t row_bytes(const StoredWeight& weight) {
    return weight.columns() / dtype_info(weight.type).block.numbers * dtype_bytes(weight.type);
}

}  // namespace

bool has_stored_rows(const StoredWeight& weight) {
    if (!has_use(weight.type, kUseLinear) || weight.rows() == 0 || weight.columns() == 0 || weight.file)
        return false;
    // Blocks are read byte by byte, numbers as what they are.
    const uint64_t alignment = dtype_info(weight.type).block.numbers == 1 ? dtype_bytes(weight.type) : 1;
    return reinterpret_cast<uintptr_t>(weight.bytes.data()) % alignment == 0;
}

void stored_rows_on_cpu(uint32_t target, std::span<const StoredProduct> products, const F32Tensor& x,
                        const FoveaParallel* parallel, bool byte_products) {
    struct Matrix {
        cpu::BlockRows call;
        uint64_t step;
        uint32_t end_task;  // of all matrices up to this one
    };
    struct Job {
        cpu::BlockRowsKernel kernel;
        std::vector<Matrix> matrices;
    } job{cpu::block_rows_kernel_of(target), {}};
    uint64_t bytes = 0;
    uint32_t tasks = 0;
    for (const StoredProduct& one : products) {
        const StoredWeight& weight = *one.weight;
        Matrix m{};
        m.call.format = weight.type;
        m.call.weights = reinterpret_cast<const unsigned char*>(weight.bytes.data());
        m.call.columns = weight.columns(), m.call.row_bytes = row_bytes(weight);
        m.call.rows = weight.rows(), m.call.part_rows = ceil_div(weight.rows(), uint64_t{cpu::kRowParts});
        m.call.bias = one.bias->values.empty() ? nullptr : one.bias->values.data();
        m.call.byte_products = byte_products;
        bytes += m.call.rows * m.call.row_bytes;
        job.matrices.push_back(m);
    }
    // As many of about one size for each worker.
    const uint64_t workers = parallel ? parallel->worker_count : 1;
    const uint64_t most =
        bytes / (workers * std::max<uint64_t>(1, ceil_div(bytes, workers * kTaskBytes))) + 1;
    for (Matrix& m : job.matrices) {
        const uint64_t parts = (m.call.rows * m.call.row_bytes + most / 2) / most;
        m.step = ceil_div(m.call.part_rows, std::max<uint64_t>(1, parts));
        m.end_task = tasks += uint32_t(ceil_div(m.call.part_rows, m.step));
    }
    const bool any_digits = std::any_of(job.matrices.begin(), job.matrices.end(),
                                        [](const Matrix& m) { return m.call.format == FOVEA_Q4_0; });
    std::vector<uint32_t> odd(any_digits ? x.columns() / 32 : 0);
    for (uint64_t i = 0; i < x.rows(); ++i) {
        std::vector<cpu::DigitGroup> digits(any_digits ? cpu::digit_groups(x.columns()) : 0);
        const cpu::BlockRows* with_digits = nullptr;
        for (size_t n = 0; n < products.size(); ++n) {
            cpu::BlockRows& call = job.matrices[n].call;
            call.x = x.row(i).data(), call.y = products[n].y->row(i).data();
            if (call.format != FOVEA_Q4_0) continue;
            if (with_digits)
                call.digits = with_digits->digits, call.odd = with_digits->odd,
                call.odd_blocks = with_digits->odd_blocks;
            else
                cpu::split_digits_of(target)(call, digits.data(), odd.data());
            with_digits = &call;
        }
        for_each_task(
            parallel, tasks,
            [](void* arg, uint32_t index, uint32_t) {
                const Job& j = *static_cast<const Job*>(arg);
                const Matrix* m = j.matrices.data();
                uint32_t begin = 0;
                for (; index >= m->end_task; ++m) begin = m->end_task;
                const uint64_t first = (index - begin) * m->step;
                j.kernel(m->call, first, std::min(m->call.part_rows, first + m->step));
            },
            &job);
    }
}

FoveaLinearDesc linear_of(const StoredWeight& weight, const F32Tensor& bias, const F32Tensor& x) {
    FoveaLinearDesc call{};
    call.struct_size = sizeof call;
    call.w_type = weight.type;
    call.n_in = uint32_t(weight.columns()), call.n_out = uint32_t(weight.rows()), call.rows = x.rows();
    call.has_bias = !bias.values.empty();
    return call;
}

// By linear(), in float32 a stretch at a time where that does not read the type.
static Result<void> product_on(EngineRunner& engine, const StoredWeight& weight, const F32Tensor& bias,
                               const F32Tensor& x, F32Tensor& y) {
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    bindings[FOVEA_BIND_X] = {const_cast<float*>(x.values.data()), x.values.size() * 4};
    if (has_stored_rows(weight)) {
        bindings[FOVEA_BIND_WEIGHT] = {const_cast<std::byte*>(weight.bytes.data()), weight.bytes.size()};
        if (!bias.values.empty())
            bindings[FOVEA_BIND_BIAS] = {const_cast<float*>(bias.values.data()), bias.values.size() * 4};
        bindings[FOVEA_BIND_Y] = {y.values.data(), y.values.size() * 4};
        return engine.linear(linear_of(weight, bias, x), bindings);
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

Result<void> EngineRunner::stored_linears(std::span<const StoredProduct> products, const F32Tensor& x) {
    for (const StoredProduct& one : products)
        if (Result<void> r = product_on(*this, *one.weight, *one.bias, x, *one.y); !r) return r;
    return {};
}

}  // namespace fovea
