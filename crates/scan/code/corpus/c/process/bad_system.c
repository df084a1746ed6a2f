#include <stdio.h>
#include <stdlib.h>

void ping(const char *host) {
    char line[256];
    snprintf(line, sizeof line, "ping %s", host);
    system(line);
}
