#include "tokenizer/pattern_program.hpp"

#include <algorithm>

#include "tokenizer/pattern_tree.hpp"

namespace fovea {
namespace {

using Node = PatternNode;
using Op = PatternStep::Op;

constexpr size_t kMaxSteps = 50'000;

class ProgramWriter {
  public:
    SplitPattern::Program out;

    // False where it becomes too long.
    bool write(const Node& node) {
        if (++written_ > 4 * kMaxSteps || out.steps.size() > kMaxSteps) return false;
        switch (node.kind) {
            case Node::Kind::set:
                put(Op::take).set = set(node.set);
                return true;
            case Node::Kind::place:
                put(Op::place).place = node.place;
                return true;
            case Node::Kind::sequence:
                return std::all_of(node.parts.begin(), node.parts.end(),
                                   [&](const Node& n) { return write(n); });
            case Node::Kind::choice:
                return write_choice(node);
            case Node::Kind::repeat:
                return write_repeat(node);
            case Node::Kind::look:
            case Node::Kind::atomic: {
                const size_t at = out.steps.size();
                PatternStep& step = put(node.kind == Node::Kind::look ? Op::look : Op::atomic);
                step.behind = node.behind, step.negative = node.negative;
                const auto [least, most] = node.parts[0].width();
                step.least = uint32_t(least), step.most = uint32_t(most);
                if (!write(node.parts[0])) return false;
                put(Op::found);
                out.steps[at].to = here();
                return true;
            }
        }
        return false;
    }
    PatternStep& put(Op op) {
        PatternStep step;
        step.op = op;
        out.steps.push_back(step);
        return out.steps.back();
    }

  private:
    size_t written_ = 0;  // nodes, empty ones included
    uint32_t here() const { return uint32_t(out.steps.size()); }
    uint32_t set(const CodeSet& codes) {
        for (size_t i = 0; i < out.sets.size(); ++i)
            if (out.sets[i].codes.bounds() == codes.bounds()) return uint32_t(i);
        SplitPattern::Program::Set one;
        one.codes = codes;
        for (uint32_t c = 0; c < one.ascii.size(); ++c) one.ascii[c] = codes.has(c);
        out.sets.push_back(std::move(one));
        return uint32_t(out.sets.size() - 1);
    }
    bool write_choice(const Node& node) {
        std::vector<size_t> ends;
        for (size_t i = 0; i < node.parts.size(); ++i) {
            const size_t fork = out.steps.size();
            const bool last = i + 1 == node.parts.size();
            if (!last) put(Op::fork);
            if (!write(node.parts[i])) return false;
            if (last) break;
            ends.push_back(out.steps.size());
            put(Op::jump);
            out.steps[fork].to = here();
        }
        for (const size_t end : ends) out.steps[end].to = here();
        return true;
    }
    bool write_repeat(const Node& node) {
        const Node& body = node.parts[0];
        if (body.kind == Node::Kind::set) {
            PatternStep& step = put(Op::run);
            step.least = node.least, step.most = node.most, step.greedy = node.greedy;
            step.set = set(body.set);
            return true;
        }
        for (uint32_t i = 0; i < node.least; ++i)
            if (!write(body)) return false;
        std::vector<size_t> forks;
        const auto fork = [&] {
            forks.push_back(out.steps.size());
            put(Op::fork).greedy = node.greedy;
        };
        if (node.most == kUnbounded) {
            const uint32_t slot = out.slots++, begin = here();
            fork();
            put(Op::mark).slot = slot;
            if (!write(body)) return false;
            PatternStep& back = put(Op::moved);
            back.slot = slot, back.to = begin;
        } else {
            for (uint32_t i = node.least; i < node.most; ++i) {
                fork();
                if (!write(body)) return false;
            }
        }
        for (const size_t at : forks) out.steps[at].to = here();
        return true;
    }
};

}  // namespace

Result<SplitPattern::Program> read_pattern(std::string_view pattern) {
    const Result<PatternNode> tree = read_pattern_tree(pattern);
    if (!tree) return tree.error();
    ProgramWriter writer;
    if (!writer.write(*tree) || writer.out.steps.size() > kMaxSteps)
        return Error{FOVEA_UNSUPPORTED, "pattern",
                     "the pattern has more than " + std::to_string(kMaxSteps) +
                         " steps when its repeats are written out; at most as many are supported"};
    writer.put(Op::found);
    return std::move(writer.out);
}

}  // namespace fovea
