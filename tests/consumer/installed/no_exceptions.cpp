// All of the C++ face without exceptions and run-time types.
#include <fovea/fovea.hpp>

#include "../attend.h"

int main() {
    const fovea::Result<fovea::Plan> refused =
        fovea::plan_cpu(fovea::Attention().batch(1).heads(3, 2).dims(8));
    if (refused || refused.error().field != "heads_q")
        return std::puts("heads_q 3 over 2 was not refused"), 1;
    return attend();
}
