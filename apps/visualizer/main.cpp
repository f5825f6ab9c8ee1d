// The desktop visualizer: attention you can read.
#include "run.hpp"

#include <arguments.hpp>

#include <cstdio>

int main(int argc, char** argv) {
    using namespace fovea::visualizer;
    const fovea::Result<Options> options = parse_options(argc, argv);
    fovea::Result<void> done;
    if (!options)
        done = options.error();
    else if (options->help)
        std::fputs(options_help().c_str(), stdout);
    else if (options->version)
        std::printf("fovea-visualizer %d.%d.%d\n", FOVEA_VERSION_MAJOR, FOVEA_VERSION_MINOR,
                    FOVEA_VERSION_PATCH);
    else
        done = options->headless() ? run_headless(*options) : run_window(*options);
    if (done && (std::fflush(stdout) != 0 || std::ferror(stdout)))
        done = fovea::Error{FOVEA_IO_ERROR, "standard output", "standard output cannot be written"};
    if (done) return 0;
    const fovea::Error& error = done.error();
    std::fprintf(stderr, "fovea-visualizer: error: %s\n", fovea::app::message_of(error).c_str());
    return 2;
}
