// Which device a program gets, and the small parts of the runtime that need no device.
#include <fovea/thread_pool.hpp>
#include "runtime/backend.hpp"
#include "runtime/slice_rate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

namespace fovea::runtime {
namespace {

DeviceInfo cpu() {
    DeviceInfo d;
    d.name = "CPU";
    d.usable = true;
    return d;
}
DeviceInfo gpu(uint32_t number, FoveaDeviceClass kind, bool usable = true) {
    DeviceInfo d;
    d.number = number;
    d.name = "device " + std::to_string(number);
    d.properties.backend = FOVEA_BACKEND_VULKAN;
    d.properties.device_class = kind;
    d.usable = usable;
    if (!usable) d.refusal = "too old";
    return d;
}

struct ChoiceCase {
    const char* name;
    std::vector<DeviceInfo> devices;
    EngineOptions options;
    int expected;      // -1: rejected
    const char* text;  // part of the reason or the error
};

EngineOptions asks(BackendChoice backend, int device = -1) {
    EngineOptions options;
    options.backend = backend;
    options.device = device;
    return options;
}

EngineOptions named(const char* name, BackendChoice backend = BackendChoice::automatic) {
    EngineOptions options;
    options.backend = backend;
    options.device_name = name;
    return options;
}

TEST(ChooseDevice, FollowsTheTable) {
    const DeviceInfo software = gpu(1, FOVEA_CLASS_CPU), integrated = gpu(2, FOVEA_CLASS_INTEGRATED),
                     discrete = gpu(3, FOVEA_CLASS_DISCRETE), broken = gpu(4, FOVEA_CLASS_DISCRETE, false);
    const auto automatic = BackendChoice::automatic;
    const auto vulkan = BackendChoice::vulkan;
    const ChoiceCase table[] = {
        {"no Vulkan", {cpu()}, asks(automatic), 0, "no loader"},
        {"software only", {cpu(), software}, asks(automatic), 0, "software driver"},
        {"integrated", {cpu(), software, integrated}, asks(automatic), 2, "an integrated GPU"},
        {"discrete first", {cpu(), software, integrated, discrete}, asks(automatic), 3, "a discrete GPU"},
        {"broken is passed over", {cpu(), broken}, asks(automatic), 0, "too old"},
        {"software by name", {cpu(), software}, asks(vulkan), 1, "a software driver"},
        {"best by name", {cpu(), software, discrete, integrated}, asks(vulkan), 3, "a discrete GPU"},
        {"none by name", {cpu()}, asks(vulkan), -1, "no loader"},
        {"only broken by name", {cpu(), broken}, asks(vulkan), -1, "device 4: too old"},
        {"cpu", {cpu(), discrete}, asks(BackendChoice::cpu), 0, "by name"},
        {"reference", {cpu(), discrete}, asks(BackendChoice::reference), 0, "float64"},
        {"number", {cpu(), software, discrete}, asks(automatic, 1), 1, "by number"},
        {"number 0", {cpu(), discrete}, asks(automatic, 0), 0, "by number"},
        {"number too large", {cpu(), software}, asks(automatic, 7), -1, "devices 0 to 1"},
        {"number without Vulkan", {cpu()}, asks(automatic, 1), -1, "has only device 0, the CPU (no loader"},
        {"number is broken", {cpu(), broken}, asks(automatic, 4), -1, "too old"},
        {"number is no CPU", {cpu(), software}, asks(BackendChoice::cpu, 1), -1, "backend cpu cannot use"},
        {"name", {cpu(), software, discrete}, named("DEVICE 3"), 3, "by name"},
        {"part of a name", {cpu(), software}, named("cpu"), 0, "by name"},
        {"name of two", {cpu(), software, discrete}, named("device"), -1, "both device 1 and device 3"},
        {"unknown name", {cpu(), software}, named("radeon"), -1, "there are CPU, device 1"},
        {"name is broken", {cpu(), broken}, named("4"), -1, "too old"},
        {"name of the CPU for Vulkan", {cpu(), software}, named("CPU", vulkan), -1, "cannot use"},
        {"number is the CPU", {cpu(), software}, asks(vulkan, 0), -1, "backend vulkan cannot use"},
    };
    for (const ChoiceCase& c : table) {
        const Result<DeviceChoice> choice =
            choose_device(c.devices, c.devices.size() == 1 ? "no loader" : "", c.options);
        EXPECT_EQ(choice ? int(choice->number) : -1, c.expected) << c.name;
        const std::string text = choice ? choice->reason : choice.error().text;
        EXPECT_NE(text.find(c.text), std::string::npos) << c.name << ": " << text;
    }
}

TEST(SliceOrder, IsAPermutationAndRepeats) {
    EXPECT_EQ(slice_order(3, 0), (std::vector<uint64_t>{0, 1, 2}));
    const std::vector<uint64_t> shuffled = slice_order(100, 5);
    EXPECT_EQ(shuffled, slice_order(100, 5));
    EXPECT_NE(shuffled, slice_order(100, 6));
    EXPECT_EQ(std::set<uint64_t>(shuffled.begin(), shuffled.end()).size(), 100u);
    EXPECT_TRUE(slice_order(0, 1).empty());
}

TEST(SliceRate, TakesTheSlowestKernelsLastMeasurement) {
    SliceRate rate;
    EXPECT_EQ(rate.slice_cost(), 0);
    rate.add(FOVEA_KERNEL_FLASH, 1e9, 1e-6);  // too short to mean anything
    EXPECT_EQ(rate.slice_cost(), 0);
    rate.add(FOVEA_KERNEL_FLASH, 1e9, 0.01);
    EXPECT_DOUBLE_EQ(rate.slice_cost(), 1e11 * SliceRate::kTargetSeconds);
    rate.add(FOVEA_KERNEL_STAGED, 1e9, 0.1);
    EXPECT_DOUBLE_EQ(rate.slice_cost(), 1e10 * SliceRate::kTargetSeconds);
    rate.add(FOVEA_KERNEL_STAGED, 1e9, 0.001);
    EXPECT_DOUBLE_EQ(rate.slice_cost(), 1e11 * SliceRate::kTargetSeconds);
}

struct Tally {
    std::vector<std::atomic<int>> runs = std::vector<std::atomic<int>>(1000);
    std::vector<std::atomic<int>> in_use = std::vector<std::atomic<int>>(4);
    std::atomic<bool> shared_worker{false};
    uint32_t wanted = 0;
};

// With threads that sleep at once, that always find the next call before they would sleep, and that now and
// then do and now and then don't; each pool ends while its threads wait in one of these ways.
TEST(ThreadPool, RunsEachIndexOnceAndSharesNoWorker) {
    for (const uint32_t workers : {2u, 4u})
        for (const int spin_us : {0, 1, 30, 1000}) {
            ThreadPool pool(workers, std::chrono::microseconds(spin_us));
            EXPECT_EQ(pool.worker_count(), workers);
            const FoveaParallel parallel = pool.parallel();
            Tally tally;
            const int rounds = 400;
            for (int round = 0; round < rounds; ++round) {
                if (round % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(round));
                parallel.run(
                    parallel.user, round % 100 == 0 ? 1000 : 1 + uint32_t(round) % 7,
                    [](void* arg, uint32_t index, uint32_t worker) {
                        auto& t = *static_cast<Tally*>(arg);
                        if (t.in_use[worker].fetch_add(1) != 0) t.shared_worker = true;
                        ++t.runs[index];
                        t.in_use[worker].fetch_sub(1);
                    },
                    &tally);
                uint32_t runs = 0;
                for (const std::atomic<int>& count : tally.runs) runs += uint32_t(count);
                tally.wanted += round % 100 == 0 ? 1000 : 1 + uint32_t(round) % 7;
                ASSERT_EQ(runs, tally.wanted) << "run " << round << " of " << workers << " workers that spin "
                                              << spin_us << " us returned before its end";
            }
            EXPECT_EQ(tally.runs.back(), rounds / 100);
            EXPECT_FALSE(tally.shared_worker);
            parallel.run(parallel.user, 0, nullptr, nullptr);
        }
}

}  // namespace
}  // namespace fovea::runtime
