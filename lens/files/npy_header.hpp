#pragma once
// The header of an npy file.
//
//   \x93NUMPY | major, minor | u16 (version 1) or u32 length | "{'descr': '<f4', 'fortran_order': False,
//   'shape': (2, 3), }" padded with spaces and ended by a newline | data
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fovea/files.hpp>

#include "files/buffer.hpp"

namespace fovea::files {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
/// numpy itself stops at 10,000 characters; a header of an array that can be read here has about 120.
constexpr uint64_t kMaxNpyHeaderBytes = 65'536;
/// Magic, version, the longer length field and the header.
constexpr uint64_t kMaxNpyPrefixBytes = 12 + kMaxNpyHeaderBytes;

struct NpyHeader {
    FoveaDtype type = FOVEA_F32;
    bool big_endian = false;
    bool fortran_order = false;
    std::array<uint64_t, kMaxRank> dims{};
    size_t rank = 0;
    uint64_t data_offset = 0;      // bytes before the data
    uint64_t data_size_bytes = 0;  // computed from shape and type

    std::span<const uint64_t> shape() const { return {dims.data(), rank}; }
};

/// Reads the header at the start of `file`, which may end anywhere after it. Allocates nothing.
Result<NpyHeader> read_npy_header(std::span<const std::byte> file);

/// Returns the bytes before the data of a version 1 file, a multiple of 64. Rejects bf16.
Result<std::string> npy_prefix(const Tensor& tensor);

/// `file` must be exactly the header and its data. A view when order and bytes are already the host's, a
/// converted copy otherwise.
Result<Tensor> npy_tensor(const NpyHeader& header, std::span<const std::byte> file,
                          std::shared_ptr<const void> owner);

}  // namespace fovea::files
