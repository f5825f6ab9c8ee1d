#include "mpi/merge_tree.hpp"

#include <limits>

namespace fovea::mpi {

// Runs on the CPU, wherever the parts were computed, so that the tree's bits are the same on every rank.
Result<Partial> MergeTree::merged(Partial a, Partial b) {
    if (b.lse.empty()) return a;
    if (a.lse.empty()) return b;
    FoveaMergeDesc desc = foveaMergeDesc();
    desc.parts = 2, desc.batch = 1, desc.heads = heads_, desc.len = rows_, desc.dim = dim_;
    const Result<FoveaDeviceProperties> properties = cpu_properties(1);
    if (!properties) return properties.error();
    const Result<Plan> plan = plan_merge(*properties, desc);
    if (!plan) return plan.error();
    Partial result{std::vector<float>(a.o.size()), std::vector<float>(a.lse.size())};
    a.o.insert(a.o.end(), b.o.begin(), b.o.end());
    a.lse.insert(a.lse.end(), b.lse.begin(), b.lse.end());
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {};
    const auto bind = [&](FoveaBinding binding, std::vector<float>& numbers) {
        bindings[binding] = {numbers.data(), numbers.size() * sizeof(float)};
    };
    bind(FOVEA_BIND_X, a.o);
    bind(FOVEA_BIND_PART_LSE, a.lse);
    bind(FOVEA_BIND_Y, result.o);
    bind(FOVEA_BIND_LSE, result.lse);
    if (Result<void> done = run_on_host(*plan, bindings, workspace_); !done) return done.error();
    return result;
}

Result<void> MergeTree::add(uint64_t part, Partial partial) {
    uint32_t level = 0;
    for (uint64_t index = part;; index >>= 1, ++level) {
        const auto sibling = waiting_.find({level, index ^ 1});
        if (sibling == waiting_.end()) {
            bytes_waiting_ += partial.bytes();
            waiting_[{level, index}] = std::move(partial);
            return {};
        }
        Partial other = std::move(sibling->second);
        bytes_waiting_ -= other.bytes();
        waiting_.erase(sibling);
        Result<Partial> both = index & 1 ? merged(std::move(other), std::move(partial))
                                         : merged(std::move(partial), std::move(other));
        if (!both) return both.error();
        partial = std::move(*both);
    }
}

// Merges the remaining parts of the odd ends: one for each bit of their number. The smallest is last in the
// order of parts and is merged first.
Result<Partial> MergeTree::finish() {
    Partial result;
    for (uint32_t level = 0; level < 64 && parts_ >> level; ++level) {
        if (!(parts_ >> level & 1)) continue;
        const auto before = waiting_.find({level, (parts_ >> level) - 1});
        if (before == waiting_.end())
            return Error{FOVEA_INVALID_ARGUMENT, "parts",
                         "a part of the merge is missing; add every part before the result is taken"};
        Result<Partial> both = merged(std::move(before->second), std::move(result));
        if (!both) return both.error();
        result = std::move(*both);
    }
    if (result.lse.empty()) {
        result.o.assign(heads_ * rows_ * dim_, 0.0f);
        result.lse.assign(heads_ * rows_, -std::numeric_limits<float>::infinity());
    }
    return result;
}

}  // namespace fovea::mpi
