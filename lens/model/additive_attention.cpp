#include <fovea/model/strict.hpp>
#include <fovea/model/transformer.hpp>

namespace fovea {

Result<ModelInput> additive_input(const Linear& query, const Linear& key, const F32Tensor& v,
                                  const F32Tensor& x, const F32Tensor& memory) {
    const auto fits = [](const char* name, uint64_t has, const char* other, uint64_t needed) -> Result<void> {
        if (has == needed) return {};
        return Error{FOVEA_INVALID_ARGUMENT, name,
                     std::string(name) + " is " + std::to_string(has) + " wide; " + other + " needs " +
                         std::to_string(needed)};
    };
    for (const auto& r :
         {fits("x", x.columns(), "query", query.d_in()), fits("memory", memory.columns(), "key", key.d_in()),
          fits("key", key.d_out(), "query", query.d_out()),
          fits("v", v.values.size(), "query", query.d_out())})
        if (!r) return r.error();
    const F32Tensor queries = strict::linear(x, query), keys = strict::linear(memory, key);
    ModelInput input;
    input.q = F32Tensor({1, x.rows(), 1}), input.k = F32Tensor({1, memory.rows(), 1});
    input.v = reshaped(memory, {1, memory.rows(), memory.columns()});
    input.extras.bias_heads = 1, input.extras.bias_rows = x.rows();
    std::vector<float> hidden(v.values.size());
    for (uint64_t i = 0; i < x.rows(); ++i)
        for (uint64_t j = 0; j < memory.rows(); ++j) {
            for (size_t n = 0; n < hidden.size(); ++n)
                hidden[n] = strict::tanh(queries.row(i)[n] + keys.row(j)[n]);
            input.extras.bias.push_back(strict::dot(v.values, hidden));
        }
    return input;
}

}  // namespace fovea
