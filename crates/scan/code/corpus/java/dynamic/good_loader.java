public class Main {
    Class<?> load() {
        return String.class;
    }
}
