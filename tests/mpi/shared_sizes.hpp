// Data that a call over ranks shares must have the sizes that any call requires, on every rank; and an
// exception of progress() ends the call on all ranks.
#pragma once

#include <fovea/mpi.hpp>

#include <vector>

namespace fovea::test {

// `expect(what, field, code, change)` runs a call of one head, 64 queries and 64 keys that `change` has
// edited.
template <class Expect>
void expect_sizes_of_shared(const Expect& expect, bool last) {
    using Desc = FoveaAttentionDesc;
    const struct {
        FoveaBinding binding;
        const char* field;
        uint64_t bytes;
        void (*ask)(Desc&);
    } shared[] = {
        {FOVEA_BIND_MASK, "whole[MASK]", 64 * 64,
         [](Desc& d) { d.mask.present = 1, d.mask.type = FOVEA_U8; }},
        {FOVEA_BIND_BIAS, "whole[BIAS]", 64 * 64 * 4, [](Desc& d) { d.bias.present = 1; }},
        {FOVEA_BIND_DROPOUT_MASK, "whole[DROPOUT_MASK]", 64 * 64,
         [](Desc& d) { d.dropout_mask.present = 1, d.dropout_mask.type = FOVEA_U8; }},
        {FOVEA_BIND_ALIBI, "whole[ALIBI]", 4, [](Desc& d) { d.flags |= FOVEA_FLAG_ALIBI; }},
        {FOVEA_BIND_SINKS, "whole[SINKS]", 4, [](Desc& d) { d.flags |= FOVEA_FLAG_SINKS; }},
        {FOVEA_BIND_SEQUENCES, "whole[SEQUENCES]", 16, [](Desc& d) { d.flags |= FOVEA_FLAG_VARLEN; }},
    };
    std::vector<float> room(64 * 64);
    FoveaHostBuffer whole[FOVEA_BIND_COUNT] = {};
    for (const auto& s : shared)
        expect("a shared tensor that is too small", s.field, FOVEA_INVALID_ARGUMENT,
               [&](mpi::ShardedCall& call, RunOptions&) {
                   s.ask(call.desc);
                   whole[s.binding] = {room.data(), s.bytes - (last ? 1 : 0)};
                   call.whole = whole;
               });
    expect("a rank whose progress throws", "", FOVEA_CANCELLED, [&](mpi::ShardedCall&, RunOptions& options) {
        if (last) options.progress = [](double) -> bool { throw 1; };
    });
}

}  // namespace fovea::test
