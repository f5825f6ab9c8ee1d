// `fovea session`: one stage of what a session file shows, as text.
#pragma once

#include "commands.hpp"

namespace fovea::app {

int session_command(Words words);

}  // namespace fovea::app
