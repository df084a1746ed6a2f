//! Code that keeps its variables, by a handle that the client names.

use belljar_testkit::Who;
use belljar_testkit::twice::Check;
use serde_json::{Value, json};

use crate::holds;
use crate::raw::{Http, Talks, kind};
use crate::server::Server;
use crate::stories::desk;

pub const ALL: &[(&str, Check)] = &[("variables_stay_in_a_context_that_is_named_and_figures_come_as_images", contexts)];

fn contexts(who: Who) -> Result<(), String> {
    let server = Server::with(desk(who)?, &[])?;
    let made = server.post("/v1/sandboxes", &json!({}))?.expect(201)?.json()?;
    let id = made["id"].as_str().ok_or("an id")?;
    let mut http = Http { server: &server, token: server.token.clone() };
    let mut run = |context: Value, language: &str, code: &str| {
        let mut arguments = json!({"sandbox": id, "language": language, "code": code});
        if !context.is_null() {
            arguments["context"] = context;
        }
        http.tool("run_code", arguments)
    };
    let first = run("main".into(), "python", "x = 41\nprint('said')")?;
    let told = &first["structuredContent"];
    holds(told["stdout"] == "said\n" && told["cell"]["fresh"] == true && told["sandbox"] == id, &first)?;
    let second = run("main".into(), "python", "x + 1")?;
    holds(second["structuredContent"]["cell"]["fresh"] == false, &second)?;
    holds(second["content"][0]["text"] == "42", &second)?;
    let image = "class Figure:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n123'\nFigure()";
    let image = run("main".into(), "python", image)?;
    let shown = image["content"].as_array().ok_or("content")?.iter().find(|part| part["type"] == "image");
    let shown = shown.ok_or(format!("an image: {image}"))?;
    holds(shown["mimeType"] == "image/png" && shown["data"] == "iVBORw0KGgoxMjM=", &image)?;
    holds(!image["structuredContent"].to_string().contains("iVBOR"), "it comes once")?;
    let failed = run("main".into(), "python", "1 / 0")?;
    holds(
        failed["structuredContent"]["cell"]["error"]["name"] == "ZeroDivisionError" && failed["isError"] != true,
        &failed,
    )?;
    holds(failed["content"][0]["text"].as_str().is_some_and(|text| text.contains("<cell 4>")), &failed)?;
    // Another name is another context; none is none.
    let other = run("other".into(), "python", "'x' in globals()")?;
    holds(other["content"][0]["text"] == "False", &other)?;
    let plain = run(Value::Null, "python", "print('x' in globals())")?;
    holds(plain["structuredContent"]["stdout"] == "False\n" && plain["structuredContent"]["cell"].is_null(), &plain)?;
    let wrong = run("main".into(), "ruby", "1")?;
    holds(wrong["isError"] == true && kind(&wrong) == "wrong-arguments", &wrong)?;
    let clash = run("main".into(), "bash", ":")?;
    holds(clash["isError"] == true && kind(&clash) == "conflict", &clash)?;
    // Where nobody stays, nothing can.
    server.post(&format!("/v1/sandboxes/{id}/stop"), &json!({}))?.expect(200)?;
    let mut http = Http { server: &server, token: server.token.clone() };
    let closed = http.tool("run_code", json!({"sandbox": id, "language": "python", "code": "x", "context": "main"}))?;
    holds(closed["isError"] == true && kind(&closed) == "conflict", &closed)
}
