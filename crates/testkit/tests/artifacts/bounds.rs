//! Sizes and numbers.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use belljar_testkit::Who;
use belljar_testkit::twice::Check;

use crate::bench::{Bench, same, text};

pub const ALL: &[(&str, Check)] = &[
    ("a_tebibyte_of_nothing_costs_nothing", sparse),
    ("five_thousand_files_are_a_thousand_and_said_to_be_more", many),
    ("a_pattern_that_could_mean_anything_else_is_refused_at_the_door", doors),
];

fn sparse(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let begun = Instant::now();
    let script = "mkdir out && truncate -s 1T out/huge && truncate -s 101M out/large && echo fine > out/small";
    let handed = bench.run(&["--disk", "2T", "--artifact", "out"], script)?;
    if begun.elapsed() > Duration::from_secs(20) {
        return Err(format!("it took {:?}", begun.elapsed()));
    }
    handed.withheld("out/huge", "artifacts.largest")?;
    handed.withheld("out/large", "artifacts.largest")?;
    if handed.one("out/huge")?["size"] != 1u64 << 40 {
        return Err(format!("the control failed: {:#}", handed.result));
    }
    same(bench.get(handed.released("out/small")?)?, "fine\n")?;
    let blobs = fs::read_dir(bench.project.state.join("belljar/blobs")).map_err(text)?.flatten();
    let on_disk: u64 = blobs.map(|blob| blob.metadata().map_or(0, |blob| blob.blocks() * 512)).sum();
    match on_disk < 1 << 20 {
        true => Ok(()),
        false => Err(format!("the store takes {on_disk} bytes")),
    }
}

fn many(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let script = "mkdir out && i=0; while [ $i -lt 5000 ]; do echo $i > out/$i; i=$((i+1)); done";
    let begun = Instant::now();
    let handed = bench.run(&["--artifact", "out"], script)?;
    if handed.list().len() != 1000 || handed.result["artifacts_not_listed"] != 4000 {
        return Err(format!("{} listed, {} not", handed.list().len(), handed.result["artifacts_not_listed"]));
    }
    let first = handed.released("out/0")?.to_owned();
    same(bench.get(&first)?, "0\n")?;
    eprintln!("5,000 files, 1,000 kept: {:?}", begun.elapsed());
    match begun.elapsed() < Duration::from_secs(120) {
        true => Ok(()),
        false => Err(format!("it took {:?}", begun.elapsed())),
    }
}

fn doors(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let inside = bench.project.work.join("out").display().to_string();
    let beside = format!("{}x/out", bench.project.work.display());
    let up = format!("{inside}/../../..");
    let long = "a".repeat(1025);
    let deep = "a/".repeat(64);
    let bad = ["", "..", "../x", "out/../..", "/etc", "/", &beside, &up, "a\nb", "\u{1b}[2J", &long, &deep];
    for pattern in bad {
        let flags = ["run", "--workspace-mode", "direct", "--artifact", pattern, "--", "touch", "ran"];
        let said = bench.say(&flags)?;
        let told = said.code == Some(125) && said.error.contains("can't name artifacts");
        if !told || said.error.contains('\u{1b}') || bench.project.work.join("ran").exists() {
            return Err(format!("{pattern:?}: {said:?}"));
        }
    }
    let flags: Vec<&str> = ["run"].into_iter().chain(["--artifact", "out"].into_iter().cycle().take(130)).collect();
    let said = bench.say(&[flags.as_slice(), &["--", "touch", "ran"]].concat())?;
    if said.code != Some(125) || !said.error.contains("64 is the most") {
        return Err(format!("{said:?}"));
    }
    let said = bench.say(&["run", "--workspace-mode", "readonly", "--artifact", "out", "--", "true"])?;
    if said.code != Some(125) || !said.error.contains("no workspace can be written to") {
        return Err(format!("{said:?}"));
    }
    // The control: absolute, within the workspace.
    let handed = bench.run(&["--artifact", &inside], "mkdir out && echo fine > out/a && echo other > b")?;
    handed.are(&["out/a"])
}
