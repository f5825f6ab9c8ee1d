#include "run.hpp"

#include "data/exporting.hpp"
#include "data/session_file.hpp"
#include "panels/keys.hpp"
#include "picture.hpp"

#include <algorithm>
#include <cstdio>
#include <thread>

namespace fovea::visualizer {
namespace {

Result<void> compute(GpuDevice& device, Workbench& bench) {
    for (bool more = true; more;) {
        Result<bool> updated = false;
        if (Result<void> r = device.run_once([&](VkCommandBuffer cmd) { updated = bench.update(cmd, 1e9); });
            !r)
            return r;
        if (!updated) return updated.error();
        // A window's session leaves some of it to threads.
        more = *updated || !bench.preparing().empty() || bench.training.is_behind();
        if (bench.threads_work() || bench.training.is_behind()) std::this_thread::yield();
    }
    if (!bench.computation.problem().empty())
        return Error{FOVEA_INVALID_ARGUMENT, "", bench.computation.problem()};
    return {};
}

Result<void> check_view(Workbench& bench, const Options& o) {
    if (!o.stage.empty() && bench.stage().name != o.stage) {
        std::string known;
        for (const Stage& stage : bench.computation.stages())
            known += (known.empty() ? "" : ", ") + stage.name;
        return Error{FOVEA_INVALID_ARGUMENT, "--stage",
                     "--stage is '" + o.stage + "'; this layer has " + known};
    }
    // A stage that has one matrix for all heads shows it whatever the head, and prints it for those that
    // there are, as `fovea session` does. Heads of a model are counted over its layers.
    const Settings& s = bench.document.settings();
    uint64_t heads = bench.stage().heads;
    if (o.print && heads == 1)
        for (const Stage& stage : bench.computation.stages()) heads = std::max<uint64_t>(heads, stage.heads);
    const uint64_t layers = shows_model(s) ? std::max<size_t>(1, shown_layers(s).size()) : 1;
    if (o.head && (heads > 1 || o.print) && *o.head >= heads * layers)
        return Error{FOVEA_INVALID_ARGUMENT, "--head",
                     "--head is " + std::to_string(*o.head) + "; " + bench.stage().name + " has heads 0 to " +
                         std::to_string(heads * layers - 1)};
    if (!o.select.empty()) {
        CellRect r;
        int row_end = 0, column_end = 0, end = 0;
        const int found = std::sscanf(o.select.c_str(), "%d:%d,%d:%d%n", &r.row_begin, &row_end,
                                      &r.column_begin, &column_end, &end);
        const bool whole = found == 4 && size_t(end) == o.select.size() && row_end > r.row_begin &&
                           column_end > r.column_begin;
        if (whole) r.row_last = row_end - 1, r.column_last = column_end - 1;
        if (!whole || !r.within(bench.stage().rows, bench.stage().columns))
            return Error{FOVEA_INVALID_ARGUMENT, "--select",
                         "--select is '" + o.select + "'; it must be A:B,C:D, rows and columns within 0:" +
                             std::to_string(bench.stage().rows) +
                             ",0:" + std::to_string(bench.stage().columns)};
        bench.view.selection = r;
    }
    if (!o.pick.empty() && !go_to(bench, o.pick))
        return Error{FOVEA_INVALID_ARGUMENT, "--pick",
                     "--pick is '" + o.pick + "'; it must be a row and a column of the matrix, such as 2,0"};
    return {};
}

}  // namespace

Result<void> keep_a(GpuDevice& device, Workbench& bench, const Options& o) {
    if (o.against.empty()) return {};
    if (Result<void> r = apply_options_of_a(bench, o); !r) return r;
    if (Result<void> r = compute(device, bench); !r) return r;
    bench.past.keep();
    return {};
}

namespace {

Result<void> deliver(GpuDevice& device, const Options& o) {
    Workbench bench(device, o.on_cpu);
    if (!device.has_vulkan() && !o.print) bench.window.tell("Running on the CPU: " + device.why_not());
    if (Result<void> r = keep_a(device, bench, o); !r) return r;
    if (Result<void> r = apply_options(bench, o); !r) return r;
    if (Result<void> r = compute(device, bench); !r) return r;
    if (o.roof) {
        // The roofline shows a second run: the first has waited for the driver's compiler.
        bench.computation.want_roof();
        if (Result<void> r = compute(device, bench); !r) return r;
    }
    if (Result<void> r = check_view(bench, o); !r) return r;
    if (!o.screenshot.empty())
        if (Result<void> r = save_picture(bench, {o.width, o.height, o.scale, o.exact, o.look}, o.screenshot);
            !r)
            return r;
    if (!o.export_path.empty())
        if (Result<void> r = export_file(bench, o.export_path); !r) return r;
    if (o.export_path.ends_with(".fovea"))
        if (const std::string left_out = session_left_out(bench); !left_out.empty())
            std::fprintf(stderr, "fovea-visualizer: note: the session is without %s\n", left_out.c_str());
    if (o.describe && bench.map) (void)draw_picture(bench, {o.width, o.height, 1, o.exact});
    if (o.print) {
        const Stage& stage = bench.stage();
        const std::span<const float> values = stage.head_values(bench.view.head);
        std::fputs(
            matrix_text(F32Tensor({stage.rows, stage.columns}, {values.begin(), values.end()})).c_str(),
            stdout);
        for (const Problem& problem : bench.problems)
            std::fprintf(stderr, "fovea-visualizer: note: %s\n", problem.text.c_str());
    }
    if (o.describe) std::fputs(describe(bench).c_str(), stdout);
    return {};
}

}  // namespace

Result<void> run_headless(const Options& o) {
    GpuWishes wishes;
    wishes.vulkan_device = o.vulkan_device;
    wishes.validation = o.validation;
    wishes.memory_limit_bytes = o.memory_limit_bytes;
    // Printing values on the CPU needs no driver.
    const bool numbers_only = o.print && o.on_cpu && o.screenshot.empty() && !o.validation;
    Result<std::unique_ptr<GpuDevice>> device =
        numbers_only ? GpuDevice::without_vulkan("values computed on the CPU were requested")
                     : GpuDevice::open(wishes);
    // Without a usable device the CPU computes and paints, unless a device or its validation was requested.
    if (!device && o.vulkan_device < 0 && !o.validation)
        device = GpuDevice::without_vulkan(device.error().text);
    if (!device) return device.error();
    if (Result<void> r = deliver(**device, o); !r) return r;
    const std::vector<std::string> messages = (*device)->take_messages();
    if (!messages.empty())
        return Error{FOVEA_VULKAN_ERROR, "validation",
                     "the Vulkan validation layer reported " + std::to_string(messages.size()) +
                         (messages.size() == 1 ? " message: " : " messages; the first is: ") + messages[0]};
    return {};
}

}  // namespace fovea::visualizer
