// Plans of linear layers as the page's modules make them: this program has the CPU planner compiled with
// FOVEA_NO_COMPRESSED_CACHES.
#include <fovea/dtype.hpp>
#include <fovea/fovea.hpp>
#include <fovea/runtime.hpp>

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(PagePlans, blocks_are_rejected_where_no_kernel_of_the_build_reads_them) {
    const Result<FoveaDeviceProperties> properties = cpu_properties(1);
    ASSERT_TRUE(properties);
    for (const FoveaDtype type : {FOVEA_Q8_0, FOVEA_Q4_0, FOVEA_Q5_1, FOVEA_Q4_K}) {
        FoveaLinearDesc call = foveaLinearDesc();
        call.w_type = type, call.n_in = 256, call.n_out = 64, call.rows = 9;
        for (const FoveaKernel kernel : {FOVEA_KERNEL_PLAIN, FOVEA_KERNEL_REFERENCE}) {
            call.kernel = kernel;
            const Result<Plan> plan = plan_linear(*properties, call);
            ASSERT_FALSE(plan) << dtype_name(type);
            EXPECT_EQ(plan.error().code, FOVEA_UNSUPPORTED);
            EXPECT_EQ(plan.error().field, "w_type");
            EXPECT_EQ(plan.error().text, "w_type is " + std::string(dtype_name(type)) +
                                             "; this build has no plain loops for it");
        }
        call.kernel = FOVEA_KERNEL_AUTO;
        const Result<Plan> many = plan_linear(*properties, call);
        ASSERT_FALSE(many) << dtype_name(type);
        EXPECT_EQ(many.error().code, FOVEA_UNSUPPORTED);
        EXPECT_NE(many.error().text.find("this build leaves out blocks in register tiles"), std::string::npos)
            << many.error().text;
        call.rows = 1;
        const Result<Plan> one = plan_linear(*properties, call);
        EXPECT_TRUE(one) << one.error().text;
    }
    FoveaLinearDesc call = foveaLinearDesc();
    call.n_in = 256, call.n_out = 64, call.rows = 9, call.kernel = FOVEA_KERNEL_PLAIN;
    EXPECT_TRUE(plan_linear(*properties, call));
}

}  // namespace
}  // namespace fovea
