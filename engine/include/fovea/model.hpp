// A transformer as data: sessions, models and their traces; below them attention layers on a choice of
// arithmetic, and the random numbers that PyTorch starts them with.
#pragma once

#include <fovea/model/attention_layers.hpp>
#include <fovea/model/executor.hpp>
#include <fovea/model/f32_tensor.hpp>
#include <fovea/model/layer_trace.hpp>
#include <fovea/model/rules.hpp>
#include <fovea/model/session.hpp>
#include <fovea/model/strict.hpp>
#include <fovea/model/tokens.hpp>
#include <fovea/model/torch_random.hpp>
#include <fovea/model/trace.hpp>
#include <fovea/model/transformer.hpp>
