/* A plug-in that needs its own, newer copy of a library (newer_copy.c), found by its RPATH. */
int only_in_the_newer_copy(void);
int plugin_answer(void);

int plugin_answer(void) {
    return only_in_the_newer_copy();
}
