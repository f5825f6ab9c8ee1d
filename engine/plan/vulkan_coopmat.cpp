#include "plan/vulkan_coopmat.hpp"

#include "plan/vulkan_flash.hpp"
#include "problem/checked.hpp"
#include "shaders/interface.h"

#include <algorithm>

namespace fovea {
namespace {

constexpr uint32_t kMatrixRows = 16, kMostMatrixKeys = 64, kLeastMatrixKeys = 32;
constexpr uint32_t kMostSubgroups = 4, kMostColumnTiles = 4;
// Below this share of a tile's rows matrices compute mostly nothing.
constexpr uint64_t kFewestRows = 8;

uint32_t shared_bytes(const FoveaDeviceFacts& facts, const FlashPlan& f) {
    using shader::kMatrixPad;
    return FOVEA_MATRIX_SHARED_BYTES(f.rows, f.block_keys, f.depth, f.columns, facts.coopmat_n, f.threads);
}

const char* device_obstacle(const FoveaDeviceFacts& facts) {
    constexpr uint32_t kNeeded = FOVEA_FEATURE_COOPMAT | FOVEA_FEATURE_F16_ARITHMETIC |
                                 FOVEA_FEATURE_F16_STORAGE | FOVEA_FEATURE_SUBGROUP_SIZE_CONTROL;
    if ((facts.features & kNeeded) != kNeeded || !facts.coopmat_m || !facts.coopmat_n || !facts.coopmat_k)
        return "the device lacks cooperative matrices, float16 arithmetic and storage, or full subgroups of "
               "a chosen size";
    return nullptr;
}

constexpr const char* kNotAllowed =
    "it rounds factors to float16, which FOVEA_PRECISION_F16_PRODUCTS must allow";
constexpr const char* kNoUnits = "a driver of software has no matrix units";

// Subgroups of a workgroup, as many as it takes; 0 if not even one fits.
uint32_t subgroups_for(const FoveaDeviceFacts& facts) {
    uint32_t subgroups = kMostSubgroups;
    while (subgroups > 0 && subgroups * facts.subgroup_size > facts.max_workgroup_invocations) subgroups /= 2;
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

}  // namespace fovea
