// Weights as files store them are the models' module's, and norms and activations of the page's small models
// nobody waits for. Defined here, they stay out of a module that travels.
#include <fovea/model/strict.hpp>

#include "model/block_run.hpp"

namespace fovea {

F32Tensor BlockLoops::normalised(const Norm& norm, F32Tensor x) const {
    return fovea::normalised(norm, std::move(x));
}
void BlockLoops::activate(Activation activation, F32Tensor& x, const F32Tensor* other) const {
    fovea::activate(activation, x.values, other);
}
void BlockLoops::rotate(F32Tensor& x, const Rope& rope) const { x = strict::rotated(std::move(x), rope); }

Result<void> Runner::stored_linears(std::span<const StoredProduct>, const F32Tensor&) {
    return read_rows({}, 0, {});
}
Result<void> read_rows(const StoredWeight&, uint64_t, std::span<float>) {
    return Error{FOVEA_UNSUPPORTED, "weight", "stored"};
}

}  // namespace fovea
