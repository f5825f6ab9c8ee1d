#include <array>

#include "inspect/lessons/recipes.hpp"

namespace fovea {

Recipe find_recipe(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, Recipe>, 21> kRecipes = {{
        {"softmax_curve", recipes::softmax_curve},
        {"scores_of_one", recipes::scores_of_one},
        {"normalisation", recipes::normalisation},
        {"context_of_one", recipes::context_of_one},
        {"simple_attention", recipes::simple_attention},
        {"all_tokens", recipes::all_tokens},
        {"batched_product", recipes::batched_product},
        {"mask", recipes::mask},
        {"embedding", recipes::embedding},
        {"project_one", recipes::project_one},
        {"one_query", recipes::one_query},
        {"self_attention", recipes::self_attention},
        {"causal_mask", recipes::causal_mask},
        {"causal_weights", recipes::causal_weights},
        {"causal_attention", recipes::causal_attention},
        {"stacked_heads", recipes::stacked_heads},
        {"split_heads", recipes::split_heads},
        {"gpt_attention", recipes::gpt_attention},
        {"dropout_ones", recipes::dropout_ones},
        {"dropout_weights", recipes::dropout_weights},
        {"dropout_causal_weights", recipes::dropout_causal_weights},
    }};
    for (const auto& [key, recipe] : kRecipes) {
        if (key == name) return recipe;
    }
    return nullptr;
}

Result<LessonRun> run_lesson(const Lesson& lesson, Runner* engine) {
    const Recipe recipe = find_recipe(lesson.recipe);
    if (recipe == nullptr) {
        return Error{FOVEA_INVALID_ARGUMENT, "recipe",
                     "lesson " + lesson.name + ": no recipe '" + lesson.recipe + "'"};
    }
    LessonBuilder builder(lesson, engine);
    const std::string name = engine ? engine->name() : "strict";
    if (Result<void> done = recipe(builder); !done) {
        Error error = done.error();
        error.text = "lesson " + lesson.name + " on " + name + ": " + error.text;
        return error;
    }
    return LessonRun{name, builder.take_stages()};
}

}  // namespace fovea
