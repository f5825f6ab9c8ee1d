#include "problem/row_parts.hpp"

#include "problem/checked.hpp"
#include "problem/problem.hpp"
#include "problem/status.hpp"

#include <cmath>

namespace fovea {
namespace {

void bind(OperationBindings& out, FoveaBinding binding, uint64_t numbers, bool written) {
    out.binding_mask |= binding_bit(binding);
    if (written) out.output_mask |= binding_bit(binding);
    out.bytes[binding] = numbers * 4;
}

FoveaResult check_count(const char* name, uint64_t count, FoveaDiag* diag) {
    if (count <= uint64_t(kMaxLength)) return FOVEA_OK;
    return fail(diag, FOVEA_SIZE_OVERFLOW, name, "%s is %llu; the limit is 2^30", name,
                static_cast<unsigned long long>(count));
}

}  // namespace

FoveaResult make_norm(const NormDesc* desc, NormDesc& d, OperationBindings& bindings, FoveaDiag* diag) {
    d = *desc;
    if (d.width == 0) return fail(diag, FOVEA_INVALID_ARGUMENT, "width", "width is 0; it must be at least 1");
    if (FoveaResult r = check_count("width", d.width, diag)) return r;
    if (FoveaResult r = check_count("rows", d.rows, diag)) return r;
    if (FoveaResult r = check_count("rows", (Checked(d.rows) * d.width).value, diag)) return r;
    if (!(d.epsilon >= 0) || !std::isfinite(d.epsilon))
        return fail(diag, FOVEA_INVALID_ARGUMENT, "epsilon",
                    "epsilon is %g; it must be finite and not negative", double(d.epsilon));
    if (d.has_bias && !d.has_weight)
        return fail(diag, FOVEA_INVALID_ARGUMENT, "has_bias", "has_bias is 1 but has_weight is 0");
    bindings = OperationBindings{};
    const uint64_t numbers = d.rows * d.width;
    bind(bindings, FOVEA_BIND_X, numbers, false);
    bind(bindings, FOVEA_BIND_Y, numbers, true);
    if (d.adds) bind(bindings, FOVEA_BIND_O, numbers, true);
    if (d.has_weight) bind(bindings, FOVEA_BIND_WEIGHT, uint64_t{d.width} * (1 + d.has_bias), false);
    return FOVEA_OK;
}

FoveaResult make_pointwise(const PointwiseDesc* desc, PointwiseDesc& d, OperationBindings& bindings,
                           FoveaDiag* diag) {
    d = *desc;
    if (FoveaResult r = check_count("count", d.count, diag)) return r;
    bindings = OperationBindings{};
    bind(bindings, FOVEA_BIND_X, d.count, false);
    bind(bindings, FOVEA_BIND_Y, d.count, true);
    if (d.has_other()) bind(bindings, FOVEA_BIND_O, d.count, false);
    return FOVEA_OK;
}

}  // namespace fovea
