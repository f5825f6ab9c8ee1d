/* A program in C99 against libfovea_runtime.so: devices, an engine, a call on host and on device memory,
 * progress, cancelling, a tuning file, and errors that name the field. */
#include <fovea/fovea_inspect.h>
#include <fovea/fovea_runtime.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime_call.h"

static int failures = 0;

#define EXPECT(condition)                                          \
    do {                                                           \
        if (!(condition)) {                                        \
            printf("line %d: not so: %s\n", __LINE__, #condition); \
            ++failures;                                            \
        }                                                          \
    } while (0)

/* An error has the code, names the field, and speaks of it. */
#define EXPECT_REFUSED(call, expected_code, expected_field)                                                \
    do {                                                                                                   \
        diag = foveaDiag();                                                                                \
        const FoveaResult code = (call);                                                                   \
        if (code != (expected_code) || diag.code != code || strcmp(diag.field, expected_field) ||          \
            !diag.text[0]) {                                                                               \
            printf("line %d: %s gave %d, field '%s': %s\n", __LINE__, #call, code, diag.field, diag.text); \
            ++failures;                                                                                    \
        }                                                                                                  \
    } while (0)

enum { HEADS = 2, TOKENS = 96, DIM = 8, COUNT = HEADS * TOKENS * DIM };

static float q[COUNT], k[COUNT], v[COUNT], o[COUNT], again[COUNT];

static FoveaAttentionDesc make_call(void) {
    FoveaAttentionDesc call = foveaAttentionDesc();
    call.batch = 1;
    call.heads_q = call.heads_kv = HEADS;
    call.len_q = call.len_kv = TOKENS;
    call.dim_qk = call.dim_v = DIM;
    call.flags = FOVEA_FLAG_CAUSAL;
    return call;
}

static int32_t count_steps(void* user, double done) {
    double* last = user;
    EXPECT(done > *last && done <= 1);
    *last = done;
    return 1;
}

static int32_t stop_at_once(void* user, double done) {
    (void)done;
    ++*(int*)user;
    return 0;
}

static void test_devices(void) {
    FoveaDiag diag = foveaDiag();
    FoveaDeviceList list = NULL;
    FoveaDeviceInfo info = foveaDeviceInfo();
    FoveaDeviceProperties properties = foveaDeviceProperties();
    EXPECT(foveaListDevices(0, &list, &diag) == FOVEA_OK);
    EXPECT(foveaDeviceCount(list) >= 1);
    EXPECT(foveaGetDevice(list, 0, &info, &properties, &diag) == FOVEA_OK);
    EXPECT(info.number == 0 && info.usable == 1 && strncmp(info.name, "CPU", 3) == 0 && info.refusal[0] == 0);
    EXPECT(properties.cpu_threads >= 1 && properties.backend == FOVEA_BACKEND_CPU);
    EXPECT_REFUSED(foveaGetDevice(list, foveaDeviceCount(list), &info, NULL, &diag), FOVEA_INVALID_ARGUMENT,
                   "index");
    info.struct_size = 0;
    EXPECT_REFUSED(foveaGetDevice(list, 0, &info, NULL, &diag), FOVEA_ABI_MISMATCH, "struct_size");
    foveaDestroyDeviceList(list);
    foveaDestroyDeviceList(NULL);
    EXPECT(foveaDeviceCount(NULL) == 0);
}

static void test_options(void) {
    FoveaDiag diag = foveaDiag();
    FoveaEngine engine = NULL;
    FoveaEngineOptions options = foveaEngineOptions();
    options.backend = (FoveaBackendChoice)(FOVEA_BACKEND_CHOICE_REFERENCE + 1);
    EXPECT_REFUSED(foveaOpenEngine(&options, &engine, &diag), FOVEA_INVALID_ARGUMENT, "backend");
    options = foveaEngineOptions();
    options.device = 1;
    EXPECT_REFUSED(foveaOpenEngine(&options, &engine, &diag), FOVEA_INVALID_ARGUMENT, "device");
    options.has_device = 1;
    options.device = 999;
    EXPECT_REFUSED(foveaOpenEngine(&options, &engine, &diag), FOVEA_INVALID_ARGUMENT, "device");
    options = foveaEngineOptions();
    options.backend = FOVEA_BACKEND_CHOICE_CPU;
    options.tuning_file = "there-is-no-such-file.json";
    diag = foveaDiag();
    EXPECT(foveaOpenEngine(&options, &engine, &diag) == FOVEA_IO_ERROR && engine == NULL);
    EXPECT(strstr(diag.text, "there-is-no-such-file.json") != NULL);
    options.struct_size = 0;
    EXPECT_REFUSED(foveaOpenEngine(&options, &engine, &diag), FOVEA_ABI_MISMATCH, "struct_size");
    EXPECT_REFUSED(foveaOpenEngine(NULL, NULL, &diag), FOVEA_INVALID_ARGUMENT, "out");
}

static void test_buffers(FoveaEngine engine, FoveaPlan plan) {
    FoveaDiag diag = foveaDiag();
    const float* const from[] = {q, k, v};
    FoveaEngineBuffer buffers[FOVEA_BIND_COUNT] = {NULL};
    FoveaRun run = foveaRunDesc();
    char byte = 0;
    for (int i = 0; i < 4; ++i) {
        EXPECT(foveaCreateBuffer(engine, sizeof q, &buffers[i], &diag) == FOVEA_OK);
        if (i < 3) EXPECT(foveaUpload(buffers[i], from[i], sizeof q, 0, &diag) == FOVEA_OK);
    }
    EXPECT(foveaBufferSize(buffers[0]) == sizeof q && foveaBufferSize(NULL) == 0);
    run.binding_count = 4;
    run.buffers = buffers;
    EXPECT(foveaRun(engine, plan, &run, NULL, &diag) == FOVEA_OK);
    EXPECT(foveaDownload(buffers[FOVEA_BIND_O], again, sizeof again, 0, &diag) == FOVEA_OK);
    EXPECT(memcmp(o, again, sizeof o) == 0);
    EXPECT(foveaDownload(buffers[FOVEA_BIND_O], again, 12, 20, &diag) == FOVEA_OK);
    EXPECT(memcmp(o + 5, again, 12) == 0);
    EXPECT(foveaUpload(buffers[FOVEA_BIND_O], q, 12, 20, &diag) == FOVEA_OK &&
           foveaDownload(buffers[FOVEA_BIND_O], again, sizeof again, 0, &diag) == FOVEA_OK);
    EXPECT(memcmp(o, again, 20) == 0 && memcmp(q, again + 5, 12) == 0 && memcmp(o + 8, again + 8, 12) == 0);
    EXPECT_REFUSED(foveaUpload(buffers[0], &byte, 1, sizeof q, &diag), FOVEA_INVALID_ARGUMENT, "offset");
    EXPECT_REFUSED(foveaUpload(buffers[0], NULL, 1, 0, &diag), FOVEA_INVALID_ARGUMENT, "data");
    for (int i = 0; i < 4; ++i) foveaDestroyBuffer(buffers[i]);
    foveaDestroyBuffer(NULL);
}

static void test_runs(void) {
    FoveaDiag diag = foveaDiag();
    FoveaEngine engine = NULL;
    FoveaPlan plan = NULL, other = (FoveaPlan)&plan;
    FoveaEngineOptions options = foveaEngineOptions();
    FoveaAttentionDesc call = make_call();
    FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{q, sizeof q}, {k, sizeof k}, {v, sizeof v}, {o, sizeof o}};
    FoveaRun run = foveaRunDesc();
    FoveaRunReport report = foveaRunReport();
    FoveaPlanInfo info = foveaPlanInfo();
    double last = 0;
    int calls = 0;
    options.backend = FOVEA_BACKEND_CHOICE_CPU;
    options.cpu_threads = 2;
    EXPECT(foveaOpenEngine(&options, &engine, &diag) == FOVEA_OK);
    EXPECT(strlen(foveaEngineReason(engine)) > 10 && foveaEngineMessages(engine)[0] == 0);
    call.max_slice_cost = 1; /* as many slices as can be */
    EXPECT(foveaPlanAttention(foveaEngineProperties(engine), &call, NULL, &plan, &diag) == FOVEA_OK);
    EXPECT(foveaGetPlanInfo(plan, &info, &diag) == FOVEA_OK && info.slice_count > 1);

    run.binding_count = FOVEA_BIND_COUNT;
    run.host = bindings;
    EXPECT(foveaRun(engine, plan, &run, &report, &diag) == FOVEA_OK);
    EXPECT(report.slices == info.slice_count && report.seconds > 0 && report.kernel != FOVEA_KERNEL_AUTO);
    EXPECT(attend(&call, bindings, &diag) ==
           FOVEA_OK); /* the header's example, whatever device this machine has */
    EXPECT(foveaRun(engine, plan, &run, NULL, &diag) == FOVEA_OK);
    test_buffers(engine, plan);

    run.progress = count_steps;
    run.user = &last;
    run.slice_shuffle_seed = 7;
    bindings[FOVEA_BIND_O].data = again;
    EXPECT(foveaRun(engine, plan, &run, NULL, &diag) == FOVEA_OK && last == 1);
    EXPECT(memcmp(o, again, sizeof o) == 0);
    run.progress = stop_at_once;
    run.user = &calls;
    EXPECT_REFUSED(foveaRun(engine, plan, &run, NULL, &diag), FOVEA_CANCELLED, "progress");
    EXPECT(calls == 1);
    run = foveaRunDesc();
    run.binding_count = FOVEA_BIND_COUNT;
    EXPECT_REFUSED(foveaRun(engine, plan, &run, NULL, &diag), FOVEA_INVALID_ARGUMENT, "host");
    {
        const FoveaEngineBuffer none[FOVEA_BIND_COUNT] = {NULL};
        run.host = bindings;
        run.buffers = none;
        EXPECT_REFUSED(foveaRun(engine, plan, &run, NULL, &diag), FOVEA_INVALID_ARGUMENT, "host");
        run.buffers = NULL;
    }
    EXPECT(foveaRun(engine, plan, &run, NULL, &diag) ==
           FOVEA_OK); /* usable after it was cancelled and rejected */
    run.binding_count = FOVEA_BIND_COUNT + 1;
    EXPECT_REFUSED(foveaRun(engine, plan, &run, NULL, &diag), FOVEA_INVALID_ARGUMENT, "binding_count");
    run.binding_count = 3; /* no output */
    EXPECT_REFUSED(foveaRun(engine, plan, &run, NULL, &diag), FOVEA_INVALID_ARGUMENT, "bindings[O]");
    run.binding_count = FOVEA_BIND_COUNT;
    run.timeout_seconds = -1;
    EXPECT_REFUSED(foveaRun(engine, plan, &run, NULL, &diag), FOVEA_INVALID_ARGUMENT, "timeout_seconds");
    run.timeout_seconds = NAN;
    EXPECT_REFUSED(foveaRun(engine, plan, &run, NULL, &diag), FOVEA_INVALID_ARGUMENT, "timeout_seconds");
    EXPECT_REFUSED(foveaRun(engine, NULL, &run, NULL, &diag), FOVEA_INVALID_ARGUMENT, "plan");

    call.dim_qk = 0;
    EXPECT_REFUSED(foveaPlanAttention(foveaEngineProperties(engine), &call, NULL, &other, &diag), FOVEA_INVALID_ARGUMENT, "dim_qk");
    EXPECT(other == NULL);
    call = make_call();
    call.struct_size = 0;
    other = (FoveaPlan)&plan; /* whatever it was before */
    EXPECT_REFUSED(foveaPlanAttention(foveaEngineProperties(engine), &call, NULL, &other, &diag), FOVEA_ABI_MISMATCH, "struct_size");
    EXPECT(other == NULL);
    foveaDestroyPlan(plan);
    foveaCloseEngine(engine);
    foveaCloseEngine(NULL);
}

/* Every operation has a plan by the engine's own function. */
static void test_operations(void) {
    FoveaDiag diag = foveaDiag();
    FoveaEngine engine = NULL;
    FoveaPlan plans[6] = {NULL};
    FoveaEngineOptions options = foveaEngineOptions();
    const FoveaAttentionDesc call = make_call();
    FoveaAttentionBackwardDesc backward = foveaAttentionBackwardDesc();
    FoveaRopeDesc rope = foveaRopeDesc();
    FoveaLinearDesc linear = foveaLinearDesc();
    FoveaAppendDesc append = foveaAppendDesc();
    FoveaMapTileDesc tile = foveaMapTileDesc();
    FoveaMergeDesc merge = foveaMergeDesc();
    options.backend = FOVEA_BACKEND_CHOICE_REFERENCE;
    rope.batch = rope.heads = append.batch = append.heads = 1;
    rope.dim = append.dim = linear.n_in = linear.n_out = DIM;
    rope.len = append.len = linear.rows = TOKENS;
    append.capacity = TOKENS;
    merge.parts = merge.batch = merge.heads = 1;
    merge.dim = DIM;
    merge.len = TOKENS;
    EXPECT(foveaOpenEngine(&options, &engine, &diag) == FOVEA_OK);
    EXPECT(foveaPlanAttentionBackward(foveaEngineProperties(engine), &call, &backward, NULL, &plans[0], &diag) == FOVEA_OK);
    EXPECT(foveaPlanRope(foveaEngineProperties(engine), &rope, NULL, &plans[1], &diag) == FOVEA_OK);
    EXPECT(foveaPlanLinear(foveaEngineProperties(engine), &linear, NULL, &plans[2], &diag) == FOVEA_OK);
    EXPECT(foveaPlanAppend(foveaEngineProperties(engine), &append, NULL, &plans[3], &diag) == FOVEA_OK);
    EXPECT(foveaPlanMapTile(foveaEngineProperties(engine), &call, &tile, NULL, &plans[4], &diag) == FOVEA_OK);
    EXPECT(foveaPlanMerge(foveaEngineProperties(engine), &merge, NULL, &plans[5], &diag) == FOVEA_OK);
    for (int i = 0; i < 6; ++i) {
        FoveaPlanInfo info = foveaPlanInfo();
        EXPECT(foveaGetPlanInfo(plans[i], &info, &diag) == FOVEA_OK);
        EXPECT(i == 3 || info.kernel == FOVEA_KERNEL_REFERENCE); /* append copies: it has no float64 */
        foveaDestroyPlan(plans[i]);
    }
    foveaCloseEngine(engine);
}

/* True if a text contains `part`; the text is destroyed. */
static int holds(FoveaText text, const char* part) {
    const int found = strstr(foveaTextData(text), part) != NULL;
    EXPECT(foveaTextSize(text) == strlen(foveaTextData(text)));
    if (!found) printf("'%s' is not in: %.400s\n", part, foveaTextData(text));
    foveaDestroyText(text);
    return found;
}

static void test_inspection(void) {
    FoveaDiag diag = foveaDiag();
    FoveaText text = NULL;
    FoveaCell cell = foveaCell();
    FoveaAttentionDesc call = make_call();
    const FoveaHostBuffer bindings[FOVEA_BIND_COUNT] = {{q, sizeof q}, {k, sizeof k}, {v, sizeof v}};
    const char* const said[] = {"exp", "\"weight\":", "weight", "\\", "import"};
    const uint64_t seed = 7;
    const uint32_t token[1] = {0};
    cell.query = 3;
    cell.key = 2;
    for (int form = FOVEA_TEXT_PLAIN; form <= FOVEA_TEXT_PYTHON; ++form) {
        EXPECT(foveaDeriveCell(&call, bindings, &cell, (FoveaTextForm)form, &text, &diag) == FOVEA_OK);
        EXPECT(holds(text, said[form]));
    }
    EXPECT_REFUSED(foveaDeriveCell(&call, bindings, &cell, (FoveaTextForm)9, &text, &diag),
                   FOVEA_INVALID_ARGUMENT, "form");
    cell.key = TOKENS;
    EXPECT_REFUSED(foveaDeriveCell(&call, bindings, &cell, FOVEA_TEXT_JSON, &text, &diag),
                   FOVEA_INVALID_ARGUMENT, "cell.key");
    EXPECT(text == NULL);

    cell.key = 0;
    EXPECT(foveaScoreWriters("no such model", token, 1, 0, &cell, 10, FOVEA_TEXT_JSON, &text, &diag) != FOVEA_OK &&
           text == NULL);
    EXPECT_REFUSED(foveaScoreWriters(NULL, token, 1, 0, &cell, 10, FOVEA_TEXT_JSON, &text, &diag),
                   FOVEA_INVALID_ARGUMENT, "path");

    EXPECT(foveaLogitWriters("no such model", token, 1, 0, NULL, 10, FOVEA_TEXT_JSON, &text, &diag) != FOVEA_OK &&
           text == NULL);
    EXPECT_REFUSED(foveaLogitWriters("no such model", token, 1, 0, NULL, 10, FOVEA_TEXT_CSV, &text, &diag),
                   FOVEA_INVALID_ARGUMENT, "form");
    EXPECT(foveaHeadDirections("no such model", 0, 0, 3, 10, FOVEA_TEXT_JSON, &text, &diag) != FOVEA_OK &&
           text == NULL);
    EXPECT_REFUSED(foveaHeadDirections(NULL, 0, 0, 3, 10, FOVEA_TEXT_JSON, &text, &diag), FOVEA_INVALID_ARGUMENT,
                   "path");

    EXPECT(foveaListLessons(&text, &diag) == FOVEA_OK && holds(text, "t1-08-causal-weights"));
    EXPECT(foveaRunLesson("3", NULL, FOVEA_TEXT_JSON, &text, &diag) == FOVEA_OK &&
           holds(text, "\"theirs\":"));
    EXPECT(foveaRunLesson("t1-08", &seed, FOVEA_TEXT_PLAIN, &text, &diag) == FOVEA_OK &&
           holds(text, "tensor("));
    EXPECT(foveaRunLesson("no such lesson", NULL, FOVEA_TEXT_JSON, &text, &diag) == FOVEA_INVALID_ARGUMENT &&
           text == NULL);
    EXPECT_REFUSED(foveaRunLesson("3", NULL, FOVEA_TEXT_LATEX, &text, &diag), FOVEA_INVALID_ARGUMENT, "form");
}

static void test_colors(void) {
    FoveaDiag diag = foveaDiag();
    FoveaHeadStats stats = foveaHeadStatsDesc();
    FoveaColormap colormap = foveaColormap();
    FoveaMapTileDesc tile = foveaMapTileDesc();
    const float weights[4] = {1, 0, 0.5f, 0.5f}; /* two rows over two keys */
    const uint64_t mass[2] = {1ull << 40, 3ull << 40};
    float values[2];
    uint8_t rgb[12];
    EXPECT(foveaHeadStats(weights, 2, 2, 0, &stats, &diag) == FOVEA_OK);
    EXPECT(stats.rows == 2 && stats.first_token_mass == 0.75 && stats.largest_weight == 0.75);
    tile.row_count = 4;
    tile.height = 1;
    tile.width = tile.key_count = 2;
    EXPECT(foveaMapValues(&tile, 2, mass, values, &diag) == FOVEA_OK); /* two of the four rows are there */
    EXPECT(values[0] == 0.5f && values[1] == 1.5f);
    tile.height = 0;
    EXPECT_REFUSED(foveaMapValues(&tile, 2, mass, values, &diag), FOVEA_INVALID_ARGUMENT, "tile");
    colormap.name = "grey";
    EXPECT(foveaColorValues(weights, 4, &colormap, rgb, &diag) == FOVEA_OK);
    EXPECT(rgb[0] > rgb[6] && rgb[6] > rgb[3] &&
           rgb[6] == rgb[9]); /* 1 is lighter than 0.5, and that than 0 */
    colormap.name = "rainbow";
    EXPECT_REFUSED(foveaColorValues(weights, 4, &colormap, rgb, &diag), FOVEA_INVALID_ARGUMENT, "colormap");
    colormap.name = NULL;
    colormap.scale = FOVEA_COLOR_SCALE_LOGARITHMIC;
    EXPECT_REFUSED(foveaColorValues(weights, 4, &colormap, rgb, &diag), FOVEA_INVALID_ARGUMENT, "low");
}

static void test_sessions(void) {
    FoveaDiag diag = foveaDiag();
    FoveaText file = NULL, text = NULL;
    const FoveaSessionTensor tensor = {q, HEADS, TOKENS, DIM}, none = {q, 0, 1, 1};
    EXPECT(foveaWriteSession("v=1&level=3", &tensor, &tensor, NULL, &file, &diag) == FOVEA_OK);
    EXPECT(foveaReadSession(foveaTextData(file), &text, &diag) == FOVEA_OK && holds(text, "\"notes\": []"));
    EXPECT(foveaSessionStage(foveaTextData(file), "weights", 1, &text, &diag) == FOVEA_OK &&
           holds(text, "."));
    foveaDestroyText(file);
    EXPECT_REFUSED(foveaWriteSession("", &tensor, NULL, NULL, &file, &diag), FOVEA_INVALID_ARGUMENT, "k");
    EXPECT_REFUSED(foveaWriteSession("", &none, &none, NULL, &file, &diag), FOVEA_INVALID_ARGUMENT, "q");
    EXPECT_REFUSED(foveaWriteSession("color=7", NULL, NULL, NULL, &file, &diag), FOVEA_INVALID_ARGUMENT,
                   "address");
    EXPECT(foveaReadSession("{", &text, &diag) != FOVEA_OK && text == NULL);
}

int main(void) {
    for (int i = 0; i < COUNT; ++i) {
        q[i] = (float)(i * 7919 % 1000) / 500 - 1;
        k[i] = (float)(i * 104729 % 1000) / 500 - 1;
        v[i] = (float)(i % 97);
    }
    test_devices();
    test_options();
    test_runs();
    test_operations();
    test_inspection();
    test_colors();
    test_sessions();
    printf("%d failures\n", failures);
    return failures != 0;
}
