#include "model/block_steps.hpp"

#include <algorithm>

namespace fovea {
namespace {

using Kind = BlockStep::Kind;
using Role = BlockRoles::Role;
using Stage = std::optional<StageId>;

class StepList {
  public:
    explicit StepList(const Block& block) : block_(block) {}

    void attention(BlockInput input) {
        const AttentionPart& a = block_.attention;
        if (input != BlockInput::heads) project(input == BlockInput::memory);
        for (const auto& [n, name, role, heads] :
             {std::tuple{&a.query_norm, "query_norm", Role::queries, a.heads},
              {&a.key_norm, "key_norm", Role::keys, a.kv_heads}}) {
            norm(*n, name, role, role, {}, heads);
            if (a.rope) add({.kind = Kind::rotate, .from = role, .to = role, .heads = heads});
        }
        add({.kind = Kind::attend, .from = Role::queries, .to = Role::context, .stage = StageId::context});
        if (is_present(a.output))
            linear(Role::context, StageId::output, {{&a.output, Role::part, "output"}});
        else
            copy(Role::context, Role::part);
    }

    void feed_forward() {
        const FeedForward& f = block_.feed_forward;
        const bool parallel = block_.order == BlockOrder::parallel, there = is_present(f.up);
        Role from = Role::stream;
        // In parallel it reads what attention read.
        if (parallel && there && (from = feed_forward_norm()) == Role::stream)
            copy(Role::stream, from = Role::normed);
        grow(block_.attention_output_norm, "attention_output_norm", block_.attention_norm, "attention_norm",
             StageId::attended);
        if (!there) return;
        if (block_.order == BlockOrder::pre) from = feed_forward_norm();
        const bool gated = is_present(f.gate);
        const Role last = gated ? Role::gate : Role::hidden;
        if (gated)
            linear(from, {}, {{&f.up, Role::hidden, "up"}, {&f.gate, Role::gate, "gate"}});
        else
            linear(from, {}, {{&f.up, Role::hidden, "up"}});
        add({.kind = Kind::activate, .from = Role::hidden, .to = last, .stage = StageId::ff_hidden});
        linear(last, StageId::ff_output, {{&f.down, Role::part, "down"}});
        grow(block_.feed_forward_output_norm, "feed_forward_output_norm", block_.feed_forward_norm,
             "feed_forward_norm", StageId::block);
    }

    std::vector<BlockStep> steps;

  private:
    void add(BlockStep step) { steps.push_back(step); }
    void copy(Role from, Role to) { add({.kind = Kind::copy, .from = from, .to = to}); }
    void linear(Role from, Stage stage, std::initializer_list<BlockStep::Product> products) {
        BlockStep step{.kind = Kind::linear, .from = from, .to = (products.end() - 1)->to, .stage = stage};
        step.product_count = uint32_t(products.size());
        std::copy(products.begin(), products.end(), step.all_products.begin());
        add(step);
    }
    // Returns the role that holds the result: `from` if there is no norm.
    Role norm(const Norm& n, const char* name, Role from, Role to, Stage stage, uint32_t heads = 0) {
        if (n.kind == NormKind::none) return from;
        add({.kind = Kind::norm,
             .from = from,
             .to = to,
             .stage = stage,
             .norm = &n,
             .name = name,
             .heads = heads});
        return to;
    }
    Role feed_forward_norm() {
        return norm(block_.feed_forward_norm, "feed_forward_norm", Role::stream, Role::normed,
                    StageId::ff_normed);
    }

    void project(bool with_memory) {
        const AttentionPart& a = block_.attention;
        Role from = Role::stream;
        if (block_.order != BlockOrder::post)
            from = norm(block_.attention_norm, "attention_norm", Role::stream, Role::normed, StageId::normed);
        const Role other = with_memory ? Role::memory : from;
        const BlockStep::Product q{&a.query, Role::queries, "query"}, k{&a.key, Role::keys, "key"},
            v{&a.value, Role::values, "value"};
        if (!is_present(a.query)) {
            copy(from, Role::queries), copy(other, Role::keys), copy(other, Role::values);
        } else if (with_memory) {
            linear(from, {}, {q}), linear(other, {}, {k, v});
        } else {
            linear(from, {}, {q, k, v});
        }
    }

    // Adds a part's result to the stream, with the norm of the part and, in blocks of the order `post`, of
    // the sum.
    void grow(const Norm& of_part, const char* part_name, const Norm& of_sum, const char* sum_name,
              Stage stage) {
        norm(of_part, part_name, Role::part, Role::part, {});
        const bool normed = block_.order == BlockOrder::post && of_sum.kind != NormKind::none;
        add({.kind = block_.residual ? Kind::add : Kind::copy,
             .from = Role::part,
             .to = Role::stream,
             .stage = normed ? Stage() : stage});
        if (normed) norm(of_sum, sum_name, Role::stream, Role::stream, stage);
    }

    const Block& block_;
};

size_t attention_of(std::span<const BlockStep> steps) {
    const auto at = std::find_if(steps.begin(), steps.end(),
                                 [](const BlockStep& step) { return step.kind == Kind::attend; });
    return size_t(at - steps.begin());
}

}  // namespace

std::vector<BlockStep> block_steps(const Block& block, BlockInput input) {
    StepList list(block);
    list.attention(input);
    list.feed_forward();
    return std::move(list.steps);
}

std::span<const BlockStep> before_attention(std::span<const BlockStep> steps) {
    return steps.first(attention_of(steps));
}

std::span<const BlockStep> after_attention(std::span<const BlockStep> steps) {
    return steps.subspan(attention_of(steps) + 1);
}

Result<void> BlockExecutor::walk(const Block& block, std::span<const BlockStep> steps) {
    block_ = &block;
    for (size_t i = 0; i < steps.size(); ++i) {
        const BlockStep& step = steps[i];
        const BlockStep* next = nullptr;
        Result<void> r;
        switch (step.kind) {
            case Kind::copy:
                r = copy(step.from, step.to);
                break;
            case Kind::linear:
                r = linear(step.products(), step.from);
                break;
            case Kind::norm:
                r = norm(*step.norm, step.heads, step.from, step.to);
                break;
            case Kind::rotate:
                r = rotate(*block.attention.rope, step.heads, step.to);
                break;
            case Kind::attend:
                r = attend(block.attention);
                break;
            case Kind::activate:
                r = activate(block.feed_forward.activation, step.to,
                             step.from == step.to ? nullptr : &step.from);
                break;
            case Kind::add:
                // A sum and its norm are one call on devices.
                if (i + 1 < steps.size() && steps[i + 1].kind == Kind::norm && steps[i + 1].from == stream)
                    next = &steps[++i];
                r = add(step.from, next ? next->norm : nullptr, next ? next->to : stream);
                break;
        }
        if (!r) return r;
        // A norm in place leaves nothing of the sum.
        done(step);
        if (next) done(*next);
    }
    return {};
}

}  // namespace fovea
