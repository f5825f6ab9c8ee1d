// The keys of a split, block by block: the places of their rows, the keys that the block table masks, and the
// order of use.
#if defined(FOVEA_CPU_DECODE_BLOCK_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_DECODE_BLOCK_INL_HPP
#undef FOVEA_CPU_DECODE_BLOCK_INL_HPP
#else
#define FOVEA_CPU_DECODE_BLOCK_INL_HPP
#endif

#include "cpu/decode_layout.hpp"
#include "cpu/row_queue_inl.hpp"
#include "cpu/rows_inl.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Keys up to the next multiple of kDecodeBlock.
struct DecodeBlock {
    int64_t begin, end;
    const void** k;  // rows, in the order of their use
    const void** v;
    uint8_t* hidden;  // by key; null: the block table hides none
    bool plain;       // every row attends to every key, and logits are the products times the scale
    size_t keys() const { return size_t(end - begin); }
};

class DecodeBlocks {
  public:
    // `scratch` is laid out as `layout` says; its lanes are set, and zeros are where they belong, before the
    // first block is looked for. `general`: logits are more than scaled products.
    DecodeBlocks(const AttentionCall& call, const QueryRows& rows, const DecodeLayout& layout,
                 unsigned char* scratch, bool general)
        : call_(call), p_(call.p), rows_(rows), layout_(layout), base_(scratch), general_(general) {}

    // Describes the keys [begin, end). `place_of` 0 or 1: where the pointers go, so that two blocks can be
    // known at a time.
    DecodeBlock find(int64_t begin, int64_t end, size_t place_of) const {
        constexpr int64_t kStep = int64_t(kDecodeBlock);
        const size_t at = place_of * kDecodeBlock;
        DecodeBlock block{begin,
                          std::min(begin / kStep * kStep + kStep, end),
                          place<const void*>(layout_.keys) + at,
                          place<const void*>(layout_.values) + at,
                          base_ + layout_.hidden + at,
                          false};
        if (begin >= end) return block.end = begin, block;
        if (!find_hidden(block)) block.hidden = nullptr;
        block.plain = is_plain(block);
        find_rows(FOVEA_BIND_K, p_.k, p_.k_type, block, block.k);
        if (wants(p_, FOVEA_OUTPUT_O)) find_rows(FOVEA_BIND_V, p_.v, p_.v_type, block, block.v);
        return block;
    }

    RowQueue::Block keys_of(const DecodeBlock& block) const {
        return {block.k, block.keys(), size_t(stored_bytes(p_.k_type, p_.dim_qk))};
    }
    RowQueue::Block values_of(const DecodeBlock& block) const {
        return {block.v, block.keys(), size_t(stored_bytes(p_.v_type, p_.dim_v))};
    }

  private:
    static constexpr size_t kPlaces = kDecodePlaces, kPlace = kDecodeBlock / kPlaces;

    template <class T>
    T* place(uint64_t offset) const {
        return reinterpret_cast<T*>(base_ + offset);
    }

    KeyRun run_of(const FoveaStrides& s, int64_t j, const DecodeBlock& block) const {
        return key_run(call_, s, rows_.b, rows_.h_kv, rows_.view, j, block.end);
    }

    // True if the block table hides some.
    bool find_hidden(const DecodeBlock& block) const {
        if (!p_.page_size) return false;
        bool hidden = false;
        for (int64_t j = block.begin; j < block.end;) {
            const KeyRun run = run_of(p_.k, j, block);
            memset(block.hidden + (j - block.begin), run.inside ? 0 : 1, size_t(run.count));
            hidden |= !run.inside;
            j += run.count;
        }
        return hidden;
    }

    bool is_plain(const DecodeBlock& block) const {
        if (general_ || p_.mask.present || p_.dropout || block.hidden) return false;
        const Lanes& lanes = *place<Lanes>(layout_.lanes);
        for (size_t lane = 0; lane < rows_.count(p_); ++lane)
            if (lanes.begin[lane] > block.begin || lanes.end[lane] < block.end) return false;
        return true;
    }

    void find_rows(FoveaBinding binding, const FoveaStrides& s, FoveaDtype type, const DecodeBlock& block,
                   const void** to) const {
        const bool in_turn = block.plain && block.keys() == kDecodeBlock;
        for (int64_t j = block.begin; j < block.end;) {
            const KeyRun run = run_of(s, j, block);
            const char* row = run.inside ? call_.at<const char>(binding) + stored_bytes(type, run.first)
                                         : place<const char>(layout_.zeros);
            const int64_t step = run.inside ? stored_bytes(type, s.row) : 0;
            if (in_turn && run.count == int64_t(kDecodeBlock)) return find_in_turn(row, step, to);
            for (const int64_t end = j + run.count; j < end; ++j, row += step) {
                const size_t n = size_t(j - block.begin);
                to[in_turn ? n % kPlace * kPlaces + n / kPlace : n] = row;
            }
        }
    }

    // The same for a whole block of one run, several rows to an instruction.
    static void find_in_turn(const char* row, int64_t step, const void** to) {
        const int64_t place_step = step * int64_t(kPlace);
        for (size_t n = 0; n < kPlace; ++n, row += step, to += kPlaces) {
            FOVEA_UNROLL for (size_t place = 0; place < kPlaces; ++place) to[place] =
                row + int64_t(place) * place_step;
        }
    }

    const AttentionCall& call_;
    const Problem& p_;
    const QueryRows& rows_;
    const DecodeLayout& layout_;
    unsigned char* base_;
    const bool general_;
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
