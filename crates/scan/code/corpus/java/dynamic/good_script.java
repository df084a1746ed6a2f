public class Main {
    int run(String text) throws Exception {
        return Integer.parseInt(text);
    }
}
