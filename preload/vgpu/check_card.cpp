// check-card CARD[,count=N][,context=SIZE]: says what is wrong with it, if anything; exit code 2
// then. The launcher asks before it starts a program, so that one parser decides for both.
#include "common/config.h"

#include <stdio.h>

int main(int argc, char** argv) {
    using namespace fragtrace::vgpu;
    if (argc != 2) {
        fputs("usage: check-card CARD[,count=N][,context=SIZE]\n", stderr);
        return 2;
    }
    const Config config = parse_config(argv[1], nullptr);
    if (config.status == Config::kValid) {
        return 0;
    }
    fputs(config.problem, stderr);
    return 2;
}
