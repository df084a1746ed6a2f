//! What is no file, or no longer the file it was, in the place of one.

use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::bench::{Bench, same};

pub const ALL: &[(&str, Check)] = &[
    ("what_is_no_file_is_named_and_opened_by_nobody", kinds),
    ("a_link_to_a_folder_is_not_walked_into", folders),
    ("of_a_mode_only_the_right_to_execute_is_kept", modes),
    ("what_was_only_there_before_is_not_the_runs", before),
];

fn kinds(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let script = "mkdir out && mkfifo out/pipe && ln -s /etc/passwd out/link && ln -s nowhere out/dangling && \
                  ln -s fine out/inner && echo fine > out/fine && ln out/fine out/twin && \
                  perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) && bind(S, pack_sockaddr_un(\"out/socket\")) || exit 1'";
    for mode in ["cow", "direct"] {
        let begun = Instant::now();
        let handed = bench.run(&["--workspace-mode", mode, "--artifact", "out"], script)?;
        if begun.elapsed() > Duration::from_secs(20) {
            return Err(format!("it took {:?}", begun.elapsed()));
        }
        for special in ["out/pipe", "out/link", "out/dangling", "out/inner", "out/socket"] {
            handed.withheld(special, "artifacts.kind").map_err(|why| format!("{mode}: {why}"))?;
        }
        same(bench.get(handed.released("out/fine")?)?, "fine\n")?;
        // Another name of a file that the run made is as good.
        same(bench.get(handed.released("out/twin")?)?, "fine\n")?;
    }
    bench.never_kept(b"root:")
}

fn folders(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let script = "ln -s /etc out && mkdir real && echo fine > real/passwd";
    let handed = bench.run(&["--artifact", "out/pass*", "--artifact", "real/pass*"], script)?;
    handed.are(&["out", "real/passwd"])?;
    handed.withheld("out", "artifacts.kind")?;
    same(bench.get(handed.released("real/passwd")?)?, "fine\n")?;
    bench.never_kept(b"root:")
}

fn modes(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    // The sandbox may refuse to set such bits; then the host has done it.
    let script = "mkdir out && echo a > out/program && chmod 755 out/program && echo b > out/closed && \
                  chmod 000 out/closed && echo c > out/plain; chmod 6755 out/program 2>&1 || true";
    let handed = bench.run(&["--artifact", "out"], script)?;
    if handed.one("out/program")?["executable"] != true || handed.one("out/plain")?["executable"] != false {
        return Err(format!("{:#}", handed.result));
    }
    // In a layer of ours it is ours to read.
    same(bench.get(handed.released("out/closed")?)?, "b\n")?;
    let id = handed.released("out/program")?.to_owned();
    bench.project.done(["artifacts", "get", &id, "-o", "got"])?;
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(bench.project.work.join("got")).map_err(|error| error.to_string())?.permissions(),
    );
    match mode & 0o7100 {
        0o100 => Ok(()),
        _ => Err(format!("its mode is {mode:o}")),
    }
}

fn before(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    for name in ["out/old", "out/changed", "out/gone"] {
        bench.project.put(name, "before").map_err(|error| error.to_string())?;
    }
    bench.project.let_it_age();
    let script = "cat out/old > /dev/null; echo after > out/changed; rm out/gone; echo new > out/new";
    for mode in ["cow", "direct"] {
        let handed = bench.run(&["--workspace-mode", mode, "--artifact", "out"], script)?;
        handed.are(&["out/changed", "out/new"]).map_err(|why| format!("{mode}: {why}"))?;
        same(bench.get(handed.released("out/changed")?)?, "after\n")?;
        bench.project.put("out/gone", "before").map_err(|error| error.to_string())?;
        bench.project.let_it_age();
    }
    Ok(())
}
