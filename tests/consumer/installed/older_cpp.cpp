// The C headers in a host of C++11, which linking the library must not turn into a newer C++.
#include "../attend.h"

static_assert(__cplusplus < 201402L, "linking fovea::fovea changed the host's C++ standard");

int main() { return attend(); }
