/* Uses the analyzer through its C header: loads argv[1], prints its JSON, or the error. */
#include <fragtrace/analyze.h>

#include <stdio.h>
#include <string.h>

static int fail(char* error) {
    fprintf(stderr, "%s\n", error);
    fraganalyze_free(error);
    return 2;
}

int main(int argc, char** argv) {
    char* error = NULL;
    if (argc != 2 || strlen(fraganalyze_version()) == 0) {
        return 3;
    }
    uint64_t bytes = 0;
    if (fraganalyze_parse_size("4 GiB", &bytes, &error) != 0 || bytes != 4294967296u ||
        fraganalyze_parse_size("four", &bytes, NULL) != -1) {
        return 4;
    }
    fraganalyze_close(NULL);
    fraganalyze_free(NULL);
    fraganalyze_report* report = fraganalyze_load(argv[1], NULL, NULL, 1, &error);
    if (report == NULL) {
        return fail(error);
    }
    struct ArrowSchema schema;
    struct ArrowArray array;
    if (fraganalyze_table(report, "no such table", &schema, &array, NULL) != -1 ||
        fraganalyze_table(report, "events", &schema, &array, &error) != 0) {
        return 5;
    }
    char* json = fraganalyze_json(report, &error);
    fraganalyze_close(report);
    if (json == NULL) {
        return fail(error);
    }
    fputs(json, stdout);
    fraganalyze_free(json);
    /* The table is still there. */
    if (strcmp(schema.children[0]->name, "event") != 0 || array.n_children != schema.n_children ||
        ((const uint32_t*)array.children[0]->buffers[1])[array.length - 1] != array.length - 1) {
        return 6;
    }
    schema.release(&schema);
    array.release(&array);
    return schema.release == NULL && array.release == NULL ? 0 : 7;
}
