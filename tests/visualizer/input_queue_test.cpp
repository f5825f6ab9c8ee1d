// Input that comes in one slow frame means what it would have meant in many quick ones.
#include "input.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace fovea::visualizer {
namespace {

// A context with one text field that has the keyboard, and no window system.
class InputQueueTest : public testing::Test {
  protected:
    InputQueueTest() : context_(ImGui::CreateContext()) {
        ImGui::SetCurrentContext(context_);
        ImGuiIO& io = ImGui::GetIO();
        io.IniFilename = nullptr;
        io.DisplaySize = {400, 300};
        unsigned char* pixels;
        int width, height;
        io.Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
        frame();
        focus_ = true;
        for (int i = 0; i < 3; ++i) frame();
        EXPECT_TRUE(io.WantTextInput) << "the field has the keyboard";
    }
    ~InputQueueTest() override { ImGui::DestroyContext(context_); }

    void frame() {
        ImGui::GetIO().DeltaTime = 0.3f;
        queue_.before_new_frame();
        ImGui::NewFrame();
        queue_.after_new_frame();
        ImGui::Begin("window");
        if (std::exchange(focus_, false)) ImGui::SetKeyboardFocusHere();
        ImGui::InputText("##text", text_, sizeof text_);
        ImGui::End();
        ImGui::EndFrame();
    }

    // Until nothing waits; the number of frames that it took.
    int frames() {
        int count = 0;
        do frame(), ++count;
        while (ImGui::GetCurrentContext()->InputEventsQueue.Size > 0 && count < 100);
        return count;
    }

    void control(bool down) {
        ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, down);
        ImGui::GetIO().AddKeyEvent(ImGuiKey_LeftCtrl, down);
    }

    void key(ImGuiKey which, bool down) { ImGui::GetIO().AddKeyEvent(which, down); }

    void type(const std::string& text) {
        for (const char c : text) {
            const ImGuiKey pressed = c == ' ' ? ImGuiKey_Space : ImGuiKey(ImGuiKey_A + (c - 'a'));
            key(pressed, true);
            ImGui::GetIO().AddInputCharacter(unsigned(c));
            key(pressed, false);
        }
    }

    ImGuiContext* context_;
    InputQueue queue_;
    bool focus_ = false;
    char text_[200] = "";
};

TEST_F(InputQueueTest, a_chord_within_one_frame_is_that_chord) {
    type("one two");
    frames();
    ASSERT_STREQ(text_, "one two");
    ImGui::GetInputTextState(ImGui::GetActiveID())->ClearSelection();
    // Ctrl is let go before A, and all of it waits for one frame.
    control(true), key(ImGuiKey_A, true), control(false), key(ImGuiKey_A, false);
    frames();
    type("three");
    frames();
    EXPECT_STREQ(text_, "three") << "Ctrl+A selected everything, and the word took its place";
}

TEST_F(InputQueueTest, a_chord_whose_control_came_a_frame_before) {
    type("one two");
    frames();
    ImGui::GetInputTextState(ImGui::GetActiveID())->ClearSelection();
    control(true);
    frame();
    key(ImGuiKey_A, true), control(false), key(ImGuiKey_A, false);
    frames();
    type("three");
    frames();
    EXPECT_STREQ(text_, "three");
}

TEST_F(InputQueueTest, a_letter_before_control_is_no_chord) {
    type("on");
    frames();
    ImGui::GetInputTextState(ImGui::GetActiveID())->ClearSelection();
    type("a"), control(true), control(false), type("b");
    frames();
    EXPECT_STREQ(text_, "onab") << "the a selected nothing";
}

TEST_F(InputQueueTest, a_sentence_takes_one_frame) {
    type("the quick brown fox jumps over a lazy dog");
    EXPECT_EQ(frames(), 1);
    EXPECT_STREQ(text_, "the quick brown fox jumps over a lazy dog");
}

}  // namespace
}  // namespace fovea::visualizer
