public class Main {
    void run(String line) throws Exception {
        new ProcessBuilder("/bin/bash", "-c", line).start();
    }
}
