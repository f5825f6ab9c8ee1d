// What the page asks the engine to compute: the part of its URL that changes numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::web {

enum class WeightInit { none, rand, linear };
enum class DropoutVariant { native, mkl, counter };

struct PageState {
    std::vector<std::string> tokens;     // tokens=Your<US>journey<US>...
    WeightInit init = WeightInit::rand;  // init=none|rand|linear
    uint64_t seed = 123;                 // seed=
    uint32_t d_in = 3, d_out = 2;        // din=, dout= (of all heads together)
    uint32_t heads = 1, kv_heads = 1;
    bool stacked = false;    // heads built one after another: other numbers from the same seed
    bool projects = false;   // an output projection with bias
    bool joint = false;      // one projection makes q, k and v (GPT)
    double divisor = 0;      // div=: scores / divisor; 0: sqrt(head width)
    double temperature = 1;  // temp=
    bool causal = false;
    bool renormalise = false;  // mask after the softmax and divide by the row sums
    int64_t window = -1;       // keys to the left that are seen
    bool alibi = false;
    double softcap = 0;
    double dropout_p = 0;  // p=
    uint64_t dropout_seed = 123;
    DropoutVariant variant = DropoutVariant::native;
    std::string mask;  // one character a cell, '0' hidden; empty: none
    // Only for tensors given by the reader.
    uint32_t rows = 0, keys = 0, dim = 0, dim_v = 0;
};

// Unknown keys are skipped, so that an older engine can read a newer page's text. Returns the reason for a
// refusal, empty when the state is good.
std::string parse_page_state(std::string_view text, PageState& out);

}  // namespace fovea::web
