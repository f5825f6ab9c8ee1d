// png files as u8 tensors, and back, by libpng.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include <fovea/files.hpp>

#include "files/buffer.hpp"
#include "files/encoders.hpp"
#include "files/mapped_file.hpp"
#include "files/png_chunks.hpp"
#include "files/refusal.hpp"

namespace fovea {
namespace files {
namespace {

/// The state of libpng's callbacks. It is plain data, because libpng leaves a failing call by longjmp, which
/// runs no destructor.
struct PngState {
    std::span<const std::byte> input;
    ByteSink* sink = nullptr;
    char message[120] = "";
};

void on_error(png_structp png, png_const_charp text) {
    auto* state = static_cast<PngState*>(png_get_error_ptr(png));
    std::strncpy(state->message, text, sizeof(state->message) - 1);
    png_longjmp(png, 1);
}

/// Warnings are about chunks that do not change the samples (times, texts, profiles).
void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep out, png_size_t count) {
    auto* state = static_cast<PngState*>(png_get_io_ptr(png));
    if (count > state->input.size()) png_error(png, "the file ends too early");
    std::memcpy(out, state->input.data(), count);
    state->input = state->input.subspan(count);
}

void on_write(png_structp png, png_bytep bytes, png_size_t count) {
    auto* state = static_cast<PngState*>(png_get_io_ptr(png));
    if (!state->sink->write(std::as_bytes(std::span(bytes, count)))) png_error(png, "the sink failed");
}

void on_flush(png_structp) {}

/// Between setjmp and the last libpng call no object with a destructor may be made.
bool decode(PngState& state, const PngHeader& header, std::byte* pixels) {
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning);
    png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
    if (info == nullptr) {
        png_destroy_read_struct(&png, nullptr, nullptr);
        return false;
    }
    if (setjmp(png_jmpbuf(png)) != 0) {
        png_destroy_read_struct(&png, &info, nullptr);
        return false;
    }
    png_set_read_fn(png, &state, on_read);
    png_set_user_limits(png, static_cast<png_uint_32>(kMaxPngSide), static_cast<png_uint_32>(kMaxPngSide));
    // Texts and profiles are not wanted, and skipping them keeps their (compressed) contents out of memory.
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png, info);
    const size_t stride_bytes = static_cast<size_t>(header.width * header.channels);
    if (png_get_rowbytes(png, info) != stride_bytes) png_error(png, "row size differs from the header's");
    const int passes = png_set_interlace_handling(png);
    png_start_read_image(png);
    for (int pass = 0; pass < passes; ++pass)
        for (uint64_t row = 0; row < header.height; ++row)
            png_read_row(png, reinterpret_cast<png_bytep>(pixels + row * stride_bytes), nullptr);
    png_read_end(png, nullptr);
    png_destroy_read_struct(&png, &info, nullptr);
    return true;
}

bool encode(PngState& state, const PngHeader& header, const std::byte* pixels) {
    constexpr int kColor[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                              PNG_COLOR_TYPE_RGB_ALPHA};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &state, on_error, on_warning);
    png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
    if (info == nullptr) {
        png_destroy_write_struct(&png, nullptr);
        return false;
    }
    if (setjmp(png_jmpbuf(png)) != 0) {
        png_destroy_write_struct(&png, &info);
        return false;
    }
    png_set_write_fn(png, &state, on_write, on_flush);
    png_set_user_limits(png, static_cast<png_uint_32>(kMaxPngSide), static_cast<png_uint_32>(kMaxPngSide));
    png_set_IHDR(png, info, static_cast<png_uint_32>(header.width), static_cast<png_uint_32>(header.height),
                 8, kColor[header.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    const uint64_t stride_bytes = header.width * header.channels;
    for (uint64_t row = 0; row < header.height; ++row)
        png_write_row(png, reinterpret_cast<png_const_bytep>(pixels + row * stride_bytes));
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return true;
}

Result<PngHeader> image_header(const Tensor& image) {
    if (auto error = check_size(image.name, image.type, image.shape, image.bytes.size()))
        return *std::move(error);
    const size_t rank = image.shape.size();
    PngHeader header;
    if (rank == 2 || rank == 3)
        header = {image.shape[1], image.shape[0], rank == 3 ? image.shape[2] : 1, false};
    if (image.type != FOVEA_U8 || header.channels < 1 || header.channels > 4)
        return bad_argument("image", cat("tensor '", printable_name(image.name), "' ", "is ",
                                         format_shape(image.shape), " of ", dtype_name(image.type),
                                         "; an image must be u8 [height, width] or [height, width, 1 to 4]"));
    if (header.width < 1 || header.height < 1 || header.width > kMaxPngSide || header.height > kMaxPngSide)
        return bad_argument("image", cat("image of ", header.width, " x ", header.height,
                                         " pixels; each side must be from 1 to ", kMaxPngSide));
    return header;
}

}  // namespace

Encoded encode_png(const Tensor& image, ByteSink& sink) {
    const auto header = image_header(image);
    if (!header) return header.error();
    // Through memory, so that the one thing that can stop libpng here is memory.
    MemorySink encoded;
    PngState state;
    state.sink = &encoded;
    if (!encode(state, header.value(), image.bytes.data()))
        return Error{FOVEA_OUT_OF_HOST_MEMORY, "image", cat("libpng: ", state.message)};
    sink.write(encoded.bytes());
    return std::nullopt;
}

}  // namespace files

Result<Tensor> parse_png(std::span<const std::byte> file, const LoadLimits& limits) {
    const auto header = files::check_png(file, limits);
    if (!header) return header.error();
    const uint64_t size_bytes = header->width * header->height * header->channels;
    files::Buffer pixels;
    if (!pixels.allocate(size_bytes)) return files::out_of_memory("pixels", size_bytes);
    files::PngState state;
    state.input = file;
    if (!files::decode(state, header.value(), pixels.bytes().data()))
        return files::malformed("file", files::cat("libpng: ", printable_name(state.message)));
    return Tensor{
        {}, FOVEA_U8, {header->height, header->width, header->channels}, pixels.bytes(), pixels.owner()};
}

Result<Tensor> load_png(const std::filesystem::path& path, const LoadLimits& limits) {
    auto file = files::MappedFile::open(path);
    if (!file) return file.error();
    auto image = parse_png(file.value()->bytes(), limits);
    if (!image) return files::in_file(path, image.error());
    image->name = files::stem_text(path);
    return image;
}

Result<uint64_t> save_png(const std::filesystem::path& path, const Tensor& image) {
    return files::write_file(path, [&](files::ByteSink& sink) { return files::encode_png(image, sink); });
}

}  // namespace fovea
