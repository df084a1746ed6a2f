//! Docker's own client at the same machine: what an `exec` and a `run` take there.

use std::process::{Command, Stdio};
use std::time::Duration;

use testkit::contestant::belljar;
use testkit::engine::{self, Engine};

use crate::bench::runners::time;

/// `docker exec` and `docker run` of `true`; why not, where there is no engine.
pub fn measure(runs: usize) -> Result<[Vec<Duration>; 2], String> {
    if let Some(why) = engine::missing() {
        return Err(why);
    }
    let engine = Engine::start()?;
    let folder = std::env::temp_dir().join(format!("belljar-bench-docker-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // Makes belljar's own image.
    let mut makes = Command::new(belljar());
    makes.args(["run", "-q", "--backend", "container", "--workspace-mode", "readonly", "--", "true"]);
    time(makes.env("DOCKER_HOST", engine.host()).current_dir(&folder))?;
    std::fs::remove_dir_all(&folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    let docker = |words: &[&str]| {
        let mut command = Command::new("docker");
        command.arg("--host").arg(engine.host()).args(words).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let said = |words: &[&str]| {
        let output = docker(words).stdout(Stdio::piped()).output().map_err(|error| error.to_string())?;
        Ok::<_, String>(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
    };
    let image = said(&["images", "--format", "{{.Repository}}:{{.Tag}}", "belljar/busybox"])?;
    let kept = said(&["run", "--detach", "--init", "--network", "none", &image, "sleep", "100000"])?;
    let (mut execs, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        execs.push(time(&mut docker(&["exec", &kept, "true"]))?);
        starts.push(time(&mut docker(&["run", "--rm", "--init", "--network", "none", &image, "true"]))?);
    }
    Ok([execs, starts])
}
