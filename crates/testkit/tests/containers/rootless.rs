//! Engines of an ordinary user's own, without root: found where they listen, and what they can't hold is said by name.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Child, Command, Stdio};

use belljar_testkit::contestant::Who;
use belljar_testkit::project::{Project, Said};
use belljar_testkit::rootless::{Kind, Rootless};
use belljar_testkit::twice;
use libtest_mimic::Trial;

use crate::{keepers_of, signal, that};

pub fn trials() -> [Trial; 2] {
    [("rootless_podman", Kind::Podman), ("rootless_docker", Kind::Docker)].map(|(name, kind)| {
        let name = format!("{name}_runs_as_its_owner_and_says_what_it_does_not_hold");
        let why_not = belljar_testkit::rootless::missing(kind).or_else(|| twice::why_not(Who::Ordinary));
        twice::trial(&name, Who::Ordinary, why_not, move || all(kind))
    })
}

type Story = fn(&Place) -> Result<(), String>;

const STORIES: [(&str, Story); 8] = [
    ("it is found where it listens, and by each variable", found),
    ("limits that it does not hold are refused by name", refused),
    ("images are imported", imported),
    ("its root is its owner, without any power", nobody_special),
    ("changes are layers, and the caller's", layers),
    ("a network leads to the gate alone", gated),
    ("nothing is left of a belljar that is killed", killed),
    ("root does not use the engine of somebody else", anothers),
];

fn all(kind: Kind) -> Result<(), String> {
    let engine = Rootless::start(kind)?;
    let mut failed = Vec::new();
    let mut place = Place { engine, project: project()?, gaps: Vec::new() };
    place.gaps = place.gaps()?;
    for (name, story) in STORIES {
        place.project = project()?;
        match story(&place) {
            Ok(()) => println!("{name}: holds"),
            Err(why) => failed.push(format!("{name}: {why}")),
        }
        let left = place.engine.leavings_in_the_end()?;
        if !left.is_empty() {
            failed.push(format!("{name}: left {left:?}"));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn project() -> Result<Project, String> {
    Project::new(Who::Ordinary).map_err(text)
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

struct Place {
    engine: Rootless,
    project: Project,
    /// Walls that this engine does not hold here; each must be accepted by name.
    gaps: Vec<&'static str>,
}

impl Place {
    /// belljar as the engine's owner, told nothing but where sockets of that user are.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.project.command(words);
        command.env("XDG_RUNTIME_DIR", self.engine.runtime());
        command
    }

    fn belljar(&self, words: &[&str]) -> Result<Said, String> {
        self.command(words).output().map(Said::of).map_err(text)
    }

    /// What it says that it can't hold. Control groups of version 1 are nobody's but root's; others may be delegated.
    fn gaps(&self) -> Result<Vec<&'static str>, String> {
        let said = self.belljar(&["doctor", "--json"])?;
        let told: serde_json::Value =
            serde_json::from_slice(&said.out).map_err(|error| format!("{error}: {said:?}"))?;
        let backends = told["backends"].as_array().cloned().unwrap_or_default();
        let ours = backends.iter().find(|one| one["backend"] == "container").ok_or("it does not know the backend")?;
        let features = ours["features"].as_array().cloned().unwrap_or_default();
        let feature = |what: &str| features.iter().find(|one| one["what"] == what).cloned().unwrap_or_default();
        that(feature("its rights")["detail"] == "rootless", || ours.to_string())?;
        let holds = feature("limits by control groups")["works"] == true;
        let can_be = fs::metadata("/sys/fs/cgroup/cgroup.controllers").is_ok();
        that(can_be || !holds, || format!("nobody can hold limits here, and it says that it does: {ours}"))?;
        Ok(if holds { Vec::new() } else { vec!["memory", "process-count"] })
    }

    fn words<'a>(&self, flags: &[&'a str], script: &'a str) -> Vec<&'a str> {
        let gaps = self.gaps.iter().flat_map(|gap| ["--accept-gap", gap]);
        let words = ["run", "-q", "--backend", "container"].into_iter().chain(gaps).chain(flags.iter().copied());
        words.chain(["--", "sh", "-c", script]).collect()
    }

    fn run(&self, flags: &[&str], script: &str) -> Result<Said, String> {
        self.belljar(&self.words(flags, script))
    }

    fn said(&self, flags: &[&str], script: &str) -> Result<String, String> {
        let said = self.run(flags, script)?;
        match said.code {
            Some(0) => Ok(String::from_utf8_lossy(&said.out).into_owned()),
            _ => Err(format!("{script}: {said:?}")),
        }
    }

    /// A command that says when it runs, and then stays.
    fn begin(&self) -> Result<Child, String> {
        let mut command = self.command(&self.words(&[], "echo ready; sleep 300"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(text)?;
        let mut word = [0u8; 6];
        let heard = child.stdout.as_mut().map(|out| out.read_exact(&mut word));
        if !matches!(heard, Some(Ok(()))) {
            let said = child.wait_with_output().map(Said::of).map_err(text)?;
            return Err(format!("it did not begin: {said:?}"));
        }
        Ok(child)
    }
}

fn found(place: &Place) -> Result<(), String> {
    that(place.said(&[], "echo found")? == "found\n", || "nothing was said".to_owned())?;
    let none = place.project.belljar(place.words(&[], "true")).map_err(text)?;
    that(none.code == Some(125) && none.error.contains("no container engine answers"), || format!("{none:?}"))?;
    for variable in ["DOCKER_HOST", "CONTAINER_HOST"] {
        let mut command = place.project.command(place.words(&[], "echo found"));
        let said = command.env(variable, place.engine.host()).output().map(Said::of).map_err(text)?;
        that(said.code == Some(0) && said.out == b"found\n", || format!("{variable}: {said:?}"))?;
    }
    Ok(())
}

fn refused(place: &Place) -> Result<(), String> {
    let plain = ["run", "--backend", "container", "--memory", "64M", "--", "sh", "-c", "echo ran"];
    let said = place.belljar(&plain)?;
    if place.gaps.is_empty() {
        return that(said.code == Some(0), || format!("{said:?}"));
    }
    that(said.code == Some(125) && said.out.is_empty(), || format!("it ran without a limit: {said:?}"))?;
    for part in ["`memory`", "--accept-gap memory", "--accept-gap process-count"] {
        that(said.error.contains(part), || format!("no {part} in {said:?}"))?;
    }
    // Accepted, the result says so.
    let said = place.run(&["--json"], "true")?;
    let line = said.error.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let result: serde_json::Value = serde_json::from_str(line).map_err(|error| format!("{error}: {said:?}"))?;
    let gaps = result["accepted_gaps"].to_string();
    that(place.gaps.iter().all(|gap| gaps.contains(gap)), || result.to_string())?;
    // Those that belljar holds itself are held.
    let late = place.run(&["--timeout", "1s"], "sleep 60")?;
    that(late.code == Some(124), || format!("{late:?}"))?;
    let large = place.run(&["--output", "1000"], "yes | head -c 100000")?;
    that(large.out.len() <= 1000, || format!("{} bytes", large.out.len()))?;
    that(place.said(&[], "ulimit -c")? == "0\n", || "cores are not limited".to_owned())
}

fn imported(place: &Place) -> Result<(), String> {
    let root = place.project.work.join("root");
    fs::create_dir_all(root.join("bin")).map_err(text)?;
    fs::copy("/bin/busybox", root.join("bin/busybox")).map_err(text)?;
    std::os::unix::fs::symlink("busybox", root.join("bin/sh")).map_err(text)?;
    let path = root.to_string_lossy().into_owned();
    let said = place.belljar(&["image", "import", &path, "--name", "belljar/own", "--json"])?;
    that(said.code == Some(0), || format!("{said:?}"))?;
    let inside = place.said(&["--image", "belljar/own"], "busybox ls /")?;
    that(inside.lines().any(|line| line == "bin"), || inside.clone())?;
    let said = place.belljar(&["image", "rm", "belljar/own"])?;
    that(said.code == Some(0), || format!("{said:?}"))
}

fn nobody_special(place: &Place) -> Result<(), String> {
    // Of the host's root, who is nobody inside; of the caller, who is there.
    place.project.put("roots", "treasure\n").map_err(text)?;
    let roots = place.project.work.join("roots");
    fs::set_permissions(&roots, fs::Permissions::from_mode(0o600)).map_err(text)?;
    std::os::unix::fs::chown(&roots, Some(0), Some(0)).map_err(text)?;
    place.project.put("own", "mine\n").map_err(text)?;
    let script = "grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; touch /x 2>&1; ls /sys/class/net; \
                  cat own; cat roots 2>&1; chown 7:7 own 2>&1; mount -t tmpfs none /mnt 2>&1; true";
    let said = place.said(&[], script)?;
    let none = "0000000000000000";
    let effective = format!("CapEff:\t{none}");
    let bounding = format!("CapBnd:\t{none}");
    for line in [effective.as_str(), &bounding, "NoNewPrivs:\t1", "Seccomp:\t2", "Read-only file system", "mine"] {
        that(said.contains(line), || format!("`{line}` in {said}"))?;
    }
    that(!said.contains("treasure") && !said.contains("eth0") && !said.contains("tap0"), || said.clone())?;
    that(said.contains("own: Operation not permitted") || said.contains("own: Permission denied"), || said.clone())
}

fn layers(place: &Place) -> Result<(), String> {
    let work = &place.project.work;
    let user = Who::Ordinary.user_id();
    place.project.put("in.txt", "before\n").map_err(text)?;
    place.project.put("gone", "").map_err(text)?;
    place.project.put("out/x", "").map_err(text)?;
    place.project.let_it_age();
    let out = work.join("out").to_string_lossy().into_owned();
    let script = "cat in.txt; echo after > in.txt; rm gone; mkdir made; echo new > made/file; echo direct > out/y";
    let read = place.said(&["--write", &out], script)?;
    that(read == "before\n", || read.clone())?;
    let own = fs::read_to_string(work.join("in.txt")).map_err(text)?;
    that(own == "before\n" && !work.join("made").exists(), || own)?;
    let direct = fs::metadata(work.join("out/y")).map_err(text)?;
    that(direct.uid() == user && direct.gid() == user, || format!("it is {}:{}'s", direct.uid(), direct.gid()))?;
    let id = place.project.kept()?[0]["id"].as_str().unwrap_or_default().to_owned();
    place.project.done(["apply", &id])?;
    that(!work.join("gone").exists(), || "what was removed is there".to_owned())?;
    for (name, expected) in [("in.txt", "after\n"), ("made/file", "new\n")] {
        let file = work.join(name);
        let (now, whose) = (fs::read_to_string(&file).map_err(text)?, fs::metadata(&file).map_err(text)?.uid());
        that(now == expected && whose == user, || format!("{name}: {now:?} of {whose}"))?;
    }
    // And nothing is left that only another could remove.
    let left = place.project.leavings()?;
    that(left.is_empty(), || format!("left: {left:?}"))?;
    place.said(&[], "mkdir -p a/b; echo x > a/b/c; chmod 0 a/b")?;
    let id = place.project.kept()?[0]["id"].as_str().unwrap_or_default().to_owned();
    place.project.done(["rm", &id])?;
    let left = place.project.leavings()?;
    that(left.is_empty(), || format!("left: {left:?}"))
}

fn gated(place: &Place) -> Result<(), String> {
    let server = TcpListener::bind("127.0.0.1:0").map_err(text)?;
    let port = server.local_addr().map_err(text)?.port();
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            let mut bytes = [0u8; 512];
            let asked = stream
                .read(&mut bytes)
                .and_then(|_| stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nserved"));
            drop(asked);
        }
    });
    let host = format!("localhost:{port}");
    let fetch = format!(
        "(printf 'GET / HTTP/1.1\\r\\nHost: localhost:{port}\\r\\nConnection: close\\r\\n\\r\\n'; sleep 3) | nc 127.0.0.1 {port}"
    );
    let said = place.run(&["--allow-net", &host], &fetch)?;
    that(String::from_utf8_lossy(&said.out).contains("served"), || format!("{said:?}"))?;
    let words = place.words(&["--allow-net", &host], "nc -w 5 192.0.2.1 80 < /dev/null; true");
    let said = place.belljar(&words.into_iter().filter(|word| *word != "-q").collect::<Vec<_>>())?;
    that(said.code == Some(0) && said.error.contains("192.0.2.1:80: is not a granted host"), || format!("{said:?}"))?;
    // Without a grant there is no way at all.
    let said = place.run(&[], &format!("nc -w 5 127.0.0.1 {port} < /dev/null"))?;
    that(said.code != Some(0) && said.out.is_empty(), || format!("{said:?}"))
}

fn killed(place: &Place) -> Result<(), String> {
    let mut child = place.begin()?;
    that(!place.engine.leavings()?.is_empty(), || "nothing is there to be left".to_owned())?;
    signal(child.id(), libc::SIGKILL);
    child.wait().map_err(text)?;
    let left = place.engine.leavings_in_the_end()?;
    that(left.is_empty(), || format!("its keeper left {left:?}"))?;
    // With its keeper: the next one finds it by its label.
    let mut child = place.begin()?;
    let keepers = keepers_of(child.id());
    that(keepers.len() == 1, || format!("keepers: {keepers:?}"))?;
    signal(keepers[0], libc::SIGKILL);
    signal(child.id(), libc::SIGKILL);
    child.wait().map_err(text)?;
    that(!place.engine.leavings()?.is_empty(), || "nothing is left: this proves nothing".to_owned())?;
    let said = place.belljar(&["gc"])?;
    that(said.code == Some(0), || format!("{said:?}"))?;
    let left = place.engine.leavings()?;
    that(left.is_empty(), || format!("after gc: {left:?}"))
}

fn anothers(place: &Place) -> Result<(), String> {
    let project = Project::new(Who::Root).map_err(text)?;
    let mut command = project.command(place.words(&[], "true"));
    let said = command.env("DOCKER_HOST", place.engine.host()).output().map(Said::of).map_err(text)?;
    that(said.code == Some(125) && said.error.contains("is rootless and of user"), || format!("{said:?}"))
}
