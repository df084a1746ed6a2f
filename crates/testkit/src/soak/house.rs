//! The server under test, which is started again and again over one state.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::Client;
use crate::contestant::Who;
use crate::dice::Dice;
use crate::project::Project;

/// Ends are asynchronous where somebody was killed.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct House {
    pub project: Project,
    /// Among the words of guests: how ours are told from others on this machine.
    mark: String,
    server: Mutex<Option<Child>>,
    port: u16,
    token: String,
    /// Control groups that were there before.
    pub groups: BTreeSet<PathBuf>,
}

impl House {
    pub fn new(who: Who) -> Result<House, String> {
        let project = Project::new(who).and_then(Project::at_home).map_err(|error| error.to_string())?;
        let mut random = [0u8; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| error.to_string())?;
        let mark = format!("belljar-soak-{:016x}", u64::from_ne_bytes(random));
        let groups = super::left::groups();
        Ok(House { project, mark, server: Mutex::default(), port: 0, token: String::new(), groups })
    }

    pub fn mark(&self) -> &str {
        &self.mark
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    pub fn start(&mut self) -> Result<(), String> {
        let mut command = self.project.command(["serve", "--listen", "127.0.0.1:0", "--rate", "100000"]);
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = child.map_err(|error| format!("it can't be started: {error}"))?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("it has an error output")?);
        let mut all = String::new();
        self.port = loop {
            let mut line = String::new();
            if lines.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
                drop(child.wait());
                return Err(format!("it ended: {all}"));
            }
            if let Some((_, port)) = line.split_once("listening at http://127.0.0.1:") {
                break port.trim().parse().map_err(|_| format!("no port: {line}"))?;
            }
            all += &line;
        };
        std::thread::spawn(move || drop(std::io::copy(&mut lines, &mut std::io::sink())));
        let token = fs::read_to_string(self.project.state.join("belljar-service/token"));
        self.token = token.map_err(|error| error.to_string())?.trim().to_owned();
        *self.lock() = Some(child);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn pid(&self) -> Option<u32> {
        self.lock().as_ref().map(Child::id)
    }

    pub fn reap(&self) {
        super::left::reap(self.pid());
    }

    /// Whether there was one.
    pub fn signal_server(&self, signal: i32) -> bool {
        // SAFETY: takes two integers; our own child, not yet waited for.
        self.lock().as_ref().is_some_and(|child| unsafe { libc::kill(child.id() as i32, signal) } == 0)
    }

    pub fn kill(&mut self) -> Result<(), String> {
        self.signal_server(libc::SIGKILL);
        self.wait()
    }

    fn wait(&mut self) -> Result<(), String> {
        let Some(mut child) = self.lock().take() else { return Ok(()) };
        child.wait().map(drop).map_err(|error| error.to_string())
    }

    /// Throws away what is kept: of runs that changed something, and whose client had no time to do it. Whoever was ended a moment ago may
    /// still be at it.
    pub fn clear(&self) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let until = Instant::now() + PATIENCE;
        loop {
            self.reap();
            let page = self.get("/v1/sandboxes?limit=1000")?;
            let page: Value = serde_json::from_str(&page).map_err(|error| error.to_string())?;
            let items = page["items"].as_array().cloned().unwrap_or_default();
            if items.is_empty() {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("these stay: {items:?}"));
            }
            for item in items.iter().filter(|item| item["running"] == false) {
                let mut client = Client::connect(self).map_err(text)?;
                let path = format!("/v1/sandboxes/{}", item["id"].as_str().unwrap_or_default());
                client.send("DELETE", &path, &Value::Null).map_err(text)?;
                match client.receive().map_err(text)? {
                    (200 | 404, _) => {}
                    (status, body) => return Err(format!("{path}: {status} {body}")),
                }
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// In order.
    pub fn end(&mut self) -> Result<(), String> {
        self.signal_server(libc::SIGTERM);
        self.wait()?;
        self.reap();
        Ok(())
    }

    /// One of the processes inside, if there is any. By a descriptor: its number may be another's a moment later.
    pub fn kill_a_guest(&self, dice: &mut Dice) -> bool {
        let guests = super::left::with_word(&self.mark);
        let Some(pid) = usize::try_from(dice.throw()).ok().and_then(|at| guests.get(at % guests.len().max(1)).copied())
        else {
            return false;
        };
        let Some(pid) = rustix::process::Pid::from_raw(pid) else { return false };
        let Ok(descriptor) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
            return false;
        };
        super::left::has_word(pid.as_raw_nonzero().get(), &self.mark)
            && rustix::process::pidfd_send_signal(&descriptor, rustix::process::Signal::KILL).is_ok()
    }

    /// Waits until nothing runs, and nothing is being made ready.
    pub fn rests(&self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        let mut before = 0;
        while Instant::now() < until {
            self.reap();
            let text = self.get("/v1/metrics")?;
            let number = |name: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name));
                line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(u64::MAX)
            };
            let now = self.descriptors()?;
            if number("belljar_service_runs ") == 0 && now == before {
                return Ok(());
            }
            before = now;
            std::thread::sleep(Duration::from_millis(100));
        }
        Err("it does not come to rest".to_owned())
    }

    pub fn get(&self, path: &str) -> Result<String, String> {
        let text = |error: std::io::Error| error.to_string();
        let mut client = Client::connect(self).map_err(text)?;
        client.send("GET", path, &Value::Null).map_err(text)?;
        match client.receive().map_err(text)? {
            (200, body) => Ok(body),
            (status, body) => Err(format!("{path}: {status} {body}")),
        }
    }

    /// Of the server, in KiB.
    pub fn memory(&self) -> Result<u64, String> {
        let pid = self.pid().ok_or("there is a server")?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| error.to_string())?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("it has a size")?;
        line.trim().trim_end_matches("kB").trim().parse().map_err(|_| format!("no size: {line}"))
    }

    pub fn descriptors(&self) -> Result<u64, String> {
        let pid = self.pid().ok_or("there is a server")?;
        let listed = fs::read_dir(format!("/proc/{pid}/fd")).map_err(|error| error.to_string())?;
        Ok(listed.count() as u64)
    }

    /// Whether the record is sound, and has the end of each run that was answered; how many ends it has.
    pub fn records(&self, answered: &BTreeSet<String>) -> Result<u64, String> {
        let verified = self.project.done(["ledger", "verify"])?;
        drop(verified);
        let mut missing = answered.clone();
        let (mut cursor, mut ends) = (0u64, 0);
        loop {
            let page = self.get(&format!("/v1/ledger?type=run.ended&limit=1000&cursor={cursor}"))?;
            let page: Value = serde_json::from_str(&page).map_err(|error| error.to_string())?;
            let items = page["items"].as_array().cloned().unwrap_or_default();
            let Some(last) = items.last().and_then(|entry| entry["n"].as_u64()) else { break };
            ends += items.len() as u64;
            for entry in &items {
                missing.remove(entry["run"].as_str().unwrap_or_default());
            }
            cursor = last;
        }
        match missing.len() {
            0 => Ok(ends),
            lost => Err(format!("{lost} runs were answered and are not on the record, such as {:?}", missing.first())),
        }
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.signal_server(libc::SIGKILL);
        drop(self.wait());
    }
}
