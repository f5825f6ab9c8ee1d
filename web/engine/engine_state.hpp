// State shared by the C functions of web_engine.h and call_engine.h: the runner, the map, the last returned
// text.
#pragma once

#include "deep_zoom.hpp"

#include <string>

namespace fovea::web {

Runner& open_runner();
DeepZoom* open_map();  // null before webMapBegin
// Keeps a text until the next one, and returns it; keeps the reason for webError, and returns 0.
const char* answer_text(std::string text);
int32_t refuse_call(std::string reason);
std::string map_state_json(bool with_pieces);

}  // namespace fovea::web
