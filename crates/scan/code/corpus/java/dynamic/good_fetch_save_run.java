import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Paths;

class Update {
    public static void main(String[] words) throws Exception {
        Files.copy(new URL("https://data.example/words.txt").openStream(), Paths.get("/tmp/words.txt"));
        new ProcessBuilder("git", "status").start();
    }
}
