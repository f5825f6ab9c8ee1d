// [program] Attention on the best device of the machine: 4 queries over 4 equal keys, causal. So each row of
// the result is the mean of the values up to it.
#include <fovea/runtime.hpp>

#include <cstdio>
#include <vector>

int main() {
    // [batch 1, heads 1, rows 4, head size 2], float32.
    std::vector<float> q(4 * 2, 1.0f), k(4 * 2, 1.0f), v = {0, 0, 1, 0, 2, 0, 3, 0}, o(4 * 2);
    fovea::HostBindings bindings = {};
    bindings[FOVEA_BIND_Q] = {q.data(), q.size() * sizeof(float)};
    bindings[FOVEA_BIND_K] = {k.data(), k.size() * sizeof(float)};
    bindings[FOVEA_BIND_V] = {v.data(), v.size() * sizeof(float)};
    bindings[FOVEA_BIND_O] = {o.data(), o.size() * sizeof(float)};

    fovea::Result<fovea::Engine> engine = fovea::Engine::open();
    if (!engine) return std::puts(engine.error().text.c_str()), 1;
    std::printf("%s: %s\n", engine->device().name.c_str(), engine->reason().c_str());

    const fovea::Attention call = fovea::Attention().batch(1).heads(1).lengths(4, 4).dims(2).causal();
    const fovea::Result<fovea::RunReport> report = engine->attention(call, bindings);
    if (!report) return std::puts(report.error().text.c_str()), 1;
    std::printf("%.2f %.2f %.2f %.2f\n", o[0], o[2], o[4], o[6]);  // 0.00 0.50 1.00 1.50
}
// [end program]
