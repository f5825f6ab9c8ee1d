// Which lanes of a panel see which keys of a block, cut into rectangles.
#if defined(FOVEA_CPU_SEGMENTS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_SEGMENTS_INL_HPP
#undef FOVEA_CPU_SEGMENTS_INL_HPP
#else
#define FOVEA_CPU_SEGMENTS_INL_HPP
#endif

#include "cpu/logits_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// The parts of a block that one panel sees, with the vectors that see them: at most one change at each of a
// vector's four bounds.
struct Segments {
    static constexpr size_t kMax = 4 * kVectors + 1;
    Segment part[kMax];
    bool partial[kMax];  // some lane's range ends inside
    size_t count = 0;
    size_t first_vector = kVectors, last_vector = 0;

    // Ranges grow with the lanes, so a vector's bounds are those of its first and last lane.
    Segments(const Lanes& lanes, size_t vectors, int64_t block_begin, int64_t block_end) {
        int64_t cuts[4 * kVectors + 2];
        size_t cut_count = 0;
        const auto cut = [&](int64_t at) {
            if (at > block_begin && at < block_end) cuts[cut_count++] = at;
        };
        cuts[cut_count++] = block_begin;
        for (size_t v = 0; v < vectors; ++v) {
            const size_t first = v * kLanes, last = first + kLanes - 1;
            cut(lanes.begin[first]);
            cut(lanes.begin[last]);
            cut(lanes.end[first]);
            cut(lanes.end[last]);
        }
        cuts[cut_count++] = block_end;
        // Few and nearly sorted. No two are swapped in memory: compilers make one load of two stores of that,
        // which waits until all earlier stores have left the core.
        for (size_t a = 1; a < cut_count; ++a) {
            const int64_t at = cuts[a];
            size_t b = a;
            for (; b > 0 && at < cuts[b - 1]; --b) cuts[b] = cuts[b - 1];
            cuts[b] = at;
        }
        for (size_t n = 0; n + 1 < cut_count; ++n) {
            if (cuts[n] < cuts[n + 1]) add(lanes, vectors, cuts[n], cuts[n + 1]);
        }
    }

    // How many keys from the first of the block on every vector of a panel meets.
    size_t keys_of_all(int64_t block_begin) const {
        int64_t end = block_begin;
        for (size_t n = 0; n < count && part[n].first_key == end && part[n].vectors() == kVectors; ++n)
            end = part[n].last_key;
        return size_t(end - block_begin);
    }

  private:
    // A single key is cheaper as part of its neighbor, even if that is then checked lane by lane.
    static bool joins(const Segment& a, bool a_partial, const Segment& b, bool b_partial) {
        return a.last_key == b.first_key && a.first_vector == b.first_vector &&
               a.last_vector == b.last_vector && (a_partial == b_partial || (a_partial ? b : a).keys() == 1);
    }
    void add(const Lanes& lanes, size_t vectors, int64_t begin, int64_t end) {
        Segment s{kVectors, 0, begin, end};
        for (size_t v = 0; v < vectors; ++v) {
            if (lanes.begin[v * kLanes] > begin || lanes.end[v * kLanes + kLanes - 1] < end) continue;
            s.first_vector = HWY_MIN(s.first_vector, v);
            s.last_vector = v + 1;
        }
        if (s.first_vector >= s.last_vector) return;
        const size_t first = s.first_vector * kLanes, last = s.last_vector * kLanes - 1;
        partial[count] = lanes.begin[last] > begin || lanes.end[first] < end;
        if (count && joins(part[count - 1], partial[count - 1], s, partial[count])) {
            part[count - 1].last_key = end;
            partial[count - 1] |= partial[count];
            return;
        }
        part[count++] = s;
        first_vector = HWY_MIN(first_vector, s.first_vector);
        last_vector = HWY_MAX(last_vector, s.last_vector);
    }
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
