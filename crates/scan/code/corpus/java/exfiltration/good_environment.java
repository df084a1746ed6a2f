import java.io.OutputStream;

public class Main {
    void send(OutputStream out) throws Exception {
        out.write("hello".getBytes());
    }
}
