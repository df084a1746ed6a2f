import javax.script.ScriptEngineManager;

public class Main {
    Object run(String text) throws Exception {
        return new ScriptEngineManager().getEngineByName("js").eval(text);
    }
}
