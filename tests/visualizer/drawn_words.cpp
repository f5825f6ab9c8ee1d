#include "drawn_words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

namespace fovea::visualizer {
namespace {

struct Letter {
    const ImFont* font;
    const ImFontGlyph* glyph;
};

// By the middle of its place in the atlas, in texels: a letter that is cut has a part of that place.
class Letters {
  public:
    Letters() {
        const ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
        width_ = float(atlas.TexWidth), height_ = float(atlas.TexHeight);
        for (const ImFont* font : atlas.Fonts)
            for (const ImFontGlyph& glyph : font->Glyphs)
                if (glyph.Visible) rows_[int(std::lround(glyph.V0 * height_))].push_back({font, &glyph});
    }
    std::optional<Letter> at(float u0, float v0, float u1, float v1) const {
        const float u = (u0 + u1) / 2, v = (v0 + v1) / 2;
        for (auto row = rows_.upper_bound(int(std::lround(v * height_))); row != rows_.begin();) {
            --row;
            if (float(row->first) < v * height_ - 200) return {};  // no letter is so high
            for (const Letter& letter : row->second)
                if (u > letter.glyph->U0 && u < letter.glyph->U1 && v > letter.glyph->V0 &&
                    v < letter.glyph->V1)
                    return letter;
        }
        return {};
    }

  private:
    float width_, height_;
    std::map<int, std::vector<Letter>> rows_;
};

void append_letter(std::string& text, unsigned code) {
    if (code < 0x80) return text.push_back(char(code));
    if (code < 0x800) {
        text.push_back(char(0xc0 | code >> 6));
    } else {
        text.push_back(char(0xe0 | code >> 12));
        text.push_back(char(0x80 | (code >> 6 & 0x3f)));
    }
    text.push_back(char(0x80 | (code & 0x3f)));
}

// Goes over one list's letters and puts those together that one call drew.
class Reader {
  public:
    Reader(const Letters& letters, std::vector<DrawnWords>& out) : letters_(letters), out_(out) {}

    void read(const ImDrawList& list) {
        begun_ = false;
        for (const ImDrawCmd& command : list.CmdBuffer) {
            if (command.UserCallback) continue;
            const ImDrawIdx* index = list.IdxBuffer.Data + command.IdxOffset;
            for (unsigned i = 0; i + 5 < command.ElemCount;) {
                const ImDrawVert* v = list.VtxBuffer.Data + command.VtxOffset + index[i];
                const bool quad = index[i + 1] == index[i] + 1 && index[i + 2] == index[i] + 2 &&
                                  index[i + 3] == index[i] && index[i + 4] == index[i] + 2 &&
                                  index[i + 5] == index[i] + 3;
                if (quad && take(v, command.ClipRect, list._OwnerName ? list._OwnerName : ""))
                    i += 6;
                else
                    i += 3;
            }
        }
    }

  private:
    bool take(const ImDrawVert* v, const ImVec4& clip, const char* window) {
        if (v[0].uv.x >= v[2].uv.x || v[0].uv.y >= v[2].uv.y) return false;
        const std::optional<Letter> letter = letters_.at(v[0].uv.x, v[0].uv.y, v[2].uv.x, v[2].uv.y);
        if (!letter) return false;
        const ImFontGlyph& g = *letter->glyph;
        // Pixels for one unit of the font, from the part of the letter that is drawn.
        const float width = std::hypot(v[1].pos.x - v[0].pos.x, v[1].pos.y - v[0].pos.y);
        const float scale = width / (g.X1 - g.X0) * (g.U1 - g.U0) / (v[1].uv.x - v[0].uv.x);
        const ImVec2 along{(v[1].pos.x - v[0].pos.x) / width, (v[1].pos.y - v[0].pos.y) / width};
        const bool partly =
            v[1].uv.x - v[0].uv.x < 0.98f * (g.U1 - g.U0) || v[2].uv.y - v[1].uv.y < 0.98f * (g.V1 - g.V0);
        float left = 1e9f, top = 1e9f, right = -1e9f, bottom = -1e9f;
        for (int i = 0; i < 4; ++i)
            left = std::min(left, v[i].pos.x), right = std::max(right, v[i].pos.x),
            top = std::min(top, v[i].pos.y), bottom = std::max(bottom, v[i].pos.y);
        if (right <= clip.x || left >= clip.z || bottom <= clip.y || top >= clip.w)
            return true;  // out of sight
        const bool cut =
            partly || left < clip.x - 1 || right > clip.z + 1 || top < clip.y - 1 || bottom > clip.w + 1;
        // The position of the pen for it, along the line and across.
        const float cut_left = (v[0].uv.x - g.U0) / (g.U1 - g.U0) * (g.X1 - g.X0),
                    cut_top = (v[0].uv.y - g.V0) / (g.V1 - g.V0) * (g.Y1 - g.Y0);
        const float pen = v[0].pos.x * along.x + v[0].pos.y * along.y - (g.X0 + cut_left) * scale;
        const float line = v[0].pos.y * along.x - v[0].pos.x * along.y - (g.Y0 + cut_top) * scale;
        const float space = letter->font->GetCharAdvance(' ') * scale, gap = pen - pen_;
        const bool same = begun_ && font_ == letter->font && out_.back().color == v[0].col &&
                          std::abs(line - line_) < 1.5f && std::abs(along.y - along_.y) < 0.01f &&
                          gap > -0.6f && gap < 3 * space;
        const float spaces = std::round(gap / space);
        if (!same || std::abs(gap - spaces * space) > 0.6f) {
            out_.push_back({"", left, top, right, bottom, -along.y / std::max(along.x, 1e-6f), v[0].col,
                            false, letter->font->FontSize, window});
        } else {
            out_.back().text.append(size_t(spaces), ' ');
        }
        DrawnWords& words = out_.back();
        append_letter(words.text, g.Codepoint);
        words.left = std::min(words.left, left), words.right = std::max(words.right, right);
        words.top = std::min(words.top, top), words.bottom = std::max(words.bottom, bottom);
        words.cut = words.cut || cut;
        begun_ = true, font_ = letter->font;
        line_ = line, along_ = along, pen_ = pen + g.AdvanceX * scale;
        return true;
    }

    const Letters& letters_;
    std::vector<DrawnWords>& out_;
    bool begun_ = false;
    const ImFont* font_ = nullptr;
    float line_ = 0, pen_ = 0;
    ImVec2 along_{1, 0};
};

}  // namespace

std::vector<DrawnWords> drawn_words(const ImDrawData& data) {
    const Letters letters;
    std::vector<DrawnWords> out;
    Reader reader(letters, out);
    for (int i = 0; i < data.CmdListsCount; ++i) reader.read(*data.CmdLists[i]);
    return out;
}

const DrawnWords* find_words(const std::vector<DrawnWords>& all, const std::string& text) {
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const DrawnWords& one) { return one.text == text; });
    return at == all.end() ? nullptr : &*at;
}

const DrawnWords* find_beginning(const std::vector<DrawnWords>& all, const std::string& begin) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const DrawnWords& one) { return one.text.starts_with(begin); });
    return at == all.end() ? nullptr : &*at;
}

std::string all_words(const std::vector<DrawnWords>& all) {
    std::string text;
    for (const DrawnWords& one : all) text += one.window + ": " + one.text + (one.cut ? " [cut]" : "") + "\n";
    return text;
}

}  // namespace fovea::visualizer
