#include "mutations.hpp"

#include <algorithm>
#include <iterator>

namespace fovea::fuzz {
namespace {

// Numbers near which code goes wrong: ends of ranges, and powers of two.
uint64_t telling_number(test::Random& random) {
    const uint64_t power = uint64_t{1} << random.below(64);
    switch (random.below(6)) {
        case 0:
            return random.below(17);
        case 1:
            return 0 - random.below(17);
        case 2:
            return power;
        case 3:
            return power - 1;
        case 4:
            return power + random.below(8);
        default:
            return random.next();
    }
}

void replace_number(Input& input, test::Random& random) {
    const size_t width = size_t{1} << random.below(4);
    const size_t at = random.below(input.size());
    const uint64_t number = telling_number(random);
    for (size_t i = 0; i < width && at + i < input.size(); ++i)
        input[at + i] = static_cast<uint8_t>(number >> (8 * i));
}

void copy_range(Input& input, test::Random& random) {
    const size_t from = random.below(input.size()), to = random.below(input.size());
    const size_t count = 1 + random.below(std::min<size_t>(input.size() - std::max(from, to), 32));
    const Input range(input.begin() + ptrdiff_t(from), input.begin() + ptrdiff_t(from + count));
    std::copy(range.begin(), range.end(), input.begin() + ptrdiff_t(to));
}

void insert_bytes(Input& input, size_t room, test::Random& random) {
    const size_t count = 1 + random.below(std::min<size_t>(room, 16));
    const auto byte = static_cast<uint8_t>(random.next());
    const bool alike = random.chance(0.5);
    Input range(count, byte);
    if (!alike) std::generate(range.begin(), range.end(), [&] { return uint8_t(random.next()); });
    input.insert(input.begin() + ptrdiff_t(random.below(input.size() + 1)), range.begin(), range.end());
}

void erase_bytes(Input& input, test::Random& random) {
    const size_t at = random.below(input.size());
    const size_t count = 1 + random.below(std::min<size_t>(input.size() - at, 16));
    input.erase(input.begin() + ptrdiff_t(at), input.begin() + ptrdiff_t(at + count));
}

}  // namespace

void change(Input& input, size_t most_bytes, test::Random& random) {
    const size_t room = most_bytes - std::min(most_bytes, input.size());
    const uint64_t way = input.empty() ? 0 : random.below(8);
    if (way == 0 && room > 0) return insert_bytes(input, room, random);
    if (input.empty()) return;
    switch (way) {
        case 1:
            return erase_bytes(input, random);
        case 2:
            return copy_range(input, random);
        case 3:
            input[random.below(input.size())] ^= uint8_t(1u << random.below(8));
            return;
        case 4:
            input[random.below(input.size())] = uint8_t(random.next());
            return;
        default:
            return replace_number(input, random);
    }
}

void splice(Input& input, const Input& other, test::Random& random) {
    input.resize(random.below(input.size() + 1));
    const size_t from = random.below(other.size() + 1);
    input.insert(input.end(), other.begin() + ptrdiff_t(from), other.end());
}

}  // namespace fovea::fuzz
