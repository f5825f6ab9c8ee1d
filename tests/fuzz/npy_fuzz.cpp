#include "fuzz_target.hpp"

using namespace fovea;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto tensor = fuzz::at_cost(size, [&] { return parse_npy(fuzz::as_bytes(data, size)); });
    if (!tensor) {
        fuzz::check_error(tensor.error());
        return 0;
    }
    fuzz::check_tensor(tensor.value());
    files::MemorySink sink;
    fuzz::require(!files::encode_npy(tensor.value(), sink), "what was loaded can be saved");
    const auto again = parse_npy(sink.bytes());
    fuzz::require(again && fuzz::same(tensor.value(), again.value()), "a tensor survives saving and loading");
    return 0;
}
