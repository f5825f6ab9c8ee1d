// Files that a command writes: found unwritable before the work and not behind it, never left half written.
#pragma once

#include <fovea/fovea.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace fovea::app {

// Whether a file of this name can be made; leaves nothing behind. `format` is what it will be, as ".png":
// readers go by the extension, so that one of another format is refused. `inputs`: files that the command
// reads; one of them is refused, under whatever name.
Result<void> check_writable(std::string_view path, std::string_view format = {},
                            std::span<const std::filesystem::path> inputs = {});

// Through a file beside it, that is renamed.
Result<void> write_text_file(std::string_view path, std::string_view text);

// While it lives, an interrupt (Ctrl-C, a termination) waits: around the writing of a file, so that neither a
// part of it nor its temporary file stays. The outermost of several counts.
class HeldInterrupts {
  public:
    HeldInterrupts();
    ~HeldInterrupts();
    bool arrived() const;  // whether one waits
    HeldInterrupts(const HeldInterrupts&) = delete;
    HeldInterrupts& operator=(const HeldInterrupts&) = delete;
};

}  // namespace fovea::app
