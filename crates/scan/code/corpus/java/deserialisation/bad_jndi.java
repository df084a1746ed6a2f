import javax.naming.InitialContext;

public class Main {
    Object find(String name) throws Exception {
        return new InitialContext().lookup(name);
    }
}
