#include <stdio.h>

int main(void) {
    FILE *file = fopen("data/words.txt", "r");
    return file == NULL;
}
