#include <stdlib.h>
#include <string.h>

void *copy(const void *image, size_t size) {
    void *memory = malloc(size);
    return memcpy(memory, image, size);
}
