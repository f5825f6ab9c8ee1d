// npz and png in a build without zlib or libpng: rejected with an error that names the format, so that
// programs link.
#include <fovea/files.hpp>

#include "files/encoders.hpp"
#include "files/refusal.hpp"

namespace fovea {
namespace {

#if !defined(FOVEA_HAS_ZLIB)
Error no_npz() { return files::unsupported("file", "npz is not supported, as this build has no zlib"); }
#endif
#if !defined(FOVEA_HAS_PNG)
Error no_png() { return files::unsupported("file", "png is not supported, as this build has no libpng"); }
#endif

}  // namespace

#if !defined(FOVEA_HAS_ZLIB)
namespace files {
Encoded encode_npz(const TensorSet&, const NpzOptions&, ByteSink&) { return no_npz(); }
}  // namespace files
Result<TensorSet> parse_npz(std::span<const std::byte>, std::shared_ptr<const void>, const LoadLimits&) {
    return no_npz();
}
Result<TensorSet> load_npz(const std::filesystem::path& path, const LoadLimits&) {
    return files::in_file(path, no_npz());
}
Result<uint64_t> save_npz(const std::filesystem::path& path, const TensorSet&, const NpzOptions&) {
    return files::in_file(path, no_npz());
}
#endif

#if !defined(FOVEA_HAS_PNG)
namespace files {
Encoded encode_png(const Tensor&, ByteSink&) { return no_png(); }
}  // namespace files
Result<Tensor> parse_png(std::span<const std::byte>, const LoadLimits&) { return no_png(); }
Result<Tensor> load_png(const std::filesystem::path& path, const LoadLimits&) {
    return files::in_file(path, no_png());
}
Result<uint64_t> save_png(const std::filesystem::path& path, const Tensor&) {
    return files::in_file(path, no_png());
}
#endif

}  // namespace fovea
