// Looking into attention: worked lessons, the derivation of one weight, head statistics, pictures, numbers as
// text.
#pragma once

#include <fovea/inspect/colormap.hpp>
#include <fovea/inspect/derivation.hpp>
#include <fovea/inspect/format.hpp>
#include <fovea/inspect/head_stats.hpp>
#include <fovea/inspect/heatmap.hpp>
#include <fovea/inspect/learned_lesson.hpp>
#include <fovea/inspect/lesson_picture.hpp>
#include <fovea/inspect/lessons.hpp>
#include <fovea/inspect/long_context.hpp>
#include <fovea/inspect/map_tiles.hpp>
