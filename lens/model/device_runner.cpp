#include <fovea/model/device_runner.hpp>

#include <algorithm>
#include <span>

#include "model/block_run.hpp"
#include "model/text/device_text.hpp"

namespace fovea {

Result<std::unique_ptr<DeviceRunner>> DeviceRunner::open(const EngineOptions& options, FoveaKernel kernel) {
    Result<Engine> engine = Engine::open(options);
    if (!engine) return engine.error();
    return std::unique_ptr<DeviceRunner>(new DeviceRunner(std::move(*engine), kernel));
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

Result<RunReport> DeviceRunner::run(const Plan& plan, const FoveaHostBuffer* bindings, uint64_t stay,
                                    const std::weak_ptr<const void>& owner, const RunOptions& options) {
    if (!engine_.is_vulkan()) {
        HostBindings all;
        std::copy_n(bindings, FOVEA_BIND_COUNT, all);
        return engine_.run_on_host(plan, all, options);
    }
    forget_closed();
    const FoveaPlanInfo info = plan.info();
    const auto part = [&](uint32_t i) {
        return std::span(static_cast<std::byte*>(bindings[i].data),
                         std::min(bindings[i].size_bytes, info.binding_bytes[i]));
    };
    return with_room([&]() -> Result<RunReport> {
        std::array<DeviceBuffer*, FOVEA_BIND_COUNT> bound{};
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            const uint64_t bytes = info.binding_bytes[i];
            if (!(info.binding_mask >> i & 1) || !bytes) continue;
            const bool stays = stay >> i & 1, is_output = info.output_mask >> i & 1;
            Result<DeviceBuffer*> buffer = stays ? held(part(i), owner, bytes) : room(i, bytes);
            if (!buffer) return buffer.error();
            bound[i] = *buffer;
            if (stays || is_output) continue;
            ++traffic_.uploads;
            if (Result<void> r = bound[i]->upload(part(i)); !r) return r.error();
        }
        Result<RunReport> report = engine_.run(plan, bound, options);
        if (!report) return report;
        traffic_.submissions += report->submissions;
        for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
            if (!bound[i] || !(info.output_mask >> i & 1)) continue;
            ++traffic_.reads;
            if (Result<void> r = bound[i]->download(part(i)); !r) return r.error();
        }
        return report;
    });
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

Result<DeviceBuffer*> DeviceRunner::held(std::span<const std::byte> from,
                                         const std::weak_ptr<const void>& owner, uint64_t bytes) {
    const std::pair key{from.data(), bytes};
    if (const auto found = held_.find(key); found != held_.end()) return &found->second.buffer;
    Result<DeviceBuffer> buffer = engine_.buffer(bytes);
    if (!buffer) return buffer.error();
    ++traffic_.uploads;
    if (Result<void> r = buffer->upload(from); !r) return r.error();
    return &held_.emplace(key, Held{owner, std::move(*buffer)}).first->second.buffer;
}

Result<DeviceBuffer*> DeviceRunner::room(uint32_t binding, uint64_t bytes) {
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
        const Result<Plan> plan = plan_linear(properties(), linear_of(weight, *one.bias, x));
        if (!plan) return plan.error();
        HostBindings bindings{};
        bindings[FOVEA_BIND_X] = {const_cast<float*>(x.values.data()), x.values.size() * 4};
        bindings[FOVEA_BIND_WEIGHT] = {const_cast<std::byte*>(weight.bytes.data()), weight.bytes.size()};
        bindings[FOVEA_BIND_BIAS] = {const_cast<float*>(one.bias->values.data()),
                                     one.bias->values.size() * 4};
        bindings[FOVEA_BIND_Y] = {one.y->values.data(), one.y->values.size() * 4};
        const Result<RunReport> ran = run(*plan, bindings, 1ull << FOVEA_BIND_WEIGHT, weight.owner);
        if (!ran) return ran.error();
    }
    return {};
}

}  // namespace fovea
