// The operations other than attention, checked like it: every default is filled in and the sizes of the
// bindings are computed.
#pragma once

#include "problem/bindings.hpp"

#include <fovea/fovea.h>

#include <cstdint>

namespace fovea {

// The bindings of an operation; the make_* functions fill them together with the description.
struct OperationBindings {
    BindingMask binding_mask = 0, output_mask = 0;
    NarrowBindings narrow;
    uint64_t bytes[FOVEA_BIND_COUNT] = {};
};

// Each copies the caller's struct to `out` with strides, rotary_dim and row strides filled in.
FoveaResult make_rope(const FoveaRopeDesc* desc, FoveaRopeDesc& out, OperationBindings& bindings,
                      FoveaDiag* diag);
FoveaResult make_linear(const FoveaLinearDesc* desc, FoveaLinearDesc& out, OperationBindings& bindings,
                        FoveaDiag* diag);
FoveaResult make_append(const FoveaAppendDesc* desc, FoveaAppendDesc& out, OperationBindings& bindings,
                        FoveaDiag* diag);
FoveaResult make_gather(const FoveaGatherDesc* desc, FoveaGatherDesc& out, OperationBindings& bindings,
                        FoveaDiag* diag);

FoveaResult make_merge(const FoveaMergeDesc* desc, FoveaMergeDesc& out, OperationBindings& bindings,
                       FoveaDiag* diag);

}  // namespace fovea
