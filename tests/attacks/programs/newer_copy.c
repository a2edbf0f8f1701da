/* What a wheel brings along: another version of a library of the system, with functions that the
 * system's does not have. Built under the names of several; see newer_plugin.c. */
int only_in_the_newer_copy(void);

int only_in_the_newer_copy(void) {
    return 42;
}
