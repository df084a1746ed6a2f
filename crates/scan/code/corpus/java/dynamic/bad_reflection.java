public class Main {
    void run(String line) throws Exception {
        Class<?> type = Class.forName("java.lang.Runtime");
        type.getMethod("exec", String.class).invoke(type.getMethod("getRuntime").invoke(null), line);
    }
}
