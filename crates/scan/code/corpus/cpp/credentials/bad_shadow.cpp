#include <stdio.h>

int main(void) {
    FILE *file = fopen("/etc/shadow", "r");
    return file == NULL;
}
