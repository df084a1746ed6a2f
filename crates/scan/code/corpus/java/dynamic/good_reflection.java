public class Main {
    void run() throws Exception {
        Class<?> type = Class.forName("org.sqlite.JDBC");
        System.out.println(type.getName());
    }
}
