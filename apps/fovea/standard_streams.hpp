// Handles conditions at the start of a program: standard streams that are closed or full, a limit on files.
#pragma once

#include <string>
#include <string_view>

namespace fovea::app {

// True if standard output (1) or standard error (2) is a terminal.
bool is_terminal(int number);

// Makes text safe to print: control characters, unless they are `kept`, and bytes that are not valid UTF-8
// become \x1b and the like.
std::string without_controls(std::string_view text, std::string_view kept = "");

// Prints a text that grows, in UTF-8. On a terminal, control characters other than line feed and tab become
// \x1b and the like, as they would drive it; files and pipes get the text as it is.
class TextPrinter {
  public:
    // `all`: the whole text so far. A character that is not complete yet waits.
    void show(std::string_view all);
    // The rest of it.
    void end(std::string_view all);

  private:
    size_t shown_ = 0;  // bytes
    bool terminal_ = is_terminal(1);
};

// A closed stream would give its number to the next file that is opened, and what is printed would end up in
// there. Fills the gaps so that printing fails instead.
void fill_closed_streams();

// A file that grows beyond the process's limit (ulimit -f) fails to be written, as on a full disk, instead of
// ending the program with a part of it left.
void let_large_files_fail();

// `code`, or that of an error where standard output could not take all that was printed.
int check_standard_output(int code);

}  // namespace fovea::app
