// Reads a file's optional inputs of a call: mask, bias, sinks, slopes.
#pragma once

#include "document/imported_file.hpp"

namespace fovea::visualizer {

// Reads the tensors `mask` (bool or u8: 1 is visible; floats are added), `bias`, `sinks` [H] and `alibi` [H]
// that have the queries' prefix. One that does not fit is left out with a warning.
bool has_own_slopes(const ImportedFile& file, const ImportMapping& mapping);
void read_extras(Projected& projected, const ImportedFile& file, const ImportMapping& mapping);

}  // namespace fovea::visualizer
