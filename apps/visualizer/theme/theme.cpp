#include "theme/theme.hpp"

#include <cstddef>
#include <filesystem>

namespace fovea::visualizer {
namespace {

constexpr Palette kDark = {
    IM_COL32(17, 19, 23, 255),   IM_COL32(24, 27, 32, 255),    IM_COL32(36, 40, 47, 255),
    IM_COL32(48, 53, 62, 255),   IM_COL32(230, 233, 238, 255), IM_COL32(146, 154, 166, 255),
    IM_COL32(86, 156, 255, 255), IM_COL32(10, 16, 26, 255),    IM_COL32(255, 176, 84, 255),
    IM_COL32(30, 33, 39, 255),   IM_COL32(58, 64, 74, 255),    IM_COL32(98, 107, 122, 255),
    IM_COL32(52, 104, 176, 255)};
constexpr Palette kLight = {
    IM_COL32(243, 244, 247, 255), IM_COL32(255, 255, 255, 255), IM_COL32(235, 238, 243, 255),
    IM_COL32(216, 220, 228, 255), IM_COL32(24, 28, 36, 255),    IM_COL32(96, 104, 118, 255),
    IM_COL32(22, 98, 214, 255),   IM_COL32(255, 255, 255, 255), IM_COL32(178, 92, 0, 255),
    IM_COL32(238, 240, 244, 255), IM_COL32(206, 211, 220, 255), IM_COL32(139, 147, 161, 255),
    IM_COL32(74, 136, 224, 255)};

ImVec4 rgba(ImU32 color) { return ImGui::ColorConvertU32ToFloat4(color); }

// Latin, Greek, arrows, super- and subscripts, mathematical operators.
constexpr ImWchar kGlyphs[] = {0x0020, 0x024F, 0x0370, 0x03FF, 0x2010, 0x2027, 0x2070, 0x209F,
                               0x2190, 0x21FF, 0x2200, 0x22FF, 0x25A0, 0x25FF, 0};

constexpr ImWchar kLetters[] = {0x0020, 0x024F, 0x2010, 0x2027, 0};

constexpr const char* kWideFonts[] = {"/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
                                      "/usr/share/fonts/noto-cjk/NotoSansCJK-Regular.ttc",
                                      "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
                                      "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
                                      "/usr/share/fonts/opentype/ipafont-gothic/ipag.ttf",
                                      "/usr/share/fonts/truetype/freefont/FreeSans.ttf",
                                      "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
                                      "/System/Library/Fonts/PingFang.ttc",
                                      "C:/Windows/Fonts/msyh.ttc"};

bool exists(const char* path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
}

// Characters that the first font may lack, each from the first font of the system that has it. `ranges` must
// live as long as the atlas is not built.
void merge_rare(float size, const ImVector<ImWchar>& ranges) {
    for (const char* path : kWideFonts) {
        if (!exists(path)) continue;
        ImFontConfig config;
        config.MergeMode = true;
        ImGui::GetIO().Fonts->AddFontFromFileTTF(path, size, &config, ranges.Data);
    }
}

ImFont* load_first(std::initializer_list<const char*> paths, float size, const ImWchar* glyphs = kGlyphs) {
    ImGuiIO& io = ImGui::GetIO();
    for (const char* path : paths)
        if (exists(path)) return io.Fonts->AddFontFromFileTTF(path, size, nullptr, glyphs);
    ImFontConfig config;
    config.SizePixels = size;
    return io.Fonts->AddFontDefault(&config);
}

}  // namespace

const Palette& palette(Theme theme) { return theme == Theme::dark ? kDark : kLight; }

Fonts load_fonts(float scale, const std::string& rare) {
    ImVector<ImWchar> ranges;
    if (!rare.empty()) {
        ImFontGlyphRangesBuilder builder;
        builder.AddText(rare.c_str());
        builder.BuildRanges(&ranges);
    }
    const auto merge = [&](float size) {
        if (!ranges.empty()) merge_rare(size, ranges);
    };
    const auto pixels = [scale](float size) { return size * scale; };
    Fonts fonts;
    fonts.body = load_first({"/usr/share/fonts/opentype/inter/Inter-Regular.otf",
                             "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
                             "/System/Library/Fonts/Supplemental/Arial.ttf", "C:/Windows/Fonts/segoeui.ttf"},
                            pixels(15));
    merge(pixels(15));
    fonts.strong =
        load_first({"/usr/share/fonts/opentype/inter/Inter-SemiBold.otf",
                    "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf", "C:/Windows/Fonts/segoeuib.ttf"},
                   pixels(15));
    fonts.small = load_first({"/usr/share/fonts/opentype/inter/Inter-Regular.otf",
                              "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
                              "/System/Library/Fonts/Supplemental/Arial.ttf", "C:/Windows/Fonts/segoeui.ttf"},
                             pixels(12.5f));
    merge(pixels(12.5f));
    fonts.mono = load_first({"/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
                             "/System/Library/Fonts/Menlo.ttc", "C:/Windows/Fonts/consola.ttf"},
                            pixels(13));
    fonts.large =
        load_first({"/usr/share/fonts/opentype/inter/Inter-SemiBold.otf",
                    "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf",
                    "/System/Library/Fonts/Supplemental/Arial Bold.ttf", "C:/Windows/Fonts/segoeuib.ttf"},
                   pixels(26));
    merge(pixels(26));
    fonts.display =
        load_first({"/usr/share/fonts/opentype/inter/Inter-SemiBold.otf",
                    "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf",
                    "/System/Library/Fonts/Supplemental/Arial Bold.ttf", "C:/Windows/Fonts/segoeuib.ttf"},
                   pixels(40), kLetters);
    merge(pixels(40));
    ImGui::GetIO().Fonts->Build();
    return fonts;
}

void apply_style(Theme theme, float scale) {
    const Palette& p = palette(theme);
    ImGuiStyle& s = ImGui::GetStyle();
    s = ImGuiStyle();
    s.WindowPadding = {14, 12};
    s.FramePadding = {9, 5};
    s.ItemSpacing = {9, 7};
    s.ItemInnerSpacing = {7, 5};
    s.ScrollbarSize = 11;
    s.GrabMinSize = 12;
    s.WindowBorderSize = s.FrameBorderSize = 0;
    s.PopupBorderSize = 1;
    s.WindowRounding = 0;
    s.ChildRounding = s.FrameRounding = s.PopupRounding = s.GrabRounding = s.ScrollbarRounding = 5;
    s.TabRounding = 5;
    s.ScaleAllSizes(scale);
    ImVec4* c = s.Colors;
    c[ImGuiCol_WindowBg] = rgba(p.panel);
    c[ImGuiCol_ChildBg] = {0, 0, 0, 0};
    c[ImGuiCol_PopupBg] = rgba(p.panel);
    c[ImGuiCol_Text] = rgba(p.text);
    c[ImGuiCol_TextDisabled] = rgba(p.text_soft);
    c[ImGuiCol_Border] = c[ImGuiCol_Separator] = c[ImGuiCol_TableBorderLight] =
        c[ImGuiCol_TableBorderStrong] = rgba(p.line);
    c[ImGuiCol_FrameBg] = c[ImGuiCol_Button] = c[ImGuiCol_Header] = c[ImGuiCol_Tab] = rgba(p.raised);
    c[ImGuiCol_FrameBgHovered] = c[ImGuiCol_ButtonHovered] = c[ImGuiCol_HeaderHovered] =
        c[ImGuiCol_TabHovered] = rgba(p.line);
    c[ImGuiCol_FrameBgActive] = c[ImGuiCol_ButtonActive] = c[ImGuiCol_HeaderActive] = rgba(p.line);
    c[ImGuiCol_TabActive] = c[ImGuiCol_TabUnfocusedActive] = rgba(p.line);
    c[ImGuiCol_TabUnfocused] = rgba(p.raised);
    c[ImGuiCol_CheckMark] = rgba(p.accent);
    c[ImGuiCol_SliderGrab] = c[ImGuiCol_SliderGrabActive] = rgba(p.grab);
    c[ImGuiCol_PlotHistogram] = c[ImGuiCol_PlotLines] = c[ImGuiCol_NavHighlight] = rgba(p.accent);
    c[ImGuiCol_TitleBg] = c[ImGuiCol_TitleBgActive] = c[ImGuiCol_MenuBarBg] = rgba(p.panel);
    c[ImGuiCol_ScrollbarBg] = {0, 0, 0, 0};
    c[ImGuiCol_ScrollbarGrab] = c[ImGuiCol_ScrollbarGrabHovered] = c[ImGuiCol_ScrollbarGrabActive] =
        rgba(p.mark);
    c[ImGuiCol_TableHeaderBg] = rgba(p.raised);
    c[ImGuiCol_TextSelectedBg] = rgba((p.accent & 0x00ffffff) | 0x60000000);
    c[ImGuiCol_ModalWindowDimBg] = {0, 0, 0, 0.5f};
}

}  // namespace fovea::visualizer
