# Writes OUT/fovea/fovea.h: HEADER as an earlier release might have had it, without the last members of structs that
# grow. A program compiled against it must run with today's library.
#   cmake -DHEADER=fovea.h -DOUT=folder -P older_header.cmake
cmake_minimum_required(VERSION 3.25)
file(READ "${HEADER}" text)
foreach(member IN ITEMS "double max_slice_cost" "uint64_t workspace_limit"
                        "uint64_t first_query, first_key, first_batch_head" "uint64_t ignored_mask"
                        "uint32_t max_storage_buffers" "uint32_t max_workgroup_subgroups"
                        "FoveaKernel forced_kernel" "double slice_cost" "uint64_t failed_shaders[FOVEA_CHECK_CLASS_COUNT]" "uint64_t first_slice, slice_count")
  string(FIND "${text}" "    ${member};" at)
  string(FIND "${text}" "    ${member};" last REVERSE)
  if(at LESS 0 OR NOT at EQUAL last)
    message(FATAL_ERROR "${HEADER}: no one member '${member}'")
  endif()
  string(SUBSTRING "${text}" 0 ${at} before)
  string(SUBSTRING "${text}" ${at} -1 behind)
  string(FIND "${behind}" "\n" end)
  string(SUBSTRING "${behind}" ${end} -1 behind)
  set(text "${before}${behind}")
endforeach()
file(WRITE "${OUT}/fovea/fovea.h" "${text}")
