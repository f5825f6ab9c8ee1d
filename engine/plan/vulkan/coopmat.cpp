#include "plan/vulkan/coopmat.hpp"

#include "plan/vulkan/features.hpp"
#include "plan/vulkan/flash.hpp"
#include "problem/checked.hpp"
#include "shaders/interface.h"

#include <algorithm>

namespace fovea {
namespace {

constexpr uint32_t kMatrixRows = 16, kMostMatrixKeys = 64, kLeastMatrixKeys = 32;
constexpr uint32_t kMostSubgroups = 4, kMostColumnTiles = 4;
// flash_coopmat2: of a tile whose matrices a workgroup shares, or a subgroup has.
constexpr uint32_t kManyFlexibleRows = 64, kFewFlexibleRows = 16;
constexpr uint32_t kManyFlexibleColumns = 256, kFewFlexibleColumns = 64;
// Below this share of a tile's rows matrices compute mostly nothing.
constexpr uint64_t kFewestRows = 8;

uint32_t shared_bytes(const FoveaDeviceFacts& facts, const FlashPlan& f) {
    using shader::kMatrixPad;
    return FOVEA_MATRIX_SHARED_BYTES(f.rows, f.block_keys, f.depth, f.columns, facts.coopmat_n, f.threads);
}

const char* device_obstacle(const FoveaDeviceFacts& facts) {
    constexpr uint32_t kNeeded = FOVEA_FEATURE_COOPMAT | FOVEA_FEATURE_F16_ARITHMETIC |
                                 FOVEA_FEATURE_F16_STORAGE | FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL;
    constexpr const char* kLacks =
        "the device lacks cooperative matrices, float16 arithmetic and storage, or full subgroups of a "
        "chosen size";
    if (const char* why = missing_features(facts, kNeeded, kLacks)) return why;
    if (!facts.coopmat_m || !facts.coopmat_n || !facts.coopmat_k) return kLacks;
    return nullptr;
}

constexpr const char* kNotAllowed =
    "it rounds factors to float16, which FOVEA_PRECISION_F16_PRODUCTS must allow";
constexpr const char* kNoUnits = "a driver of software has no matrix units";

// Subgroups of a workgroup, as many as it takes; 0 if not even one fits.
uint32_t subgroups_for(const FoveaDeviceFacts& facts) {
    uint32_t subgroups = kMostSubgroups;
    while (subgroups > 0 && subgroups * facts.subgroup_size > facts.max_workgroup_invocations) subgroups /= 2;
    while (facts.max_workgroup_subgroups && subgroups > facts.max_workgroup_subgroups) subgroups /= 2;
    return facts.subgroup_size ? subgroups : 0;
}

}  // namespace

const char* choose_linear_matrices(const FoveaDeviceFacts& facts, const FoveaLinearDesc& desc,
                                   TileChoice& tile) {
    if (desc.precision != FOVEA_PRECISION_F16_PRODUCTS) return kNotAllowed;
    if (const char* why = device_obstacle(facts)) return why;
    if (facts.device_class == FOVEA_CLASS_CPU) return kNoUnits;
    if (desc.rows < kFewestRows) return "there are too few rows to fill a matrix";
    const uint32_t subgroups = subgroups_for(facts), m = facts.coopmat_m, n = facts.coopmat_n;
    if (subgroups == 0) return "a subgroup is larger than a workgroup may be";
    const uint32_t columns = shader::kSharedColumns / (subgroups > 1 ? 2 : 1);
    const uint32_t rows = shader::kSharedRows / (subgroups > 2 ? subgroups / 2 : 1);
    using shader::kMatrixDepth, shader::kMatrixPad, shader::kSharedRows, shader::kSharedColumns;
    if (rows % m || columns % n || kMatrixDepth % facts.coopmat_k)
        return "the device's matrices do not fit into a subgroup's part of a tile";
    if (FOVEA_LINEAR_SHARED_BYTES(subgroups, m, n) > facts.max_shared_bytes)
        return "the tile does not fit facts.max_shared_bytes";
    tile = {true, subgroups * facts.subgroup_size, kSharedRows, kSharedColumns, subgroups};
    return nullptr;
}

const char* flash_coopmat_obstacle(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    const FoveaDeviceFacts& facts = plan.facts;
    if (const char* why = flash_obstacle(plan)) return why;
    if (p.precision != FOVEA_PRECISION_F16_PRODUCTS) return kNotAllowed;
    if (const char* why = device_obstacle(facts)) return why;
    if (p.kernel != FOVEA_KERNEL_AUTO) return nullptr;
    if (facts.device_class == FOVEA_CLASS_CPU) return kNoUnits;
    if (uint64_t(p.len_q) * p.group < kFewestRows) return "there are too few query rows to fill a matrix";
    return nullptr;
}

bool choose_matrix_shape(const FoveaPlan_T& plan, FlashPlan& f) {
    const Problem& p = plan.problem;
    const FoveaDeviceFacts& facts = plan.facts;
    const uint32_t m = facts.coopmat_m, n = facts.coopmat_n, k = facts.coopmat_k;
    const uint32_t subgroup = facts.subgroup_size;
    f.rows = std::max(kMatrixRows, m);
    if (subgroup == 0 || f.rows % m || kLeastMatrixKeys % n || kLeastMatrixKeys % k) return false;
    f.form = FlashForm::coopmat;
    f.general = true;
    f.depth = uint32_t(align_up(p.dim_qk, std::max(k, 32u)));
    f.subgroups = std::max(subgroups_for(facts), 1u);
    f.threads = f.subgroups * subgroup;
    f.subgroup_size = subgroup;
    if (f.threads > facts.max_workgroup_invocations || f.threads % f.rows) return false;
    const uint32_t step = n * f.subgroups;
    for (f.block_keys = kMostMatrixKeys; f.block_keys >= kLeastMatrixKeys; f.block_keys /= 2) {
        f.column_quads = uint32_t(std::min<uint64_t>(ceil_div(p.dim_v, step), kMostColumnTiles));
        for (; f.column_quads > 0; --f.column_quads) {
            f.columns = f.column_quads * step;
            if (shared_bytes(facts, f) <= facts.max_shared_bytes) return true;
        }
    }
    return false;
}

const char* flash_coopmat2_obstacle(const FoveaPlan_T& plan) {
    const Problem& p = plan.problem;
    const FoveaDeviceFacts& facts = plan.facts;
    constexpr uint32_t kNeeded =
        FOVEA_FEATURE_COOPMAT2 | FOVEA_FEATURE_F16_ARITHMETIC | FOVEA_FEATURE_F16_STORAGE;
    if (const char* why = flash_obstacle(plan)) return why;
    if (p.precision != FOVEA_PRECISION_F16_PRODUCTS) return kNotAllowed;
    constexpr const char* kLacks =
        "the device lacks VK_NV_cooperative_matrix2 with flexible dimensions, or float16 arithmetic and "
        "storage";
    if (const char* why = missing_features(facts, kNeeded, kLacks)) return why;
    if (!facts.coopmat2_m || !facts.coopmat2_n || !facts.coopmat2_k) return kLacks;
    if (!facts.coopmat2_threads && !(facts.features & FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL))
        return "the device's flexible matrices are of subgroups, and it lacks full subgroups of a chosen "
               "size";
    if (p.kernel == FOVEA_KERNEL_AUTO) return "no GPU has measured it: it is taken by name only";
    return nullptr;
}

bool choose_flexible_shape(const FoveaPlan_T& plan, FlashPlan& f) {
    const Problem& p = plan.problem;
    const FoveaDeviceFacts& facts = plan.facts;
    const uint32_t m = facts.coopmat2_m, n = facts.coopmat2_n, k = facts.coopmat2_k;
    const bool shared = facts.coopmat2_threads != 0;  // by the workgroup
    const uint64_t rows = uint64_t(p.len_q) * p.group;
    if (facts.coopmat2_reserved_bytes > facts.max_shared_bytes) return false;
    const uint32_t memory = facts.max_shared_bytes - (shared ? facts.coopmat2_reserved_bytes : 0);
    f.form = FlashForm::coopmat2;
    f.general = true;
    f.subgroups = 0;
    f.subgroup_size = shared ? 0 : facts.subgroup_size;
    f.threads = shared ? facts.coopmat2_threads : facts.subgroup_size;
    f.depth = uint32_t(align_up(p.dim_qk, std::max(k, 8u)));
    if (f.threads == 0 || f.threads > facts.max_workgroup_invocations || f.depth > facts.coopmat2_max_side)
        return false;
    // A driver of software unrolls what its threads do to a matrix: small ones, or it takes minutes.
    const bool software = facts.device_class == FOVEA_CLASS_CPU;
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
                                  std::max({f.rows, f.block_keys, f.columns}) <= facts.coopmat2_max_side;
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
