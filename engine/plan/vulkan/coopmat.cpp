#include "plan/vulkan/device_traits.hpp"
#include "plan/vulkan/flash.hpp"
#include "problem/checked.hpp"
#include "shaders/interface.h"

#include <algorithm>

namespace fovea {
namespace {

// A tile's rows: more of them where the call has them, as each tile loads keys and values but once for all
// its rows.
constexpr uint32_t kFewMatrixRows = 16, kManyMatrixRows = 32;
constexpr uint32_t kMaxMatrixKeys = 64, kMinMatrixKeys = 32;
constexpr uint32_t kMaxSubgroups = 4, kMaxNarrowSubgroups = 8, kMaxColumnTiles = 4, kFewColumnTiles = 1;
// flash_coopmat2: of a tile whose matrices a workgroup shares, or a subgroup has.
constexpr uint32_t kManyFlexibleRows = 64, kFewFlexibleRows = 16;
constexpr uint32_t kManyFlexibleColumns = 256, kFewFlexibleColumns = 64;
// Below this share of a tile's rows matrices compute mostly nothing.
constexpr uint64_t kMinMatrixRows = 8;

uint32_t shared_bytes(const FoveaDeviceProperties& properties, const FlashPlan& f) {
    using shader::kMatrixPad;
    return FOVEA_MATRIX_SHARED_BYTES(f.rows, f.block_keys, f.depth, f.columns, properties.coopmat_n);
}

// Returns why no cooperative matrix can or may multiply in this precision. On a device without bfloat16,
// float16 does not replace it: its range differs.
const char* device_obstacle(const FoveaDeviceProperties& properties, FoveaPrecision precision) {
    constexpr uint32_t kNeeded = FOVEA_FEATURE_COOPMAT | FOVEA_FEATURE_F16_STORAGE |
                                 FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL | FOVEA_FEATURE_SUBGROUP_SHUFFLE;
    constexpr const char* kLacks =
        "the device does not support cooperative matrices, float16 arithmetic and storage, shuffles, or full "
        "subgroups of a chosen size";
    if (precision == FOVEA_PRECISION_F32)
        return "it rounds its inputs to float16, which FOVEA_PRECISION_F16_INPUTS must allow, or to bfloat16 "
               "(FOVEA_PRECISION_BF16_INPUTS)";
    const bool bfloat16 = precision == FOVEA_PRECISION_BF16_INPUTS;
    if (const char* why = missing_features(
            properties, kNeeded | (bfloat16 ? 0u : uint32_t{FOVEA_FEATURE_F16_ARITHMETIC}), kLacks))
        return why;
    if (!properties.coopmat_m || !properties.coopmat_n || !properties.coopmat_k) return kLacks;
    if (!bfloat16) return nullptr;
    return missing_features(properties, FOVEA_FEATURE_BF16_INPUTS,
                            "the device lists no matrices of bfloat16 (VK_KHR_shader_bfloat16), and float16 "
                            "has not their range");
}

// With subgroups of 8 a tile's matrices fill the registers of its few lanes, and the compiler spills them to
// memory.
constexpr const char* kTooNarrow =
    "the device's subgroups have too few registers for a tile of cooperative matrices";
bool is_too_narrow(const FoveaDeviceProperties& properties) {
    return has_few_registers(properties) && properties.min_subgroup_size < 16;
}
constexpr const char* kNoUnits = "a software driver has no hardware for cooperative matrices";

// The subgroups that matrices are of. Of few registers the narrowest, which have the most for each lane; else
// the device's own.
uint32_t subgroup_size_of(const FoveaDeviceProperties& properties) {
    return has_few_registers(properties) && properties.min_subgroup_size ? properties.min_subgroup_size
                                                                         : properties.subgroup_size;
}

// Subgroups of a workgroup, as many as it takes; 0 if not even one fits.
uint32_t subgroups_for(const FoveaDeviceProperties& properties) {
    const uint32_t size = subgroup_size_of(properties);
    uint32_t subgroups = has_few_registers(properties) ? kMaxNarrowSubgroups : kMaxSubgroups;
    while (subgroups > 0 && subgroups * size > properties.max_workgroup_invocations) subgroups /= 2;
    while (properties.max_workgroup_subgroups && subgroups > properties.max_workgroup_subgroups)
        subgroups /= 2;
    return size ? subgroups : 0;
}

}  // namespace

const char* choose_linear_matrices(const FoveaDeviceProperties& properties, const FoveaLinearDesc& desc,
                                   TileChoice& tile) {
    if (const char* why = device_obstacle(properties, desc.precision)) return why;
    if (properties.device_class == FOVEA_CLASS_CPU) return kNoUnits;
    if (is_too_narrow(properties)) return kTooNarrow;
    if (desc.rows < kMinMatrixRows) return "there are too few rows to fill a cooperative matrix";
    const uint32_t subgroups = subgroups_for(properties), m = properties.coopmat_m, n = properties.coopmat_n;
    if (subgroups == 0) return "a subgroup is larger than the largest workgroup";
    using shader::kMatrixDepth, shader::kMatrixPad, shader::kMatrixSide, shader::kMatrixLargeSide;
    // The larger tile loads half as much for each product, if its sums find registers and its workgroups
    // work.
    const uint64_t tiles = ceil_div(desc.rows, kMatrixLargeSide) * ceil_div(desc.n_out, kMatrixLargeSide);
    const bool large =
        desc.rows > kMatrixSide && !has_few_registers(properties) && tiles >= core_count_of(properties);
    const char* why = nullptr;
    for (uint32_t side = large ? kMatrixLargeSide : kMatrixSide; side >= kMatrixSide; side /= 2) {
        const uint32_t columns = side / (subgroups > 1 ? 2 : 1);
        const uint32_t rows = side / (subgroups > 2 ? subgroups / 2 : 1);
        if (rows % m || columns % n || kMatrixDepth % properties.coopmat_k)
            why = "the device's cooperative matrices do not fit into a subgroup's part of a tile";
        else if (FOVEA_LINEAR_SHARED_BYTES(side, side, subgroups, m, n) > properties.max_shared_bytes)
            why = "the tile does not fit properties.max_shared_bytes";
        else {
            tile = {true, subgroups * subgroup_size_of(properties), side, side, subgroups};
            return nullptr;
        }
    }
    return why;
}

const char* flash_coopmat_obstacle(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    const FoveaDeviceProperties& properties = plan.properties;
    if (const char* why = flash_obstacle(plan)) return why;
    if (const char* why = device_obstacle(properties, p.precision)) return why;
    if (p.kernel != FOVEA_KERNEL_AUTO) return nullptr;
    if (properties.device_class == FOVEA_CLASS_CPU) return kNoUnits;
    if (is_too_narrow(properties)) return kTooNarrow;
    if (uint64_t(p.len_q) * p.group < kMinMatrixRows) return "there are too few query rows to fill a matrix";
    return nullptr;
}

bool choose_matrix_shape(const FoveaPlan_T& plan, FlashPlan& f) {
    const Problem& p = plan.problem;
    const FoveaDeviceProperties& properties = plan.properties;
    const uint32_t m = properties.coopmat_m, n = properties.coopmat_n, k = properties.coopmat_k;
    const uint32_t subgroup = subgroup_size_of(properties);
    // A software driver unrolls the operations of threads on a matrix, and compiles a larger tile for
    // minutes.
    const bool many = uint64_t(p.len_q) * p.group > kFewMatrixRows && !has_few_registers(properties) &&
                      properties.device_class != FOVEA_CLASS_CPU;
    if (subgroup == 0 || kMinMatrixKeys % n || kMinMatrixKeys % k) return false;
    f.form = FlashForm::coopmat;
    f.general = flash_is_general(plan);
    f.parts = 1;
    f.depth = uint32_t(align_up(p.dim_qk, std::max(k, 32u)));
    f.subgroups = std::max(subgroups_for(properties), 1u);
    f.threads = f.subgroups * subgroup;
    f.subgroup_size = subgroup;
    if (f.threads > properties.max_workgroup_invocations) return false;
    const uint32_t step = n * f.subgroups;
    for (f.rows = std::max(many ? kManyMatrixRows : kFewMatrixRows, m); f.rows >= std::max(kFewMatrixRows, m);
         f.rows /= 2) {
        // A row's threads are neighbours in one subgroup, a power of two of them.
        const uint32_t row_threads = f.threads / f.rows;
        if (f.rows % m || f.threads % f.rows || row_threads > subgroup || (row_threads & (row_threads - 1)))
            continue;
        for (f.block_keys = has_few_registers(properties) ? kMinMatrixKeys : kMaxMatrixKeys;
             f.block_keys >= kMinMatrixKeys; f.block_keys /= 2) {
            const uint32_t most = has_few_registers(properties) ? kFewColumnTiles : kMaxColumnTiles;
            f.column_quads = uint32_t(std::min<uint64_t>(ceil_div(p.dim_v, step), most));
            for (; f.column_quads > 0; --f.column_quads) {
                f.columns = f.column_quads * step;
                if (shared_bytes(properties, f) <= properties.max_shared_bytes) return true;
            }
        }
    }
    return false;
}

const char* flash_coopmat2_obstacle(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    const FoveaDeviceProperties& properties = plan.properties;
    constexpr uint32_t kNeeded =
        FOVEA_FEATURE_COOPMAT2 | FOVEA_FEATURE_F16_ARITHMETIC | FOVEA_FEATURE_F16_STORAGE;
    if (const char* why = flash_obstacle(plan)) return why;
    if (wants(p, FOVEA_OUTPUT_ROW_STATS)) return "it does not support row statistics, and they are requested";
    if (p.precision != FOVEA_PRECISION_F16_INPUTS)
        return "it rounds its inputs to float16, which FOVEA_PRECISION_F16_INPUTS must allow";
    constexpr const char* kLacks =
        "the device does not support VK_NV_cooperative_matrix2 with flexible dimensions, or float16 "
        "arithmetic and "
        "storage";
    if (const char* why = missing_features(properties, kNeeded, kLacks)) return why;
    if (!properties.coopmat2_m || !properties.coopmat2_n || !properties.coopmat2_k) return kLacks;
    constexpr const char* kNoSize =
        "the device's matrices of flexible dimensions belong to subgroups, and it lacks full subgroups of a "
        "chosen size";
    if (!properties.coopmat2_threads)
        if (const char* why = missing_features(properties, FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL, kNoSize))
            return why;
    if (p.kernel == FOVEA_KERNEL_AUTO)
        return "it has not been measured on a GPU, and runs only when it is asked for";
    return nullptr;
}

bool choose_flexible_shape(const FoveaPlan_T& plan, FlashPlan& f) {
    const Problem& p = plan.problem;
    const FoveaDeviceProperties& properties = plan.properties;
    const uint32_t m = properties.coopmat2_m, n = properties.coopmat2_n, k = properties.coopmat2_k;
    const bool shared = properties.coopmat2_threads != 0;  // by the workgroup
    const uint64_t rows = uint64_t(p.len_q) * p.group;
    if (properties.coopmat2_reserved_bytes > properties.max_shared_bytes) return false;
    const uint32_t memory = properties.max_shared_bytes - (shared ? properties.coopmat2_reserved_bytes : 0);
    f.form = FlashForm::coopmat2;
    f.general = flash_is_general(plan);
    f.parts = 1;
    f.subgroups = 0;
    f.subgroup_size = shared ? 0 : properties.subgroup_size;
    f.threads = shared ? properties.coopmat2_threads : properties.subgroup_size;
    f.depth = uint32_t(align_up(p.dim_qk, std::max(k, 8u)));
    if (f.threads == 0 || f.threads > properties.max_workgroup_invocations ||
        f.depth > properties.coopmat2_max_side)
        return false;
    // A software driver unrolls the operations of threads on a matrix: only small tiles compile in less than
    // minutes.
    const bool software = properties.device_class == FOVEA_CLASS_CPU;
    const uint32_t most_rows = software     ? 8
                               : !shared    ? kFewFlexibleRows
                               : rows <= 32 ? 32
                                            : kManyFlexibleRows;
    const uint32_t most_columns = software ? 16 : shared ? kManyFlexibleColumns : kFewFlexibleColumns;
    const uint32_t most_keys = software ? 16 : shared ? 64 : 32;
    const uint64_t columns = std::min<uint64_t>(align_up(p.dim_v, std::max(n, 8u)), most_columns);
    for (f.rows = uint32_t(align_up(most_rows, m)); f.rows >= m; f.rows /= 2) {
        for (f.block_keys = most_keys; f.block_keys >= 16; f.block_keys /= 2) {
            for (f.columns = uint32_t(columns); f.columns >= std::max(n, 8u); f.columns /= 2) {
                const bool fits = f.rows % m == 0 && f.block_keys % n == 0 && f.block_keys % k == 0 &&
                                  f.columns % n == 0 && f.columns % 4 == 0 &&
                                  std::max({f.rows, f.block_keys, f.columns}) <= properties.coopmat2_max_side;
                using shader::kMatrixPad;
                f.column_quads = f.columns / 4;
                if (fits && FOVEA_FLEXIBLE_SHARED_BYTES(f.rows, f.block_keys, f.depth, f.columns) <= memory)
                    return true;
            }
        }
    }
    return false;
}

}  // namespace fovea
