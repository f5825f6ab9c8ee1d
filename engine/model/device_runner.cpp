#include <fovea/model/device_runner.hpp>

#include <algorithm>

namespace fovea {
namespace {

struct AllBindings {
    HostBindings all{};
    explicit AllBindings(const FoveaHostBuffer* bindings) { std::copy_n(bindings, FOVEA_BIND_COUNT, all); }
};

}  // namespace

Result<void> DeviceRunner::attention(const FoveaAttentionDesc& call, const FoveaHostBuffer* bindings) {
    FoveaAttentionDesc by_kernel = call;
    by_kernel.kernel = kernel_;
    Result<RunReport> report = engine_.attention(by_kernel, AllBindings(bindings).all);
    if (!report) return report.error();
    last_attention_ = std::move(*report);
    return {};
}

Result<void> DeviceRunner::linear(const FoveaLinearDesc& call, const FoveaHostBuffer* bindings) {
    const Result<RunReport> report = engine_.linear(call, AllBindings(bindings).all);
    if (!report) return report.error();
    return {};
}

}  // namespace fovea
