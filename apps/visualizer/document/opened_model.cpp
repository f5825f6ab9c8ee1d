#include "document/opened_model.hpp"

#include <fovea/inspect.hpp>
#include <fovea/thread_pool.hpp>

#include <algorithm>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace fovea::visualizer {

std::unique_ptr<Runner> make_model_runner() {
    return make_cpu_runner(std::make_unique<ThreadPool>(std::max(1u, std::thread::hardware_concurrency()),
                                                        ThreadPool::kBetweenCalls));
}

uint64_t machine_memory() {
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    if (pages > 0 && size > 0) return uint64_t(pages) * uint64_t(size);
#endif
    return 0;
}

bool is_model_path(const std::filesystem::path& path) {
    std::error_code error;
    return path.extension() == ".gguf" || std::filesystem::is_regular_file(path / "config.json", error);
}

Result<std::shared_ptr<const OpenedModel>> open_model(const std::filesystem::path& path) {
    Result<TextModel> opened = open_text_model(path);
    if (!opened) return opened.error();
    const uint64_t layer = opened->weights.run_block_bytes();
    if (const uint64_t memory = machine_memory(); memory > 0 && layer > memory)
        return Error{FOVEA_OUT_OF_HOST_MEMORY, "model",
                     printable_name(path.string(), 400) + ": one layer needs " + format_bytes(layer) +
                         " of memory, and this machine has " + format_bytes(memory) +
                         "; open a smaller model"};
    auto model = std::make_shared<OpenedModel>(OpenedModel{std::move(*opened), path.string(), ""});
    std::filesystem::path plain = path;
    if (!plain.has_filename()) plain = plain.parent_path();  // a folder with a stroke at its end
    model->name = printable_name(plain.filename().string(), 60);
    return std::shared_ptr<const OpenedModel>(std::move(model));
}

}  // namespace fovea::visualizer
