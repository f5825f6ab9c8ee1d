// Layers over the engine's one description of attention, and the random numbers that PyTorch starts them
// with.
#pragma once

#include <fovea/layers/attention_layers.hpp>
#include <fovea/layers/executor.hpp>
#include <fovea/layers/f32_tensor.hpp>
#include <fovea/layers/strict.hpp>
#include <fovea/layers/torch_random.hpp>
#include <fovea/layers/trace.hpp>
