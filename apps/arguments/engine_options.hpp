// The options that choose a device: one table for every program that opens an engine.
#pragma once

#include "arguments.hpp"

#include <fovea/runtime.hpp>

#include <span>

namespace fovea::app {

// The user's folder for what driver checks found (EngineOptions::check_folder); empty where there is none.
std::string driver_check_folder();

// --backend, --device, --threads and --tuning.
std::span<const OptionSpec> engine_option_specs();
Result<EngineOptions> engine_options(const Arguments& arguments);

}  // namespace fovea::app
