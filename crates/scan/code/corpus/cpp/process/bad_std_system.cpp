#include <cstdlib>
#include <string>

void run(const std::string &name) {
    std::system(("convert " + name).c_str());
}
