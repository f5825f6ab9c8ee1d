// Structs of callers that are older or newer than the library: read as far as they go, never written past
// their end.
#include "problem/abi_fields.hpp"

#include <fovea/fovea.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

namespace fovea::test {
namespace {

// A struct of `size` bytes with bytes after its end filled in.
template <class T>
class Sized {
  public:
    Sized(const T& value, size_t size, unsigned char behind)
        : bytes_(std::max(size, sizeof(T)) + 64, behind) {
        memcpy(bytes_.data(), &value, std::min(size, sizeof(T)));
        const auto stated = static_cast<uint32_t>(size);
        memcpy(bytes_.data(), &stated, sizeof stated);
        size_ = size;
        behind_ = behind;
    }
    T* get() { return reinterpret_cast<T*>(bytes_.data()); }
    bool touched_behind() const {
        for (size_t i = size_; i < bytes_.size(); ++i)
            if (bytes_[i] != behind_) return true;
        return false;
    }

  private:
    alignas(16) std::vector<unsigned char> bytes_;
    size_t size_;
    unsigned char behind_;
};

FoveaAttentionDesc small_call() {
    return Attention().batch(1).heads(2).lengths(8, 9).dims(16).causal(Align::top_left).desc;
}

TEST(Abi, OlderDescriptionsAreReadAsFarAsTheyGo) {
    // Fields from `dropout_p` on are zero in this call: a caller that has none of them says the same.
    for (size_t size = offsetof(FoveaAttentionDesc, dropout_p); size <= sizeof(FoveaAttentionDesc); ++size) {
        Sized<FoveaAttentionDesc> old(small_call(), size, 0xff);
        Diag diag;
        const bool is_cut = FieldsOf<FoveaAttentionDesc>::end_inside({}, size);
        EXPECT_EQ(foveaCheckAttention(nullptr, old.get(), &diag), is_cut ? FOVEA_ABI_MISMATCH : FOVEA_OK)
            << size << ": " << diag.text;
    }
}

TEST(Abi, NewerDescriptionsCountOnlyWithZerosBehind) {
    Sized<FoveaAttentionDesc> zeros(small_call(), sizeof(FoveaAttentionDesc) + 16, 0);
    EXPECT_EQ(foveaCheckAttention(nullptr, zeros.get(), nullptr), FOVEA_OK);
    Sized<FoveaAttentionDesc> more(small_call(), sizeof(FoveaAttentionDesc) + 16, 1);
    Diag diag;
    EXPECT_EQ(foveaCheckAttention(nullptr, more.get(), &diag), FOVEA_ABI_MISMATCH);
    EXPECT_STREQ(diag.field, "struct_size");
}

TEST(Abi, OlderResultsAreNotWrittenPastTheirEnd) {
    const Result<Plan> plan = plan_cpu(small_call());
    ASSERT_TRUE(plan);
    const FoveaPlanInfo whole = plan->info();
    for (size_t size = 8; size < sizeof(FoveaPlanInfo); ++size) {
        Sized<FoveaPlanInfo> old({}, size, 0xab);
        const bool is_cut = FieldsOf<FoveaPlanInfo>::end_inside({}, size);
        ASSERT_EQ(foveaGetPlanInfo(plan->get(), old.get(), nullptr), is_cut ? FOVEA_ABI_MISMATCH : FOVEA_OK);
        if (is_cut) continue;
        ASSERT_FALSE(old.touched_behind()) << size;
        ASSERT_EQ(old.get()->struct_size, size);
        ASSERT_EQ(memcmp(&old.get()->backend, &whole.backend, size - 4), 0) << size;
    }
    for (size_t size = 8; size < sizeof(FoveaDeviceProperties); ++size) {
        Sized<FoveaDeviceProperties> old({}, size, 0xab);
        const bool is_cut = FieldsOf<FoveaDeviceProperties>::end_inside({}, size);
        ASSERT_EQ(foveaCpuProperties(1, old.get(), nullptr), is_cut ? FOVEA_ABI_MISMATCH : FOVEA_OK);
        if (is_cut) continue;
        ASSERT_FALSE(old.touched_behind()) << size;
    }
}

// Half a pointer would be followed: the sizes are counted here by hand, for one struct of each kind.
TEST(Abi, AStructMustNotEndInsideAField) {
    const auto accepted = [](auto value) {
        std::vector<size_t> sizes;
        for (size_t size = 4; size <= sizeof value; ++size)
            if (!FieldsOf<decltype(value)>::end_inside(value, size)) sizes.push_back(size);
        return sizes;
    };
    EXPECT_EQ(accepted(FoveaMapTileDesc{}),
              (std::vector<size_t>{4, 8, 12, 16, 24, 32, 40, 48, 52, 56, 60, 64}));
    if (sizeof(void*) == 8) {
        EXPECT_EQ(accepted(FoveaCpuRun{}), (std::vector<size_t>{4, 8, 16, 32, 40, 48, 56}));
    }
    const Result<Plan> plan = plan_cpu(small_call());
    ASSERT_TRUE(plan);
    for (size_t size = 4; size < sizeof(FoveaCpuRun); ++size) {
        FoveaHostBuffer none[FOVEA_BIND_COUNT] = {};
        FoveaCpuRun whole = foveaCpuRun();
        whole.binding_count = FOVEA_BIND_COUNT, whole.bindings = none;
        Sized<FoveaCpuRun> cut(whole, size, 0xff);
        Diag diag;
        const bool is_cut = FieldsOf<FoveaCpuRun>::end_inside({}, size);
        EXPECT_EQ(foveaRunCpu(plan->get(), cut.get(), &diag),
                  is_cut ? FOVEA_ABI_MISMATCH : FOVEA_INVALID_ARGUMENT)
            << size << ": " << diag.text;
        if (is_cut) {
            EXPECT_STREQ(diag.field, "struct_size");
        }
    }
}

TEST(Abi, OlderDiagsGetWhatTheyHaveRoomFor) {
    FoveaAttentionDesc wrong = small_call();
    wrong.heads_q = 3;
    wrong.heads_kv = 2;
    for (size_t size = 4; size <= sizeof(FoveaDiag); ++size) {
        Sized<FoveaDiag> old({}, size, 0xab);
        ASSERT_EQ(foveaCheckAttention(nullptr, &wrong, old.get()), FOVEA_INVALID_ARGUMENT);
        ASSERT_FALSE(old.touched_behind()) << size;
        if (size >= 8) {
            ASSERT_EQ(old.get()->code, FOVEA_INVALID_ARGUMENT) << size;
        }
        if (size > offsetof(FoveaDiag, field)) {
            ASSERT_NE(memchr(old.get()->field, 0, size - offsetof(FoveaDiag, field)), nullptr) << size;
        }
        if (size > offsetof(FoveaDiag, text)) {
            ASSERT_STREQ(old.get()->field, "heads_q");
            ASSERT_NE(memchr(old.get()->text, 0, size - offsetof(FoveaDiag, text)), nullptr) << size;
        }
    }
}

TEST(Names, KernelsGoBothWays) {
    const Result<FoveaKernel> none = kernel_from_name("fast");
    ASSERT_FALSE(none);
    EXPECT_TRUE(
        none.error().text.starts_with("kernel 'fast' is not one of auto, staged, flash, flash_coopmat, "));
    for (int n = FOVEA_KERNEL_AUTO; n < FOVEA_KERNEL_COUNT; ++n) {
        const auto kernel = FoveaKernel(n);
        EXPECT_STREQ(kernel_name(kernel), foveaKernelName(kernel));
        EXPECT_STRNE(foveaKernelName(kernel), "unknown");
        const Result<FoveaKernel> back = kernel_from_name(foveaKernelName(kernel));
        ASSERT_TRUE(back);
        EXPECT_EQ(*back, kernel);
        EXPECT_NE(none.error().text.find(foveaKernelName(kernel)), std::string::npos);
    }
    EXPECT_STREQ(foveaKernelName(FOVEA_KERNEL_FLASH_COOPMAT), "flash_coopmat");
    EXPECT_FALSE(kernel_from_name("unknown"));
}

TEST(Names, ResultsAreTold) {
    EXPECT_STREQ(foveaResultText(FOVEA_OK), "success");
    EXPECT_STREQ(foveaResultText(FOVEA_TIMEOUT), "timeout");
    EXPECT_STREQ(foveaResultText(static_cast<FoveaResult>(FOVEA_TIMEOUT + 1)), "unknown result");
}

}  // namespace
}  // namespace fovea::test
