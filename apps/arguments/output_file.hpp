// Output files of commands. A file that cannot be written is reported before the work, not after it, and is
// never left half written.
#pragma once

#include <fovea/fovea.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace fovea::app {

// Checks that a file of this name can be made, and leaves nothing there. `format` is the file's format, as
// ".png": readers go by the extension, so another extension is rejected. `inputs` are the files that the
// command reads; writing to one of them is rejected, under any name.
Result<void> check_writable(std::string_view path, std::string_view format = {},
                            std::span<const std::filesystem::path> inputs = {});

// Writes a temporary file in the same folder and renames it.
Result<void> write_text_file(std::string_view path, std::string_view text);

// While it lives, an interrupt (Ctrl-C, a termination) waits: around the writing of a file, so that neither a
// part of it nor its temporary file stays. The outermost of several counts.
class HeldInterrupts {
  public:
    HeldInterrupts();
    ~HeldInterrupts();
    bool arrived() const;  // true if an interrupt waits
    HeldInterrupts(const HeldInterrupts&) = delete;
    HeldInterrupts& operator=(const HeldInterrupts&) = delete;
};

}  // namespace fovea::app
