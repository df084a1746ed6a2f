#include <signal.h>

void ask(int pid) {
    kill(pid, SIGTERM);
}
