// Standard input, output and error as a program may find them: closed, full, gone.
#pragma once

namespace fovea::app {

// A closed stream would give its number to the next file that is opened, and what is printed would end up in
// there. Fills the gaps so that printing fails instead.
void fill_closed_streams();

// `code`, or that of a refusal where standard output could not take all that was printed.
int check_standard_output(int code);

}  // namespace fovea::app
