// The convenience layer from the installed package: opens a device by itself.
#include <fovea/runtime.hpp>

#include <cstdio>

int main() {
    fovea::EngineOptions options;
    options.backend = fovea::BackendChoice::cpu;
    const fovea::Result<fovea::Engine> engine = fovea::Engine::open(options);
    if (!engine) return std::puts(engine.error().text.c_str()), 1;
    std::printf("engine: %s\n", engine->device().name.c_str());
    return 0;
}
