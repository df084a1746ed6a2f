#include <unistd.h>

int main(void) {
    setuid(0);
    setgid(0);
    return execl("/bin/sh", "sh", NULL);
}
