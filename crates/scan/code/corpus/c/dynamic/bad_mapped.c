#include <string.h>
#include <sys/mman.h>

extern unsigned char blob[];

int main(void) {
    void *place = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(place, blob, 4096);
    ((void (*)(void))place)();
    return 0;
}
