// Runs plans on the CPU backend through <fovea/fovea.h>, with the page's workers.
#pragma once

#include <fovea/fovea.hpp>
#include <fovea/thread_pool.hpp>

namespace fovea::web {

struct Bindings {
    FoveaHostBuffer buffers[FOVEA_BIND_COUNT] = {};

    void read(FoveaBinding binding, const void* data, uint64_t size_bytes) {
        buffers[binding] = {const_cast<void*>(data), size_bytes};
    }
    void write(FoveaBinding binding, void* data, uint64_t size_bytes) {
        buffers[binding] = {data, size_bytes};
    }
};

class Engine {
  public:
    explicit Engine(uint32_t worker_count) : pool_(worker_count) {}

    uint32_t worker_count() const { return pool_.worker_count(); }
    Result<FoveaDeviceProperties> properties(uint32_t workers) const { return cpu_properties(workers); }

    const FoveaParallel* parallel() const { return &all_; }  // all workers
    // Runs slices [first, first + count) of a plan; count 0: all that are left.
    Result<void> run(const Plan& plan, const Bindings& bindings, uint32_t workers, uint64_t first = 0,
                     uint64_t count = 0) {
        const FoveaParallel parallel = pool_.parallel(workers);
        return run_on_host(plan, bindings.buffers, workspace_, &parallel, first, count);
    }

  private:
    ThreadPool pool_;
    FoveaParallel all_ = pool_.parallel(pool_.worker_count());
    Workspace workspace_;
};

}  // namespace fovea::web
