// A transformer as data: sessions, models and their traces, and the random numbers that PyTorch starts models
// with.
#pragma once

#include <fovea/model/checkpoint_model.hpp>
#include <fovea/model/f32_tensor.hpp>
#include <fovea/model/generate.hpp>
#include <fovea/model/learned.hpp>
#include <fovea/model/learned_tokenizer.hpp>
#include <fovea/model/linear.hpp>
#include <fovea/model/next_tokens.hpp>
#include <fovea/model/rules.hpp>
#include <fovea/model/session.hpp>
#include <fovea/model/strict.hpp>
#include <fovea/model/token_scores.hpp>
#include <fovea/model/tokens.hpp>
#include <fovea/model/torch_random.hpp>
#include <fovea/model/trace.hpp>
#include <fovea/model/transformer.hpp>
