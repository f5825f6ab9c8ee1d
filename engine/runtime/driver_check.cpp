#include "runtime/driver_check.hpp"

#include "runtime/c_boundary.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "problem/fnv1a.hpp"

namespace fovea::runtime {
namespace {

// The queue and memory that foveaCheckDevice gets.
struct Lender {
    VulkanQueue& queue;
    const VulkanMemory& memory;
    double timeout_seconds;

    static FoveaResult begin(void* user, VkCommandBuffer* cmd, FoveaDescriptorPool* pool, FoveaDiag* diag) {
        auto& self = *static_cast<Lender*>(user);
        if (const VkResult r = self.memory.flush(); r != VK_SUCCESS)
            return fail_with(diag, vk_error(r, "vmaFlushAllocation"));
        const Result<Submission> submission = self.queue.begin(self.timeout_seconds);
        if (!submission) return fail_with(diag, submission.error());
        *cmd = submission->cmd;
        pool->pool = submission->sets;
        return FOVEA_OK;
    }
    static FoveaResult run(void* user, FoveaDiag* diag) {
        auto& self = *static_cast<Lender*>(user);
        Result<void> done = self.queue.submit("a problem of the driver's check", false, nullptr);
        if (done) done = self.queue.finish(self.timeout_seconds);
        if (!done) return fail_with(diag, done.error());
        const VkResult r = self.memory.invalidate();
        return r == VK_SUCCESS ? FOVEA_OK : fail_with(diag, vk_error(r, "vmaInvalidateAllocation"));
    }
};

constexpr const char* kMagic = "fovea check 1 ";

// A hash of every shader of this library: a check is of the code that was run.
uint64_t hash_of_shaders() {
    uint64_t state = kFnv1aStart;
    size_t count = 0;
    for (uint32_t shader = 0; const uint32_t* words = foveaShaderCode(shader, &count); ++shader)
        state = fnv1a(std::span(words, count), state);
    return state;
}

}  // namespace

Result<FoveaCheckReport> check_device(FoveaContext context, VulkanAllocator& allocator,
                                      const CheckedShaders& shaders, uint32_t seed, double timeout_seconds) {
    const Result<VulkanMemory*> memory = allocator.staging();
    if (!memory) return memory.error();
    Lender lender{allocator.queue(), **memory, timeout_seconds};
    FoveaDeviceCheck check = foveaDeviceCheck();
    check.seed = seed;
    check.buffer = {(*memory)->buffer(), 0, (*memory)->size_bytes()};
    check.mapped = (*memory)->mapped();
    check.user = &lender;
    check.begin = Lender::begin, check.run = Lender::run;
    memcpy(check.shaders, shaders.data(), sizeof check.shaders);
    FoveaCheckReport report = foveaCheckReport();
    Diag diag;
    if (foveaCheckDevice(context, &check, &report, &diag) != FOVEA_OK) return diag.error();
    return report;
}

DriverCheck::DriverCheck(const VkPhysicalDeviceProperties& device, const std::string& folder) {
    if (folder.empty()) return;
    char text[96];
    int length =
        snprintf(text, sizeof text, "%x-%x-%x-", device.vendorID, device.deviceID, device.driverVersion);
    for (const uint8_t byte : device.pipelineCacheUUID)
        length += snprintf(text + length, sizeof text - size_t(length), "%02x", byte);
    file_ = (std::filesystem::path(folder) / (std::string("check-") + text + ".txt")).string();
    snprintf(text + length, sizeof text - size_t(length), " %016" PRIx64, hash_of_shaders());
    identity_ = kMagic + std::string(text);
    read();
}

// The file: the identity, then for each class the kernels that were checked and those that failed, then
// texts.
void DriverCheck::read() {
    std::ifstream in(file_);
    std::string line;
    if (!std::getline(in, line) || line != identity_) return;
    CheckedShaders checked{}, failed{};
    for (size_t type = 0; type < checked.size(); ++type)
        if (!(in >> std::hex >> checked[type] >> failed[type])) return;
    std::getline(in, line);
    while (std::getline(in, line)) texts_.push_back(line);
    checked_ = checked, failed_ = failed;
}

// Another process may do the same: the file is replaced as a whole.
void DriverCheck::write() const {
    if (file_.empty()) return;
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
    const std::string draft = file_ + "." + std::to_string(reinterpret_cast<uintptr_t>(this)) + ".new";
    {
        std::ofstream out(draft);
        out << identity_ << '\n' << std::hex;
        for (size_t type = 0; type < checked_.size(); ++type)
            out << checked_[type] << ' ' << failed_[type] << '\n';
        for (const std::string& text : texts_) out << text << '\n';
        if (!out.flush()) return;
    }
    std::filesystem::rename(draft, file_, ignored);
}

void DriverCheck::add(const FoveaCheckReport& report, const CheckedShaders& asked) {
    if (asked == CheckedShaders{}) checked_ = failed_ = {}, texts_.clear();  // everything was checked anew
    for (size_t type = 0; type < checked_.size(); ++type) {
        checked_[type] |= report.checked_shaders[type] | asked[type];
        failed_[type] |= report.failed_shaders[type];
    }
    std::string_view text = report.text;
    for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
        texts_.emplace_back(text.substr(0, end));
    write();
}

}  // namespace fovea::runtime
