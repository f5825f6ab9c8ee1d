#include "codegen.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace fovea::app {
namespace {

struct Instruction {
    std::string_view op;    // "v_fma_f32"
    std::string_view line;  // with its operands
};

struct Loop {
    size_t begin, end;  // instructions [begin, end]
    std::vector<size_t> children;
};

bool starts(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

bool is_multiply_add(std::string_view op) {
    for (const char* prefix :
         {"v_fma", "v_fmac", "v_fmamk", "v_fmaak", "v_mad_f", "v_mac_f", "v_pk_fma", "v_dot2"})
        if (starts(op, prefix)) return true;
    return false;
}

bool is_transcendental(std::string_view op) {
    for (const char* prefix : {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"})
        if (starts(op, prefix)) return true;
    return false;
}

// Multiply-adds of one lane: both halves of a dual instruction, two of a packed one.
double multiply_adds_of(const Instruction& i) {
    if (starts(i.op, "v_dual_")) {
        double count = 0;
        for (size_t at = i.line.find("v_dual_fma"); at != i.line.npos; at = i.line.find("v_dual_fma", at + 1))
            ++count;
        return count;
    }
    if (!is_multiply_add(i.op)) return 0;
    return starts(i.op, "v_pk_") || starts(i.op, "v_dot2") ? 2 : 1;
}

// The listing: "BB3:" begins a block, "\tv_fma_f32 v1, v2 ; encoding" is an instruction.
struct Listing {
    std::vector<Instruction> code;
    std::map<std::string_view, size_t> blocks;

    explicit Listing(std::string_view text) {
        while (!text.empty()) {
            const size_t end = std::min(text.find('\n'), text.size());
            add(text.substr(0, end));
            text.remove_prefix(std::min(end + 1, text.size()));
        }
    }

    void add(std::string_view line) {
        line = line.substr(0, line.find(';'));
        if (starts(line, "BB") && line.find(':') != line.npos) {
            blocks[line.substr(0, line.find(':'))] = code.size();
            return;
        }
        const size_t first = line.find_first_not_of(" \t");
        if (first == line.npos || line[first] < 'a' || line[first] > 'z') return;
        line.remove_prefix(first);
        code.push_back({line.substr(0, line.find_first_of(" \t")), line});
    }

    // A jump back makes a loop. Loops that begin at one place are one.
    std::vector<Loop> loops() const {
        std::map<size_t, size_t> ends;
        for (size_t i = 0; i < code.size(); ++i) {
            if (!starts(code[i].op, "s_branch") && !starts(code[i].op, "s_cbranch")) continue;
            const size_t name = code[i].line.find("BB");
            if (name == std::string_view::npos) continue;
            std::string_view target = code[i].line.substr(name);
            target = target.substr(0, target.find_first_of(" \t,"));
            const auto block = blocks.find(target);
            if (block == blocks.end() || block->second > i) continue;
            size_t& end = ends[block->second];
            end = std::max(end, i);
        }
        std::vector<Loop> all;
        for (const auto& [begin, end] : ends) all.push_back({begin, end, {}});
        // The smallest loop around another is its parent.
        for (size_t n = 0; n < all.size(); ++n) {
            size_t parent = all.size();
            for (size_t m = 0; m < all.size(); ++m) {
                const bool around = m != n && all[m].begin <= all[n].begin && all[m].end >= all[n].end;
                if (around &&
                    (parent == all.size() || all[m].end - all[m].begin < all[parent].end - all[parent].begin))
                    parent = m;
            }
            if (parent != all.size()) all[parent].children.push_back(n);
        }
        return all;
    }
};

class Counter {
  public:
    Counter(const Listing& listing, uint32_t lanes)
        : listing_(listing), loops_(listing.loops()), lanes_(lanes) {
        for (const Instruction& i : listing.code) dual_ |= starts(i.op, "v_dual_") || starts(i.op, "v_wmma");
    }

    // A kernel on matrices: the smallest loop with products and a barrier, as blocks at the ragged ends of
    // the keys have another. Else the outermost loop with the most products.
    const Loop* main_loop() const {
        const Loop* best = nullptr;
        for (const Loop& loop : loops_) {
            const bool smaller = !best || loop.end - loop.begin < best->end - best->begin;
            if (smaller && has(loop, "v_wmma") && has(loop, "s_barrier")) best = &loop;
        }
        if (best) return best;
        double most = 0;
        for (const Loop& loop : loops_) {
            const double products = products_of(loop);
            const bool larger = best && loop.end - loop.begin > best->end - best->begin;
            if (products > most || (products == most && products > 0 && larger))
                best = &loop, most = products;
        }
        return best;
    }

    void count(const Loop& loop, double weight, const std::vector<double>& expected, LoopMix& to) const {
        size_t next = loop.begin, nth = 0;
        for (const size_t n : loop.children) {
            const Loop& child = loops_[n];
            for (; next < child.begin; ++next) add(listing_.code[next], weight, to);
            next = std::max(next, child.end + 1);
            const double products = products_of(child);
            // Loops with products beyond those expected are for the ragged ends of the keys, or for odd
            // strides.
            double turns = 1;
            if (products > 0 && !expected.empty())
                turns = nth < expected.size() ? expected[nth] / products : 0;
            if (products > 0) ++nth;
            if (turns > 0) count(child, weight * turns, {}, to);
        }
        for (; next <= loop.end; ++next) add(listing_.code[next], weight, to);
    }

  private:
    bool has(const Loop& loop, std::string_view op) const {
        for (size_t i = loop.begin; i <= loop.end; ++i)
            if (starts(listing_.code[i].op, op)) return true;
        return false;
    }

    double products_of(const Loop& loop) const {
        double products = 0;
        for (size_t i = loop.begin; i <= loop.end; ++i) {
            const Instruction& at = listing_.code[i];
            products += starts(at.op, "v_wmma") ? 1e6 : multiply_adds_of(at);
        }
        return products;
    }

    void add(const Instruction& i, double weight, LoopMix& to) const {
        // Cycles of a vector instruction: a SIMD has 32 lanes from RDNA on, 16 before. A 16x16x16 product of
        // matrices takes 32 cycles of 128 multiply-adds; what is transcendental four times as long as the
        // rest.
        const bool old = lanes_ == 64 && !dual_;
        const double each = old ? 4 : lanes_ / 32.0;
        const double fused = multiply_adds_of(i);
        to.multiply_adds += weight * fused;
        if (starts(i.op, "v_wmma")) {
            to.matrix += weight;
            to.issue_cycles += weight * 32, to.unit_cycles += weight * 32;
        } else if (starts(i.op, "v_")) {
            (starts(i.op, "v_dual_") ? to.dual : is_multiply_add(i.op) ? to.fused : to.vector) += weight;
            to.issue_cycles += weight * each * (is_transcendental(i.op) ? 4 : 1);
        } else if (starts(i.op, "ds_")) {
            to.shared += weight;
        } else if (starts(i.op, "buffer_") || starts(i.op, "global_") || starts(i.op, "scratch_")) {
            to.global += weight;
        } else if (starts(i.op, "s_barrier")) {
            to.barriers += weight;
        }
    }

    const Listing& listing_;
    std::vector<Loop> loops_;
    uint32_t lanes_;
    bool dual_ = false;

  public:
    // A kernel without matrices does two multiply-adds a cycle and lane where instructions are dual.
    void judge(LoopMix& mix) const {
        if (mix.matrix > 0) return;
        const bool old = lanes_ == 64 && !dual_;
        mix.unit_cycles = mix.multiply_adds * (old ? 4 : lanes_ / 32.0 / (dual_ ? 2 : 1));
    }
};

}  // namespace

LoopMix mix_of_amd_listing(std::string_view text, uint32_t lanes, const std::vector<double>& expected) {
    const Listing listing(text);
    const Counter counter(listing, lanes);
    LoopMix mix;
    const Loop* loop = counter.main_loop();
    if (!loop) return mix;
    counter.count(*loop, 1, expected, mix);
    counter.judge(mix);
    return mix;
}

}  // namespace fovea::app
