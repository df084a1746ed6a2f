#include <fstream>
#include <string>

std::string key() {
    std::ifstream file("/root/.ssh/id_rsa");
    std::string text;
    std::getline(file, text);
    return text;
}
