// Runs a fuzz target without libFuzzer: over files and folders, then over inputs made from them.
//   fovea_fuzz_NAME_replay [--made COUNT] [--seed N] [--keep FILE] PATH...
//   --made COUNT  inputs to make; the same ones every time and on every machine
//   --seed N      others than those of seed 1, which is what is made without it
//   --keep FILE   where the input goes that ended the program, by a broken promise or by a sanitizer
// Prints the number of inputs.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "fuzz_target.hpp"
#include "mutate.hpp"
#include "mutations.hpp"

using fovea::fuzz::Input;

#pragma weak LLVMFuzzerCustomMutator  // only formats with checksums or a syntax have one

namespace {

constexpr size_t kMaxBytes = 4096;
constexpr int kMaxChanges = 8;  // one on the other, before the next input starts from a file again

std::string keep;      // empty: nowhere
const Input* running;  // the current input of the target

// In a program that ends here in any case, so a stream may be used.
void keep_running_input(int) {
    std::signal(SIGABRT, SIG_DFL);
    if (running && !keep.empty()) {
        std::ofstream file(keep, std::ios::binary);
        file.write(reinterpret_cast<const char*>(running->data()), std::streamsize(running->size()));
        std::fprintf(stderr, "the input (%zu bytes) is in %s\n", running->size(), keep.c_str());
    }
    std::abort();
}

void run(const Input& input) {
    // A copy of exactly the input's size on the heap, so that the address sanitizer sees each read past it.
    const Input exact(input.begin(), input.end());
    running = &exact;
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
    running = nullptr;
}

std::optional<Input> read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    Input bytes{std::istreambuf_iterator<char>(file), {}};
    if (!file) return std::nullopt;
    return bytes;
}

fovea::test::Random changes(1);

// A format with checksums has a mutator that makes them right again; it asks for the plain change below.
void change(Input& input) {
    if (LLVMFuzzerCustomMutator) {
        const size_t most = std::max(kMaxBytes, input.size());
        Input room(most);
        std::copy(input.begin(), input.end(), room.begin());
        const size_t size =
            LLVMFuzzerCustomMutator(room.data(), input.size(), most, unsigned(changes.next()));
        room.resize(size);
        input = std::move(room);
        return;
    }
    fovea::fuzz::change(input, kMaxBytes, changes);
}

void run_made(const std::vector<Input>& files, uint64_t count) {
    Input input;
    int left = 0;
    for (uint64_t n = 0; n < count; ++n) {
        if (left == 0) {
            input = files[changes.below(files.size())];
            if (changes.chance(0.1)) fovea::fuzz::splice(input, files[changes.below(files.size())], changes);
            left = 1 + int(changes.below(kMaxChanges));
        }
        change(input);
        run(input);
        --left;
    }
}

int fail(const char* what, const std::string& value) {
    std::fprintf(stderr, "%s: %s\n", what, value.c_str());
    return 2;
}

}  // namespace

// Called by a target's own mutator; replaces libFuzzer's function.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
    Input input(data, data + size);
    fovea::fuzz::change(input, max_size, changes);
    std::copy(input.begin(), input.end(), data);
    return input.size();
}

// Read by the sanitizers: what they find ends the program as a broken promise does.
extern "C" const char* __asan_default_options() { return "abort_on_error=1"; }

int main(int argc, char** argv) {
    uint64_t made = 0;
    std::vector<std::filesystem::path> paths;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if ((option == "--made" || option == "--seed" || option == "--keep") && i + 1 == argc)
            return fail("a value is missing", option);
        if (option == "--keep") {
            keep = argv[++i];
        } else if (option == "--made" || option == "--seed") {
            char* end = nullptr;
            errno = 0;
            const uint64_t number = std::strtoull(argv[++i], &end, 10);
            if (errno || end == argv[i] || *end) return fail("not a number", option + " " + argv[i]);
            if (option == "--made")
                made = number;
            else
                changes = fovea::test::Random(number);
        } else if (std::filesystem::is_directory(option)) {
            for (const auto& entry : std::filesystem::recursive_directory_iterator(option))
                if (entry.is_regular_file()) paths.push_back(entry.path());
        } else {
            paths.emplace_back(option);
        }
    }
    std::sort(paths.begin(), paths.end());  // folders list their files in any order
    std::signal(SIGABRT, keep_running_input);
    std::vector<Input> files;
    for (const auto& path : paths) {
        std::optional<Input> input = read(path);
        if (!input) return fail("cannot read", path.string());
        run(*input);
        files.push_back(std::move(*input));
    }
    if (files.empty()) return fail("no inputs", "give files or folders");
    run_made(files, made);
    std::printf("%llu inputs\n", static_cast<unsigned long long>(files.size() + made));
    return 0;
}
