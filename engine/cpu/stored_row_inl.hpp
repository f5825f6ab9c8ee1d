// Reads the elements of a row of K or V in loops, by type: plain elements, 8-bit floats, or ggml's blocks,
// which are converted to float32 in registers.
#if defined(FOVEA_CPU_STORED_ROW_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_STORED_ROW_INL_HPP
#undef FOVEA_CPU_STORED_ROW_INL_HPP
#else
#define FOVEA_CPU_STORED_ROW_INL_HPP
#endif

#include "cpu/compressed_row_inl.hpp"
#include "cpu/decode_layout.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Rows of elements of type T. bytes(e) is the address of element e, or of its block; vector n of a step
// begins n elements later. Prefetching also uses bytes(e).
template <class T>
struct StoredRow {
    static constexpr bool kBlocks = false;
    static constexpr size_t kFetch = 64 / sizeof(T);  // elements from one line to the next
    // Elements of a step of a loop: a line, or one vector if a longer step would cost registers.
    static constexpr size_t kTurn = kLanes < 8 ? kLanes : HWY_MIN(kFetch, 32);
    struct Scale {};
    static HWY_INLINE size_t bytes(size_t e) { return e * sizeof(T); }
    static HWY_INLINE Scale scale(const char*) { return {}; }
    static HWY_INLINE V load(const char* at, size_t n, Scale) {
        return load_row(reinterpret_cast<const T*>(at) + n);
    }
    static HWY_INLINE float one(const char* row, size_t e) {
        return load_one(reinterpret_cast<const T*>(row) + e);
    }
};

// Only what whole blocks divide into vectors is read in registers, see widens_rows.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
template <class Code, FoveaDtype kType>
struct Float8Row {
    static constexpr bool kBlocks = false;
    static constexpr size_t kFetch = 64, kTurn = 32;
    struct Scale {};
    static HWY_INLINE size_t bytes(size_t e) { return e; }
    static HWY_INLINE Scale scale(const char*) { return {}; }
    static HWY_INLINE V load(const char* at, size_t n, Scale) {
        return load_float8<Code>(reinterpret_cast<const unsigned char*>(at) + n);
    }
    static HWY_INLINE float one(const char* row, size_t e) {
        return compressed_number(reinterpret_cast<const unsigned char*>(row), kType, int64_t(e));
    }
};
template <>
struct StoredRow<E4m3> : Float8Row<E4m3, FOVEA_F8_E4M3> {};
template <>
struct StoredRow<E5m2> : Float8Row<E5m2, FOVEA_F8_E5M2> {};

template <class Block>
struct BlockRow {
    static constexpr bool kBlocks = true;
    static constexpr size_t kTurn = 32, kFetch = Block::kBytes > 32 ? 32 : 64;
    using Scale = V;
    static HWY_INLINE size_t bytes(size_t e) { return e / 32 * Block::kBytes; }
    static HWY_INLINE Scale scale(const char* at) {
        return Block::scale(reinterpret_cast<const unsigned char*>(at));
    }
    static HWY_INLINE V load(const char* at, size_t n, Scale scale) {
        return Block::load(reinterpret_cast<const unsigned char*>(at), n, scale);
    }
};
template <>
struct StoredRow<StoredQ8> : BlockRow<StoredQ8> {};
template <>
struct StoredRow<StoredQ4> : BlockRow<StoredQ4> {};

// Calls body(T()), where StoredRow<T> reads rows of `type`.
template <class Body>
HWY_INLINE void with_row_type(FoveaDtype type, const Body& body) {
    switch (type) {
        case FOVEA_F8_E4M3:
            return body(E4m3());
        case FOVEA_F8_E5M2:
            return body(E5m2());
        case FOVEA_Q8_0:
            return body(StoredQ8());
        case FOVEA_Q4_0:
            return body(StoredQ4());
        default:
            return with_type(type, body);
    }
}
#else
template <class Body>
HWY_INLINE void with_row_type(FoveaDtype type, const Body& body) {
    if constexpr (!kShape.widens_halves) return with_type(type, body);
    if (type == FOVEA_BF16) return body(Bfloat16());
    body(float());
}
#endif

// Loads C vectors from element c on. In blocks they are whole blocks or within one.
template <class T, size_t C>
HWY_INLINE void load_vectors(const char* row, size_t c, V (&to)[C]) {
    using Row = StoredRow<T>;
    constexpr size_t kTogether = Row::kBlocks ? HWY_MIN(C, 32 / kLanes) : C;
    FOVEA_UNROLL for (size_t v = 0; v < C; v += kTogether) {
        const size_t e = c + v * kLanes;
        const size_t within = Row::kBlocks && C * kLanes < 32 ? e % 32 : 0;
        const char* at = row + Row::bytes(e);
        const auto scale = Row::scale(at);
        FOVEA_UNROLL for (size_t n = 0; n < kTogether; ++n) to[v + n] =
            Row::load(at, within + n * kLanes, scale);
    }
}

// Copies the n < kLanes elements from e on, then zeros; not for blocks. Out of line: ends of rows are many
// and rare.
template <class T>
HWY_NOINLINE void copy_part(const char* row, size_t e, size_t n, float* part) {
    for (size_t at = 0; at < kLanes; ++at) part[at] = at < n ? StoredRow<T>::one(row, e + at) : 0.0f;
}
template <class T>
HWY_INLINE V load_part(const char* row, size_t e, size_t n) {
    HWY_ALIGN float part[kLanes] = {};
    if constexpr (!StoredRow<T>::kBlocks) copy_part<T>(row, e, n, part);
    return hn::Load(F(), part);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
