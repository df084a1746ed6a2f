//! The same with Podman, whose API is Docker's in most.

use belljar_testkit::contestant::Who;
use belljar_testkit::podman::Podman;
use belljar_testkit::project::{Project, Said};
use belljar_testkit::twice::Check;

use crate::that;

pub const ALL: [(&str, Check); 1] = [("podman_as_a_service_is_found_by_its_variable_and_holds_what_it_says", story)];

struct Place {
    podman: Podman,
    project: Project,
}

impl Place {
    fn belljar(&self, words: &[&str]) -> Result<Said, String> {
        let mut command = self.project.command(words);
        command.env("CONTAINER_HOST", self.podman.host());
        command.output().map(Said::of).map_err(|error| error.to_string())
    }

    fn run(&self, flags: &[&str], script: &str) -> Result<Said, String> {
        self.belljar(&[&["run", "-q", "--backend", "container"], flags, &["--", "sh", "-c", script]].concat())
    }

    fn said(&self, flags: &[&str], script: &str) -> Result<String, String> {
        let said = self.run(flags, script)?;
        match said.code {
            Some(0) => Ok(String::from_utf8_lossy(&said.out).into_owned()),
            _ => Err(format!("{script}: {said:?}")),
        }
    }
}

fn story(who: Who) -> Result<(), String> {
    let place = Place { podman: Podman::start()?, project: Project::new(who).map_err(|error| error.to_string())? };
    place.project.put("in.txt", "of the project\n").map_err(|error| error.to_string())?;
    // Without the variable there is none.
    let words = ["run", "-q", "--backend", "container", "--", "true"];
    let none = place.project.belljar(words).map_err(|error| error.to_string())?;
    that(none.code == Some(125), || format!("{none:?}"))?;
    let doctor = place.belljar(&["doctor"])?;
    let told = String::from_utf8_lossy(&doctor.out).into_owned();
    that(told.contains("Libpod"), || told.clone())?;
    that(told.contains("Podman limits the size of filesystems in memory, and not how many files"), || told.clone())?;
    // What it is: nobody's user, no powers, no network, a root that can't be written.
    let status = place.said(
        &[],
        "id -u; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; ls /sys/class/net; touch /x 2>&1; true",
    )?;
    for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "Read-only file system"] {
        that(status.contains(line), || format!("`{line}` in {status}"))?;
    }
    that(!status.starts_with("0\n") && !status.contains("eth0"), || status.clone())?;
    // Changes are layers, as everywhere.
    let read = place.said(&[], "cat in.txt; echo changed > in.txt; echo new > made.txt")?;
    that(read == "of the project\n", || read.clone())?;
    let own = std::fs::read_to_string(place.project.work.join("in.txt")).map_err(|error| error.to_string())?;
    that(own == "of the project\n" && !place.project.work.join("made.txt").exists(), || own)?;
    let kept = place.project.kept()?;
    let id = kept[0]["id"].as_str().ok_or_else(|| format!("it is kept: {kept}"))?.to_owned();
    let diff = place.project.done(["diff", &id])?;
    that(String::from_utf8_lossy(&diff.out).contains("made.txt"), || format!("{diff:?}"))?;
    place.project.done(["apply", &id])?;
    let own = std::fs::read_to_string(place.project.work.join("made.txt")).map_err(|error| error.to_string())?;
    that(own == "new\n", || own)?;
    // Limits: time, processes, memory.
    let late = place.run(&["--timeout", "1s"], "sleep 60")?;
    that(late.code == Some(124), || format!("{late:?}"))?;
    let many = place.run(&["--pids", "10"], "i=0; while [ $i -lt 30 ]; do sleep 5 & i=$((i + 1)); done; echo all")?;
    that(!many.out.ends_with(b"all\n") || many.error.contains("fork"), || format!("{many:?}"))?;
    // A code is handed on, input is read, and who is missing is missing.
    let code = place.run(&[], "exit 7")?;
    that(code.code == Some(7), || format!("{code:?}"))?;
    let image = place.run(&["--image", "none-such:1"], "true")?;
    that(image.code == Some(125) && image.error.contains("does not let images be pulled"), || format!("{image:?}"))?;
    let left = place.podman.leavings_in_the_end();
    that(left.is_empty(), || format!("left {left:?}"))
}
