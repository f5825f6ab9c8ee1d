#include "support/case.hpp"

#include <cstdio>

namespace fovea::test {
namespace {

constexpr const char* kNo[] = {"no", "yes", nullptr};
constexpr const char* kTypes[] = {"f32", "f16", "mixed", "bf16", nullptr};
constexpr const char* kHeads[] = {"one", "equal", "grouped", "shared", nullptr};
constexpr const char* kLengths[] = {"small", "one-query", "tile-edge", "long", "empty", nullptr};
constexpr const char* kDims[] = {"eights", "odd", "tiny", "different", nullptr};
constexpr const char* kAlign[] = {"top-left", "bottom-right", "offset", nullptr};
constexpr const char* kWindow[] = {"none", "left", "right", "both", nullptr};
constexpr const char* kMask[] = {"none", "full", "broadcast", "short", "strided", nullptr};
constexpr const char* kBias[] = {"none", "f32", "f16", "broadcast", "short", "bf16", nullptr};
constexpr const char* kStorage[] = {"dense",       "lengths", "packed-q",       "packed-kv",
                                    "packed-both", "paged",   "paged-packed-q", nullptr};
constexpr const char* kScale[] = {"default", "positive", "negative", nullptr};
constexpr const char* kDropout[] = {"none", "philox", "keep", "keep-short", nullptr};
constexpr const char* kOutputs[] = {"o", "o-lse", "o-lse-stats", "matrices", "without-o", nullptr};
constexpr const char* kLayout[] = {"packed", "blhd", "gaps", "shared", nullptr};
constexpr const char* kValues[] = {"normal", "peaked", "needle", "equal", "large", "low-bias", nullptr};
constexpr const char* kSlices[] = {"whole", "cut", nullptr};
constexpr const char* kPrecision[] = {"f32", "f16-inputs", "bf16-inputs", nullptr};

struct FeatureText {
    const char* name;
    const char* const* levels;
};
constexpr FeatureText kFeatures[kFeatureCount] = {
    {"types", kTypes},   {"heads", kHeads},   {"lengths", kLengths}, {"dims", kDims},
    {"align", kAlign},   {"causal", kNo},     {"window", kWindow},   {"mask", kMask},
    {"bias", kBias},     {"alibi", kNo},      {"sinks", kNo},        {"storage", kStorage},
    {"softcap", kNo},    {"scale", kScale},   {"dropout", kDropout}, {"outputs", kOutputs},
    {"layout", kLayout}, {"values", kValues}, {"slices", kSlices},   {"precision", kPrecision},
};

}  // namespace

const char* feature_name(Feature feature) { return kFeatures[uint32_t(feature)].name; }
const char* const* feature_levels(Feature feature) { return kFeatures[uint32_t(feature)].levels; }
uint32_t level_count(Feature feature) {
    uint32_t count = 0;
    while (feature_levels(feature)[count]) ++count;
    return count;
}

std::string describe(const Case& c) {
    const FoveaAttentionDesc& d = c.desc;
    char shape[160];
    snprintf(shape, sizeof shape, "B=%u Hq=%u Hkv=%u Lq=%llu Lkv=%llu D=%u Dv=%u", d.batch, d.heads_q,
             d.heads_kv, static_cast<unsigned long long>(d.len_q), static_cast<unsigned long long>(d.len_kv),
             d.dim_qk, d.dim_v);
    std::string text = shape;
    for (uint32_t f = 0; f < kFeatureCount; ++f) {
        if (c.levels[f] == 0) continue;
        text += std::string(" ") + kFeatures[f].name + "=" + kFeatures[f].levels[c.levels[f]];
    }
    const std::pair<const char*, FoveaDtype> types[] = {{" k_type=", c.desc.k_type},
                                                        {" v_type=", c.desc.v_type}};
    for (const auto& [name, type] : types)
        if (type > FOVEA_BF16) text += name + std::to_string(type) + (is_rotated(d, type) ? " rotated" : "");
    return text;
}

std::string replay_command(const Case& c, const std::string& executor) {
    char text[160];
    snprintf(text, sizeof text, "fovea_test_semantics --case 0x%016llx --on %s%s",
             static_cast<unsigned long long>(c.seed), executor.c_str(),
             c.desc.precision == FOVEA_PRECISION_F16_INPUTS    ? " --precision f16-inputs"
             : c.desc.precision == FOVEA_PRECISION_BF16_INPUTS ? " --precision bf16-inputs"
                                                               : "");
    return text;
}

}  // namespace fovea::test
