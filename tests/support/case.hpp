// One attention call for tests: a description and the contents of its inputs, both made from one seed. Inputs
// are functions of their coordinates, so that a twin with other contents in the unused slots has the same
// values everywhere else.
#pragma once

#include <fovea/fovea.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fovea::test {

// The features that cases vary. The sweep counts levels, and pairs of levels of different features.
enum class Feature : uint32_t {
    types,
    heads,
    lengths,
    dims,
    align,
    causal,
    window,
    mask,
    bias,
    alibi,
    sinks,
    storage,
    softcap,
    scale,
    dropout,
    outputs,
    layout,
    values,
    slices,
    precision,
    count
};
constexpr uint32_t kFeatureCount = uint32_t(Feature::count);

// Name of a feature, and names of its levels, the last followed by a null.
const char* feature_name(Feature feature);
const char* const* feature_levels(Feature feature);
uint32_t level_count(Feature feature);

// How tensors are filled.
enum class Values : uint32_t {
    normal,    // q, k, v near normal
    peaked,    // each row has one key with a logit of 20; v encodes its key
    needle,    // the same, with the keys at tile edges
    equal,     // all keys alike: uniform weights and ties
    large,     // dot products beyond the range of float16
    low_bias,  // like normal; a bias has rows of -FLT_MAX, which hides nothing
};

// Which keys the boolean mask hides.
enum class MaskPattern : uint32_t {
    some,         // one in five
    most,         // seven in ten
    leading,      // a leading block, and single keys
    trailing,     // a trailing block, and single keys
    rows,         // whole rows, at random
    islands,      // blocks of 16 by 16
    every_third,  // rows 1, 4, 7, ...
    tree,         // the last keys are drafts: each row attends to one and its predecessors, and to all others
    lists         // keys that are on no list of their head
};

// The additive bias in addition to values near 2.
enum class BiasPattern : uint32_t { finite, rows_of_infinity, single_infinity, single_lowest };

// Which keys each key/value head of each batch entry reads: blocks of `rows` keys in any order, of which the
// first `keys` count.
struct KeyLists {
    uint32_t rows = 0;
    std::vector<std::vector<int32_t>> blocks;  // [B * Hkv]
    std::vector<uint64_t> keys;
};

using Bytes = std::vector<std::byte>;
// Contents of the bindings, indexed by FoveaBinding; empty where there is none.
using Tensors = std::array<Bytes, FOVEA_BIND_COUNT>;

struct Case {
    uint64_t seed = 0;
    FoveaAttentionDesc desc{};
    std::array<uint8_t, kFeatureCount> levels{};
    Values values = Values::normal;
    MaskPattern mask_pattern = MaskPattern::some;
    BiasPattern bias_pattern = BiasPattern::finite;
    uint64_t tail_keys = 0;  // for MaskPattern::tree
    KeyLists lists;          // for MaskPattern::lists
    std::vector<FoveaSequence> table;
    std::vector<int32_t> block_table;
    std::vector<uint8_t> visible;  // [B, Hq, Lq, Lkv], filled by settle

    uint8_t level(Feature f) const { return levels[uint32_t(f)]; }
};

// One line: the features that are not at their default level.
std::string describe(const Case& c);
// The command that runs this case again on one executor; for cases of generate_case.
std::string replay_command(const Case& c, const std::string& executor);

// ---- the meaning of a case, worked out from the text of fovea.h and from nothing of the engine

struct Entry {  // a batch entry with its lengths clamped
    int64_t q_start, q_length, kv_start, kv_length, offset;
};
Entry entry_of(const Case& c, uint32_t b);

// Fills `visible` after the description, the tables or the patterns were set by hand.
void settle(Case& c);

bool mask_at(const Case& c, uint32_t b, uint32_t h, int64_t i, int64_t j);
float bias_at(const Case& c, uint32_t b, uint32_t h, int64_t i, int64_t j);
bool is_visible(const Case& c, uint32_t b, uint32_t h, int64_t i, int64_t j);
bool sees_nothing(const Case& c, uint32_t b, uint32_t h, int64_t i);
// Rows of o that a call writes: not those past the length of a packed entry.
bool is_written(const Case& c, uint32_t b, int64_t i);

// Strides with the defaults filled in, and first elements of rows, in elements. -1: no such row.
FoveaStrides filled(const FoveaStrides& s, uint64_t heads, uint64_t rows, uint64_t columns);
FoveaStrides q_strides(const Case& c);
FoveaStrides k_strides(const Case& c);
FoveaStrides v_strides(const Case& c);
FoveaStrides o_strides(const Case& c);
int64_t query_element(const Case& c, const FoveaStrides& s, uint32_t b, uint32_t h, int64_t i);
int64_t key_element(const Case& c, const FoveaStrides& s, uint32_t b, uint32_t h_kv, int64_t j);

// ---- contents ----

// The contents of slots that no result may depend on: masked keys, rows past a length, gaps between rows,
// unused pages.
enum class Unused { zero, poison };

// Inputs sized as the plan of `desc` asks (`bytes` is FoveaPlanInfo::binding_bytes).
Tensors make_inputs(const Case& c, const uint64_t (&bytes)[FOVEA_BIND_COUNT], Unused unused);

// The rotation that FOVEA_FLAG_ROTATED_CACHE means, by its definition: each 32 elements times the matrix
// whose element (i, j) is (-1)^popcount(i & j) / sqrt(32).
template <class Number>
void rotate_by_definition(std::vector<Number>& row) {
    std::vector<double> from(row.begin(), row.end());
    for (size_t i = 0; i < row.size(); ++i) {
        double sum = 0;
        for (size_t j = 0; j < 32; ++j)
            sum += std::popcount(i % 32 & j) % 2 ? -from[i / 32 * 32 + j] : from[i / 32 * 32 + j];
        row[i] = Number(sum / std::sqrt(32.0));
    }
}
// True if the call takes a tensor of that type as rotated.
inline bool is_rotated(const FoveaAttentionDesc& d, FoveaDtype type) {
    return (d.flags & FOVEA_FLAG_ROTATED_CACHE) && (type == FOVEA_Q8_0 || type == FOVEA_Q4_0);
}

// Reads and writes one float of a tensor.
float read_float(const Bytes& bytes, FoveaDtype type, int64_t element);
void write_float(Bytes& bytes, FoveaDtype type, int64_t element, float value);

}  // namespace fovea::test
