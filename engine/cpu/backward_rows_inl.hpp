// Row access for both passes of the backward kernels: blocks of rows for the tiles, the saved statistics of
// the forward call, and the output of sums.
#if defined(FOVEA_CPU_BACKWARD_ROWS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_BACKWARD_ROWS_INL_HPP
#undef FOVEA_CPU_BACKWARD_ROWS_INL_HPP
#else
#define FOVEA_CPU_BACKWARD_ROWS_INL_HPP
#endif

#include "cpu/attention_call.hpp"
#include "cpu/panel_inl.hpp"
#include "cpu/rows_inl.hpp"

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Rows of `dim` elements, converted to float32 if they have another type. `finite`: 1 yes, 0 no, -1 not
// checked yet.
struct RowBlock {
    const float* data;
    size_t stride;
    int finite;

    // As what sum_block multiplies.
    Columns columns() const { return {data, stride, 0}; }
    bool is_finite(size_t rows, size_t dim) {
        if (finite < 0) finite = all_finite(columns(), rows, dim);
        return finite == 1;
    }
};

// `count` rows from element `first` on, `row` elements apart, copied to `room` where they are of 16 bits, or
// one and the same row again and again.
inline RowBlock fetch_rows(const AttentionCall& call, FoveaBinding binding, FoveaDtype type, int64_t first,
                           int64_t row, size_t count, size_t dim, float* room) {
    if (type == FOVEA_F32 && row > 0) return {call.at<const float>(binding, first), size_t(row), -1};
    for (size_t n = 0; n < count; ++n) {
        const int64_t from = first + int64_t(n) * row;
        with_type(type, [&](auto number) {
            copy_row(call.at<const decltype(number)>(binding, from), dim, room + n * dim);
        });
    }
    return {room, dim, -1};
}

template <class O, class D>
HWY_INLINE float row_product(const O* o, const D* d_o, size_t dim) {
    const F f;
    V sum = hn::Zero(f), size = hn::Zero(f);
    size_t n = 0;
    for (; n + kLanes <= dim; n += kLanes) {
        const V value = load_row(o + n);
        size = hn::Add(size, hn::Abs(value));
        sum = mul_add(value, load_row(d_o + n), sum);
    }
    HWY_ALIGN float lanes[kLanes];
    hn::Store(sum, f, lanes);
    bool zero = hn::AllTrue(f, hn::Eq(size, hn::Zero(f)));
    float total = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) total += lanes[lane];
    for (; n < dim; ++n) {
        zero = zero && load_one(o + n) == 0;
        total += load_one(o + n) * load_one(d_o + n);
    }
    // A row of zeros may be fully masked except for its sink: no gradient may reach its inputs.
    return zero ? 0.0f : total;
}

// Returns delta of fovea.h for query i of head h; i must be less than q_length.
inline float delta_of_row(const BackwardCall& call, const QueryRows& rows, int64_t i, uint32_t h) {
    const AttentionCall& a = call.attention;
    const Problem& p = a.p;
    const int64_t o = query_offset(p, p.o, rows, i, h), d_o = query_offset(p, call.w.d_o, rows, i, h);
    const float product = with_type(p.o_type, [&](auto o_number) {
        return with_type(call.w.do_type, [&](auto do_number) {
            return row_product(a.at<const decltype(o_number)>(FOVEA_BIND_O, o),
                               a.at<const decltype(do_number)>(FOVEA_BIND_DO, d_o), p.dim_v);
        });
    });
    if (!call.w.lse_gradient) return product;
    return product - *a.at<const float>(FOVEA_BIND_DLSE, flat_row(p, rows.b, h, i));
}

// A panel from rows that begin at `from`, lane by lane.
inline void load_panel(const AttentionCall& call, FoveaBinding binding, FoveaDtype type, const int64_t* first,
                       size_t dim, size_t vectors, float* panel) {
    const auto pack = [&](auto* base) {
        decltype(base) from[kPanel];
        for (size_t lane = 0; lane < vectors * kLanes; ++lane) from[lane] = base + first[lane];
        pack_panel(from, dim, vectors, panel);
    };
    with_type(type, [&](auto number) { pack(call.at<const decltype(number)>(binding)); });
}

template <class T>
void store_sums(T* base, const int64_t* first, const float* panel, float factor, size_t dim, size_t rows,
                bool add) {
    if (!add) {
        T* to[kPanel];
        HWY_ALIGN float factors[kPanel];
        for (size_t lane = 0; lane < kPanel; ++lane) factors[lane] = factor;
        for (size_t lane = 0; lane < rows; ++lane) to[lane] = base + first[lane];
        unpack_panel(panel, factors, dim, rows, to);
        return;
    }
    for (size_t lane = 0; lane < rows; ++lane)
        for (size_t e = 0; e < dim; ++e) {
            T* to = base + first[lane] + e;
            store_one(load_one(to) + panel[e * kPanel + lane] * factor, to);
        }
}

// The panel's lanes times `factor` to rows of a gradient, or added to what these hold.
inline void store_panel(const AttentionCall& call, FoveaBinding binding, FoveaDtype type,
                        const int64_t* first, const float* panel, float factor, size_t dim, size_t rows,
                        bool add) {
    with_type(type, [&](auto number) {
        store_sums(call.at<decltype(number)>(binding), first, panel, factor, dim, rows, add);
    });
}

// The gradient of a row that nothing reaches: zeros, unless it is added to.
inline void clear_row(const AttentionCall& call, FoveaBinding binding, FoveaDtype type, int64_t first,
                      size_t dim, bool add) {
    if (add) return;
    const size_t element = dtype_bytes(type);
    memset(call.at<unsigned char>(binding) + size_t(first) * element, 0, dim * element);
}

// `sum` as a float32 gradient of one number.
inline void store_number(const AttentionCall& call, FoveaBinding binding, int64_t at, double sum, bool add) {
    float* to = call.at<float>(binding, at);
    *to = add ? float(double(*to) + sum) : float(sum);
}

// Returns 2^(x log2 e) for the logarithm of a weight, which is at most 0 or slightly more; 0 for lanes in
// `hidden`.
template <class Mask>
HWY_INLINE V weight_of(V logarithm, Mask hidden) {
    const F f;
    const V x = hn::Mul(logarithm, hn::Set(f, kLog2E)), most = hn::Set(f, 126.0f);
    return hn::IfThenZeroElse(hidden, exp2(hn::IfThenElse(hn::Gt(x, most), most, x)));
}

// The slope of the softcap, 1 - (capped / softcap)^2.
HWY_INLINE V cap_slope(V capped, float softcap) {
    const F f;
    const V share = hn::Mul(capped, hn::Set(f, 1.0f / softcap));
    return hn::Sub(hn::Set(f, 1.0f), hn::Mul(share, share));
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
