#include "vulkan/check_problem.hpp"

#include "plan/vulkan/checked.hpp"
#include "problem/compressed.hpp"
#include "problem/elements.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fovea::vulkan {
namespace {

// ---- attention ----

enum : uint32_t {
    kMasked = 1,
    kBiased = 2,
    kSequences = 4,
    kPages = 8,
    kDropout = 16,
    kSoftcap = 32,
    kSteep = 64
};
struct AttentionCase {
    uint32_t heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v;
    uint32_t flags = 0, outputs = FOVEA_OUTPUT_O, more = 0;
    float k_size = 1, v_size = 1;
};
constexpr uint32_t kBoth = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
constexpr float kSubnormal = 0x1p-15f;  // a subnormal float16
// Few and many rows and keys, ragged ends of tiles, splits and every mask. Drivers get masked NaN wrong, and
// values at the ends of their range.
constexpr AttentionCase kAttention[] = {
    {2, 2, 33, 70, 64, 64, FOVEA_FLAG_CAUSAL, kBoth},
    {2, 1, 12, 40, 32, 32, 0, kBoth, kMasked},
    {4, 1, 1, 300, 32, 32, 0, kBoth},
    {1, 1, 16, 24, 32, 32, 0, kBoth, 0, 1, kSubnormal},
    {1, 1, 16, 24, 32, 32, 0, kBoth, kSteep, kSubnormal, 1},
    {1, 1, 1, 1, 32, 32, 0, kBoth},
    {1, 1, 19, 23, 8, 4, FOVEA_FLAG_CAUSAL, kBoth},
    {1, 1, 1, 37, 32, 32, 0, kBoth},
    {2, 1, 7, 40, 32, 32, FOVEA_FLAG_CAUSAL, kBoth},
    {1, 1, 40, 65, 128, 128, 0, kBoth},
    {2, 2, 20, 50, 32, 64, FOVEA_FLAG_WINDOW, kBoth},
    {2, 1, 12, 40, 32, 32, 0, kBoth, kBiased},
    {2, 2, 12, 40, 32, 32, FOVEA_FLAG_ALIBI | FOVEA_FLAG_CAUSAL, kBoth},
    {2, 2, 12, 40, 32, 32, FOVEA_FLAG_SINKS, kBoth},
    {2, 2, 12, 40, 32, 32, FOVEA_FLAG_VARLEN, kBoth, kSequences},
    {2, 1, 12, 40, 32, 32, 0, kBoth, kPages},
    {1, 1, 12, 40, 32, 32, 0, kBoth, kDropout},
    {2, 2, 16, 48, 64, 64, 0, kBoth, kSoftcap},
    {2, 2, 9, 48, 64, 64, 0, kBoth, kSteep},
    {1, 1, 17, 70, 32, 32, 0, kBoth | FOVEA_OUTPUT_ROW_STATS},
    {2, 1, 9, 50, 64, 32, FOVEA_FLAG_ROTATED_CACHE, kBoth},  // quantized; else as without the flag
};
constexpr uint32_t kPageRows = 16;

// The types of problem n, where the class has several.
FoveaDtype type_of(uint32_t check_class, uint32_t n) {
    constexpr FoveaDtype kQuantized[] = {FOVEA_Q8_0, FOVEA_F8_E4M3, FOVEA_Q4_0, FOVEA_F8_E5M2};
    if (check_class == FOVEA_CHECK_QUANTIZED) return kQuantized[n % 4];
    if (check_class == FOVEA_CHECK_F32) return FOVEA_F32;
    return n % 5 == 2 ? FOVEA_BF16 : FOVEA_F16;
}

void fill_attention(const AttentionCase& c, uint32_t check_class, FoveaDtype type, CheckProblem& out) {
    FoveaAttentionDesc& d = out.attention = foveaAttentionDesc();
    out.operation = Operation::attention;
    out.k_size = c.k_size, out.v_size = c.v_size;
    const bool quantized = check_class == FOVEA_CHECK_QUANTIZED;
    d.q_type = quantized ? FOVEA_F32 : type;
    d.k_type = d.v_type = type;
    d.o_type = c.len_q % 2 ? d.q_type : FOVEA_F32;
    d.batch = c.more & (kSequences | kPages) ? 2 : 1;
    d.heads_q = c.heads_q, d.heads_kv = c.heads_kv;
    d.len_q = c.len_q, d.len_kv = c.len_kv;
    d.dim_qk = c.dim_qk, d.dim_v = c.dim_v;
    if (quantized) d.dim_qk = (d.dim_qk + 31) / 32 * 32, d.dim_v = (d.dim_v + 31) / 32 * 32;
    d.flags = c.flags, d.outputs = c.outputs;
    if (!has_scaled_blocks(type)) d.flags &= ~uint32_t{FOVEA_FLAG_ROTATED_CACHE};
    if (c.flags & (FOVEA_FLAG_CAUSAL | FOVEA_FLAG_WINDOW | FOVEA_FLAG_ALIBI))
        d.align = FOVEA_ALIGN_BOTTOM_RIGHT;
    if (c.flags & FOVEA_FLAG_WINDOW) d.window_left = 11, d.window_right = 3;
    if (c.more & kMasked) d.mask = {1, FOVEA_U8, 1, 1, 0, 0, {}};
    if (c.more & kBiased)
        d.bias = {1, check_class == FOVEA_CHECK_F16 ? FOVEA_F16 : FOVEA_F32, 1, 1, 0, 0, {}};
    if (c.more & kPages) {
        d.page_size = kPageRows, d.block_table_pages = (c.len_kv + kPageRows - 1) / kPageRows;
        d.page_count = uint32_t(d.batch * d.block_table_pages);
    }
    if (c.more & kDropout) d.dropout_p = 0.25f, d.dropout_seed = 7;
    if (c.more & kSoftcap) d.softcap = 3;
    if (c.more & kSteep) d.scale = c.k_size < 1 ? 0.25f / c.k_size : 4;
}

// Leaves the planner only the kernel with this main shader; false if the device cannot run it.
bool force_kernel(Shader main, FoveaDeviceProperties& properties, CheckProblem& out) {
    FoveaAttentionDesc& d = out.attention;
    d.kernel = FOVEA_KERNEL_FLASH;
    switch (main) {
        case Shader::flash:
            properties.features &=
                ~uint32_t(FOVEA_FEATURE_SUBGROUP_ARITHMETIC | FOVEA_FEATURE_SUBGROUP_SHUFFLE);
            return true;
        case Shader::flash_subgroup:
            properties.features &= ~uint32_t(FOVEA_FEATURE_SUBGROUP_SHUFFLE);
            return true;
        case Shader::flash_shuffle:
            return true;
        case Shader::flash_coopmat:
            d.kernel = FOVEA_KERNEL_FLASH_COOPMAT;
            d.precision = d.k_type == FOVEA_BF16 && properties.features & FOVEA_FEATURE_BF16_INPUTS
                              ? FOVEA_PRECISION_BF16_INPUTS
                              : FOVEA_PRECISION_F16_INPUTS;
            return true;
        case Shader::flash_coopmat2:
            d.kernel = FOVEA_KERNEL_FLASH_COOPMAT2;
            d.precision = FOVEA_PRECISION_F16_INPUTS;
            return true;
        default:
            d.kernel = FOVEA_KERNEL_STAGED;
            return main == Shader::softmax;
    }
}

bool attention_problem(Shader main, uint32_t check_class, uint32_t n, FoveaDeviceProperties& properties,
                       CheckProblem& out) {
    if (n >= std::size(kAttention)) return false;
    AttentionCase c = kAttention[n];
    if (main == Shader::softmax && n % 3 == 0)
        c.outputs |= FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_MASKED | FOVEA_OUTPUT_WEIGHTS;
    fill_attention(c, check_class, type_of(check_class, n), out);
    return force_kernel(main, properties, out);
}

bool gradient_problem(uint32_t check_class, uint32_t n, CheckProblem& out) {
    constexpr uint32_t kCases[] = {0, 1, 3, 5, 6, 8, 10, 11, 12, 13, 14, 16, 17};
    if (n >= std::size(kCases)) return false;
    AttentionCase c = kAttention[kCases[n]];
    c.v_size = 1;
    c.dim_qk = std::min(c.dim_qk, 32u), c.dim_v = std::min(c.dim_v, 32u);
    fill_attention(c, check_class, type_of(check_class, n), out);
    out.operation = Operation::backward;
    FoveaAttentionBackwardDesc& g = out.gradients = foveaAttentionBackwardDesc();
    g.do_type = out.attention.o_type = out.attention.q_type;
    if (n % 2) g.dq_type = g.dk_type = g.dv_type = g.do_type;
    g.gradients = FOVEA_GRAD_Q | FOVEA_GRAD_K | FOVEA_GRAD_V;
    if (c.more & kBiased) g.gradients |= FOVEA_GRAD_BIAS;
    if (c.flags & FOVEA_FLAG_ALIBI) g.gradients |= FOVEA_GRAD_ALIBI;
    if (c.flags & FOVEA_FLAG_SINKS) g.gradients |= FOVEA_GRAD_SINKS;
    return true;
}

bool tile_problem(uint32_t check_class, uint32_t n, CheckProblem& out) {
    constexpr uint32_t kCases[] = {0, 1, 2, 4, 6, 8, 10, 11, 12, 14, 15, 16, 17};
    if (n >= std::size(kCases)) return false;
    fill_attention(kAttention[kCases[n]], check_class, type_of(check_class, n), out);
    out.operation = Operation::map_tile;
    out.map = foveaMapTileDesc();
    out.map.outputs = FOVEA_TILE_MASS | FOVEA_TILE_MAX;
    if (n % 2) out.map.width = uint32_t(out.attention.len_kv / 2 + 1);
    return true;
}

// ---- other operations ----

bool linear_problem(Shader main, uint32_t check_class, uint32_t n, FoveaDeviceProperties& properties,
                    CheckProblem& out) {
    constexpr uint32_t kSizes[][3] = {// rows, inputs, outputs
                                      {1, 64, 33},   {2, 100, 16}, {3, 7, 5},    {5, 64, 64},  {9, 256, 40},
                                      {16, 128, 48}, {17, 33, 17}, {40, 64, 96}, {70, 100, 3}, {65, 96, 65},
                                      {33, 256, 70}, {8, 32, 128}, {12, 4, 130}, {24, 512, 8}};
    constexpr FoveaDtype kWeights[] = {FOVEA_Q8_0, FOVEA_Q4_0, FOVEA_Q4_K, FOVEA_Q5_K,
                                       FOVEA_Q6_K, FOVEA_Q4_1, FOVEA_Q5_0, FOVEA_Q5_1};
    if (n >= 20) return false;
    const auto& size = kSizes[n % std::size(kSizes)];
    out.operation = Operation::linear;
    FoveaLinearDesc& d = out.linear = foveaLinearDesc();
    d.rows = size[0], d.n_in = size[1], d.n_out = size[2];
    d.has_bias = n % 2, d.weight_is_in_out = n % 5 == 4 && check_class != FOVEA_CHECK_QUANTIZED;
    d.x_type = d.w_type = d.y_type = type_of(check_class, n);
    if (check_class == FOVEA_CHECK_QUANTIZED) {
        d.x_type = d.y_type = FOVEA_F32, d.w_type = kWeights[n % std::size(kWeights)];
        d.n_in = (d.n_in + 255) / 256 * 256;
        d.rows = std::min<uint64_t>(d.rows, 20), d.n_out = std::min(d.n_out, 40u);
    }
    if (n % 3 == 0) d.y_type = FOVEA_F32;
    if (n % 4 == 1) out.v_size = kSubnormal;
    if (main == Shader::linear_coopmat)
        d.precision = d.w_type == FOVEA_BF16 && properties.features & FOVEA_FEATURE_BF16_INPUTS
                          ? FOVEA_PRECISION_BF16_INPUTS
                          : FOVEA_PRECISION_F16_INPUTS;
    return true;
}

bool rope_problem(uint32_t check_class, uint32_t n, CheckProblem& out) {
    if (n >= 20 || check_class == FOVEA_CHECK_QUANTIZED) return false;
    out.operation = Operation::rope;
    FoveaRopeDesc& d = out.rope = foveaRopeDesc();
    d.x_type = type_of(check_class, n), d.y_type = n % 3 ? d.x_type : FOVEA_F32;
    d.batch = 1 + n % 2, d.heads = 1 + n % 3, d.len = 1 + 7 * n, d.dim = 6 + 4 * n;
    if (n % 4 == 1) out.v_size = kSubnormal;
    d.rotary_dim = n % 4 == 3 ? 4 : 0, d.interleaved = n / 2 % 2, d.table_rows = n % 4 == 1 ? 11 : 0;
    return true;
}

// Rows into a cache, and out of it.
bool cache_problem(uint32_t check_class, uint32_t n, CheckProblem& out) {
    if (n >= 20) return false;
    const FoveaDtype type = type_of(check_class, n / 2), other = n % 4 < 2 ? FOVEA_F32 : type;
    if (n % 5 == 4) out.v_size = kSubnormal;
    const uint32_t dim = 32 * (1 + n % 3), pages = n % 3 == 1 ? 3 : 0;
    if (n % 2) {
        out.operation = Operation::gather;
        FoveaGatherDesc& d = out.gather = foveaGatherDesc();
        d.x_type = type, d.y_type = other;
        d.batch = 2, d.heads = 2, d.dim = dim, d.len = 5 + n, d.capacity = 48,
        d.position_heads = n % 4 == 3 ? 2 : 1;
        d.page_size = pages ? kPageRows : 0, d.block_table_pages = pages, d.page_count = 2 * pages;
    } else {
        out.operation = Operation::append;
        FoveaAppendDesc& d = out.append = foveaAppendDesc();
        d.x_type = other, d.y_type = type;
        d.batch = 2, d.heads = 2, d.dim = dim, d.len = 3 + n % 7, d.capacity = 48;
        d.has_sequences = n % 4 == 0, d.first_row = d.has_sequences ? 0 : 5;
        d.page_size = pages ? kPageRows : 0, d.block_table_pages = pages, d.page_count = 2 * pages;
        d.rotate = n % 8 == 0 && is_float(d.x_type) && has_scaled_blocks(type);
    }
    return true;
}

bool merge_problem(uint32_t check_class, uint32_t n, CheckProblem& out) {
    if (n >= 20 || check_class == FOVEA_CHECK_QUANTIZED) return false;
    out.operation = Operation::merge;
    FoveaMergeDesc& d = out.merge = foveaMergeDesc();
    d.x_type = type_of(check_class, n), d.y_type = n % 3 ? d.x_type : FOVEA_F32;
    d.parts = 1 + n, d.batch = 1, d.heads = 1 + n % 2, d.dim = 3 + 5 * n, d.len = 1 + n;
    return true;
}

bool norm_problem(uint32_t check_class, uint32_t n, CheckProblem& out) {
    if (n >= 20 || check_class != FOVEA_CHECK_F32) return false;
    out.operation = Operation::norm;
    out.norm = {n % 2 ? NormRule::layer : NormRule::rms,
                1 + 37 * n,
                1 + n % 5,
                1e-5f,
                n % 3 != 0,
                n % 3 == 2,
                n % 4 == 1,
                FOVEA_KERNEL_AUTO};
    return true;
}

bool pointwise_problem(uint32_t check_class, uint32_t n, CheckProblem& out) {
    if (n >= 20 || check_class != FOVEA_CHECK_F32) return false;
    out.operation = Operation::pointwise;
    out.pointwise = {PointwiseRule(n % 5), n >= 10 && n % 5 != 0, 1 + 61 * n, FOVEA_KERNEL_AUTO};
    return true;
}

}  // namespace

bool check_problem(Shader main, uint32_t check_class, uint32_t n, FoveaDeviceProperties& properties,
                   CheckProblem& out) {
    out = {};
    memset(properties.failed_shaders, 0, sizeof properties.failed_shaders);
    switch (main) {
        case Shader::map_tile:
            return tile_problem(check_class, n, out);
        case Shader::backward_query:
            return check_class != FOVEA_CHECK_QUANTIZED && gradient_problem(check_class, n, out);
        case Shader::linear_direct:
        case Shader::linear_shared:
        case Shader::linear_coopmat:
            return linear_problem(main, check_class, n, properties, out);
        case Shader::rope:
            return rope_problem(check_class, n, out);
        case Shader::cache_rows:
            return cache_problem(check_class, n, out);
        case Shader::merge:
            return merge_problem(check_class, n, out);
        case Shader::norm:
            return norm_problem(check_class, n, out);
        case Shader::pointwise:
            return pointwise_problem(check_class, n, out);
        default:
            return attention_problem(main, check_class, n, properties, out);
    }
}

FoveaResult plan_problem(const CheckProblem& p, FoveaKernel kernel, const FoveaDeviceProperties& properties,
                         const FoveaHostAllocator& allocator, FoveaPlan* out, FoveaDiag* diag) {
    CheckProblem problem = p;
    if (kernel != FOVEA_KERNEL_AUTO) {
        FoveaAttentionDesc& a = problem.attention;
        problem.linear.kernel = problem.rope.kernel = problem.merge.kernel = problem.norm.kernel =
            problem.pointwise.kernel = a.kernel = problem.gradients.kernel = kernel;
        problem.linear.y_type = problem.rope.y_type = problem.merge.y_type = FOVEA_F32;
        problem.linear.precision = a.precision = FOVEA_PRECISION_F32;
        problem.gradients.dq_type = problem.gradients.dk_type = problem.gradients.dv_type = FOVEA_F32;
        if (p.operation != Operation::backward) a.o_type = FOVEA_F32;
        if (p.operation == Operation::attention) a.outputs |= FOVEA_OUTPUT_MASKED | kBoth;
    }
    switch (p.operation) {
        case Operation::attention:
            return foveaPlanAttention(&properties, &problem.attention, &allocator, out, diag);
        case Operation::map_tile:
            return foveaPlanMapTile(&properties, &problem.attention, &problem.map, &allocator, out, diag);
        case Operation::backward:
            if (kernel == FOVEA_KERNEL_AUTO) problem.attention.kernel = kernel;
            return foveaPlanAttentionBackward(&properties, &problem.attention, &problem.gradients, &allocator,
                                              out, diag);
        case Operation::rope:
            return foveaPlanRope(&properties, &problem.rope, &allocator, out, diag);
        case Operation::linear:
            return foveaPlanLinear(&properties, &problem.linear, &allocator, out, diag);
        case Operation::append:
            return foveaPlanAppend(&properties, &problem.append, &allocator, out, diag);
        case Operation::gather:
            return foveaPlanGather(&properties, &problem.gather, &allocator, out, diag);
        case Operation::merge:
            return foveaPlanMerge(&properties, &problem.merge, &allocator, out, diag);
        case Operation::norm:
            return plan_norm(&properties, &problem.norm, &allocator, out, diag);
        case Operation::pointwise:
            break;
    }
    return plan_pointwise(&properties, &problem.pointwise, &allocator, out, diag);
}

}  // namespace fovea::vulkan
