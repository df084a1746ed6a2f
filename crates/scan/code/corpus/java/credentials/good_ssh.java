import java.nio.file.Files;
import java.nio.file.Paths;

public class Main {
    String text() throws Exception {
        return Files.readString(Paths.get("src", "main", "notes.txt"));
    }
}
