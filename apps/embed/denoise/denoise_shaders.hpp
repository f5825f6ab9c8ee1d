// The denoiser's own passes, compiled from shaders/.
#pragma once

#include <cstdint>

#include "atrous.comp.h"
#include "bilateral.comp.h"
#include "features.comp.h"
#include "keep.comp.h"
#include "remember.comp.h"
#include "show.frag.h"
#include "show.vert.h"
#include "trace.comp.h"
