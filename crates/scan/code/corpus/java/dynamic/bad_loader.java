import java.net.URL;
import java.net.URLClassLoader;

public class Main {
    Class<?> load(String url, String name) throws Exception {
        return new URLClassLoader(new URL[] { new URL(url) }).loadClass(name);
    }
}
