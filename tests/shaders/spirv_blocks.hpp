// Checks that the blocks of a SPIR-V module are consistent, as spirv-val requires.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace fovea::test {

struct SpirvBlocks {
    size_t count = 0, reached = 0;  // blocks, and those that their function's first one leads to
    std::string trouble;            // empty: none

    // Checks that every named block is in the function, every OpPhi names the blocks that lead to its own,
    // and every name or decoration has a defined ID.
    static SpirvBlocks read(std::span<const uint32_t> words);
};

namespace spirv_blocks {

struct Function {
    struct Phi {
        uint32_t block;
        std::set<uint32_t> from;
    };
    std::vector<uint32_t> blocks;
    std::map<uint32_t, std::set<uint32_t>> leads_to, names;  // by block
    std::vector<Phi> phis;

    void judge(SpirvBlocks& all) const {
        const std::set<uint32_t> known(blocks.begin(), blocks.end());
        std::map<uint32_t, std::set<uint32_t>> from;
        for (const auto& [block, targets] : leads_to)
            for (const uint32_t target : targets) from[target].insert(block);
        for (const auto* edges : {&leads_to, &names})
            for (const auto& [block, targets] : *edges)
                for (const uint32_t target : targets)
                    if (!known.contains(target))
                        all.trouble = std::to_string(block) + " names a block that is gone";
        for (const Phi& phi : phis)
            if (phi.from != from[phi.block])
                all.trouble =
                    "a value of " + std::to_string(phi.block) + " comes from blocks that do not lead there";
        std::set<uint32_t> reached;
        std::vector<uint32_t> next(blocks.begin(), blocks.begin() + (blocks.empty() ? 0 : 1));
        while (!next.empty()) {
            const uint32_t block = next.back();
            next.pop_back();
            if (!reached.insert(block).second || !leads_to.contains(block)) continue;
            for (const uint32_t target : leads_to.at(block)) next.push_back(target);
        }
        all.count += blocks.size();
        all.reached += reached.size();
    }
};

}  // namespace spirv_blocks

inline SpirvBlocks SpirvBlocks::read(std::span<const uint32_t> words) {
    // Opcodes, from the SPIR-V specification.
    enum : uint32_t {
        kName = 5,
        kMemberName = 6,
        kFunction = 54,
        kFunctionEnd = 56,
        kDecorate = 71,
        kPhi = 245,
        kLoopMerge = 246,
        kSelectionMerge = 247,
        kLabel = 248,
        kBranch = 249,
        kBranchConditional = 250,
        kSwitch = 251
    };
    SpirvBlocks all;
    spirv_blocks::Function function;
    std::set<uint32_t> described, mentioned;
    uint32_t block = 0;
    for (size_t at = 5; at < words.size();) {
        const uint32_t op = words[at] & 0xffffu, length = words[at] >> 16;
        if (length == 0 || at + length > words.size()) return all.trouble = "an instruction is cut", all;
        const std::span<const uint32_t> o = words.subspan(at + 1, length - 1);
        at += length;
        if (op == kName || op == kMemberName || op == kDecorate) {
            described.insert(o[0]);
            continue;
        }
        for (const uint32_t id : o) mentioned.insert(id);
        if (op == kFunction) function = {};
        if (op == kFunctionEnd) function.judge(all);
        if (op == kLabel) function.blocks.push_back(block = o[0]);
        if (op == kSelectionMerge || op == kLoopMerge) function.names[block].insert(o[0]);
        const uint32_t next = at < words.size() ? words[at] & 0xffffu : 0;
        if (op == kSelectionMerge && next != kBranchConditional && next != kSwitch)
            all.trouble = std::to_string(block) + " begins a selection of one way";
        if (op == kLoopMerge) function.names[block].insert(o[1]);
        if (op == kBranch) function.leads_to[block].insert(o[0]);
        if (op == kBranchConditional) function.leads_to[block].insert({o[1], o[2]});
        if (op == kSwitch)
            for (size_t n = 1; n < o.size(); n += 2) function.leads_to[block].insert(o[n]);
        if (op != kPhi) continue;
        function.phis.push_back({block, {}});
        for (size_t n = 3; n < o.size(); n += 2) function.phis.back().from.insert(o[n]);
    }
    for (const uint32_t id : described)
        if (!mentioned.contains(id)) all.trouble = std::to_string(id) + " is described and not there";
    return all;
}

}  // namespace fovea::test
