public class Main {
    void ping(String host) throws Exception {
        Runtime.getRuntime().exec("ping " + host);
    }
}
