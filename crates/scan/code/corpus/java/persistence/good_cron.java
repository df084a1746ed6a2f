import java.nio.file.*;

public class Main {
    void add() throws Exception {
        Files.writeString(Path.of("build/out.txt"), "done");
    }
}
