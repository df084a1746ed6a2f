//! What came of a call, as a client reads it: structured content that the tool's schema describes, or an error that names the
//! thing, the rule and the fix.

use model::{FileFailure, FileTrouble};
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::{Value, json};
use service::{Answer, Lost};

/// Of text that repeats what is structured, in bytes: whoever reads the text alone should still see what matters.
const LONGEST_TEXT: usize = 128 << 10;

/// It was done.
#[derive(Clone, Debug)]
pub struct Good {
    pub value: Value,
    /// For whoever does not read structured content.
    pub text: String,
    pub links: Vec<Resource>,
    /// In base64, with what kind each is.
    pub images: Vec<(String, &'static str)>,
}

impl Good {
    pub fn new(value: Value, text: impl Into<String>) -> Good {
        Good { value, text: text.into(), links: Vec::new(), images: Vec::new() }
    }
}

/// It was not done, and why. An answer of the tool, not of the protocol: the model should read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub kind: &'static str,
    pub message: String,
    pub rule: Option<String>,
    pub fix: Option<String>,
    /// Whatever else is known: denials, a result.
    pub more: Option<Value>,
}

impl Failure {
    pub fn new(kind: &'static str, message: impl Into<String>) -> Failure {
        Failure { kind, message: message.into(), rule: None, fix: None, more: None }
    }

    pub fn wrong(message: impl Into<String>) -> Failure {
        Failure::new("wrong-arguments", message)
    }

    pub fn rule(self, rule: impl Into<String>) -> Failure {
        Failure { rule: Some(rule.into()), ..self }
    }

    pub fn fix(self, fix: impl Into<String>) -> Failure {
        Failure { fix: Some(fix.into()), ..self }
    }

    pub fn more(self, more: Value) -> Failure {
        Failure { more: Some(more), ..self }
    }

    /// The same whether there is no such thing or it is somebody else's.
    pub fn not_found(what: &str) -> Failure {
        Failure::new("not-found", format!("there is no such {what} here"))
            .fix("use an id or a whole name as a tool said it; ids of others lead nowhere")
    }

    pub fn told(&self) -> CallToolResult {
        let mut text = self.message.clone();
        for (name, said) in [("rule", &self.rule), ("fix", &self.fix)] {
            if let Some(said) = said.as_ref().filter(|said| !said.is_empty()) {
                text += &format!("\n{name}: {said}");
            }
        }
        let mut error = json!({"kind": self.kind, "message": self.message});
        for (name, said) in [("rule", &self.rule), ("fix", &self.fix)] {
            if let Some(said) = said {
                error[name] = said.clone().into();
            }
        }
        if let Some(more) = &self.more {
            error["more"] = more.clone();
            if let Some(output) = more["stderr"].as_str().filter(|output| !output.is_empty()) {
                text += &format!("\n{}", cut(output));
            }
        }
        let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
        // A client that checks structured content against the tool's schema does not check that of an error.
        result.structured_content = Some(json!({"error": error}));
        result
    }
}

impl Good {
    pub fn told(&self) -> CallToolResult {
        let mut content = vec![ContentBlock::text(cut(&self.text))];
        content.extend(self.images.iter().map(|(data, kind)| ContentBlock::image(data.clone(), *kind)));
        content.extend(self.links.iter().cloned().map(ContentBlock::resource_link));
        let mut result = CallToolResult::success(content);
        result.structured_content = Some(self.value.clone());
        result
    }
}

/// The beginning of a text, at a letter's end.
pub fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What a carrier answered, if it is none of the good answers. `what`: the thing that was named.
pub fn or_value(answer: Answer, what: &str) -> Result<Value, Failure> {
    match answer {
        Answer::Done(value) => Ok(value),
        Answer::Outcome(value) => of_outcome(value),
        Answer::NotFound => Err(Failure::not_found(what)),
        Answer::Wrong { what, hint: _ } => Err(Failure::wrong(what)),
        Answer::Conflict { what, hint } => Err(Failure::new("conflict", what).fix(hint)),
        Answer::NoContext { what, hint } => Err(Failure::new("no-context", what).fix(hint)),
        Answer::Trouble { message, fix } => Err(Failure::new("trouble", message).fix(fix)),
        Answer::Files(FileFailure { kind, message, fix }) => {
            let kind = match kind {
                FileTrouble::NotThere => "not-there",
                FileTrouble::Exists => "exists",
                FileTrouble::Differs => "differs",
                FileTrouble::WrongKind => "wrong-kind",
                FileTrouble::Denied => "denied",
                FileTrouble::TooLarge => "too-large",
                FileTrouble::NoRoom => "no-room",
                FileTrouble::Wrong => "wrong-arguments",
                FileTrouble::TooLong => "too-long",
                FileTrouble::Broken => "broken",
            };
            Err(Failure::new(kind, message).fix(fix))
        }
    }
}

/// A run that did not run is a failure; one that ran and said no is not.
fn of_outcome(result: Value) -> Result<Value, Failure> {
    let kind = match result["outcome"].as_str() {
        Some("ran") => return Ok(result),
        Some("refused") if result["code"] == 122 => "approval-missing",
        Some("refused") => "refused",
        Some("not-started") => "not-started",
        _ => "not-set-up",
    };
    let error = &result["error"];
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let mut failure = Failure::new(kind, text(&error["message"]).unwrap_or_else(|| "it was not run".to_owned()));
    failure.rule = text(&error["rule"]).or_else(|| text(&error["wall"]));
    failure.fix = text(&error["fix"]);
    if result["denials"].as_array().is_some_and(|list| !list.is_empty()) {
        failure.more = Some(json!({"denials": result["denials"]}));
    }
    Err(failure)
}

impl From<Lost> for Failure {
    fn from(lost: Lost) -> Failure {
        match lost {
            Lost::TooLarge(_) => Failure::wrong(lost.to_string()).fix("send less at once"),
            Lost::Ended | Lost::Io(_) => {
                Failure::new("lost", lost.to_string()).fix("nothing is known of its end; look, and try again")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_thing_the_rule_and_the_fix() {
        let result = json!({"outcome": "refused", "code": 123, "denials": [{"rule": "r"}],
            "error": {"message": "`curl` is denied", "rule": "exec.curl", "fix": "do without"}});
        let failure = or_value(Answer::Outcome(result), "run").expect_err("a refusal");
        let told = failure.told();
        assert_eq!(told.is_error, Some(true));
        let text = told.content[0].as_text().expect("text").text.clone();
        assert_eq!(text, "`curl` is denied\nrule: exec.curl\nfix: do without");
        let error = &told.structured_content.expect("structured")["error"];
        assert_eq!((&error["kind"], &error["more"]["denials"][0]["rule"]), (&json!("refused"), &json!("r")));
    }

    #[test]
    fn text_is_cut_at_a_letters_end() {
        let long = "é".repeat(LONGEST_TEXT);
        assert!(cut(&long).len() <= LONGEST_TEXT && cut(&long).chars().all(|letter| letter == 'é'));
    }
}
