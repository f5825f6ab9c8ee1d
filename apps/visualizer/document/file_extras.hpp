// What a file says of a call beside queries, keys and values: mask, added scores, sinks, slopes.
#pragma once

#include "document/imported_file.hpp"

namespace fovea::visualizer {

// Tensors `mask` (bool or u8: 1 is visible; floats are added), `bias`, `sinks` [H] and `alibi` [H] that stand
// beside the queries under the same prefix. One that does not fit is left out, and the warning says so.
bool has_own_slopes(const ImportedFile& file, const ImportMapping& mapping);
void read_extras(Projected& projected, const ImportedFile& file, const ImportMapping& mapping);

}  // namespace fovea::visualizer
