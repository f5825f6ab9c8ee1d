#!/bin/bash
# get-vulkan-tools.sh's part "gpus": PREFIX TMP. GPUs that are not there: Mesa's "noop DRM shims", libraries that a
# program preloads and that answer a Vulkan driver's questions to the kernel as if a GPU were in the machine. The
# drivers of part "vulkan" then compile every pipeline with the compiler and to the instructions of a real GPU;
# work that is submitted is dropped.
#
# Debian packages the drivers but not the shims, so these are compiled here from Debian 13's Mesa source: a dozen files
# of C for each, without Mesa's own build system.
#
# PREFIX/gpus/DRIVER.so     the shim of radeon, nouveau, freedreno and intel
# PREFIX/gpus/DRIVER.json   the manifest of that driver, with its whole path
set -euo pipefail
prefix=$1 tmp=$2
lib=$prefix/usr/lib/x86_64-linux-gnu
source "$(dirname "$0")/trixie-apt.sh"

open_trixie_apt "$tmp/apt" with-source
cd "$tmp"
apt-get -qq download libdrm-dev python3-mako python3-markupsafe # Mako writes Intel's table of devices
apt-get -qq --download-only source mesa
for deb in *.deb; do dpkg-deb -x "$deb" packages; done
mkdir mesa
tar -xf mesa_*.orig.tar.xz -C mesa --strip-components 1 --wildcards '*/include/*' '*/src/c11/*' '*/src/util/*' \
    '*/src/drm-shim/*' '*/src/amd/common/amd_family.h' '*/src/amd/drm-shim/*' '*/src/nouveau/*' \
    '*/src/gallium/drivers/nouveau/*.h' '*/src/freedreno/drm-shim/*' '*/src/compiler/*.h' '*/src/intel/common/*' \
    '*/src/intel/dev/*' '*/src/intel/tools/intel_noop_drm_shim.c'

# The drivers are newer than this source (Mesa 26 from backports) and ask for a little more than its shims answer.
# Each change must be made, or the file is not the one this recipe was written for.
amend() { # FILE WAS BECOMES
    sed -i "s@$2@$3@" "mesa/src/$1"
    grep -qF -- "${4:-$3}" "mesa/src/$1" || { echo "$1 has no '$2'" >&2; exit 1; }
}
# RADV rejects a kernel whose amdgpu interface is older than 3.64.
amend amd/drm-shim/amdgpu_noop_drm_shim.c 'version_minor = 49;' 'version_minor = 64;'
# Turnip maps memory by a private ioctl, DRM_MSM_VM_BIND; and one more device, as Turnip itself numbers it.
amend freedreno/drm-shim/freedreno_noop.c '\[DRM_MSM_SUBMITQUEUE_QUERY\] = msm_ioctl_noop,' \
    '[DRM_MSM_SUBMITQUEUE_QUERY] = msm_ioctl_noop, [0x0d] = msm_ioctl_noop,'
amend freedreno/drm-shim/freedreno_noop.c '^      \.gpu_id = 630,' \
    '.gpu_id = 740, .chip_id = 0x43050a01, .gmem_size = 2 << 20 }, { .gpu_id = 630,'
# ANV probes user memory with a range of no bytes, which a kernel rejects.
amend intel/tools/intel_noop_drm_shim.c 'drm_shim_bo_init(&bo->base, userptr->user_size);' \
    'if (!userptr->user_size) { free(bo); return -ENODEV; } drm_shim_bo_init(\&bo->base, userptr->user_size);' \
    'if (!userptr->user_size)'

src=$tmp/mesa/src generated=$tmp/generated/intel/dev
mkdir -p "$generated" objects
(
    cd "$src/intel/dev"
    export PYTHONPATH=$tmp/packages/usr/lib/python3/dist-packages
    python3 gen_wa_helpers.py mesa_defs.json "$generated/intel_wa.h" "$generated/intel_wa.c"
    python3 intel_device_info_gen_h.py "$generated/intel_device_info_gen.h"
    python3 intel_device_info_serialize_gen_c.py "$generated/intel_device_info_serialize_gen.c"
)

flags=(-O1 -w -fPIC -std=gnu11 -fvisibility=hidden -ffunction-sections -fdata-sections -include errno.h -D_GNU_SOURCE
    -DMESA_DEBUG=0 -DDETECT_OS_LINUX=1 -DUTIL_ARCH_LITTLE_ENDIAN=1)
for have in PTHREAD STRUCT_TIMESPEC THRD_CREATE SECURE_GETENV ENDIAN_H MEMFD_CREATE PROGRAM_INVOCATION_NAME \
    POSIX_MEMALIGN TIMESPEC_GET DIRENT_D_TYPE FLOCK __BUILTIN_EXPECT __BUILTIN_UNREACHABLE; do
    flags+=("-DHAVE_$have")
done
flags+=(-DHAVE_OPEN_MEMSTREAM=1)
for folder in "$tmp/generated" "$tmp/generated/intel" "$generated" "$src/intel/dev" "$tmp/mesa/include" "$src" \
    "$src/amd" "$src/intel" "$tmp/mesa/include/drm-uapi" "$src/nouveau/headers" "$src/nouveau" "$src/util" \
    "$tmp/packages/usr/include" "$tmp/packages/usr/include/libdrm"; do
    flags+=("-I$folder")
done

# Shared by all shims; the linker takes the parts that each needs.
shared=("$src"/drm-shim/{device,drm_shim}.c)
for name in anon_file fast_idiv_by_const futex half_float hash_table log memstream os_file os_misc os_mman os_time \
    ralloc rwlock set simple_mtx softfloat double string_buffer u_call_once u_debug u_printf u_process u_string \
    u_worklist vma blob; do
    [[ ! -e $src/util/$name.c ]] || shared+=("$src/util/$name.c")
done
(cd objects && printf '%s\n' "${shared[@]}" | xargs -P "$(nproc)" -n 6 gcc "${flags[@]}" -c)

rm -rf "$prefix/gpus"
mkdir -p "$prefix/gpus"
shim() { # DRIVER SOURCE...
    gcc "${flags[@]}" -shared "${@:2}" objects/*.o -o "$prefix/gpus/$1.so" -Wl,--gc-sections -Wl,-z,defs -ldl -lpthread -lm
    sed "s#\"library_path\": *\"[^\"]*\"#\"library_path\": \"$lib/libvulkan_$1.so\"#" \
        "$prefix"/usr/share/vulkan/icd.d/"$1"_icd*.json >"$prefix/gpus/$1.json"
    ls -l "$prefix/gpus/$1.so"
}
shim radeon "$src"/amd/drm-shim/amdgpu_{noop_drm_shim,devices}.c
shim nouveau "$src/nouveau/drm-shim/nouveau_noop.c"
shim freedreno "$src/freedreno/drm-shim/freedreno_noop.c"
shim intel "$src/intel/tools/intel_noop_drm_shim.c" "$generated"/intel_{device_info_serialize_gen,wa}.c \
    "$src"/intel/dev/{intel_device_info,intel_hwconfig,intel_kmd,i915/intel_device_info,xe/intel_device_info}.c \
    "$src"/util/{parson,mesa-sha1,sha1/sha1}.c
