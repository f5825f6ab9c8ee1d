// Draws a session's window and reads its words, with the mouse on its way.
#pragma once

#include "drawn_words.hpp"
#include "picture.hpp"
#include "visualizer_fixture.hpp"

#include <imgui_internal.h>
#include <fovea/inspect/colormap.hpp>

namespace fovea::visualizer {

class WordsTest : public VisualizerTest {
  protected:
    std::vector<DrawnWords> words(std::vector<PictureMouse> mouse = {}) {
        size.mouse = std::move(mouse);
        std::vector<DrawnWords> found;
        size.seen = [&](const ImDrawData& data) {
            found = drawn_words(data);
            const ImGuiWindow* of = ImGui::GetCurrentContext()->NavWindow;
            keyboard = of ? of->RootWindow->Name : "";
        };
        Result<Tensor> image = draw_picture(*bench, size);
        size.seen = {};
        EXPECT_TRUE(image) << image.error().text;
        if (image) picture = std::move(*image);
        return found;
    }
    Rgb at(float x, float y) const {
        const std::byte* p = &picture.bytes[(size_t(y) * picture.shape[1] + size_t(x)) * 4];
        return {uint8_t(p[0]), uint8_t(p[1]), uint8_t(p[2])};
    }
    static Rgb rgb(ImU32 color) { return {uint8_t(color), uint8_t(color >> 8), uint8_t(color >> 16)}; }
    std::vector<DrawnWords> words_of(const std::string& window, std::vector<PictureMouse> mouse = {}) {
        std::vector<DrawnWords> all = words(std::move(mouse));
        std::erase_if(all, [&](const DrawnWords& one) { return !one.window.starts_with(window); });
        return all;
    }
    // Presses and releases at these words, in the picture's units.
    std::vector<PictureMouse> click(const DrawnWords& on, int times = 1) const {
        const PictureMouse at{(on.left + on.right) / 2 / size.scale, (on.top + on.bottom) / 2 / size.scale};
        std::vector<PictureMouse> way{at, at};
        for (; times > 0; --times) way.insert(way.end(), {{at.x, at.y, true}, at});
        way.push_back(at);
        return way;
    }
    void level(int number) {
        bench->document.change(level_settings(number));
        compute();
        show("weights");
    }
    void text(const std::string& words) {
        Settings s = bench->document.settings();
        s.text = words;
        bench->document.change(s);
        compute();
        show("weights");
    }
    static void expect_whole(const std::vector<DrawnWords>& all, const std::string& what) {
        const DrawnWords* found = find_words(all, what);
        ASSERT_TRUE(found) << "\"" << what << "\" is not there:\n" << all_words(all);
        EXPECT_FALSE(found->cut) << what;
    }

    PictureSize size;
    Tensor picture;
    std::string keyboard;  // the panel that has it
};

}  // namespace fovea::visualizer
