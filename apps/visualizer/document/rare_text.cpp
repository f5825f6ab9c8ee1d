// Which characters a session needs beyond those that every font has.
#include "document/workbench.hpp"
#include "theme/theme.hpp"

namespace fovea::visualizer {

std::string rare_text(const Workbench& bench) {
    std::string rare;
    const auto add = [&](std::string_view text) {
        for (size_t i = 0; i < text.size();) {
            const auto lead = static_cast<unsigned char>(text[i]);
            const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
            // From U+0400 on.
            if (lead >= 0xd0 && rare.find(text.substr(i, length)) == std::string::npos)
                rare += text.substr(i, length);
            i += length;
        }
    };
    const auto add_both = [&](const std::string& text) { add(text), add(in_drawing_order(text)); };
    add_both(bench.document.settings().text);
    if (bench.computation.ready())
        for (const std::string& token : bench.computation.tokens()) add_both(token);
    return rare;
}

}  // namespace fovea::visualizer
