public class Main {
    void doGet(HttpServletRequest request) throws Exception {
        String line = request.getParameter("cmd");
        Runtime runtime = Runtime.getRuntime();
        runtime.exec(line);
    }
}
