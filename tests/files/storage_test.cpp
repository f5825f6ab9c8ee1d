// The layer below the formats: mappings of files that change, and files that appear whole or not at all.
#include "files/byte_sink.hpp"
#include "files/mapped_file.hpp"
#include "scratch.hpp"

#if defined(__unix__)
#include <sys/resource.h>

#include <csignal>
#endif

namespace fovea {
namespace {

using namespace test;

TEST(MappedFile, NoticesThatTheFileChangedItsSize) {
    const Scratch scratch;
    write_file(scratch / "a", std::string(10'000, 'x'));
    const auto file = files::MappedFile::open(scratch / "a");
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_EQ(file.value()->bytes().size(), 10'000u);
    EXPECT_TRUE(file.value()->intact());
    std::filesystem::resize_file(scratch / "a", 5'000);
    EXPECT_FALSE(file.value()->intact());
    std::filesystem::resize_file(scratch / "a", 20'000);
    EXPECT_FALSE(file.value()->intact());
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
    const Scratch scratch;
    write_file(scratch / "a", "");
    const auto file = files::MappedFile::open(scratch / "a");
    ASSERT_TRUE(file) << file.error().text;
    EXPECT_TRUE(file.value()->bytes().empty());
    EXPECT_TRUE(file.value()->intact());
}

TEST(AtomicFile, WithoutCommitNothingAppears) {
    const Scratch scratch;
    {
        files::AtomicFile file(scratch / "a");
        EXPECT_TRUE(file.write_text("half"));
        EXPECT_EQ(scratch.file_count(), 1u) << "the temporary file";
        EXPECT_FALSE(std::filesystem::exists(scratch / "a"));
    }
    EXPECT_EQ(scratch.file_count(), 0u);
}

#if defined(__unix__)

TEST(AtomicFile, AFullDiskLeavesTheOldFile) {
    const Scratch scratch;
    write_file(scratch / "a.safetensors", "old");
    TensorSet set;
    set.tensors.push_back(make_tensor("big", {1 << 20}, std::vector<float>(1 << 20)).value());
    // A limit on the size of files simulates a full disk: writing past it fails in the same way.
    rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small = {1 << 20, before.rlim_max};
    const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto saved = save_safetensors(scratch / "a.safetensors", set);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old_handler);
    ASSERT_FALSE(saved);
    EXPECT_EQ(saved.error().code, FOVEA_IO_ERROR);
    EXPECT_NE(saved.error().text.find("a.safetensors: File too large"), std::string::npos)
        << saved.error().text;
    EXPECT_EQ(read_file(scratch / "a.safetensors"), "old");
    EXPECT_EQ(scratch.file_count(), 1u);
}

#endif

}  // namespace
}  // namespace fovea
