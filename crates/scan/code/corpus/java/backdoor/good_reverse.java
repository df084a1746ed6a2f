import java.net.Socket;

public class Main {
    void go() throws Exception {
        Socket socket = new Socket("localhost", 6379);
        socket.getOutputStream().write(1);
    }
}
