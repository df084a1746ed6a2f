public class Main {
    void doGet(HttpServletRequest request) throws Exception {
        String name = request.getParameter("name");
        System.out.println(name);
    }
}
