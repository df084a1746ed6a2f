#include <stdio.h>

int main(void) {
    FILE *file = fopen("out.txt", "w");
    fputs("done", file);
    return 0;
}
