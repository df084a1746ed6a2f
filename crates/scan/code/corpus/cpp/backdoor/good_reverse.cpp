#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    connect(s, address(), 16);
    write(s, "PING", 4);
    return close(s);
}
