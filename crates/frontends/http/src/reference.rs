//! The reference as one page: made from the OpenAPI document, without scripts, and without anything from elsewhere.

use serde_json::Value;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c1c1e;background:#fff}\
h1{font-size:1.6rem}h2{margin-top:2.5rem;border-bottom:1px solid #ccc}h3{margin:1.6rem 0 .2rem;font:600 1rem ui-monospace,monospace}\
code{font:.92em ui-monospace,monospace;background:#f2f2f4;padding:.05em .3em;border-radius:3px}b.m{display:inline-block;min-width:4.2em}\
table{border-collapse:collapse;margin:.4rem 0}td{padding:.15rem .8rem .15rem 0;vertical-align:top}td:first-child{white-space:nowrap}\
@media(prefers-color-scheme:dark){body{background:#161618;color:#e8e8ea}code{background:#2a2a2e}h2{border-color:#444}}";

pub fn page(document: &Value) -> String {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    let mut groups: Vec<(String, String)> = Vec::new();
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            let tag = operation["tags"][0].as_str().unwrap_or("service").to_owned();
            let mut html = format!("<h3><b class=m>{}</b> {}</h3>", escape(&method.to_uppercase()), escape(path));
            html += &format!("<p>{} {}</p>", text(&operation["summary"]), text(&operation["description"]));
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let rows: String = parameters
                .map(|one| {
                    format!(
                        "<tr><td><code>{}</code> in {}</td><td>{}</td></tr>",
                        text(&one["name"]),
                        text(&one["in"]),
                        text(&one["description"])
                    )
                })
                .collect();
            let body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
            let body = body.and_then(|path| path.rsplit('/').next()).map_or(String::new(), |name| {
                format!("<tr><td>body</td><td><a href=\"#{0}\"><code>{0}</code></a></td></tr>", escape(name))
            });
            html += &format!("<table>{rows}{body}</table>");
            match groups.iter_mut().find(|(name, _)| *name == tag) {
                Some((_, all)) => *all += &html,
                None => groups.push((tag, html)),
            }
        }
    }
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>belljar API</title>\
         <style>{STYLE}</style><h1>belljar API {}</h1><p>{}</p><p>The same for programs: <a href=\"/v1/openapi.json\">openapi.json</a>. \
         Each call but <code>/v1/health</code> takes <code>Authorization: Bearer bj_…</code>.</p>",
        text(&document["info"]["version"]),
        text(&document["info"]["description"]),
    );
    for (name, html) in groups {
        page += &format!("<h2>{}</h2>{html}", escape(&name));
    }
    page += "<h2>Bodies</h2>";
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        page += &format!("<h3 id=\"{0}\">{0}</h3><p>{1}</p><table>", escape(name), text(&schema["description"]));
        for (field, about) in schema["properties"].as_object().into_iter().flatten() {
            let kind = about["type"].as_str().map(escape).unwrap_or_default();
            page += &format!(
                "<tr><td><code>{}</code></td><td>{kind}</td><td>{}</td></tr>",
                escape(field),
                text(&about["description"])
            );
        }
        page += "</table>";
    }
    page + "</html>"
}

fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, letter| {
        match letter {
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '&' => safe += "&amp;",
            '"' => safe += "&quot;",
            other => safe.push(other),
        }
        safe
    })
}
