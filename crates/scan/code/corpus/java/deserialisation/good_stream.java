import java.io.*;

public class Main {
    int read(InputStream in) throws Exception {
        DataInputStream data = new DataInputStream(in);
        return data.readInt();
    }
}
