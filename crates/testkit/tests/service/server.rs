//! A server for one test, with a home of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use serde_json::{Value, json};

use crate::client::{self, Address, Answer, Stream};
use crate::desk::Desk;
use crate::{holds, told};

pub struct Server {
    pub desk: Desk,
    child: Child,
    pub address: Address,
    pub token: String,
    log: Arc<Mutex<String>>,
}

impl Server {
    pub fn start(who: Who) -> Result<Server, String> {
        Server::with(Desk::of(who)?, &[])
    }

    pub fn with(desk: Desk, flags: &[&str]) -> Result<Server, String> {
        Server::on(desk, flags, None)
    }

    /// With programs of this folder before all others.
    pub fn on(desk: Desk, flags: &[&str], programs: Option<&Path>) -> Result<Server, String> {
        let (child, address, log) = launch(&desk, flags, programs)?;
        let token = told(fs::read_to_string(desk.project.state.join("belljar-service/token")))?.trim().to_owned();
        Ok(Server { desk, child, address, token, log })
    }

    /// Another one over the same state, when this one has ended.
    pub fn again(&mut self) -> Result<(), String> {
        (self.child, self.address, self.log) = launch(&self.desk, &[], None)?;
        Ok(())
    }

    pub fn log(&self) -> String {
        self.log.lock().expect("a log").clone()
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a number")
    }

    /// Where files of jobs are put.
    pub fn work(&self) -> PathBuf {
        self.desk.project.state.join("belljar-service-workspaces")
    }

    /// A token of another tenant, or with other scopes.
    pub fn make_token(&self, words: &[&str]) -> Result<String, String> {
        let said = self.desk.project.done([&["token", "create"], words].concat())?;
        Ok(String::from_utf8_lossy(&said.out).trim().to_owned())
    }

    pub fn send(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
        more: &[(&str, &str)],
    ) -> Result<Box<dyn Stream>, String> {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("Authorization", bearer.as_str())];
        if body.is_some() {
            headers.push(("Content-Type", "application/json"));
        }
        headers.extend(more);
        let body = body.map(Value::to_string).unwrap_or_default();
        client::send(&self.address, method, path, &headers, body.as_bytes())
    }

    pub fn as_(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<&Value>,
        more: &[(&str, &str)],
    ) -> Result<Answer, String> {
        client::receive(self.send(token, method, path, body, more)?)
    }

    pub fn get(&self, path: &str) -> Result<Answer, String> {
        self.as_(&self.token, "GET", path, None, &[])
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Answer, String> {
        self.as_(&self.token, "POST", path, Some(body), &[])
    }

    /// Entries of the ledger, of this kind.
    pub fn entries(&self, kind: &str) -> Result<Vec<Value>, String> {
        let page = self.get(&format!("/v1/ledger?type={kind}&limit=1000"))?.expect(200)?.json()?;
        Ok(page["items"].as_array().cloned().unwrap_or_default())
    }

    /// Begins something that runs until it is ended, and waits until it does. The words make it known among all processes.
    pub fn begin_endless(&self, mark: &str, stream: bool) -> Result<Box<dyn Stream>, String> {
        let stream = self.send(&self.token, "POST", "/v1/run", Some(&endless(mark, stream)), &[])?;
        until("it runs", || Ok(!processes(mark).is_empty()))?;
        Ok(stream)
    }

    pub fn signal(&self, signal: i32) -> Result<(), String> {
        // SAFETY: takes two integers; the child was not waited for, so its number is still its own.
        holds(unsafe { libc::kill(self.pid(), signal) } == 0, "it can't be signalled")
    }

    pub fn wait(&mut self) -> Result<ExitStatus, String> {
        told(self.child.wait())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn launch(
    desk: &Desk,
    flags: &[&str],
    programs: Option<&Path>,
) -> Result<(Child, Address, Arc<Mutex<String>>), String> {
    let mut words = vec!["serve"];
    if !flags.contains(&"--listen") {
        words.extend(["--listen", "127.0.0.1:0"]);
    }
    words.extend(flags);
    let mut command = desk.project.command(&words);
    if let Some(programs) = programs {
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display()));
    }
    begin_as(command)
}

/// One that is told everything by its words.
pub fn begin(desk: &Desk, words: &[&str]) -> Result<(Child, Address), String> {
    begin_as(desk.project.command(words)).map(|(child, address, _)| (child, address))
}

/// Whatever becomes a server: until it listens.
pub fn begin_as(mut command: Command) -> Result<(Child, Address, Arc<Mutex<String>>), String> {
    let mut child = told(command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn())?;
    let log = Arc::new(Mutex::new(String::new()));
    let mut lines = BufReader::new(child.stderr.take().ok_or("it has an error output")?);
    let address = loop {
        let mut line = String::new();
        if told(lines.read_line(&mut line))? == 0 {
            drop(child.wait());
            return Err(format!("it ended: {}", log.lock().expect("a log")));
        }
        log.lock().expect("a log").push_str(&line);
        if let Some((_, port)) = line.split_once("listening at http://127.0.0.1:") {
            break Address::Port(told(port.trim().parse())?);
        }
        if let Some((_, port)) = line.split_once("listening at https://127.0.0.1:") {
            break Address::Sealed(told(port.trim().parse())?);
        }
        if let Some((_, path)) = line.split_once("listening at unix:") {
            break Address::Socket(path.trim().into());
        }
    };
    let kept = log.clone();
    std::thread::spawn(move || {
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|count| count > 0) {
            kept.lock().expect("a log").push_str(&std::mem::take(&mut line));
        }
    });
    Ok((child, address, log))
}

/// Goes on until it is ended.
pub fn endless(mark: &str, stream: bool) -> Value {
    json!({"command": ["sh", "-c", "echo began; while :; do sleep 1; done", mark], "stream": stream})
}

/// Processes with this among their words, that are no client of ours.
pub fn processes(mark: &str) -> Vec<i32> {
    let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter(|number| {
            let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
        })
        .collect()
}

/// Children of a process, and theirs.
pub fn below(process: i32) -> Vec<i32> {
    let parent = |number: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<i32> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let mut found = vec![process];
    let mut at = 0;
    while at < found.len() {
        let children: Vec<i32> = all.iter().copied().filter(|number| parent(*number) == Some(found[at])).collect();
        found.extend(children);
        at += 1;
    }
    found.split_off(1)
}

/// Looks until it is so; a machine can be slow, but not without end.
pub fn until(what: &str, mut is: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(90) {
        if is()? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("not so in 90 s: {what}"))
}

pub fn mark(name: &str) -> String {
    // The same story runs twice in one process, as two users.
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("belljar-story-{name}-{}-{number}-", std::process::id())
}

/// Everything below a folder, by name.
pub fn names(folder: &Path) -> Vec<String> {
    let listed = fs::read_dir(folder).into_iter().flatten().flatten();
    listed.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
