/* A library with two versions of a function. In its table of symbols the older one comes first. */
__asm__(".symver old_answer, versioned_answer@V1");

int old_answer(void) {
    return 1;
}

__asm__(".symver new_answer, versioned_answer@@V2");

int new_answer(void) {
    return 2;
}

/* A version for programs that were linked earlier; no other one exists. */
__asm__(".symver last_answer, only_old_answer@V1");

int last_answer(void) {
    return 3;
}
