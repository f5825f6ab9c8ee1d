#include "support/composed.hpp"

#include "support/number_types.hpp"
#include "support/random.hpp"
#include "support/wall.hpp"

#include <algorithm>
#include <cstring>

namespace fovea::test {
namespace {

enum Stream : uint64_t { tail_stream = 101, cut_stream, copy_stream, list_stream };

constexpr const char* kNames[] = {"calls", "tail-masks", "key-lists"};

constexpr uint8_t kBroadcastMask = 2, kPaged = 5;

void set_level(Case& c, Feature feature, uint8_t level) { c.levels[uint32_t(feature)] = level; }
void leave_out(Case& c, Feature feature) { set_level(c, feature, 0); }

// Requests the results that a merge needs, of a call whose batch is not packed.
void ask_for_results(Case& c) {
    c.desc.outputs = FOVEA_OUTPUT_O | FOVEA_OUTPUT_LSE;
    set_level(c, Feature::outputs, 1);
    set_level(c, Feature::mask, kBroadcastMask);
}

// ---- tail masks ----

// A short matrix masks the keys past its end; a part with only those keys cannot express that.
void fill_keys(FoveaMatrixDesc& m) {
    if (!m.keys) return;
    m.keys = 0, m.strides = {};
}

// Parts begin at whole pages, and where Philox draws at whole words of it.
uint64_t cut_unit(const FoveaAttentionDesc& d) {
    const bool draws = d.dropout_p > 0 && !d.dropout_mask.present;
    return (d.page_size ? d.page_size : 1) * (draws ? 4 : 1);
}

Case tail_mask_case(uint64_t seed, const CaseLimits& limits) {
    Case c = generate_case(seed, limits);
    while (c.desc.packed_rows_q || c.desc.packed_rows_kv || c.desc.len_q == 0 || c.desc.len_kv < 2)
        c = generate_case(++seed, limits);
    FoveaAttentionDesc& d = c.desc;
    ask_for_results(c);
    // If batch entries end at different places, a part has no single number for the position of its queries.
    if ((d.flags & FOVEA_FLAG_VARLEN) && d.align == FOVEA_ALIGN_BOTTOM_RIGHT)
        d.align = FOVEA_ALIGN_OFFSET, d.q_offset = int64_t(d.len_kv) - int64_t(d.len_q);
    fill_keys(d.bias), fill_keys(d.dropout_mask);
    // A log-sum-exp near -FLT_MAX does not tell of how many keys it is (docs/concepts/numerics.md).
    if (c.values == Values::low_bias) c.values = Values::normal, leave_out(c, Feature::values);
    if (c.bias_pattern == BiasPattern::single_lowest) c.bias_pattern = BiasPattern::single_infinity;
    Random random(hash(c.seed, tail_stream));
    const uint64_t unit = cut_unit(d);
    // Mostly as many keys as there are queries, as drafts are.
    const uint64_t wanted = random.chance(0.6) ? d.len_q : 1 + random.below(d.len_kv);
    c.tail_keys = d.len_kv - std::min(d.len_kv - 1, wanted >= d.len_kv ? 1 : d.len_kv - wanted) / unit * unit;
    d.mask = {};
    d.mask.present = 1, d.mask.type = FOVEA_U8;
    if (random.chance(0.4)) d.mask.batch = d.batch;
    if (random.chance(0.4)) d.mask.heads = d.heads_q;
    c.mask_pattern = MaskPattern::tree;
    settle(c);
    return c;
}

Bytes bytes_from(const Bytes& whole, size_t first, uint64_t count) {
    Bytes part(size_t(count), std::byte{0x7f});
    if (first < whole.size())
        std::copy_n(whole.begin() + ptrdiff_t(first), std::min(part.size(), whole.size() - first),
                    part.begin());
    return part;
}

struct Part {
    FoveaAttentionDesc desc;
    Tensors inputs;
};

// Keys [first, first + count) of a call: the same memory, beginning elsewhere.
class PartOfKeys {
  public:
    PartOfKeys(const Case& c, const Tensors& inputs, uint64_t first, uint64_t count, bool masked)
        : c_(c), whole_(inputs), first_(first), count_(count), masked_(masked) {}

    Result<Part> make() {
        FoveaAttentionDesc& d = part_.desc;
        d = c_.desc;
        d.len_kv = count_;
        d.o_type = FOVEA_F32, d.o_strides = {};
        if (first_) d.flags &= ~uint32_t(FOVEA_FLAG_SINKS);  // they count for one part
        place_queries();
        if (d.dropout_p > 0 && !d.dropout_mask.present) d.first_key += first_;
        const uint64_t mask_first = cut(d.mask), bias_first = cut(d.bias), keep_first = cut(d.dropout_mask);
        if (!masked_) d.mask = {};
        if (!d.page_size)
            d.k_strides = own_strides(d.k_strides, d.dim_qk), d.v_strides = own_strides(d.v_strides, d.dim_v);
        if (d.page_size) d.block_table_pages -= first_ / d.page_size;
        const Result<FoveaPlanInfo> info = plan_info(d);
        if (!info) return info.error();
        const auto take = [&](FoveaBinding binding, size_t first_byte) {
            part_.inputs[binding] = bytes_from(whole_[binding], first_byte, info->binding_bytes[binding]);
        };
        for (const FoveaBinding binding : {FOVEA_BIND_Q, FOVEA_BIND_ALIBI, FOVEA_BIND_SINKS})
            take(binding, 0);
        take(FOVEA_BIND_K, first_byte(d.k_type, d.k_strides));
        take(FOVEA_BIND_V, first_byte(d.v_type, d.v_strides));
        take(FOVEA_BIND_MASK, size_t(mask_first));
        if (masked_ && hash(c_.seed, copy_stream) % 2) copy_mask();
        take(FOVEA_BIND_DROPOUT_MASK, size_t(keep_first));
        if (d.bias.present) take(FOVEA_BIND_BIAS, size_t(bias_first) * dtype_bytes(d.bias.type));
        make_tables(*info);
        return std::move(part_);
    }

  private:
    void place_queries() {
        FoveaAttentionDesc& d = part_.desc;
        if (d.align == FOVEA_ALIGN_BOTTOM_RIGHT) d.q_offset = int64_t(c_.desc.len_kv) - int64_t(d.len_q);
        if (d.align == FOVEA_ALIGN_TOP_LEFT) d.q_offset = 0;
        d.align = FOVEA_ALIGN_OFFSET;
        d.q_offset -= int64_t(first_);
    }

    // Returns the offset of the part's first element; its rows have the strides of the whole.
    uint64_t cut(FoveaMatrixDesc& m) const {
        if (!m.present) return 0;
        m.strides = filled(m.strides, m.heads ? m.heads : 1, m.rows ? m.rows : c_.desc.len_q, c_.desc.len_kv);
        return first_;
    }

    FoveaStrides own_strides(const FoveaStrides& s, uint32_t columns) const {
        return s.batch || s.head || s.row ? s : filled(s, c_.desc.heads_kv, c_.desc.len_kv, columns);
    }
    size_t first_byte(FoveaDtype type, const FoveaStrides& s) const {
        if (part_.desc.page_size) return 0;
        const StorageBlock block = storage_block(type);
        return size_t(first_) * size_t(s.row) / block.numbers * block.bytes;
    }

    // Copies the bytes of only these keys, packed.
    void copy_mask() {
        FoveaMatrixDesc& m = part_.desc.mask;
        Bytes& bytes = part_.inputs[FOVEA_BIND_MASK];
        Bytes rows;
        for (uint64_t b = 0; b < std::max(1u, m.batch); ++b)
            for (uint64_t h = 0; h < std::max(1u, m.heads); ++h)
                for (uint64_t i = 0; i < (m.rows ? m.rows : part_.desc.len_q); ++i) {
                    const auto row = bytes.begin() + ptrdiff_t(b) * m.strides.batch +
                                     ptrdiff_t(h) * m.strides.head + ptrdiff_t(i) * m.strides.row;
                    rows.insert(rows.end(), row, row + ptrdiff_t(count_));
                }
        rows.resize((rows.size() + 3) / 4 * 4, std::byte{0x7f});
        m.strides = {};
        bytes = std::move(rows);
    }

    void make_tables(const FoveaPlanInfo& info) {
        const FoveaAttentionDesc &d = part_.desc, &w = c_.desc;
        if (d.flags & FOVEA_FLAG_VARLEN) {
            std::vector<FoveaSequence> table = c_.table;
            for (FoveaSequence& e : table) {
                const int64_t keys = std::clamp<int64_t>(e.kv_length, 0, int64_t(w.len_kv)) - int64_t(first_);
                e.kv_length = int32_t(std::clamp<int64_t>(keys, 0, int64_t(count_)));
            }
            part_.inputs[FOVEA_BIND_SEQUENCES].resize(table.size() * sizeof table[0]);
            memcpy(part_.inputs[FOVEA_BIND_SEQUENCES].data(), table.data(), table.size() * sizeof table[0]);
        }
        if (!d.page_size) return;
        Bytes& pages = part_.inputs[FOVEA_BIND_BLOCK_TABLE];
        pages.resize(size_t(info.binding_bytes[FOVEA_BIND_BLOCK_TABLE]));
        for (uint32_t b = 0; b < d.batch; ++b)
            memcpy(&pages[size_t(b * d.block_table_pages * 4)],
                   &c_.block_table[size_t(b * w.block_table_pages + first_ / d.page_size)],
                   size_t(d.block_table_pages * 4));
    }

    const Case& c_;
    const Tensors& whole_;
    uint64_t first_, count_;
    bool masked_;
    Part part_{};
};

// Runs the parts and merges them. The first kernel is told as that of all.
Outcome run_tail_mask(Executor& executor, const Case& c, const Tensors& inputs, const ExecuteOptions& options,
                      double budget) {
    const FoveaAttentionDesc& d = c.desc;
    const uint64_t cache = d.len_kv - c.tail_keys;
    // A third of the caches are a prefix that many share and what one text added.
    const uint64_t shared = hash(c.seed, cut_stream) % 3 == 0 ? cache / 2 / cut_unit(d) * cut_unit(d) : 0;
    std::vector<uint64_t> cuts{0};
    for (const uint64_t cut : {shared, cache, d.len_kv})
        if (cut > cuts.back()) cuts.push_back(cut);
    FoveaMergeDesc merge = foveaMergeDesc();
    merge.parts = uint32_t(cuts.size() - 1);
    merge.batch = d.batch, merge.heads = d.heads_q, merge.dim = d.dim_v, merge.len = d.len_q;
    merge.y_type = d.o_type;
    merge.y_strides = d.o_strides;
    Tensors merged;
    FoveaKernel kernel = FOVEA_KERNEL_AUTO;
    for (uint32_t n = 0; n < merge.parts; ++n) {
        const bool masked = cuts[n] >= cache;
        Result<Part> part = PartOfKeys(c, inputs, cuts[n], cuts[n + 1] - cuts[n], masked).make();
        Outcome outcome;
        if (!part) {
            outcome.text = "part " + std::to_string(n) + ": " + part.error().field + ": " + part.error().text;
            return outcome;
        }
        part->desc.max_slice_cost = budget;
        outcome = executor.run(part->desc, part->inputs, options);
        if (!outcome.ran()) return outcome;
        if (n == 0) kernel = outcome.kernel;
        const auto append = [&](FoveaBinding to, const Bytes& bytes) {
            merged[to].insert(merged[to].end(), bytes.begin(), bytes.end());
        };
        append(FOVEA_BIND_X, outcome.outputs[FOVEA_BIND_O]);
        append(FOVEA_BIND_PART_LSE, outcome.outputs[FOVEA_BIND_LSE]);
    }
    Outcome outcome = executor.run_merge(merge, merged, options);
    outcome.outputs[FOVEA_BIND_O] = std::move(outcome.outputs[FOVEA_BIND_Y]);
    outcome.outputs[FOVEA_BIND_Y].clear();
    outcome.kernel = kernel;
    return outcome;
}

// ---- key lists ----

// Whole blocks of keys with constant strides of k and v, so that each block of a head is a page.
Case key_lists_case(uint64_t seed, const CaseLimits& limits) {
    Case c = generate_case(seed, limits);
    while (c.desc.len_q == 0 || c.desc.len_kv == 0) c = generate_case(++seed, limits);
    FoveaAttentionDesc& d = c.desc;
    ask_for_results(c);
    for (const Feature feature : {Feature::align, Feature::causal, Feature::window, Feature::bias,
                                  Feature::alibi, Feature::storage, Feature::dropout, Feature::layout})
        leave_out(c, feature);
    // Heads with separate lists are entries, whose heads begin at the first one's sink.
    if (d.heads_kv > 1) leave_out(c, Feature::sinks);
    d.flags = c.level(Feature::sinks) ? uint32_t(FOVEA_FLAG_SINKS) : 0;
    d.align = FOVEA_ALIGN_TOP_LEFT, d.q_offset = 0;
    d.window_left = d.window_right = 0;
    d.packed_rows_q = d.packed_rows_kv = 0;
    d.block_table_pages = d.page_size = d.page_count = 0;
    d.bias = d.dropout_mask = {};
    d.dropout_p = 0, d.dropout_seed = d.dropout_offset = 0;
    d.first_query = d.first_key = d.first_batch_head = 0;
    d.q_strides = d.o_strides = {};
    c.table.clear(), c.block_table.clear();
    if (c.values == Values::low_bias) c.values = Values::normal, leave_out(c, Feature::values);

    Random random(hash(c.seed, list_stream));
    const uint64_t rows = random.pick<uint64_t>({1, 4, 8, 16, 16, 32});
    const uint64_t blocks = (d.len_kv + rows - 1) / rows;
    d.len_kv = blocks * rows;
    const auto spread = [&](FoveaDtype type, uint32_t columns) {
        const int64_t row = columns + int64_t(storage_block(type).numbers) * random.between(0, 2);
        return FoveaStrides{int64_t(d.heads_kv * d.len_kv) * row, int64_t(d.len_kv) * row, row};
    };
    d.k_strides = spread(d.k_type, d.dim_qk), d.v_strides = spread(d.v_type, d.dim_v);
    d.mask = {};
    d.mask.present = 1, d.mask.type = FOVEA_U8, d.mask.rows = 1;
    d.mask.batch = d.batch, d.mask.heads = d.heads_q;
    c.mask_pattern = MaskPattern::lists;
    set_level(c, Feature::storage, kPaged);
    c.lists.rows = uint32_t(rows);
    const bool even = random.chance(0.3);  // all lists of one length, without a table of lengths
    const uint64_t listed = 1 + random.below(blocks);
    for (uint32_t n = 0; n < d.batch * d.heads_kv; ++n) {
        std::vector<int32_t> order(size_t(blocks), 0);
        for (size_t block = 0; block < order.size(); ++block) order[block] = int32_t(block);
        if (random.chance(0.7))  // else ascending
            for (size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random.below(k)]);
        order.resize(size_t(even ? listed : random.chance(0.1) ? 0 : 1 + random.below(blocks)));
        // Only the first rows of a list's last block may count.
        const uint64_t all = order.size() * rows;
        c.lists.keys.push_back(even || all == 0 ? all : all - random.below(rows));
        c.lists.blocks.push_back(std::move(order));
    }
    settle(c);
    return c;
}

Outcome run_key_lists(Executor& executor, const Case& c, const Tensors& inputs, const ExecuteOptions& options,
                      double budget) {
    FoveaAttentionDesc d = c.desc;
    const KeyLists& lists = c.lists;
    const uint32_t count = d.batch * d.heads_kv, group = d.heads_q / d.heads_kv;
    const uint64_t blocks = d.len_kv / lists.rows,
                   longest = *std::max_element(lists.keys.begin(), lists.keys.end());
    const bool even = std::count(lists.keys.begin(), lists.keys.end(), longest) == ptrdiff_t(count);
    d.mask = {};
    d.batch = count, d.heads_q = group, d.heads_kv = 1;
    d.page_size = lists.rows;
    d.page_count = uint32_t(count * blocks);
    d.k_strides = {d.page_size * d.k_strides.row, d.page_size * d.k_strides.row, d.k_strides.row};
    d.v_strides = {d.page_size * d.v_strides.row, d.page_size * d.v_strides.row, d.v_strides.row};
    d.block_table_pages = (longest + lists.rows - 1) / lists.rows + c.seed % 2;
    d.len_kv = longest;
    if (!even) d.flags |= FOVEA_FLAG_VARLEN;
    d.max_slice_cost = budget;
    Tensors mine = inputs;
    mine[FOVEA_BIND_MASK].clear();
    // After the end of a list the table has invalid entries, or a block that is not on it.
    std::vector<int32_t> table(size_t(count * d.block_table_pages));
    for (size_t n = 0; n < table.size(); ++n) {
        const uint64_t bits = hash(c.seed, list_stream, n);
        table[n] = bits % 2 ? int32_t(bits >> 33) : int32_t((bits >> 33) % d.page_count);
    }
    std::vector<FoveaSequence> entries;
    for (uint32_t n = 0; n < count; ++n) {
        for (size_t k = 0; k < lists.blocks[n].size() && k < d.block_table_pages; ++k)
            table[size_t(n * d.block_table_pages) + k] = int32_t(n * blocks) + lists.blocks[n][k];
        entries.push_back({0, int32_t(d.len_q), 0, int32_t(lists.keys[n])});
    }
    const auto put = [&](FoveaBinding binding, const auto& numbers) {
        mine[binding].resize(numbers.size() * sizeof numbers[0]);
        if (!numbers.empty()) memcpy(mine[binding].data(), numbers.data(), mine[binding].size());
    };
    put(FOVEA_BIND_BLOCK_TABLE, table);
    if (!even) put(FOVEA_BIND_SEQUENCES, entries);
    const Result<FoveaPlanInfo> info = plan_info(d);
    if (!info) {
        Outcome outcome;
        outcome.text = info.error().field + ": " + info.error().text;
        return outcome;
    }
    for (uint32_t n = 0; n < FOVEA_BIND_COUNT; ++n)
        if (!(info->output_mask >> n & 1)) mine[n].resize(size_t(info->binding_bytes[n]), std::byte{0x7f});
    return executor.run(d, mine, options);
}

Outcome run_at(Executor& executor, Composition composition, const Case& c, const Tensors& inputs,
               const ExecuteOptions& options, double budget) {
    return composition == Composition::tail_mask ? run_tail_mask(executor, c, inputs, options, budget)
                                                 : run_key_lists(executor, c, inputs, options, budget);
}

}  // namespace

const char* composition_name(Composition composition) { return kNames[uint32_t(composition)]; }

bool composition_from_name(const char* name, Composition& composition) {
    for (const Composition one : {Composition::tail_mask, Composition::key_lists}) {
        if (strcmp(name, composition_name(one)) != 0) continue;
        composition = one;
        return true;
    }
    return false;
}

Case generate_composed(Composition composition, uint64_t seed, const CaseLimits& limits) {
    if (composition == Composition::tail_mask) return tail_mask_case(seed, limits);
    if (composition == Composition::key_lists) return key_lists_case(seed, limits);
    return generate_case(seed, limits);
}

CaseReport run_composed(Executor& executor, Composition composition, const PreparedCase& prepared) {
    if (composition == Composition::none) return run_case(executor, prepared);
    const RunInputs run = [&](const Tensors& inputs, const ExecuteOptions& options, double budget) {
        return run_at(executor, composition, prepared.c, inputs, options, budget);
    };
    const std::string of = std::string(" --of ") + composition_name(composition);
    return run_case_by(prepared, run, replay_command(prepared.c, executor.name()) + of);
}

}  // namespace fovea::test
