public class Main {
    void run(String file) throws Exception {
        new ProcessBuilder("javac", file).start();
    }
}
