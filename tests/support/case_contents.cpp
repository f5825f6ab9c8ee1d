// Fills a case: decides which slots of the inputs are used, and the values in them.
#include "support/case.hpp"
#include "support/number_types.hpp"
#include "support/random.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

namespace fovea::test {
namespace {

enum Stream : uint64_t {
    q_stream = 11,
    k_stream,
    v_stream,
    sink_stream,
    mask_byte_stream,
    keep_stream,
    poison_stream
};

class Contents {
  public:
    Contents(const Case& c, const uint64_t (&bytes)[FOVEA_BIND_COUNT], Unused unused)
        : c_(c), d_(c.desc), unused_(unused) {
        const FoveaBinding inputs[] = {FOVEA_BIND_Q,          FOVEA_BIND_K,     FOVEA_BIND_V,
                                       FOVEA_BIND_MASK,       FOVEA_BIND_BIAS,  FOVEA_BIND_DROPOUT_MASK,
                                       FOVEA_BIND_ALIBI,      FOVEA_BIND_SINKS, FOVEA_BIND_SEQUENCES,
                                       FOVEA_BIND_BLOCK_TABLE};
        for (const FoveaBinding binding : inputs) tensors_[binding].resize(size_t(bytes[binding]));
        for (const FoveaBinding binding : inputs) fill_unused(binding);
    }

    Tensors make() {
        write_tables();
        for (uint32_t b = 0; b < d_.batch; ++b)
            for (uint32_t h = 0; h < d_.heads_q; ++h)
                for (int64_t i = 0; i < int64_t(d_.len_q); ++i) write_row(b, h, i);
        return std::move(tensors_);
    }

  private:
    FoveaDtype type_of(FoveaBinding binding) const {
        switch (binding) {
            case FOVEA_BIND_Q:
                return d_.q_type;
            case FOVEA_BIND_K:
                return d_.k_type;
            case FOVEA_BIND_V:
                return d_.v_type;
            case FOVEA_BIND_BIAS:
                return d_.bias.type;
            case FOVEA_BIND_MASK:
            case FOVEA_BIND_DROPOUT_MASK:
                return FOVEA_U8;
            default:
                return FOVEA_F32;
        }
    }

    void fill_unused(FoveaBinding binding) {
        Bytes& bytes = tensors_[binding];
        if (unused_ == Unused::zero) return;
        const FoveaDtype type = type_of(binding);
        if (is_compressed(type)) return poison_blocks(binding, bytes, storage_block(type));
        const int64_t elements = int64_t(bytes.size() / dtype_bytes(type));
        for (int64_t n = 0; n < elements; ++n) {
            const uint64_t bits = hash(c_.seed, poison_stream, binding, n);
            if (type == FOVEA_U8) {
                bytes[size_t(n)] = std::byte(bits);
                continue;
            }
            const float poisons[] = {NAN, INFINITY, -INFINITY, largest_number(type)};
            write_float(bytes, type, n, poisons[bits % 4]);
        }
    }

    // Fills bytes of any value (including NaN, infinities and the largest 8-bit floats), and scales that are
    // not finite.
    void poison_blocks(FoveaBinding binding, Bytes& bytes, StorageBlock block) const {
        constexpr uint16_t scales[] = {0x7e00, 0x7c00, 0xfc00, 0x7bff};
        for (size_t n = 0; n < bytes.size(); ++n) {
            const uint64_t bits = hash(c_.seed, poison_stream, binding, n);
            bytes[n] = std::byte(bits % 3 == 0 ? 0x7f - bits / 3 % 4 : bits >> 32);
        }
        for (size_t at = 0; block.numbers > 1 && at + block.bytes <= bytes.size(); at += block.bytes)
            memcpy(&bytes[at], &scales[hash(c_.seed, poison_stream, at) % 4], sizeof scales[0]);
    }

    void write_tables() {
        const auto put = [](Bytes& to, const void* from, size_t size) {
            if (size) memcpy(to.data(), from, std::min(size, to.size()));
        };
        put(tensors_[FOVEA_BIND_SEQUENCES], c_.table.data(), c_.table.size() * sizeof(FoveaSequence));
        put(tensors_[FOVEA_BIND_BLOCK_TABLE], c_.block_table.data(), c_.block_table.size() * 4);
        for (uint32_t h = 0; h < d_.heads_q; ++h) {
            if (!tensors_[FOVEA_BIND_ALIBI].empty())
                write_float(tensors_[FOVEA_BIND_ALIBI], FOVEA_F32, h,
                            std::exp2(-8.0f * float(h + 1) / float(d_.heads_q)));
            if (!tensors_[FOVEA_BIND_SINKS].empty())
                write_float(tensors_[FOVEA_BIND_SINKS], FOVEA_F32, h,
                            3 * bell(hash(c_.seed, sink_stream, h)));
        }
    }

    int64_t matrix_element(const FoveaMatrixDesc& m, uint32_t b, uint32_t h, int64_t i, int64_t j) const {
        const uint64_t batch = m.batch ? m.batch : 1, heads = m.heads ? m.heads : 1;
        const uint64_t rows = m.rows ? m.rows : d_.len_q, keys = m.keys ? m.keys : d_.len_kv;
        const FoveaStrides s = filled(m.strides, heads, rows, keys);
        return (batch > 1 ? b * s.batch : 0) + (heads > 1 ? h * s.head : 0) + (rows > 1 ? i * s.row : 0) + j;
    }

    // The parts of query row (b, h, i) that some result depends on.
    void write_row(uint32_t b, uint32_t h, int64_t i) {
        const Entry e = entry_of(c_, b);
        if (i >= e.q_length) return;
        // These two show hidden keys as well, so that all keys within the length are used.
        const bool all_keys = d_.outputs & (FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED);
        bool sees_any = false;
        for (int64_t j = 0; j < e.kv_length; ++j) {
            const bool visible = is_visible(c_, b, h, i, j);
            write_matrices(b, h, i, j, visible);
            if (!visible && !all_keys) continue;
            sees_any = true;
            write_key(b, h / (d_.heads_q / d_.heads_kv), j, visible);
        }
        if (sees_any) write_query(b, h, i);
    }

    void write_matrices(uint32_t b, uint32_t h, int64_t i, int64_t j, bool visible) {
        const uint64_t bits = hash(c_.seed, mask_byte_stream, b, h, i, j);
        const bool in_mask = d_.mask.present && (!d_.mask.keys || j < int64_t(d_.mask.keys));
        const bool in_bias = d_.bias.present && (!d_.bias.keys || j < int64_t(d_.bias.keys));
        const bool shown = !in_mask || mask_at(c_, b, h, i, j);
        // A hidden key's bias and a masked key's -inf are among the slots that must not count, unless they
        // are what hides the key from this or, by broadcasting, from another row.
        if (in_mask)
            tensors_[FOVEA_BIND_MASK][size_t(matrix_element(d_.mask, b, h, i, j))] =
                shown ? std::byte(1 + bits % 255) : std::byte(0);
        if (in_bias && (visible || bias_at(c_, b, h, i, j) == -INFINITY))
            write_float(tensors_[FOVEA_BIND_BIAS], d_.bias.type, matrix_element(d_.bias, b, h, i, j),
                        bias_at(c_, b, h, i, j));
        if (d_.dropout_mask.present && (!d_.dropout_mask.keys || j < int64_t(d_.dropout_mask.keys)) &&
            visible) {
            const int64_t element = matrix_element(d_.dropout_mask, b, h, i, j);
            const uint64_t kept = hash(c_.seed, keep_stream, element);
            tensors_[FOVEA_BIND_DROPOUT_MASK][size_t(element)] =
                unit(kept) < 0.7 ? std::byte(1 + kept % 255) : std::byte(0);
        }
    }

    // Numbers depend on the place in memory, so that rows which share it agree.
    float key_value(int64_t row, uint32_t n) const {
        const float base = bell(hash(c_.seed, k_stream, c_.values == Values::equal ? 0 : row, n));
        return c_.values == Values::large ? 60 * base : base;
    }
    float value_value(int64_t row, uint32_t n) const {
        const float base = bell(hash(c_.seed, v_stream, row, n));
        const int64_t stride = std::max<int64_t>(1, v_strides_.row);
        if (c_.values == Values::peaked || c_.values == Values::needle)
            return float(row / stride % 509) + base / 8;
        return c_.values == Values::large ? 3000 * base : base;
    }

    void write_key(uint32_t b, uint32_t h_kv, int64_t j, bool with_value) {
        const int64_t k = key_element(c_, k_strides_, b, h_kv, j);
        if (k < 0) return;
        if (is_new(keys_done_, k)) {
            row_.resize(d_.dim_qk);
            for (uint32_t n = 0; n < d_.dim_qk; ++n) row_[n] = key_value(k, n);
            if (is_rotated(d_, d_.k_type)) rotate_by_definition(row_);
            store_numbers(tensors_[FOVEA_BIND_K].data(), d_.k_type, k, row_.data(), d_.dim_qk);
        }
        const int64_t v = key_element(c_, v_strides_, b, h_kv, j);
        if (with_value && is_new(values_done_, v)) {
            row_.resize(d_.dim_v);
            for (uint32_t n = 0; n < d_.dim_v; ++n) row_[n] = value_value(v, n);
            if (is_rotated(d_, d_.v_type)) rotate_by_definition(row_);
            store_numbers(tensors_[FOVEA_BIND_V].data(), d_.v_type, v, row_.data(), d_.dim_v);
        }
    }

    // Rows are written at first use; most keys are used by many queries.
    static bool is_new(std::vector<bool>& done, int64_t element) {
        if (done.size() <= size_t(element)) done.resize(size_t(element) + 1);
        if (done[size_t(element)]) return false;
        return done[size_t(element)] = true;
    }

    // The key that a peaked row looks for; -1 where it sees none.
    int64_t target_key(uint32_t b, uint32_t h, int64_t i) const {
        const int64_t keys = entry_of(c_, b).kv_length;
        if (keys == 0) return -1;
        const uint64_t bits = hash(c_.seed, q_stream, b, h, i);
        int64_t j = int64_t(bits % uint64_t(keys));
        if (c_.values == Values::needle) {
            constexpr int64_t edges[] = {0, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256};
            j = bits % 3 == 0 ? keys - 1 : std::min(edges[bits / 3 % 11], keys - 1);
        }
        for (int64_t step = 0; step < keys; ++step)
            if (const int64_t at = (j + step) % keys; is_visible(c_, b, h, i, at)) return at;
        return -1;
    }

    void write_query(uint32_t b, uint32_t h, int64_t i) {
        const int64_t q = query_element(c_, q_strides(c_), b, h, i);
        const bool peaked = c_.values == Values::peaked || c_.values == Values::needle;
        const int64_t target = peaked ? target_key(b, h, i) : -1;
        const int64_t k =
            target < 0 ? -1 : key_element(c_, k_strides_, b, h / (d_.heads_q / d_.heads_kv), target);
        double length = 0;
        for (uint32_t n = 0; k >= 0 && n < d_.dim_qk; ++n)
            length += double(key_value(k, n)) * key_value(k, n);
        const double scale = d_.scale != 0 ? d_.scale : 1 / std::sqrt(double(d_.dim_qk));
        const double factor = std::clamp(20 / (scale * std::max(length, 0.01)), -500.0, 500.0);
        for (uint32_t n = 0; n < d_.dim_qk; ++n) {
            float x = bell(hash(c_.seed, q_stream, q, n));
            if (c_.values == Values::large) x *= 60;
            if (k >= 0) x = float(key_value(k, n) * factor);
            write_float(tensors_[FOVEA_BIND_Q], d_.q_type, q + n, x);
        }
    }

    const Case& c_;
    const FoveaAttentionDesc& d_;
    Unused unused_;
    const FoveaStrides k_strides_ = k_strides(c_), v_strides_ = v_strides(c_);
    std::vector<bool> keys_done_, values_done_;  // by first element
    std::vector<float> row_;
    Tensors tensors_;
};

}  // namespace

float read_float(const Bytes& bytes, FoveaDtype type, int64_t element) {
    return load_number(bytes.data(), type, element);
}

void write_float(Bytes& bytes, FoveaDtype type, int64_t element, float value) {
    store_number(bytes.data(), type, element, value);
}

Tensors make_inputs(const Case& c, const uint64_t (&bytes)[FOVEA_BIND_COUNT], Unused unused) {
    return Contents(c, bytes, unused).make();
}

}  // namespace fovea::test
