#include "api/explain_call.hpp"

#include "problem/rotation.hpp"

#include <fovea/dtype.hpp>

#include <cstdio>

namespace fovea {
namespace {

long long number(int64_t n) { return static_cast<long long>(n); }

void explain_positions(const Problem& p, TextSink& text) {
    if (!p.causal && !p.alibi && p.window_left == kUnbounded && p.window_right == kUnbounded) {
        text.line("positions: do not count; every query may see every key");
        return;
    }
    char rules[160] = "";
    int end = 0;
    if (p.causal) end += snprintf(rules + end, sizeof rules - size_t(end), ", causal");
    if (p.window_left != kUnbounded)
        end += snprintf(rules + end, sizeof rules - size_t(end), ", window of %lld before",
                        number(p.window_left));
    if (p.window_right != kUnbounded)
        end += snprintf(rules + end, sizeof rules - size_t(end), ", window of %lld after",
                        number(p.window_right));
    if (p.alibi) end += snprintf(rules + end, sizeof rules - size_t(end), ", ALiBi");
    if (p.align == FOVEA_ALIGN_BOTTOM_RIGHT && p.sequences)
        text.line("positions: query 0 is at key kv_length - q_length of its batch entry (BOTTOM_RIGHT)%s",
                  rules);
    else if (p.align == FOVEA_ALIGN_BOTTOM_RIGHT)
        text.line("positions: query 0 is at key %lld (BOTTOM_RIGHT: len_kv - len_q)%s",
                  number(p.len_kv - p.len_q), rules);
    else if (p.align == FOVEA_ALIGN_OFFSET)
        text.line("positions: query 0 is at key %lld (OFFSET)%s", number(p.q_offset), rules);
    else
        text.line("positions: query 0 is at key 0 (TOP_LEFT)%s", rules);
}

// Along which axes of more than one all indices read one place.
const char* shared_axes(const FoveaStrides& s, bool many_batch, bool many_heads, bool many_rows) {
    const bool batch = many_batch && s.batch == 0, head = many_heads && s.head == 0,
               row = many_rows && s.row == 0;
    if (batch && head) return row ? "; one row for all" : "; one for the whole batch and all heads";
    if (batch) return row ? "; one for the whole batch and all rows" : "; one for the whole batch";
    if (head) return row ? "; one for all heads and rows" : "; one for all heads";
    return row ? "; one row for all of a head" : "";
}

struct Rows {
    const char* batch_name;  // "batch", "pages", "packed"
    int64_t batch, rows;
};

void explain_tensor(const char* name, FoveaDtype type, const Rows& rows, uint32_t heads, uint32_t dim,
                    const FoveaStrides& s, TextSink& text) {
    text.line("%s: %s, %s %lld, heads %u, rows %lld, dim %u; strides %lld, %lld, %lld%s", name,
              dtype_name(type), rows.batch_name, number(rows.batch), heads, number(rows.rows), dim,
              number(s.batch), number(s.head), number(s.row),
              shared_axes(s, rows.batch > 1, heads > 1, rows.rows > 1));
}

void explain_matrix(const char* name, const MatrixView& m, const Problem& p, TextSink& text) {
    if (!m.present) return;
    text.line("%s: %s, keys %lld of %lld; strides %lld, %lld, %lld%s", name, dtype_name(m.type),
              number(m.keys), number(p.len_kv), number(m.strides.batch), number(m.strides.head),
              number(m.strides.row), shared_axes(m.strides, p.batch > 1, p.heads_q > 1, p.len_q > 1));
}

}  // namespace

void explain_call(const Problem& p, TextSink& text) {
    explain_positions(p, text);
    const Rows queries =
        p.packed_rows_q ? Rows{"packed batch", 1, p.packed_rows_q} : Rows{"batch", p.batch, p.len_q};
    const Rows keys = p.page_size        ? Rows{"pages", p.page_count, p.page_size}
                      : p.packed_rows_kv ? Rows{"packed batch", 1, p.packed_rows_kv}
                                         : Rows{"batch", p.batch, p.len_kv};
    explain_tensor("q", p.q_type, queries, p.heads_q, p.dim_qk, p.q, text);
    explain_tensor("k", p.k_type, keys, p.heads_kv, p.dim_qk, p.k, text);
    explain_tensor("v", p.v_type, keys, p.heads_kv, p.dim_v, p.v, text);
    if (wants(p, FOVEA_OUTPUT_O)) explain_tensor("o", p.o_type, queries, p.heads_q, p.dim_v, p.o, text);
    if (p.group > 1) text.line("groups: %u query heads read each key/value head", p.group);
    if (p.rotated_k || p.rotated_v)
        text.line("rotated KV cache: %s, by blocks of %u elements; q and o are rotated to match",
                  !p.rotated_v   ? "k"
                  : !p.rotated_k ? "v"
                                 : "k and v",
                  kRotationBlock);
    if (!p.mask.present && !p.bias.present) text.line("mask and bias: none");
    explain_matrix("mask", p.mask, p, text);
    explain_matrix("bias", p.bias, p, text);
    explain_matrix("keep", p.dropout_mask, p, text);
    if (p.sequences) text.line("lengths: of each batch entry, from SEQUENCES");
}

}  // namespace fovea
