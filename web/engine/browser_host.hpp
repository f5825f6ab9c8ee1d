// Services of the page for the module that runs published models: reading files, reporting progress, and the
// Unicode properties of texts. The other side is web/src/model_host.ts.
#pragma once

#include <fovea/files/checkpoint.hpp>

#include <cstdint>
#include <memory>

namespace fovea::web {

// File `index` of the host's list.
std::shared_ptr<const StoredFile> host_file(uint32_t index, uint64_t size_bytes);
// The same, all of it read into memory. Fails if memory is short, or if the file cannot be read.
Result<std::shared_ptr<const StoredFile>> held_host_file(uint32_t index, uint64_t size_bytes);
void tell_progress(double share);

}  // namespace fovea::web
