#include <fovea/model/device_runner.hpp>

#include <algorithm>
#include <span>

#include "model/stored_linear.hpp"
#include "model/text/device_text.hpp"

namespace fovea {

Result<std::unique_ptr<DeviceRunner>> DeviceRunner::open(const EngineOptions& options, FoveaKernel kernel) {
    Result<Engine> engine = Engine::open(options);
    if (!engine) return engine.error();
    return std::unique_ptr<DeviceRunner>(new DeviceRunner(std::move(*engine), kernel));
}

// Weights stay only as long as no call needs their room.
template <class Run>
auto DeviceRunner::with_room(const Run& run) {
    auto result = run();
    if (result || result.error().code != FOVEA_OUT_OF_DEVICE_MEMORY || held_.empty()) return result;
    held_.clear();
    return run();
}

Result<void> DeviceRunner::run(const Plan& plan, const FoveaHostBuffer* bindings) {
    HostBindings all;
    std::copy_n(bindings, FOVEA_BIND_COUNT, all);
    Result<RunReport> report = with_room([&] { return engine_.run_on_host(plan, all); });
    if (!report) return report.error();
    // All tensors are uploaded, and the outputs are read.
    traffic_.submissions += report->submissions;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i)
        if (all[i].data) ++(i == FOVEA_BIND_O || i == FOVEA_BIND_Y ? traffic_.reads : traffic_.uploads);
    if (all[FOVEA_BIND_Q].data) last_attention_ = std::move(*report);
    return {};
}

uint64_t DeviceRunner::held_bytes() const {
    uint64_t bytes = 0;
    for (const auto& [weight, held] : held_) bytes += held.buffer.size_bytes();
    return bytes;
}

// A file that is closed leaves its addresses to others.
void DeviceRunner::forget_closed() {
    std::erase_if(held_, [](const auto& entry) { return entry.second.owner.expired(); });
}

bool DeviceRunner::holds(const StoredWeight& weight, uint64_t bytes) const {
    return held_.contains({weight.bytes.data(), bytes});
}

std::unique_ptr<ResidentText> DeviceRunner::text(uint64_t layers, uint64_t capacity) {
    if (!engine_.is_vulkan()) return nullptr;
    return std::make_unique<DeviceText>(*this, layers, capacity);
}

Result<DeviceBuffer*> DeviceRunner::held(const StoredWeight& weight, uint64_t bytes) {
    const std::pair key{weight.bytes.data(), bytes};
    if (const auto found = held_.find(key); found != held_.end()) return &found->second.buffer;
    Result<DeviceBuffer> buffer = with_room([&] { return engine_.buffer(bytes); });
    if (!buffer) return buffer.error();
    ++traffic_.uploads;
    if (Result<void> r = buffer->upload(weight.bytes); !r) return r.error();
    return &held_.emplace(key, Held{weight.owner, std::move(*buffer)}).first->second.buffer;
}

Result<DeviceBuffer*> DeviceRunner::room(FoveaBinding binding, uint64_t bytes) {
    std::optional<DeviceBuffer>& kept = room_[binding];
    if (!kept || kept->size_bytes() < bytes) {
        kept.reset();
        Result<DeviceBuffer> made = engine_.buffer(bytes);
        if (!made) return made.error();
        kept.emplace(std::move(*made));
    }
    return &*kept;
}

Result<void> DeviceRunner::stored_linears(std::span<const StoredProduct> products, const F32Tensor& x) {
    forget_closed();
    for (const StoredProduct& one : products) {
        const StoredWeight& weight = *one.weight;
        if (!engine_.is_vulkan() || !has_use(weight.type, kUseLinear) || !weight.owner ||
            weight.bytes.empty() || one.y->values.empty()) {
            if (Result<void> r = Runner::stored_linears(std::span(&one, 1), x); !r) return r;
            continue;
        }
        const Result<Plan> plan = fovea::plan_linear(engine_.properties(), linear_of(weight, *one.bias, x));
        if (!plan) return plan.error();
        Result<void> run = with_room([&] { return linear_on_device(*plan, weight, *one.bias, x, *one.y); });
        if (!run) return run;
    }
    return {};
}

Result<void> DeviceRunner::linear_on_device(const Plan& plan, const StoredWeight& weight,
                                            const F32Tensor& bias, const F32Tensor& x, F32Tensor& y) {
    const FoveaPlanInfo info = plan.info();
    std::array<DeviceBuffer*, FOVEA_BIND_COUNT> bound{};
    for (const FoveaBinding binding : {FOVEA_BIND_X, FOVEA_BIND_WEIGHT, FOVEA_BIND_BIAS, FOVEA_BIND_Y}) {
        const uint64_t bytes = info.binding_bytes[binding];
        if (!bytes) continue;
        Result<DeviceBuffer*> buffer =
            binding == FOVEA_BIND_WEIGHT ? held(weight, bytes) : room(binding, bytes);
        if (!buffer) return buffer.error();
        bound[binding] = *buffer;
    }
    const auto upload = [&](FoveaBinding binding, const std::vector<float>& values) -> Result<void> {
        if (!bound[binding]) return {};
        ++traffic_.uploads;
        return bound[binding]->upload(std::as_bytes(std::span(values)));
    };
    if (Result<void> r = upload(FOVEA_BIND_X, x.values); !r) return r;
    if (Result<void> r = upload(FOVEA_BIND_BIAS, bias.values); !r) return r;
    const Result<RunReport> report = engine_.run(plan, bound);
    if (!report) return report.error();
    traffic_.submissions += report->submissions, ++traffic_.reads;
    return bound[FOVEA_BIND_Y]->download(std::as_writable_bytes(std::span(y.values)));
}

}  // namespace fovea
