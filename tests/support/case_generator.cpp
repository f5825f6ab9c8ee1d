#include "support/case_generator.hpp"

#include "problem/problem.hpp"
#include "support/number_types.hpp"
#include "support/random.hpp"

#include <algorithm>

namespace fovea::test {
namespace {

// Levels of a case are drawn first and independently, so that every pair of levels meets; then each part of
// the description is drawn within its level. A level that another one rules out is written back as what was
// drawn.
class Generator {
  public:
    Generator(uint64_t seed, const CaseLimits& limits)
        : random_(seed), formats_(seed ^ 0xbf16), compressed_(seed ^ 0xc0), limits_(limits) {
        c_.seed = seed;
        d_ = foveaAttentionDesc();
        for (uint32_t f = 0; f < kFeatureCount; ++f) c_.levels[f] = uint8_t(draw_level(Feature(f)));
    }

    Case make() {
        draw_types();
        draw_heads();
        draw_lengths();
        draw_dims();
        shrink();
        if (limits_.compressed) draw_compressed();
        draw_positions();
        draw_storage();
        draw_rotation();
        draw_scalars();
        draw_mask();
        draw_bias();
        draw_dropout();
        draw_outputs();
        draw_strides();
        settle(c_);
        return c_;
    }

  private:
    // Features that hide keys are left out more often, so that most rows see something when all are in play.
    // And where there is nothing to do, little can go wrong: empty problems are rarer.
    uint32_t draw_level(Feature f) {
        double share_of_none = 0;
        if (f == Feature::lengths) return random_.chance(0.04) ? 4 : uint32_t(random_.below(4));
        if (f == Feature::mask || f == Feature::window) share_of_none = 0.55;
        if (f == Feature::bias || f == Feature::storage) share_of_none = 0.4;
        if (f == Feature::precision) share_of_none = 0.6;  // its tolerance hides more
        if (random_.chance(share_of_none)) return 0;
        if (f == Feature::types || f == Feature::bias || f == Feature::precision) {
            // The last level is a share of float16's, drawn apart: other draws are what they were without it.
            const uint32_t bf16 = level_count(f) - 1, f16 = f == Feature::bias ? 2 : 1;
            const auto drawn = uint32_t(random_.below(bf16));
            return drawn == f16 && formats_.chance(0.5) ? bf16 : drawn;
        }
        return uint32_t(random_.below(level_count(f)));
    }
    uint8_t level(Feature f) const { return c_.level(f); }
    void set(Feature f, uint8_t value) { c_.levels[uint32_t(f)] = value; }

    void draw_types() {
        const auto half = [&] { return random_.chance(0.5) ? FOVEA_F16 : FOVEA_F32; };
        constexpr FoveaDtype kOfLevel[] = {FOVEA_F32, FOVEA_F16, FOVEA_F32, FOVEA_BF16};
        d_.q_type = d_.k_type = d_.v_type = d_.o_type = kOfLevel[level(Feature::types)];
        if (level(Feature::types) != 2) return;
        d_.q_type = half(), d_.k_type = half(), d_.v_type = half();
        const bool same = d_.q_type == d_.k_type && d_.k_type == d_.v_type;
        d_.o_type = same ? (d_.q_type == FOVEA_F16 ? FOVEA_F32 : FOVEA_F16) : half();
        for (FoveaDtype* type : {&d_.q_type, &d_.k_type, &d_.v_type, &d_.o_type})
            if (*type == FOVEA_F16 && formats_.chance(0.5)) *type = FOVEA_BF16;
    }

    void draw_heads() {
        d_.batch = uint32_t(random_.between(1, 3));
        d_.heads_q = d_.heads_kv = 1;
        if (level(Feature::heads) == 1) d_.heads_q = d_.heads_kv = uint32_t(random_.between(2, 4));
        if (level(Feature::heads) == 2) {
            d_.heads_kv = uint32_t(random_.between(2, 3));
            d_.heads_q = d_.heads_kv * uint32_t(random_.between(2, 4));
        }
        if (level(Feature::heads) == 3) d_.heads_q = uint32_t(random_.between(2, 9));
    }

    void draw_lengths() {
        switch (level(Feature::lengths)) {
            case 0:
                d_.len_q = uint64_t(random_.between(2, 24)), d_.len_kv = uint64_t(random_.between(1, 40));
                return;
            case 1:
                d_.len_q = 1, d_.len_kv = uint64_t(random_.between(1, 300));
                return;
            case 2:
                d_.len_q = random_.pick<uint64_t>({7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65});
                d_.len_kv = random_.pick<uint64_t>({15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129});
                return;
            case 3:
                d_.len_q = uint64_t(random_.between(2, 100)), d_.len_kv = uint64_t(random_.between(130, 700));
                return;
            default:
                d_.len_q = random_.chance(0.4) ? 0 : uint64_t(random_.between(1, 20));
                d_.len_kv = d_.len_q != 0 || random_.chance(0.5) ? 0 : uint64_t(random_.between(1, 20));
        }
    }

    void draw_dims() {
        const auto eights = [&] { return random_.pick<uint32_t>({8, 16, 24, 32, 64, 64, 128}); };
        const auto odd = [&] { return uint32_t(random_.between(4, 79)) * 2 + 1; };
        switch (level(Feature::dims)) {
            case 0:
                d_.dim_qk = d_.dim_v = eights();
                return;
            case 1:
                d_.dim_qk = d_.dim_v = odd();
                return;
            case 2:
                d_.dim_qk = d_.dim_v = uint32_t(random_.between(1, 7));
                return;
            default:
                d_.dim_qk = random_.chance(0.5) ? eights() : odd();
                d_.dim_v = random_.chance(0.5) ? eights() : uint32_t(random_.between(1, 100));
        }
    }

    double flops() const {
        return 2.0 * (d_.dim_qk + d_.dim_v) * d_.batch * d_.heads_q * double(d_.len_q) * double(d_.len_kv);
    }

    // Keeps what the levels are about (ratios of heads, tile edges, kinds of dims) as long as it can.
    void shrink() {
        if (flops() > limits_.flops) d_.batch = 1;
        while (flops() > limits_.flops && d_.heads_q > 2 * d_.heads_kv) d_.heads_q -= d_.heads_kv;
        while (flops() > limits_.flops && d_.dim_qk + d_.dim_v > 40) {
            d_.dim_qk = std::max(1u, d_.dim_qk / 2), d_.dim_v = std::max(1u, d_.dim_v / 2);
        }
        while (flops() > limits_.flops && d_.len_q > 1) d_.len_q = (d_.len_q + 1) / 2;
    }

    // Rows of blocks are whole blocks. Drawn apart, so that the other numbers of a seed stay.
    void draw_compressed() {
        if (!compressed_.chance(0.25)) return;
        const auto draw = [&](FoveaDtype& type, uint32_t& dim) {
            type = compressed_.pick(quantized_types());
            const uint32_t block = storage_block(type).numbers;
            dim = (dim + block - 1) / block * block;
        };
        const bool both = compressed_.chance(0.7), keys = compressed_.chance(0.5);
        if (both || keys) draw(d_.k_type, d_.dim_qk);
        if (both || !keys) draw(d_.v_type, d_.dim_v);
    }

    // Drawn apart, too: caches of blocks, half of which are rotated.
    void draw_rotation() {
        if (d_.packed_rows_q || !(has_scaled_blocks(d_.k_type) || has_scaled_blocks(d_.v_type))) return;
        if (compressed_.chance(0.5)) d_.flags |= FOVEA_FLAG_ROTATED_CACHE;
    }

    void draw_positions() {
        const int64_t lq = int64_t(d_.len_q), lkv = int64_t(d_.len_kv);
        constexpr FoveaAlign kAligns[] = {FOVEA_ALIGN_TOP_LEFT, FOVEA_ALIGN_BOTTOM_RIGHT, FOVEA_ALIGN_OFFSET};
        d_.align = kAligns[level(Feature::align)];
        if (d_.align == FOVEA_ALIGN_OFFSET) {
            d_.q_offset = random_.chance(0.3) ? random_.between(-lq - 2, lkv + 2)
                                              : random_.between(std::min<int64_t>(0, lkv - lq), lkv);
            if (random_.chance(0.05)) d_.q_offset = random_.pick<int64_t>({-1000000, 1000000});
        }
        if (level(Feature::causal)) d_.flags |= FOVEA_FLAG_CAUSAL;
        if (!level(Feature::window)) return;
        d_.flags |= FOVEA_FLAG_WINDOW;
        const auto width = [&] {
            return random_.chance(0.3) ? random_.between(0, 2)
                                       : random_.between(0, std::max<int64_t>(lkv, 1));
        };
        d_.window_left = level(Feature::window) != 2 ? width() : -1;
        d_.window_right = level(Feature::window) != 1 ? width() : -1;
    }

    // A length as a caller might give it: mostly inside, sometimes empty, full or out of range.
    int32_t draw_length(uint64_t full) {
        const double kind = random_.uniform(0, 1);
        if (kind < 0.07) return 0;
        if (kind < 0.3) return int32_t(full);
        if (kind < 0.4) return int32_t(full) + 5;
        if (kind < 0.42) return -3;
        return int32_t(random_.between(int64_t(full) / 4, int64_t(full)));
    }

    void draw_storage() {
        const uint8_t storage = level(Feature::storage);
        if (storage == 0) return;
        const bool packed_q = storage == 2 || storage == 4 || storage == 6;
        const bool packed_kv = storage == 3 || storage == 4, paged = storage >= 5;
        if (!paged || packed_q || random_.chance(0.7)) {
            d_.flags |= FOVEA_FLAG_VARLEN;
            draw_table(packed_q, packed_kv);
        }
        if (paged) draw_pages();
    }

    void draw_table(bool packed_q, bool packed_kv) {
        int64_t next_q = 0, next_kv = 0;
        for (uint32_t b = 0; b < d_.batch; ++b) {
            FoveaSequence e{0, draw_length(d_.len_q), 0, draw_length(d_.len_kv)};
            if (!packed_q && random_.chance(0.7)) e.q_length = int32_t(d_.len_q);
            const int64_t q_used = std::clamp<int64_t>(e.q_length, 0, int64_t(d_.len_q));
            const int64_t kv_used = std::clamp<int64_t>(e.kv_length, 0, int64_t(d_.len_kv));
            if (packed_q) e.q_start = int32_t(next_q += random_.between(0, 2));
            if (packed_kv) e.kv_start = int32_t(next_kv += random_.between(0, 2));
            next_q += q_used, next_kv += kv_used;
            c_.table.push_back(e);
        }
        // The last entry may claim rows past the end, which are cut off.
        if (packed_q) d_.packed_rows_q = uint64_t(std::max<int64_t>(1, next_q + random_.between(-1, 2)));
        if (packed_kv) d_.packed_rows_kv = uint64_t(std::max<int64_t>(1, next_kv + random_.between(-2, 3)));
    }

    void draw_pages() {
        d_.page_size = random_.pick<uint32_t>({1, 3, 8, 16, 16, 32});
        d_.block_table_pages = (d_.len_kv + d_.page_size - 1) / d_.page_size + random_.below(3);
        d_.page_count = uint32_t(std::max<uint64_t>(1, d_.block_table_pages * d_.batch + random_.below(4)));
        // Entries may share pages, as after a common prefix. Some tables lead out of the pool.
        const bool broken = random_.chance(0.3);
        for (uint64_t n = 0; n < d_.batch * d_.block_table_pages; ++n) {
            int32_t page = int32_t(random_.below(d_.page_count));
            if (broken && random_.chance(0.2))
                page = random_.pick<int32_t>({-1, INT32_MIN, int32_t(d_.page_count), INT32_MAX});
            c_.block_table.push_back(page);
        }
    }

    void draw_scalars() {
        c_.values = Values(level(Feature::values));
        if (level(Feature::scale)) {
            d_.scale = float(random_.uniform(0.02, 1.5));
            if (level(Feature::scale) == 2) d_.scale = -d_.scale;
        }
        if (level(Feature::softcap)) d_.softcap = float(random_.uniform(0.5, 40));
        if (level(Feature::alibi)) d_.flags |= FOVEA_FLAG_ALIBI;
        if (level(Feature::sinks)) d_.flags |= FOVEA_FLAG_SINKS;
        if (limits_.precision) set(Feature::precision, limits_.precision);
        d_.precision = FoveaPrecision(level(Feature::precision));
        if (level(Feature::slices)) d_.max_slice_cost = random_.uniform(1e3, 2e5);
        c_.mask_pattern = MaskPattern(random_.below(6));
        c_.bias_pattern = BiasPattern(random_.below(4));
    }

    void broadcast(FoveaMatrixDesc& m) {
        m.batch = random_.chance(0.5) ? 1 : d_.batch;
        m.heads = random_.chance(0.5) ? 1 : d_.heads_q;
        m.rows = random_.chance(0.5) ? 1 : d_.len_q;
    }
    // Rows apart, and axes in another order in memory.
    void spread(FoveaMatrixDesc& m) {
        const int64_t row = int64_t(m.keys ? m.keys : d_.len_kv) + random_.between(0, 5);
        const int64_t rows = int64_t(m.rows ? m.rows : d_.len_q);
        const int64_t batch = rows * row + random_.between(0, 3);
        m.strides = {batch, batch * int64_t(m.batch ? m.batch : 1) + random_.between(0, 7), row};
    }
    uint64_t fewer_keys() {
        const int64_t keys = int64_t(d_.len_kv);
        return keys > 1 ? uint64_t(random_.between(random_.chance(0.2) ? 1 : (keys + 1) / 2, keys - 1)) : 0;
    }

    void draw_mask() {
        FoveaMatrixDesc& m = d_.mask;
        if (!level(Feature::mask)) return;
        m.present = 1;
        m.type = FOVEA_U8;
        m.batch = d_.batch, m.heads = d_.heads_q;
        if (level(Feature::mask) >= 2) broadcast(m);
        if (level(Feature::mask) == 3) m.keys = fewer_keys();
        if (level(Feature::mask) == 4) spread(m);
    }

    void draw_bias() {
        if (c_.values == Values::low_bias && !level(Feature::bias)) set(Feature::bias, 1);
        FoveaMatrixDesc& m = d_.bias;
        if (!level(Feature::bias)) return;
        m.present = 1;
        constexpr uint8_t kBroadcast = 3, kShort = 4, kBf16 = 5;
        const bool other = level(Feature::bias) == kBroadcast || level(Feature::bias) == kShort;
        m.type = level(Feature::bias) == 2 || (other && random_.chance(0.4)) ? FOVEA_F16 : FOVEA_F32;
        if (level(Feature::bias) == kBf16 || (m.type == FOVEA_F16 && other && formats_.chance(0.5)))
            m.type = FOVEA_BF16;
        m.batch = d_.batch, m.heads = d_.heads_q;
        if (other) broadcast(m);
        if (level(Feature::bias) == kShort) m.keys = fewer_keys();
        if (random_.chance(0.3)) spread(m);
    }

    // Half of the calls are parts of longer ones. Drawn apart, so that the other numbers of a seed stay.
    void draw_firsts() {
        Random random(d_.dropout_seed);
        if (random.chance(0.5)) return;
        d_.first_query = random.chance(0.5) ? random.below(100) : random.below(1000000000);
        d_.first_key = 4 * (random.chance(0.5) ? random.below(100) : random.below(250000000));
        d_.first_batch_head = random.chance(0.5) ? random.below(100) : random.below(1000000000);
    }

    void draw_dropout() {
        if (!level(Feature::dropout)) return;
        d_.dropout_p = float(random_.pick<double>({0.1, 0.25, 0.5, 0.9}));
        d_.dropout_seed = random_.next();
        d_.dropout_offset = random_.chance(0.5) ? random_.next() : random_.below(1000);
        if (level(Feature::dropout) == 1) return draw_firsts();
        FoveaMatrixDesc& m = d_.dropout_mask;
        m.present = 1;
        m.type = FOVEA_U8;
        m.batch = d_.batch, m.heads = d_.heads_q;
        if (random_.chance(0.3)) d_.dropout_p = 0;  // drops without scaling up
        if (level(Feature::dropout) != 3) return;
        broadcast(m);
        m.keys = fewer_keys();
        if (random_.chance(0.3)) spread(m);
    }

    void draw_outputs() {
        if (limits_.results_only && (level(Feature::outputs) == 2 || level(Feature::outputs) == 3))
            set(Feature::outputs, limits_.row_stats ? 2 : 1);
        constexpr uint32_t matrices =
            FOVEA_OUTPUT_SCORES | FOVEA_OUTPUT_CAPPED | FOVEA_OUTPUT_MASKED | FOVEA_OUTPUT_WEIGHTS;
        switch (level(Feature::outputs)) {
            case 1:
                d_.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
                return;
            case 2:
                d_.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_ROW_STATS;
                return;
            case 3:
                d_.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE | (matrices & uint32_t(random_.next()));
                if (!(d_.outputs & matrices)) d_.outputs |= FOVEA_OUTPUT_WEIGHTS;
                return;
            case 4:
                if (limits_.results_only) {
                    const bool stats = limits_.row_stats && random_.chance(0.5);
                    d_.outputs = stats ? FOVEA_OUTPUT_ROW_STATS : FOVEA_OUTPUT_LSE;
                    return;
                }
                d_.outputs =
                    random_.pick<uint32_t>({FOVEA_OUTPUT_LSE, FOVEA_OUTPUT_WEIGHTS, FOVEA_OUTPUT_ROW_STATS,
                                            FOVEA_OUTPUT_LSE | FOVEA_OUTPUT_MASKED});
                return;
            default:
                return;
        }
    }

    // Draws strides of a tensor [batch, heads, rows, columns] in the layout of the case. `batch` 0: no batch
    // axis. Gaps between rows are whole blocks of the type.
    FoveaStrides draw_tensor_strides(bool batch, uint32_t heads, uint64_t rows, uint32_t columns,
                                     FoveaDtype type) {
        const int64_t h = heads, l = int64_t(rows), d = columns, unit = storage_block(type).numbers;
        FoveaStrides s{};
        if (level(Feature::layout) == 1) s = {l * h * d, d, h * d};
        if (level(Feature::layout) >= 2) {
            const int64_t row = d + unit * random_.between(0, 5);
            if (random_.chance(0.5)) {
                const int64_t head = l * row + unit * random_.between(0, 9);
                s = {h * head + unit * random_.between(0, 9), head, row};
            } else {
                const int64_t head = row, token = h * row + unit * random_.between(0, 4);
                s = {l * token + unit * random_.between(0, 9), head, token};
            }
        }
        if (!batch) s.batch = 0;
        return s;
    }

    void draw_strides() {
        const uint64_t rows_q = d_.packed_rows_q ? d_.packed_rows_q : d_.len_q;
        const uint64_t rows_kv = d_.page_size        ? d_.page_size
                                 : d_.packed_rows_kv ? d_.packed_rows_kv
                                                     : d_.len_kv;
        const bool batch_q = !d_.packed_rows_q, batch_kv = !d_.packed_rows_kv;
        d_.q_strides = draw_tensor_strides(batch_q, d_.heads_q, rows_q, d_.dim_qk, d_.q_type);
        d_.o_strides = draw_tensor_strides(batch_q, d_.heads_q, rows_q, d_.dim_v, d_.o_type);
        if (level(Feature::layout) == 3 && !d_.page_size) {  // one key and value head for all
            const int64_t batch = batch_kv ? FOVEA_BROADCAST : 0;
            const int64_t k_unit = storage_block(d_.k_type).numbers,
                          v_unit = storage_block(d_.v_type).numbers;
            d_.k_strides = {batch, FOVEA_BROADCAST, d_.dim_qk + k_unit * random_.between(0, 3)};
            d_.v_strides = {batch, FOVEA_BROADCAST, d_.dim_v + v_unit * random_.between(0, 3)};
            return;
        }
        d_.k_strides = draw_tensor_strides(batch_kv, d_.heads_kv, rows_kv, d_.dim_qk, d_.k_type);
        d_.v_strides = draw_tensor_strides(batch_kv, d_.heads_kv, rows_kv, d_.dim_v, d_.v_type);
    }

    Random random_;
    Random formats_;     // which of the two formats of 16 bits
    Random compressed_;  // true if k and v are quantized
    CaseLimits limits_;
    Case c_;
    FoveaAttentionDesc& d_ = c_.desc;
};

}  // namespace

Case generate_case(uint64_t seed, const CaseLimits& limits) { return Generator(seed, limits).make(); }

uint64_t case_seed(uint64_t sweep_seed, uint64_t index) { return hash(sweep_seed, index); }

Case plain_case(uint64_t seed, uint32_t batch, uint32_t heads_q, uint32_t heads_kv, uint64_t len_q,
                uint64_t len_kv, uint32_t dim_qk, uint32_t dim_v) {
    Case c;
    c.seed = seed;
    c.desc = foveaAttentionDesc();
    c.desc.batch = batch;
    c.desc.heads_q = heads_q, c.desc.heads_kv = heads_kv;
    c.desc.len_q = len_q, c.desc.len_kv = len_kv;
    c.desc.dim_qk = dim_qk, c.desc.dim_v = dim_v;
    return c;
}

}  // namespace fovea::test
