// Layers over the engine's one description of attention, and the random numbers that PyTorch starts them
// with.
#pragma once

#include <fovea/torch_random.hpp>
