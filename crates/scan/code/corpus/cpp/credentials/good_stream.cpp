#include <fstream>
#include <string>

std::string line() {
    std::ifstream file("data/words.txt");
    std::string text;
    std::getline(file, text);
    return text;
}
