#include "problem/bindings.hpp"

#include "problem/status.hpp"

#include <cstdio>
#include <iterator>

namespace fovea {
namespace {

constexpr const char* kNames[] = {"Q",        "K",      "V",      "O",           "MASK",        "BIAS",
                                  "KEEP",     "ALIBI",  "SINKS",  "BATCH_TABLE", "BLOCK_TABLE", "LSE",
                                  "SCORES",   "CAPPED", "MASKED", "WEIGHTS",     "ROW_STATS",   "X",
                                  "Y",        "WEIGHT", "COS",    "SIN",         "POSITIONS",   "TILE_MASS",
                                  "TILE_MAX", "DO",     "DQ",     "DK",          "DV",          "DBIAS",
                                  "DALIBI",   "DSINKS", "DLSE"};
static_assert(std::size(kNames) == FOVEA_BIND_DLSE + 1);

struct FieldName {
    char text[48];
    FieldName(uint32_t binding, const char* part) {
        if (binding == FOVEA_BIND_WORKSPACE)
            snprintf(text, sizeof text, "workspace%s", part);
        else
            snprintf(text, sizeof text, "bindings[%s]%s", binding_name(binding), part);
    }
};

uint64_t alignment_of(const BindingRules& rules, uint32_t binding, const FoveaPlanInfo& info) {
    if (binding == FOVEA_BIND_WORKSPACE && info.workspace_alignment > rules.alignment)
        return info.workspace_alignment;
    if (rules.alignment) return rules.alignment;
    return rules.f16_mask >> binding & 1 ? 2 : 4;
}

bool overlap(const BindingRange& a, const BindingRange& b) {
    return a.given && b.given && a.size && b.size && a.buffer == b.buffer && a.begin < b.begin + b.size &&
           b.begin < a.begin + a.size;
}

FoveaResult check_one(const FoveaPlanInfo& info, const BindingRules& rules, const BindingRange& range,
                      uint32_t binding, FoveaDiag* diag) {
    const uint64_t needed =
        binding == FOVEA_BIND_WORKSPACE ? info.workspace_bytes : info.binding_bytes[binding];
    if (needed == 0) return FOVEA_OK;
    if (!range.given)
        return fail(diag, FOVEA_INVALID_ARGUMENT, FieldName(binding, "").text,
                    "%s is null; the plan needs %llu bytes there", FieldName(binding, "").text,
                    static_cast<unsigned long long>(needed));
    if (range.size < needed)
        return fail(diag, FOVEA_INVALID_ARGUMENT, FieldName(binding, ".size").text,
                    "%s is %llu bytes; the plan needs %llu", FieldName(binding, ".size").text,
                    static_cast<unsigned long long>(range.size), static_cast<unsigned long long>(needed));
    const uint64_t alignment = alignment_of(rules, binding, info);
    if (range.begin % alignment != 0)
        return fail(diag, FOVEA_INVALID_ARGUMENT, FieldName(binding, ".offset").text,
                    "%s is not a multiple of %llu bytes", FieldName(binding, ".offset").text,
                    static_cast<unsigned long long>(alignment));
    if (range.begin > UINT64_MAX - range.size)
        return fail(diag, FOVEA_SIZE_OVERFLOW, FieldName(binding, ".size").text,
                    "%s runs past the end of the address range", FieldName(binding, ".size").text);
    return FOVEA_OK;
}

// Only the bytes that the plan uses count: a larger buffer may hold other things behind them.
BindingRange used_part(const FoveaPlanInfo& info, const BindingRange& range, uint32_t binding) {
    BindingRange used = range;
    used.size = binding == FOVEA_BIND_WORKSPACE ? info.workspace_bytes : info.binding_bytes[binding];
    return used;
}

}  // namespace

const char* binding_name(uint32_t binding) {
    if (binding == FOVEA_BIND_WORKSPACE) return "workspace";
    return binding < std::size(kNames) ? kNames[binding] : "?";
}

FoveaResult check_bindings(const FoveaPlanInfo& info, const BindingRules& rules,
                           const BindingRange (&ranges)[FOVEA_BIND_COUNT], FoveaDiag* diag) {
    const BindingMask workspace_bit = binding_bit(FOVEA_BIND_WORKSPACE);
    const BindingMask used = info.binding_mask | (info.workspace_bytes ? workspace_bit : 0);
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(used >> i & 1)) continue;
        if (FoveaResult r = check_one(info, rules, ranges[i], i, diag)) return r;
    }
    const BindingMask written = info.output_mask | workspace_bit;
    for (uint32_t i = 0; i < FOVEA_BIND_COUNT; ++i) {
        if (!(used >> i & 1) || !(written >> i & 1)) continue;
        for (uint32_t j = 0; j < FOVEA_BIND_COUNT; ++j) {
            if (j == i || !(used >> j & 1)) continue;
            const BindingRange a = used_part(info, ranges[i], i), b = used_part(info, ranges[j], j);
            if (!overlap(a, b)) continue;
            if (rules.in_place && i == FOVEA_BIND_Y && j == FOVEA_BIND_X && a.begin == b.begin) continue;
            return fail(diag, FOVEA_INVALID_ARGUMENT, FieldName(i, "").text, "%s overlaps %s",
                        FieldName(i, "").text, FieldName(j, "").text);
        }
    }
    return FOVEA_OK;
}

}  // namespace fovea
