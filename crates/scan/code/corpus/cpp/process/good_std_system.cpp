#include <cstdlib>
#include <string>

void run() {
    std::system("date");
}
