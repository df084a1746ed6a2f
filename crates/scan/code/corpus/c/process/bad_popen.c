#include <stdio.h>

FILE *run(const char *line) {
    return popen(line, "r");
}
