// Prefetches data of a flash task into L2 while exponentials are computed.
#if defined(FOVEA_CPU_FLASH_AHEAD_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_CPU_FLASH_AHEAD_INL_HPP
#undef FOVEA_CPU_FLASH_AHEAD_INL_HPP
#else
#define FOVEA_CPU_FLASH_AHEAD_INL_HPP
#endif

#include "cpu/attention_call.hpp"
#include "cpu/softmax_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

struct FlashAhead {
    Ahead keys, values;  // keys and values of the next block
    Ahead rows;          // rows that a panel will read or write

    // Spreads the lines of keys [begin, end) over the exponentials of the block before, in `panels` panels.
    void to_block(const AttentionCall& call, const QueryRows& query_rows, int64_t begin, int64_t end,
                  size_t panels) {
        const Problem& p = call.p;
        keys = values = Ahead{};
        if (begin >= end || p.page_size) return;
        const auto lines = [&](Ahead& ahead, FoveaBinding binding, const FoveaStrides& s, FoveaDtype type,
                               uint32_t dim) {
            const int64_t first = query_rows.b * s.batch + query_rows.h_kv * s.head +
                                  (query_rows.view.kv_start + begin) * s.row;
            ahead.row = call.at<const char>(binding) + stored_bytes(type, first);
            ahead.stride_bytes = size_t(stored_bytes(type, s.row));
            ahead.row_bytes = size_t(stored_bytes(type, dim));
            ahead.rows = size_t(end - begin);
            return ahead.rows * ((ahead.row_bytes + 63) / 64);
        };
        const size_t all =
            lines(keys, FOVEA_BIND_K, p.k, p.k_type, p.dim_qk) +
            (wants(p, FOVEA_OUTPUT_O) ? lines(values, FOVEA_BIND_V, p.v, p.v_type, p.dim_v) : 0);
        const size_t calls = panels * call.cut.key_block;
        keys.lines_per_call = values.lines_per_call = (all + calls - 1) / calls;
    }

    // Prefetches a panel's rows of q before they are packed, or of o before they are written, if they are
    // contiguous. The panel begins at row `first_row` of the task.
    void to_rows(const AttentionCall& call, const QueryRows& query_rows, FoveaBinding binding,
                 size_t first_row) {
        const Problem& p = call.p;
        rows = Ahead{};
        const bool queries = binding == FOVEA_BIND_Q;
        if (first_row >= query_rows.count(p) || p.group != 1 || (!queries && !wants(p, FOVEA_OUTPUT_O)))
            return;
        const FoveaStrides& s = queries ? p.q : p.o;
        const size_t element = dtype_bytes(queries ? p.q_type : p.o_type);
        const int64_t first =
            query_offset(p, s, query_rows, query_rows.query(p, first_row), query_rows.head(p, first_row));
        rows.row = call.at<const char>(binding) + first * int64_t(element);
        rows.stride_bytes = size_t(s.row) * element;
        rows.row_bytes = (queries ? p.dim_qk : p.dim_v) * element;
        rows.rows = HWY_MIN(kPanel, query_rows.count(p) - first_row);
        rows.lines_per_call = 2;
    }

    // Keys whose exponentials fetch all of `rows`, whole pairs of them.
    size_t keys_beside_rows() const {
        const size_t lines = rows.rows * ((rows.row_bytes + 63) / 64);
        return (lines + 3) / 4 * 2;
    }
    Ahead& of_block() { return keys.rows ? keys : values; }
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
