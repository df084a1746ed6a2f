import java.io.*;

public class Main {
    Object read(InputStream in) throws Exception {
        ObjectInputStream objects = new ObjectInputStream(in);
        return objects.readObject();
    }
}
