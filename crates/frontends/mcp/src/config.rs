//! What a person puts where, so that a client starts this server.

use clap::ArgMatches;
use serde_json::{Value, json};

use crate::words::Client;

const NAME: &str = "belljar";

struct Snippet {
    /// Where it goes.
    file: &'static str,
    format: &'static str,
    text: String,
    /// What does the same.
    command: Option<String>,
}

pub fn text(client: Client, matches: &ArgMatches) -> String {
    let Snippet { file, format, text, command } = snippet(client, &words(matches));
    if matches.get_flag("json") {
        let mut object = json!({"file": file, "format": format, "text": text});
        if let Some(command) = command {
            object["command"] = command.into();
        }
        return format!("{object:#}\n");
    }
    // Comments are for people; what a program reads comes after them as it is.
    let mark = if format == "toml" { "#" } else { "//" };
    let other = command.map_or_else(String::new, |command| format!("{mark} or: {command}\n"));
    format!("{mark} in {file}:\n{other}{text}\n")
}

/// How this server is started: by the program that runs now, with the same options.
fn words(matches: &ArgMatches) -> Vec<String> {
    // `belljar` became us; it lies beside us, or is found as the shell finds it.
    let own = std::env::current_exe().ok().map(|own| own.with_file_name("belljar")).filter(|path| path.is_file());
    let program = own.and_then(|path| path.to_str().map(str::to_owned)).unwrap_or_else(|| "belljar".to_owned());
    let mut words = vec![program, "mcp".to_owned()];
    for name in ["workspace", "sandbox", "agent"] {
        let said = match name {
            "workspace" => matches.get_one::<std::path::PathBuf>(name).map(|path| path.to_string_lossy().into_owned()),
            _ => matches.get_one::<String>(name).cloned(),
        };
        words.extend(said.into_iter().flat_map(|said| [format!("--{name}"), said]));
    }
    words
}

fn snippet(client: Client, words: &[String]) -> Snippet {
    let (program, rest) = words.split_first().map_or(("belljar", &[][..]), |(program, rest)| (program.as_str(), rest));
    let server = json!({"command": program, "args": rest});
    match client {
        Client::ClaudeCode => Snippet {
            file: ".mcp.json",
            format: "json",
            text: format!("{:#}", json!({"mcpServers": {NAME: typed(&server)}})),
            command: Some(format!("claude mcp add --scope project {NAME} -- {}", line(words))),
        },
        Client::Codex => Snippet {
            file: "~/.codex/config.toml",
            format: "toml",
            text: format!(
                "[mcp_servers.{NAME}]\ncommand = {}\nargs = {}\n# A person may take longer than a minute to answer.\ntool_timeout_sec = 600",
                json!(program),
                json!(rest)
            ),
            command: Some(format!("codex mcp add {NAME} -- {}", line(words))),
        },
        Client::Cursor => Snippet {
            file: ".cursor/mcp.json",
            format: "json",
            text: format!("{:#}", json!({"mcpServers": {NAME: server}})),
            command: None,
        },
        Client::Vscode => Snippet {
            file: ".vscode/mcp.json",
            format: "json",
            text: format!("{:#}", json!({"servers": {NAME: typed(&server)}})),
            command: Some(format!("code --add-mcp {}", quoted(&vscode(&server).to_string()))),
        },
    }
}

fn typed(server: &Value) -> Value {
    json!({"type": "stdio", "command": server["command"], "args": server["args"]})
}

fn vscode(server: &Value) -> Value {
    json!({"name": NAME, "command": server["command"], "args": server["args"]})
}

fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// For a shell.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:@%+".contains(&byte);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(client: Client) -> Snippet {
        let words = ["/opt/bell jar/belljar", "mcp", "--agent", "it's"].map(str::to_owned);
        snippet(client, &words)
    }

    #[test]
    fn each_snippet_is_what_its_client_reads() {
        let claude: Value = serde_json::from_str(&of(Client::ClaudeCode).text).expect("JSON");
        assert_eq!(claude["mcpServers"]["belljar"]["args"], json!(["mcp", "--agent", "it's"]));
        let cursor: Value = serde_json::from_str(&of(Client::Cursor).text).expect("JSON");
        assert_eq!(cursor["mcpServers"]["belljar"]["command"], "/opt/bell jar/belljar");
        let vscode: Value = serde_json::from_str(&of(Client::Vscode).text).expect("JSON");
        assert_eq!(vscode["servers"]["belljar"]["type"], "stdio");
        // What JSON writes for text and lists of text is TOML, too.
        assert!(of(Client::Codex).text.starts_with(
            "[mcp_servers.belljar]\ncommand = \"/opt/bell jar/belljar\"\nargs = [\"mcp\",\"--agent\",\"it's\"]\n"
        ));
    }

    #[test]
    fn a_shell_reads_a_command_as_it_was_meant() {
        let command = of(Client::ClaudeCode).command.expect("a command");
        assert!(command.ends_with("-- '/opt/bell jar/belljar' mcp --agent 'it'\\''s'"), "{command}");
    }
}
