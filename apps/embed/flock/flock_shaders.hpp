// The renderer's own passes, compiled from shaders/.
#pragma once

#include <cstdint>

#include "bird.frag.h"
#include "bird.vert.h"
#include "features.comp.h"
#include "steer.comp.h"
