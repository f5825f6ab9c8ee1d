#include "cpu/plain.hpp"

#include "reference/run_loops.hpp"

namespace fovea::plain {

uint64_t attention_scratch_bytes(const Problem& problem) {
    return reference::scratch_bytes_of<float>(problem);
}

void attention(const Problem& problem, const reference::RowRun& run) {
    reference::run_attention<float>(problem, run);
}
void rope(const FoveaRopeDesc& desc, const reference::RowRun& run) { reference::run_rope<float>(desc, run); }
void linear(const FoveaLinearDesc& desc, const reference::RowRun& run) {
    reference::run_linear<float>(desc, run);
}
void append(const FoveaAppendDesc& desc, const reference::RowRun& run) { reference::run_append(desc, run); }

}  // namespace fovea::plain
