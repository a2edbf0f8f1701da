/* A library as a wheel ships it: another version of a system library, with functions that the
 * system's version lacks. It is built under several names; see newer_plugin.c. */
int only_in_the_newer_copy(void);

int only_in_the_newer_copy(void) {
    return 42;
}
