#include <dlfcn.h>

void *load(const char *path) {
    return dlopen(path, RTLD_NOW);
}
