// The contents of the problems' inputs, as functions of their place and a seed.
#include "problem/compressed.hpp"
#include "problem/elements.hpp"
#include "vulkan/check_problem.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace fovea::vulkan {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

uint64_t mix(uint64_t x) {  // SplitMix64
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}
float drawn(uint64_t seed, uint64_t at) {  // [-1, 1)
    return float(int64_t(mix(seed ^ at * 0x632BE59BD9B4E019u) >> 40) - (1 << 23)) * 0x1p-23f;
}

void store(FoveaDtype type, unsigned char* to, uint64_t at, float value) {
    with_type(type, [&](auto number) {
        narrow(value, number);
        memcpy(to + at * sizeof number, &number, sizeof number);
    });
}

// A value that the products of the call do not round.
float representable(FoveaPrecision precision, float value) {
    if (precision == FOVEA_PRECISION_F16_INPUTS) return half_to_float(float_to_half(value));
    return precision == FOVEA_PRECISION_BF16_INPUTS ? bfloat_to_float(float_to_bfloat(value)) : value;
}

// Blocks of random bytes under a scale; a masked one has NaN for its scale. Q6_K has its scale at the end.
void fill_blocks(FoveaDtype type, unsigned char* to, uint64_t blocks, uint64_t seed, float size,
                 bool is_nan) {
    const uint32_t bytes = storage_block(type).bytes;
    const uint32_t at = type == FOVEA_Q6_K ? bytes - 2 : 0;
    const bool has_least =
        type == FOVEA_Q4_K || type == FOVEA_Q5_K || type == FOVEA_Q4_1 || type == FOVEA_Q5_1;
    for (uint64_t b = 0; b < blocks; ++b, to += bytes) {
        for (uint32_t n = 0; n < bytes; ++n) to[n] = static_cast<unsigned char>(mix(seed ^ (b << 16 | n)));
        const float scale =
            is_nan ? kNan : size * (1 + 0.5f * drawn(seed, b)) / (type == FOVEA_Q8_0 ? 128 : 16);
        store(FOVEA_F16, to + at, 0, scale);
        if (has_least) store(FOVEA_F16, to + 2, 0, scale);
    }
}

// Row `row` of `columns` elements of a tensor.
void fill_row(FoveaDtype type, unsigned char* to, uint64_t row, uint32_t columns, uint64_t seed, float size,
              FoveaPrecision precision, bool is_nan) {
    const StorageBlock block = storage_block(type);
    if (block.numbers > 1)
        return fill_blocks(type, to + row * columns / block.numbers * block.bytes, columns / block.numbers,
                           mix(seed ^ row), size, is_nan);
    float values[kMaxCheckDim];
    for (uint32_t n = 0; n < columns; ++n)
        values[n] = is_nan ? kNan : representable(precision, size * drawn(seed, row * columns + n));
    if (is_compressed(type)) return compress_row(type, values, columns, to, int64_t(row) * columns);
    for (uint32_t n = 0; n < columns; ++n) store(type, to, row * columns + n, values[n]);
}

// Keys that no query sees.
bool is_dead(const FoveaAttentionDesc& d, uint32_t b, uint64_t j) {
    return (d.mask.present && j % 5 == 3) || int64_t(j) >= sequence_of(d, b).kv_length;
}

void fill_keys(const FoveaAttentionDesc& d, uint32_t dim, FoveaDtype type, float size, uint64_t seed,
               unsigned char* to) {
    const uint64_t rows = d.page_size ? d.block_table_pages * d.page_size : d.len_kv;
    for (uint32_t b = 0; b < d.batch; ++b)
        for (uint32_t h = 0; h < d.heads_kv; ++h)
            for (uint64_t j = 0; j < rows; ++j)
                fill_row(type, to, uint64_t(key_row(d, b, h, int64_t(j), dim)) / dim, dim, seed, size,
                         d.precision, is_dead(d, b, j));
}

void fill_queries(const FoveaAttentionDesc& d, uint32_t dim, FoveaDtype type, uint64_t seed,
                  unsigned char* to) {
    for (uint32_t b = 0; b < d.batch; ++b)
        for (uint32_t h = 0; h < d.heads_q; ++h)
            for (uint64_t i = 0; i < d.len_q; ++i)
                fill_row(type, to, uint64_t(query_row(d, b, h, int64_t(i), dim)) / dim, dim, seed, 1,
                         d.precision, int64_t(i) >= sequence_of(d, b).q_length);
}

void fill_table(uint32_t batch, uint64_t pages, unsigned char* to) {
    const auto count = int32_t(batch * pages);
    for (int32_t n = 0; n < count; ++n) {
        const int32_t page = count - 1 - n;
        memcpy(to + 4 * n, &page, 4);
    }
}

void fill_attention(const CheckProblem& p, uint32_t binding, uint64_t seed, unsigned char* to,
                    uint64_t bytes) {
    const FoveaAttentionDesc& d = p.attention;
    switch (binding) {
        case FOVEA_BIND_Q:
            return fill_queries(d, d.dim_qk, d.q_type, seed, to);
        case FOVEA_BIND_K:
            return fill_keys(d, d.dim_qk, d.k_type, p.k_size, seed, to);
        case FOVEA_BIND_V:
            return fill_keys(d, d.dim_v, d.v_type, p.v_size, seed, to);
        case FOVEA_BIND_DO:
            return fill_queries(d, d.dim_v, p.gradients.do_type, seed, to);
        case FOVEA_BIND_MASK:  // some keys for all queries, some for each, and all keys of query 5
            for (uint64_t i = 0; i < d.len_q; ++i)
                for (uint64_t j = 0; j < d.len_kv; ++j)
                    to[i * d.len_kv + j] = j % 5 != 3 && (i + j) % 7 != 0 && i != 5;
            return;
        case FOVEA_BIND_SEQUENCES:
            for (uint32_t b = 0; b < d.batch; ++b) {
                const FoveaSequence sequence = sequence_of(d, b);
                memcpy(to + b * sizeof sequence, &sequence, sizeof sequence);
            }
            return;
        case FOVEA_BIND_BLOCK_TABLE:
            return fill_table(d.batch, d.block_table_pages, to);
        default:
            break;
    }
    const FoveaDtype type = binding == FOVEA_BIND_BIAS ? d.bias.type : FOVEA_F32;
    for (uint64_t n = 0; n < bytes / storage_block(type).bytes; ++n) store(type, to, n, drawn(seed, n));
}

template <class Desc>
void fill_cache(const CheckProblem& p, const Desc& d, uint32_t binding, uint64_t seed, unsigned char* to,
                uint64_t bytes) {
    if (binding == FOVEA_BIND_BLOCK_TABLE) return fill_table(d.batch, d.block_table_pages, to);
    if (binding == FOVEA_BIND_SEQUENCES) {  // rows held; the second entry's new rows run past the end
        const FoveaSequence held[2] = {{0, 0, 0, 7}, {0, 0, 0, int32_t(d.capacity) - 2}};
        memcpy(to, held, sizeof held);
    } else if (binding == FOVEA_BIND_POSITIONS) {  // one in eight outside
        for (uint64_t n = 0; n < bytes / 4; ++n) {
            const auto position = n % 8 == 5 ? -1 : int32_t(mix(seed ^ n) % d.capacity);
            memcpy(to + 4 * n, &position, 4);
        }
    } else {
        const FoveaDtype type = binding == FOVEA_BIND_X ? d.x_type : d.y_type;
        const uint64_t rows = bytes / (d.dim / storage_block(type).numbers * storage_block(type).bytes);
        for (uint64_t row = 0; row < rows; ++row)
            fill_row(type, to, row, d.dim, seed, p.v_size, FOVEA_PRECISION_F32, false);
    }
}

void fill_rope(const CheckProblem& p, uint32_t binding, uint64_t seed, unsigned char* to, uint64_t bytes) {
    const FoveaRopeDesc& d = p.rope;
    if (binding == FOVEA_BIND_POSITIONS) {  // the last ones are clamped
        for (uint64_t n = 0; n < bytes / 4; ++n) {
            const auto position = int32_t(mix(seed ^ n) % (d.table_rows + 4)) - 2;
            memcpy(to + 4 * n, &position, 4);
        }
        return;
    }
    const FoveaDtype type = binding == FOVEA_BIND_X ? d.x_type : FOVEA_F32;
    const float size = binding == FOVEA_BIND_X ? p.v_size : 1;
    for (uint64_t n = 0; n < bytes / storage_block(type).bytes; ++n)
        store(type, to, n, size * drawn(seed, n));
}

void fill_merge(const CheckProblem& p, uint32_t binding, uint64_t seed, unsigned char* to, uint64_t bytes) {
    if (binding == FOVEA_BIND_X) {
        for (uint64_t n = 0; n < bytes / storage_block(p.merge.x_type).bytes; ++n)
            store(p.merge.x_type, to, n, drawn(seed, n));
        return;
    }
    for (uint64_t n = 0; n < bytes / 4; ++n)  // some parts are fully masked
        store(FOVEA_F32, to, n, n % 6 == 4 ? -INFINITY : 4 * drawn(seed, n));
}

void fill_linear(const CheckProblem& p, uint32_t binding, uint64_t seed, unsigned char* to, uint64_t bytes) {
    const FoveaLinearDesc& d = p.linear;
    const FoveaDtype type = binding == FOVEA_BIND_X        ? d.x_type
                            : binding == FOVEA_BIND_WEIGHT ? d.w_type
                                                           : FOVEA_F32;
    const StorageBlock block = storage_block(type);
    const float size = binding == FOVEA_BIND_X ? p.v_size : 1;
    if (block.numbers > 1) return fill_blocks(type, to, bytes / block.bytes, seed, size, false);
    for (uint64_t n = 0; n < bytes / block.bytes; ++n)
        store(type, to, n,
              representable(binding == FOVEA_BIND_BIAS ? FOVEA_PRECISION_F32 : d.precision,
                            size * drawn(seed, n)));
}

}  // namespace

void fill_input(const CheckProblem& problem, uint32_t binding, uint64_t seed, unsigned char* to,
                uint64_t bytes) {
    seed = mix(seed ^ uint64_t{binding} << 32);
    switch (problem.operation) {
        case Operation::append:
            return fill_cache(problem, problem.append, binding, seed, to, bytes);
        case Operation::gather:
            return fill_cache(problem, problem.gather, binding, seed, to, bytes);
        case Operation::rope:
            return fill_rope(problem, binding, seed, to, bytes);
        case Operation::merge:
            return fill_merge(problem, binding, seed, to, bytes);
        case Operation::linear:
            return fill_linear(problem, binding, seed, to, bytes);
        case Operation::norm:
        case Operation::pointwise:
            for (uint64_t n = 0; n < bytes / 4; ++n) store(FOVEA_F32, to, n, 3 * drawn(seed, n));
            return;
        default:
            return fill_attention(problem, binding, seed, to, bytes);
    }
}

FoveaDtype input_type(const CheckProblem& p, uint32_t binding) {
    const bool is_linear = p.operation == Operation::linear;
    switch (binding) {
        case FOVEA_BIND_Q:
            return p.attention.q_type;
        case FOVEA_BIND_K:
            return p.attention.k_type;
        case FOVEA_BIND_V:
            return p.attention.v_type;
        case FOVEA_BIND_O:
            return p.operation == Operation::backward ? p.attention.o_type : FOVEA_F32;
        case FOVEA_BIND_DO:
            return p.gradients.do_type;
        case FOVEA_BIND_BIAS:
            return is_linear ? FOVEA_F32 : p.attention.bias.type;
        case FOVEA_BIND_X:
            return is_linear                         ? p.linear.x_type
                   : p.operation == Operation::rope  ? p.rope.x_type
                   : p.operation == Operation::merge ? p.merge.x_type
                                                     : FOVEA_F32;
        case FOVEA_BIND_WEIGHT:
            return is_linear ? p.linear.w_type : FOVEA_F32;
        case FOVEA_BIND_MASK:
            return FOVEA_U8;
        case FOVEA_BIND_SEQUENCES:
        case FOVEA_BIND_BLOCK_TABLE:
        case FOVEA_BIND_POSITIONS:
            return FOVEA_I32;
        default:
            return FOVEA_F32;
    }
}

float element_at(const void* data, FoveaDtype type, int64_t index) {
    return with_numbers(type, data, [&](auto numbers) -> float {
        if constexpr (std::is_pointer_v<decltype(numbers)>)
            return widened(numbers[index]);
        else
            return numbers[index];
    });
}

int64_t query_row(const FoveaAttentionDesc& d, uint32_t b, uint32_t h, int64_t i, uint32_t dim) {
    return ((int64_t{b} * d.heads_q + h) * int64_t(d.len_q) + i) * dim;
}

int64_t key_row(const FoveaAttentionDesc& d, uint32_t b, uint32_t h_kv, int64_t j, uint32_t dim) {
    if (!d.page_size) return ((int64_t{b} * d.heads_kv + h_kv) * int64_t(d.len_kv) + j) * dim;
    // As fill_table says.
    const int64_t page =
        int64_t(d.page_count) - 1 - (int64_t{b} * int64_t(d.block_table_pages) + j / d.page_size);
    return ((page * d.heads_kv + h_kv) * d.page_size + j % d.page_size) * dim;
}

FoveaSequence sequence_of(const FoveaAttentionDesc& d, uint32_t b) {
    const auto queries = int32_t(d.len_q), keys = int32_t(d.len_kv);
    if (!(d.flags & FOVEA_FLAG_VARLEN)) return {0, queries, 0, keys};
    return b == 0 ? FoveaSequence{0, queries, 0, keys - 9} : FoveaSequence{0, queries - 5, 0, 11};
}

}  // namespace fovea::vulkan
