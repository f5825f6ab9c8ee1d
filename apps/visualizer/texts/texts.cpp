#include "texts/texts.hpp"

namespace fovea::visualizer {

const Texts& texts() {
    static constexpr Texts kEnglish{};
    return kEnglish;
}

std::string fill(const char* text, const std::vector<std::string>& values) {
    std::string filled;
    for (const char* at = text; *at; ++at) {
        const size_t value = at[0] == '{' && at[1] >= '0' && at[1] <= '9' && at[2] == '}'
                                 ? size_t(at[1] - '0')
                                 : values.size();
        if (value < values.size())
            filled += values[value], at += 2;
        else
            filled += *at;
    }
    return filled;
}

}  // namespace fovea::visualizer
