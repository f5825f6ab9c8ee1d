// The folders of tests/model/families with a model and its results.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

inline std::vector<std::string> family_names() {
    namespace fs = std::filesystem;
    std::vector<std::string> names;
    for (const auto& folder : fs::directory_iterator(FOVEA_FAMILIES))
        if (fs::exists(folder.path() / "expected.safetensors"))
            names.push_back(folder.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}
