// Looking into attention: worked lessons, the derivation of one weight, head statistics, pictures, numbers as
// text.
#pragma once

#include <fovea/inspect/derivation.hpp>
#include <fovea/inspect/format.hpp>
#include <fovea/inspect/head_stats.hpp>
#include <fovea/inspect/lessons.hpp>
