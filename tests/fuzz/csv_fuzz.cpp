#include <cmath>
#include <cstring>

#include "fuzz_target.hpp"

using namespace fovea;

namespace {

double value_at(const Tensor& tensor, size_t index) {
    double value = 0;
    std::memcpy(&value, tensor.bytes.data() + index * sizeof(value), sizeof(value));
    return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto table = fuzz::at_cost(size, [&] { return parse_csv(fuzz::as_bytes(data, size)); });
    if (!table) {
        fuzz::check_error(table.error());
        return 0;
    }
    const Tensor& values = table->values;
    fuzz::check_tensor(values);
    files::MemorySink sink;
    if (const auto refused = files::encode_csv(values, table->columns, table->rows, sink)) {
        fuzz::check_error(*refused);
        return 0;
    }
    const auto again = parse_csv(sink.bytes());
    fuzz::require(again && again->columns == table->columns && again->rows == table->rows &&
                      again->values.shape == values.shape,
                  "a table survives saving and loading");
    for (size_t i = 0; i < element_count(values); ++i) {
        const double before = value_at(values, i), after = value_at(again->values, i);
        fuzz::require(std::isnan(before) ? std::isnan(after) : before == after,
                      "numbers are written with enough digits");
    }
    return 0;
}
