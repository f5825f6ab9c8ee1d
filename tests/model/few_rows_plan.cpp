// Apart from the tests that call it: a plan's header and the models' both have a Block.
#include "plan/plan.hpp"

namespace fovea {

void without_byte_products(FoveaPlan plan) { plan->cpu.kernels.byte_products = false; }

}  // namespace fovea
