import javax.naming.InitialContext;

public class Main {
    Object find() throws Exception {
        return new InitialContext().lookup("java:comp/env/jdbc/main");
    }
}
