// Mistyped words, and places where output may not go: one line that names the word or the file, exit code 2,
// and no file left over.
#include "commands/command_run.hpp"

#include <fovea/files/json.hpp>

namespace fovea::test {
namespace {

void save_call(const Scratch& scratch, uint64_t length, const char* more = nullptr) {
    TensorSet set;
    for (const char* name : {"q", "k", "v"})
        set.tensors.push_back(make_tensor(name, {1, 1, length, 1}, std::vector<float>(length, 0.5f)).value());
    if (more) set.tensors.push_back(make_tensor(more, {1}, std::vector<float>(1)).value());
    ASSERT_TRUE(save_safetensors(scratch / "in.safetensors", set));
}

std::vector<std::string> files_in(const Scratch& scratch) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(scratch.folder()))
        names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

TEST(BadWords, one_line_names_the_word) {
    const Scratch scratch;
    save_call(scratch, 5);
    const std::string missing = " \"" + (scratch / "no folder" / "file").string() + "\"";
    const std::string folder = " \"" + scratch.folder().string() + "\"";
    const std::vector<std::pair<std::string, const char*>> calls = {
        {"nonsense", "no command 'nonsense'"},
        {"help nonsense", "no command 'nonsense'"},
        {"attend", "the input file is missing; give it, as in `fovea attend IN.safetensors`"},
        {"attend IN", "error: --out is missing; give the file for the outputs"},
        {"attend IN --out", "--out needs a value: FILE"},
        {"attend IN --out ''", "--out needs a value: FILE"},
        {"attend IN --out --json", "--out needs a value: FILE"},
        {"attend IN --out OUT -x", "-x: no such option"},
        {"attend IN --out OUT --unknown 3", "--unknown: no such option"},
        {"attend IN --out OUT --json --json", "--json is given twice"},
        {"attend IN --out OUT --json=1", "--json takes no value"},
        {"attend IN --backend cpu --out" + missing, "cannot be written: its folder does not exist"},
        {"attend IN --backend cpu --out" + folder, "is not a regular file"},
        {"attend --out OUT" + missing, "cannot open"},
        {"attend IN --out x.npz",
         "x.npz ends in .npz, but the file is written as safetensors; give a name that ends in .safetensors"},
        {"train sort --out x.png", "x.png ends in .png, but the file is written as safetensors"},
        {"map IN --png OUT", " ends in .safetensors, but the file is written as png"},
        {"map IN --csv x.png", "x.png ends in .png, but the file is written as csv"},
        {"lesson 2 --png x.csv", "x.csv ends in .csv, but the file is written as png"},
        {"attend IN --out OUT --causal bottom-right --q-offset 1",
         "--q-offset and --causal bottom-right both set the position of query 0"},
        {"attend IN --out OUT --backend reference --kernel flash",
         "--kernel is flash; with --backend reference"},
        {"attend --out OUT" + folder, "this is a folder; give a file"},
        {"attend IN --out OUT --scale ''", "--scale needs a value"},
        {"attend IN --out OUT --scale 1e-300", "--scale is 1e-300, which float32 rounds to 0"},
        {"attend IN --out OUT --scale 1e300", "error: --scale is inf"},
        {"attend IN --out OUT --scale nan", "error: --scale is nan"},
        {"attend IN --out OUT --scale 0.5x", "--scale: '0.5x' is not a number"},
        {"attend IN --out OUT --softcap 1e-300", "--softcap is 1e-300, which float32 rounds to 0"},
        {"attend IN --out OUT --dropout 1e-300", "--dropout is 1e-300, which float32 rounds to 0"},
        {"attend IN --out OUT --dropout 0.99999999999", "error: --dropout is 1"},
        {"attend IN --out OUT --seed 3", "error: --seed needs --dropout"},
        {"attend IN --out OUT --dropout 0.5 --seed -1", "--seed: '-1'"},
        {"attend IN --out OUT --window 3", "--window is '3'; it must be LEFT,RIGHT"},
        {"attend IN --out OUT --causal left", "--causal: 'left'"},
        {"attend IN --out OUT --outputs o,foo", "--outputs: 'foo'"},
        {"attend IN --out OUT --kernel fast", "--kernel: 'fast' is not one of auto, staged"},
        {"map IN --png x.png --colormap jet",
         "--colormap: 'jet' is not viridis, magma, cividis, grey or blue-orange"},
        {"map IN --png x.png --color-scale square", "--color-scale: 'square' is not log or linear"},
        {"map IN --png x.png --kernel decode", "--kernel: 'decode' is not one of auto, plain, reference"},
        {"attend IN --out OUT --layout x", "--layout: 'x'"},
        {"attend IN --out OUT --cache-type q8_0",
         "error: --cache-type q8_0 needs a head size that is a multiple of 32; k has 1"},
        {"lesson induction --check",
         "error: --check compares with a tutorial's printed tables, and 'induction' is a trained model"},
        {"lesson induction --backend vulkan",
         "error: --backend needs a tutorial's lesson; 'induction' is a trained model, which runs on the CPU"},
        {"attend IN --out OUT --threads 5000", "--threads is 5000; it must be at most 4096"},
        {"attend IN --out OUT --workspace -5", "--workspace: '-5'"},
        {"attend IN --out OUT --slice-cost nan", "error: --slice-cost is nan"},
        {"attend IN --out OUT --backend gpu", "--backend: 'gpu'"},
        {"attend IN --out OUT --device 99", "error: --device is 99"},
        {"attend IN --out OUT --device nosuch", "no device is called 'nosuch'"},
        {"attend IN --out OUT --backend cpu --validation", "error: --validation needs a Vulkan device"},
        {"attend IN --out OUT --backend cpu --kernel flash_coopmat",
         "kernel flash_coopmat is not available on the CPU, which has auto, decode, flash"},
        {"attend IN --out OUT --tuning" + missing, "cannot be read"},
        {"explain", "error: explain needs a file or --lengths; give one of them"},
        {"explain IN --lengths 5", "--lengths cannot be combined with a file"},
        {"explain IN --heads 2", "--heads cannot be combined with a file"},
        {"explain --lengths -1", "--lengths has -1; it must be from 0 to 1073741824"},
        {"explain --lengths 5,6,7", "--lengths is '5,6,7'; it must be one or two integers"},
        {"explain --lengths 5 --heads 0", "heads_q is 0"},
        {"map IN", "error: --png and --csv are missing; give --png FILE"},
        {"map IN --png OUT --csv OUT", "--csv and --png are both "},
        {"map IN --preset 4k --png x.png", "--preset cannot be combined with a file"},
        {"map --preset 3k --png x.png", "--preset is '3k'; it must be one of 4k"},
        {"map --preset 4k --layout blhd --png x.png", "error: --layout cannot be combined with --preset"},
        {"map --preset 128k --png" + missing, "its folder does not exist; create it"},
        {"map IN --rows 3:2 --png x.png", "--rows is 3:2; it must be within 0:5"},
        {"map IN --size 0x0 --png x.png", "--size is 0x0"},
        {"map IN --head 7 --png x.png", "--head is 7; it must be below 1"},
        {"lesson 8", "lesson is '8'; it must be a level from 1 to 7, a task or a name"},
        {"lesson 2 3", "lesson takes one name or level; the second is '3'"},
        {"lesson all --png x.png", "error: --png draws one lesson"},
        {"lesson 2 --png ''", "--png needs a value"},
        {"lesson 2 --png" + missing, "its folder does not exist"},
        {"lesson 2 --dark", "error: --dark needs --png FILE"},
        {"lesson --list 2", "error: --list names every lesson and takes no name; leave out '2' or --list"},
        {"lesson --list --check", "error: --list cannot be combined with --check"},
        {"session" + missing, " cannot be opened: No such file or directory"},
        {"session IN --list --head 1", "error: --list cannot be combined with --head"},
        {"lesson 2 --kernel flash", "--kernel cannot be combined with --backend strict"},
        {"devices x", "devices takes no argument, but 'x' is given"},
        {"doctor x", "doctor takes no argument, but 'x' is given"},
        {"doctor --out" + missing, "its folder does not exist"},
        {"bench foo", "suite is 'foo'; it must be cpu"},
        {"bench --case zz", "--case: 'zz' is not one of a-full, a-causal"},
        {"bench --case f-full,zz", "--case: 'zz' is not one of"},
        {"bench --targets none", "--targets: 'none' is not one of all, "},
        {"bench --seconds -1", "--seconds is -1; it must be from 0 to 3600"},
        {"bench --json" + missing, "its folder does not exist"},
        {"bench --check" + missing, "cannot be read"},
        {"bench vulkan", "suite is 'vulkan'; it must be cpu"},
    };
    const std::vector<std::string> kept = {"in.safetensors", "stderr", "stdout"};
    for (const auto& [words, part] : calls) {
        SCOPED_TRACE(words);
        expect_refused(run_command(scratch, words), part);
        EXPECT_EQ(files_in(scratch), kept);
    }
}

// The programs of tools/, where this build has them.
TEST(BadWords, tools_refuse_with_one_line_and_leave_no_file) {
    const std::string folder = FOVEA_TOOL_FOLDER;
    if (!std::filesystem::exists(folder + "/fovea_tune")) GTEST_SKIP() << "this build has no tools";
    const Scratch scratch;
    const std::pair<std::string, std::string> calls[] = {
        {"fovea_bench_vulkan --suite zz", "--suite: 'zz' is not one of prefill, decode"},
        {"fovea_bench_vulkan --suite decode --longest 9", "--longest is 9, below the keys of every case"},
        {"fovea_bench_vulkan foo", "fovea_bench_vulkan takes no argument, but 'foo' is given"},
        {"fovea_bench_vulkan --seconds nan", "--seconds is nan; it must be from 0 to 3600"},
        {"fovea_bench_vulkan --json no/such", "its folder does not exist"},
        {"fovea_tune", "--out is missing; give the file to write"},
        {"fovea_tune --out no/such", "its folder does not exist"},
        {"fovea_codegen foo", "fovea_codegen takes no argument, but 'foo' is given"},
    };
    for (const auto& [words, part] : calls) {
        SCOPED_TRACE(words);
        expect_refused(run_shell(scratch, folder + "/" + words), part);
        EXPECT_EQ(files_in(scratch), (std::vector<std::string>{"stderr", "stdout"}));
    }
}

TEST(BadWords, an_output_that_no_machine_holds_is_refused_by_name_and_size) {
    const Scratch scratch;
    save_call(scratch, uint64_t{1} << 21);
    // The address sanitizer ends the program, or, told to go on, says so in a line before the program's.
    CommandRun run = run_shell(scratch,
                               "ASAN_OPTIONS=allocator_may_return_null=1 FOVEA attend IN --out OUT "
                               "--backend cpu --outputs weights");
    if (run.error.starts_with("==")) run.error.erase(0, run.error.find('\n') + 1);
    expect_refused(run, "--outputs: not enough memory: output 'weights' needs 17592186044416 bytes");
    EXPECT_FALSE(std::filesystem::exists(scratch / "out.safetensors"));
}

TEST(BadWords, a_tensor_that_nothing_reads_is_named) {
    const Scratch scratch;
    save_call(scratch, 5, "kv_length");
    const CommandRun run = run_command(scratch, "attend IN --out OUT --backend cpu");
    EXPECT_EQ(run.exit_code, 0) << run.error;
    EXPECT_NE(run.output.find("note: not read: kv_length\n"), std::string::npos) << run.output;
    save_call(scratch, 5, "a\nb");
    const CommandRun escaped = run_command(scratch, "attend IN --out OUT --backend cpu");
    EXPECT_NE(escaped.output.find("note: not read: a\\x0ab\n"), std::string::npos) << escaped.output;
}

TEST(BadWords, json_stays_json_where_a_name_is_no_utf8) {
    const Scratch scratch;
    save_call(scratch, 5);
    const std::string path = (scratch / "a\xff\"b.safetensors").string();
    const CommandRun run = run_shell(scratch, "FOVEA attend IN --backend cpu --json --out '" + path + "'");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const Result<JsonValue> json = parse_json(run.output);
    ASSERT_TRUE(json) << json.error().text << run.output;
    EXPECT_TRUE((*json)["out"].text().ends_with("/a\xef\xbf\xbd\"b.safetensors")) << run.output;
}

TEST(BadWords, names_with_spaces_and_other_letters) {
    const Scratch scratch;
    save_call(scratch, 5);
    const std::string name = '"' + (scratch / "ünï cödé 名.safetensors").string() + '"';
    EXPECT_EQ(run_command(scratch, "attend IN --backend cpu --out " + name).exit_code, 0);
}

TEST(Streams, a_full_or_closed_standard_output_is_said) {
    const Scratch scratch;
    save_call(scratch, 5);
    for (const std::string words :
         {"--help", "devices", "lesson 1 --check", "explain --lengths 5 --backend cpu",
          "attend IN --out OUT --backend cpu"}) {
        for (const char* to : {" >/dev/full", " >&-", " >&- <&-"}) {
            SCOPED_TRACE(words + to);
            expect_refused(run_command(scratch, words + to), "standard output cannot be written: ");
        }
    }
    // A closed stream gives its number to no file that is written.
    EXPECT_TRUE(load_tensors(scratch / "out.safetensors"));
}

TEST(Doctor, says_what_works_and_keeps_the_same_text_in_a_file) {
    const Scratch scratch;
    const std::string file = (scratch / "report.txt").string();
    const CommandRun run =
        run_shell(scratch, "VK_DRIVER_FILES=/none.json FOVEA doctor --out \"" + file + '"');
    EXPECT_EQ(run.exit_code, 0) << run.error;
    EXPECT_EQ(run.output, read_file(file));
    for (const std::string part : {"fovea 0.", "\nVK_DRIVER_FILES: /none.json\n", "\n0  CPU (",
                                   "\n0  right: kernel ", "\nAll that was tried works.\n"})
        EXPECT_NE(run.output.find(part), std::string::npos) << part << " in\n" << run.output;
}

TEST(Limits, a_file_beyond_the_limit_is_refused_and_leaves_nothing) {
    const Scratch scratch;
    save_call(scratch, 300);
    expect_refused(
        run_shell(scratch, "ulimit -f 8; FOVEA attend IN --backend cpu --outputs weights --out OUT"),
        "File too large");
    EXPECT_EQ(files_in(scratch), (std::vector<std::string>{"in.safetensors", "stderr", "stdout"}));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers reserve more than that
TEST(Limits, too_few_threads_or_too_little_memory_end_no_program) {
    const Scratch scratch;
    save_call(scratch, 5);
    // Stacks of 8 MiB: a hundred threads fit, and what is left may be too little for anything else.
    const CommandRun run =
        run_shell(scratch, "ulimit -v 900000; FOVEA attend IN --backend cpu --threads 4000 --out OUT");
    EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 2) << run.exit_code << run.error;
    expect_refused(
        run_shell(scratch, "ulimit -v 300000; FOVEA map --preset 1m --size 8x8 --backend cpu --png x.png"),
        "memory");
}
#endif

TEST(Streams, a_reader_may_go_away) {
    const Scratch scratch;
    const CommandRun run = run_command(scratch, "lesson all --check | head -n 1");
    EXPECT_EQ(run.error, "");
    EXPECT_EQ(std::count(run.output.begin(), run.output.end(), '\n'), 1) << run.output;
}

// Interrupted at whatever moment, a run leaves its output whole or not at all, and no temporary file.
TEST(Streams, an_interrupt_leaves_no_part_of_a_file) {
    for (const char* seconds : {"0", "0.03", "0.06", "0.1", "0.15", "0.2", "0.3"}) {
        SCOPED_TRACE(seconds);
        const Scratch scratch;
        save_call(scratch, 3000);
        const CommandRun run = run_shell(
            scratch, "FOVEA attend IN --backend cpu --outputs o,weights --out OUT & work=$!; sleep " +
                         std::string(seconds) + "; kill -TERM $work; wait $work; true");
        EXPECT_EQ(run.exit_code, 0) << run.error;
        for (const std::string& name : files_in(scratch))
            EXPECT_EQ(name.find("safetensors."), name.npos) << name;
        const bool written = std::filesystem::exists(scratch / "out.safetensors");
        EXPECT_TRUE(!written || load_tensors(scratch / "out.safetensors"));
    }
}

}  // namespace
}  // namespace fovea::test
