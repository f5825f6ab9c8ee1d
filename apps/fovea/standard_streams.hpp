// What a program is started with and may find missing: standard streams that are closed or full, a limit on
// files.
#pragma once

namespace fovea::app {

// A closed stream would give its number to the next file that is opened, and what is printed would end up in
// there. Fills the gaps so that printing fails instead.
void fill_closed_streams();

// A file that grows beyond the process's limit (ulimit -f) fails to be written, as on a full disk, instead of
// ending the program with a part of it left.
void let_large_files_fail();

// `code`, or that of a refusal where standard output could not take all that was printed.
int check_standard_output(int code);

}  // namespace fovea::app
