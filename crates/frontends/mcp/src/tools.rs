//! Every tool: what it says of itself, what it needs, and what does it.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use rmcp::handler::server::tool::{schema_for_input, schema_for_output};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;

use crate::arguments as take;
use crate::caller::Needs;
use crate::calls::Ended;
use crate::deeds;
use crate::files;
use crate::house::Worker;
use crate::output as give;
use crate::said::Failure;

type Doing = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// A tool.
pub struct Known {
    pub tool: Tool,
    pub needs: Needs,
    /// Reads the arguments; what comes back does it.
    pub begin: fn(Worker, Option<JsonObject>) -> Result<Doing, Failure>,
}

/// What a tool does to things, as clients are told.
#[derive(Clone, Copy)]
enum Effect {
    /// Looks.
    Reads,
    /// Adds something; nothing is lost.
    Adds,
    /// May change or remove what is there; the same again changes nothing more.
    Replaces,
    /// May change or remove what is there, each time anew.
    Changes,
}

/// Whether it may reach what is outside of the sandbox and its workspace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum World {
    Closed,
    Open,
}

pub fn all() -> &'static [Known] {
    static ALL: OnceLock<Vec<Known>> = OnceLock::new();
    ALL.get_or_init(list)
}

pub fn find(name: &str) -> Option<&'static Known> {
    all().iter().find(|known| known.tool.name == name)
}

macro_rules! tool {
    ($name:literal, $title:literal, $needs:expr, $effect:expr, $world:expr, $take:ty => $give:ty, $deed:path, $about:literal) => {
        Known {
            tool: described::<$take, $give>($name, $title, $about, $effect, $world),
            needs: $needs,
            begin: |worker, arguments| {
                let arguments = take::read::<$take>(arguments)?;
                Ok(Box::pin($deed(worker, arguments)))
            },
        }
    };
}

fn list() -> Vec<Known> {
    use Effect::{Adds, Changes, Reads, Replaces};
    use Needs::{Files, Read, Run};
    use World::{Closed, Open};
    vec![
        tool!("run_command", "Run a command", Run, Changes, Open, take::RunCommand => give::Ran, deeds::run_command,
            "Run a program in a sandbox. What it changes stays in the sandbox until `apply`; real files are not touched. No network \
             unless the policy grants it. A command that exits with an error is a result, not an error of this tool."),
        tool!("run_code", "Run code", Run, Changes, Open, take::RunCode => give::Ran, deeds::run_code,
            "Run a piece of code in a sandbox: python, javascript, bash, sh, ruby, perl, php or lua, as far as the host has them. As \
             `run_command` otherwise."),
        tool!("read_file", "Read a file", Read, Reads, Closed, take::ReadFile => give::FileRead, files::read_file,
            "Read a file of a sandbox, or a part of it. Secrets in it are taken out."),
        tool!("write_file", "Write a file", Files, Replaces, Closed, take::WriteFile => give::FileWritten, files::write_file,
            "Write a whole file of a sandbox, in the place of what was there. Real files are not touched until `apply`."),
        tool!("edit_file", "Edit a file", Files, Changes, Closed, take::EditFile => give::FileWritten, files::edit_file,
            "Replace text in a file of a sandbox. All edits are made, or none; a file that changed meanwhile is not written."),
        tool!("list_files", "List files", Read, Reads, Closed, take::ListFiles => give::FileList, files::list_files,
            "List a folder of a sandbox: names, kinds, sizes, times."),
        tool!("search_files", "Search in files", Read, Reads, Closed, take::SearchFiles => give::FileMatches, files::search_files,
            "Look for text or a regular expression in the files of a sandbox, line by line."),
        tool!("diff", "Show changes", Read, Reads, Closed, take::Diff => give::Changed, deeds::diff,
            "What a sandbox changed against the real files, or against another sandbox; as a list, and as a patch if asked for."),
        tool!("apply", "Take changes", Files, Changes, Open, take::Apply => give::Applied, deeds::apply,
            "Take a sandbox's changes onto the real files. A person is always asked first, and answers outside of this protocol \
             (`belljar approve`); you cannot answer for them. `check` says what would happen without asking."),
        tool!("snapshot", "Keep a state", Files, Adds, Closed, take::Snapshot => give::Snapped, deeds::snapshot,
            "Keep the sandbox as it is now, to come back to with `rollback`."),
        tool!("rollback", "Go back", Files, Replaces, Closed, take::Rollback => give::Snapped, deeds::rollback,
            "Go back to a snapshot of the sandbox, or to the newest. What was changed in the sandbox since is gone."),
        tool!("fork", "Branch a sandbox", Run, Adds, Closed, take::Fork => give::Forked, deeds::fork,
            "Make new sandboxes that begin where this one is; each goes its own way."),
        tool!("list_artifacts", "List artifacts", Read, Reads, Closed, take::ListArtifacts => give::Artifacts, deeds::list_artifacts,
            "Files that runs handed over because `artifacts` asked for them, and those that were withheld, with the rule that says so."),
        tool!("get_artifact", "Get an artifact", Read, Reads, Closed, take::GetArtifact => give::ArtifactContents, deeds::get_artifact,
            "The contents of an artifact that was released."),
        tool!("explain_denial", "Explain a denial", Read, Reads, Closed, take::ExplainDenial => give::Explained, deeds::explain_denial,
            "Why something was denied, or would be: the rule, its reason, and the smallest change of the policy that a person could make. \
             Say either `run` or `command`."),
        tool!("request_permission", "Ask a person first", Run, Adds, Closed, take::RequestPermission => give::Permission, deeds::request_permission,
            "Ask whether a command may be run, before running it. Where the policy asks, a person is asked and answers outside of this \
             protocol (`belljar approve`); a yes is kept for ten minutes, for exactly this command once. What the policy denies stays \
             denied: then the answer says which grant a person could add."),
    ]
}

fn described<I: JsonSchema + 'static, O: JsonSchema + 'static>(
    name: &'static str,
    title: &'static str,
    about: &'static str,
    effect: Effect,
    world: World,
) -> Tool {
    let (reads, destroys, again) = match effect {
        Effect::Reads => (true, false, true),
        Effect::Adds => (false, false, false),
        Effect::Replaces => (false, true, true),
        Effect::Changes => (false, true, false),
    };
    let annotations = ToolAnnotations::with_title(title)
        .read_only(reads)
        .destructive(destroys)
        .idempotent(again)
        .open_world(world == World::Open);
    // Each is the schema of a struct, so there is one; a test looks at all of them.
    let input = schema_for_input::<I>().unwrap_or_else(|_| Arc::new(JsonObject::new()));
    Tool::new(name, about, input)
        .with_title(title)
        .with_raw_output_schema(schema_for_output::<O>())
        .with_annotations(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_tool_says_what_it_takes_and_gives_and_does() {
        for known in all() {
            let tool = &known.tool;
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], Value::Bool(false), "{}", tool.name);
            assert_eq!(tool.output_schema.as_ref().expect("an output")["type"], "object", "{}", tool.name);
            let annotations = tool.annotations.as_ref().expect("annotations");
            assert_eq!(annotations.read_only_hint, Some(known.needs == Needs::Read), "{}", tool.name);
            assert!(annotations.destructive_hint.is_some() && annotations.open_world_hint.is_some());
            assert!(tool.description.as_ref().is_some_and(|text| text.len() > 40));
        }
    }

    #[test]
    fn no_tool_answers_a_question() {
        for known in all() {
            let name = &known.tool.name;
            assert!(!["approve", "answer", "allow", "grant", "token", "secret"].iter().any(|word| name.contains(word)));
        }
    }
}
