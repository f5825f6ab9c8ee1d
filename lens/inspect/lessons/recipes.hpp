// How each kind of lesson is computed from its inputs, weights and masks. A recipe adds stages in the
// tutorial's order.
#pragma once

#include "inspect/lessons/lesson_builder.hpp"

namespace fovea {

using Recipe = Result<void> (*)(LessonBuilder&);
// Null if there is none of this name.
Recipe find_recipe(std::string_view name);

namespace recipes {

// Attention without weights, recipes_simple.cpp.
Result<void> softmax_curve(LessonBuilder& builder);
Result<void> scores_of_one(LessonBuilder& builder);
Result<void> normalisation(LessonBuilder& builder);
Result<void> context_of_one(LessonBuilder& builder);
Result<void> simple_attention(LessonBuilder& builder);
Result<void> all_tokens(LessonBuilder& builder);
Result<void> batched_product(LessonBuilder& builder);
Result<void> mask(LessonBuilder& builder);

// With weights, recipes_layers.cpp.
Result<void> embedding(LessonBuilder& builder);
Result<void> project_one(LessonBuilder& builder);
Result<void> one_query(LessonBuilder& builder);
Result<void> self_attention(LessonBuilder& builder);
Result<void> causal_mask(LessonBuilder& builder);
Result<void> causal_weights(LessonBuilder& builder);
Result<void> causal_attention(LessonBuilder& builder);
Result<void> stacked_heads(LessonBuilder& builder);
Result<void> split_heads(LessonBuilder& builder);
Result<void> gpt_attention(LessonBuilder& builder);

// Dropout, recipes_dropout.cpp.
Result<void> dropout_ones(LessonBuilder& builder);
Result<void> dropout_weights(LessonBuilder& builder);
Result<void> dropout_causal_weights(LessonBuilder& builder);
// Adds keep, dropped and, if asked for, context of both kinds of mask for a layer's weights and values.
void add_dropout_variants(LessonBuilder& builder, const LayerStages& layer, bool with_context);

}  // namespace recipes
}  // namespace fovea
