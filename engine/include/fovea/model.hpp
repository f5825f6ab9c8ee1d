// Layers over the engine's one description of attention, and the random numbers that PyTorch starts them
// with.
#pragma once

#include <fovea/model/attention_layers.hpp>
#include <fovea/model/executor.hpp>
#include <fovea/model/f32_tensor.hpp>
#include <fovea/model/strict.hpp>
#include <fovea/model/torch_random.hpp>
#include <fovea/model/trace.hpp>
