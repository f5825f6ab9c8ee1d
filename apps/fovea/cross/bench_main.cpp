// Only `fovea bench`, for targets where the other commands are not built.
#include "commands.hpp"

#include <cstdio>
#include <vector>
#if defined(__EMSCRIPTEN__)
#include <emscripten/heap.h>
#endif

int main(int argc, char** argv) {
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    const int code = fovea::app::bench_command(words);
#if defined(__EMSCRIPTEN__)
    std::printf("memory of the module, all cases' buffers included: %.1f MiB\n",
                double(emscripten_get_heap_size()) / (1 << 20));
#endif
    return code;
}
