//! JSON-RPC as it is on the wire: exactly what a story wants to send.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::server::Server;
use crate::{holds, told};

pub const NEWEST: &str = "2026-07-28";
const PATIENCE: Duration = Duration::from_secs(120);

/// What every request of the newest revision brings along.
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
    })
}

/// A call of a tool, at the newest revision.
pub fn call(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments, "_meta": meta()})
}

/// The same again, with what the server gave to hold.
pub fn again(tool: &str, arguments: &Value, state: &Value, responses: Option<Value>) -> Value {
    let mut params = call(tool, arguments);
    params["requestState"] = state.clone();
    if let Some(responses) = responses {
        params["inputResponses"] = responses;
    }
    params
}

/// What was wrong, of a tool's error.
pub fn kind(result: &Value) -> &str {
    result["structuredContent"]["error"]["kind"].as_str().unwrap_or_default()
}

/// Either way to talk.
pub trait Talks {
    /// The result; or what the protocol says is wrong.
    fn ask(&mut self, method: &str, params: Value) -> Result<Result<Value, Value>, String>;

    fn done(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.ask(method, params)?.map_err(|error| format!("{method}: {error}"))
    }

    fn tool(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        self.done("tools/call", call(tool, &arguments))
    }
}

/// Over standard input and output.
pub struct Stdio_ {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
}

impl Stdio_ {
    pub fn start(desk: &Desk, words: &[&str]) -> Result<Stdio_, String> {
        let mut command = desk.project.command([&["mcp"], words].concat());
        let mut child = told(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn())?;
        let output = BufReader::new(child.stdout.take().ok_or("an output")?);
        let (sends, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sends.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Stdio_ { input: child.stdin.take(), child, lines, next: 0 })
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("it is open")?;
        told(input.write_all(bytes))?;
        told(input.write_all(b"\n"))
    }

    pub fn hear(&self) -> Result<Value, String> {
        let line = told(self.lines.recv_timeout(PATIENCE))?;
        serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))
    }

    /// With the older handshake, at this revision.
    pub fn shake_hands(&mut self, version: &str) -> Result<Value, String> {
        let info = json!({"name": "raw", "version": "0"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
        let said = self.done("initialize", params)?;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string().as_bytes())?;
        Ok(said)
    }

    pub fn begin(&mut self, method: &str, params: &Value) -> Result<u64, String> {
        self.next += 1;
        let id = self.next;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string().as_bytes())?;
        Ok(id)
    }

    pub fn end(&mut self, id: u64) -> Result<Result<Value, Value>, String> {
        loop {
            let heard = self.hear()?;
            if heard["id"] == id {
                return Ok(match heard.get("result") {
                    Some(result) => Ok(result.clone()),
                    None => Err(heard["error"].clone()),
                });
            }
        }
    }

    /// The client goes away, and it ends.
    pub fn leave(mut self) -> Result<(), String> {
        drop(self.input.take());
        let status = told(self.child.wait())?;
        holds(status.success(), status)
    }
}

impl Talks for Stdio_ {
    fn ask(&mut self, method: &str, params: Value) -> Result<Result<Value, Value>, String> {
        let id = self.begin(method, &params)?;
        self.end(id)
    }
}

impl Drop for Stdio_ {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Over HTTP, with a token, at the newest revision.
pub struct Http<'a> {
    pub server: &'a Server,
    pub token: String,
}

pub const ACCEPT: (&str, &str) = ("Accept", "application/json, text/event-stream");

impl Http<'_> {
    pub fn post(&self, message: &Value, more: &[(&str, &str)]) -> Result<crate::client::Answer, String> {
        self.server.as_(&self.token, "POST", "/mcp", Some(message), &[&[ACCEPT], more].concat())
    }
}

impl Talks for Http<'_> {
    fn ask(&mut self, method: &str, params: Value) -> Result<Result<Value, Value>, String> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
        let mut more = vec![("MCP-Protocol-Version", NEWEST), ("Mcp-Method", method)];
        if !name.is_empty() {
            more.push(("Mcp-Name", &name));
        }
        let answer = self.post(&message, &more)?;
        let heard = message_of(&answer).ok_or_else(|| format!("{} {}", answer.status, answer.text()))?;
        Ok(match heard.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(heard["error"].clone()),
        })
    }
}

/// The answer in a body, whether it came as a stream or at once.
pub fn message_of(answer: &crate::client::Answer) -> Option<Value> {
    let text = answer.text();
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        return Some(value).filter(|value| value.get("result").is_some() || value.get("error").is_some());
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok())
        .find(|value| value.get("result").is_some() || value.get("error").is_some())
}
