#include "operations/operation_verdict.hpp"

#include "reference/tolerance.hpp"
#include "support/number_types.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace fovea::test {
namespace {

constexpr double kHalfRounding = reference::input_rounding(FOVEA_PRECISION_F16_INPUTS);

}  // namespace

float element_of(const Bytes& bytes, FoveaDtype type, int64_t element) {
    return load_number(bytes.data(), type, element);
}

std::string judge_operation(const OperationResults& r, double& worst_share) {
    const size_t size = dtype_bytes(r.y_type);
    std::vector<bool> in_a_row(r.got->size() / size, false);
    char text[200];
    for (const int64_t first : r.rows) {
        double error = 0, plain_error = 0, magnitude = 0, largest = 0, rounding = 0;
        int64_t worst = first;
        for (int64_t n = first; n < first + r.columns; ++n) {
            in_a_row[size_t(n)] = true;
            const double exact = element_of(*r.exact, FOVEA_F32, n), got = element_of(*r.got, r.y_type, n);
            const double e = std::fabs(got - exact);
            if (!(e <= error)) error = std::isnan(e) ? INFINITY : e, worst = n;
            plain_error = std::max(plain_error, std::fabs(element_of(*r.plain, FOVEA_F32, n) - exact));
            magnitude = std::max(magnitude, double(std::fabs(element_of(*r.magnitudes, FOVEA_F32, n))));
            largest = std::max(largest, std::fabs(exact));
            for (const Bytes& y : r.rounded)
                rounding = std::max(rounding, std::fabs(element_of(y, FOVEA_F32, n) - exact));
        }
        double tolerance = reference::operation_tolerance(plain_error, magnitude, largest, r.y_type);
        tolerance += std::min(2 * rounding, (2 + kHalfRounding) * kHalfRounding * magnitude);
        if (tolerance > 0) worst_share = std::max(worst_share, error / tolerance);
        if (error <= tolerance) continue;
        snprintf(text, sizeof text, "element %lld: expected %.9g, got %.9g, tolerance %.3g",
                 static_cast<long long>(worst), double(element_of(*r.exact, FOVEA_F32, worst)),
                 double(element_of(*r.got, r.y_type, worst)), tolerance);
        return text;
    }
    for (size_t n = 0; n < r.got->size(); ++n) {
        if (in_a_row[n / size] || (*r.got)[n] == kUntouched) continue;
        return "byte " + std::to_string(n) + " belongs to no row and was written";
    }
    return {};
}

}  // namespace fovea::test
