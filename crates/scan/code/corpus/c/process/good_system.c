#include <stdio.h>
#include <stdlib.h>

void list(void) {
    system("ls");
}
