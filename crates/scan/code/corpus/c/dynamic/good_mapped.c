#include <string.h>
#include <sys/mman.h>

int count(int file, unsigned long length) {
    const char *text = mmap(0, length, PROT_READ, MAP_PRIVATE, file, 0);
    int lines = 0;
    for (unsigned long at = 0; at < length; at++) {
        lines += text[at] == '\n';
    }
    munmap((void *)text, length);
    return lines;
}
