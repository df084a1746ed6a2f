//! Where real files change, and the host works on them meanwhile.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use belljar_testkit::Who;
use belljar_testkit::twice::{self, Check};
use libtest_mimic::Trial;

use crate::bench::{Bench, same, text};

pub const ALL: &[(&str, Check)] = &[
    ("a_workspace_that_was_replaced_is_not_looked_into", replaced),
    ("what_is_hidden_from_a_run_is_not_handed_over_by_it", hidden),
    ("a_file_that_is_closed_to_its_owner_is_said_to_be", closed),
    ("a_file_that_turns_into_a_link_and_back_leads_nowhere", swapped),
    ("what_is_written_directly_beside_layers_is_handed_over_too", beside),
];

/// Prepared by root, whoever the run is.
const BY_ROOT: &[(&str, Check)] = &[
    ("a_second_name_of_somebody_elses_file_is_not_the_runs_to_give", linked),
    ("a_device_is_named_and_opened_by_nobody", device),
];

pub fn trials() -> Vec<Trial> {
    let needs_root = (!rustix::process::geteuid().is_root()).then(|| "needs root".to_owned());
    let trial = |name, who, check: Check| {
        let why_not = twice::why_not(who).or_else(|| needs_root.clone());
        twice::trial(name, who, why_not, move || check(who))
    };
    let both = |(name, check): &(&'static str, Check)| [Who::Root, Who::Ordinary].map(|who| trial(name, who, *check));
    BY_ROOT.iter().flat_map(both).collect()
}

const DIRECT: &[&str] = &["--workspace-mode", "direct", "--artifact", "out"];
const SECRET: &str = "somebody else's secret\n";

fn linked(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let secret = bench.home.join("secret");
    fs::write(&secret, SECRET).map_err(text)?;
    // Neither the workspace's owner nor whoever runs belljar.
    chown(&secret, Some(12345), Some(12345)).map_err(text)?;
    bench.project.put("out/here", "").map_err(text)?;
    let name = bench.project.work.join("out/name");
    // Made while it runs, so that the kernel gives it a time within the run.
    let handed = bench.run_while(DIRECT, "echo fine > out/fine", || fs::hard_link(&secret, &name).map_err(text))?;
    same(fs::read(&name).map_err(text)?, SECRET).map_err(|why| format!("the control failed: {why}"))?;
    handed.withheld("out/name", "artifacts.owner")?;
    if !handed.one("out/name")?["digest"].is_null() {
        return Err("it was read".to_owned());
    }
    same(bench.get(handed.released("out/fine")?)?, "fine\n")?;
    bench.never_kept(SECRET.as_bytes())
}

fn device(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    bench.project.put("out/here", "").map_err(text)?;
    let path = bench.project.work.join("out/zero");
    let zero = rustix::fs::makedev(1, 5);
    let make = || {
        let kind = rustix::fs::FileType::CharacterDevice;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, 0o666.into(), zero).map_err(text)?;
        bench.project.give(&path).map_err(text)
    };
    let handed = bench.run_while(DIRECT, "echo fine > out/fine", make)?;
    handed.withheld("out/zero", "artifacts.kind")?;
    same(bench.get(handed.released("out/fine")?)?, "fine\n")
}

fn replaced(who: Who) -> Result<(), String> {
    for mode in ["cow", "direct"] {
        let bench = Bench::of(who)?;
        bench.project.put("out/here", "").map_err(text)?;
        // Else it is of the same tick as the run, and may be the run's.
        bench.project.let_it_age();
        let (work, moved) = (bench.project.work.clone(), bench.home.join("moved"));
        let flags = ["--workspace-mode", mode, "--artifact", "out", "--artifact", "passwd"];
        let handed = bench.run_while(&flags, "echo fine > out/fine", || {
            fs::rename(&work, &moved).map_err(text)?;
            symlink("/etc", &work).map_err(text)
        })?;
        if !work.join("passwd").exists() {
            return Err("the control failed: the link leads nowhere".to_owned());
        }
        fs::remove_file(&work).and_then(|()| fs::rename(&moved, &work)).map_err(text)?;
        handed.are(&["out/fine"]).map_err(|why| format!("{mode}: {why}"))?;
        same(bench.get(handed.released("out/fine")?)?, "fine\n")?;
        bench.never_kept(b"root:")?;
    }
    Ok(())
}

fn hidden(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    bench.project.put("out/.env", SECRET).map_err(text)?;
    bench.project.put("out/.keys/a", SECRET).map_err(text)?;
    let flags = [DIRECT, &["--hide", "out/.env", "--hide", "out/.keys"]].concat();
    // Changed by the host meanwhile: by their times, they are like the run's.
    let handed = bench.run_while(&flags, "echo fine > out/fine", || {
        bench.project.put("out/.env", SECRET).map_err(text)?;
        bench.project.put("out/.keys/a", SECRET).map_err(text)
    })?;
    handed.are(&["out/fine"])?;
    bench.never_kept(SECRET.as_bytes())?;
    let handed =
        bench.run_while(DIRECT, "echo fine > out/fine", || bench.project.put("out/.env", SECRET).map_err(text))?;
    handed.are(&["out/.env", "out/fine"]).map_err(|why| format!("the control failed: {why}"))
}

fn closed(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    let script = "mkdir out && echo a > out/closed && chmod 000 out/closed && echo fine > out/fine";
    let handed = bench.run(DIRECT, script)?;
    match who {
        // Nothing is closed to root, who owns it.
        Who::Root => same(bench.get(handed.released("out/closed")?)?, "a\n")?,
        Who::Ordinary => handed.withheld("out/closed", "artifacts.readable")?,
    }
    same(bench.get(handed.released("out/fine")?)?, "fine\n")
}

fn swapped(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    bench.project.put("out/here", "").map_err(text)?;
    bench.project.let_it_age();
    let secret = bench.home.join("secret");
    fs::write(&secret, SECRET).map_err(text)?;
    let (file, aside) = (bench.project.work.join("out/a"), bench.home.join("aside"));
    let done = AtomicBool::new(false);
    let (mut released, mut led_astray) = (0, 0);
    let swap = || -> Result<(), String> {
        while !done.load(Ordering::Relaxed) {
            fs::write(&aside, "fine").map_err(text)?;
            bench.project.give(&aside).map_err(text)?;
            fs::rename(&aside, &file).map_err(text)?;
            symlink(&secret, &aside).map_err(text)?;
            fs::rename(&aside, &file).map_err(text)?;
        }
        Ok(())
    };
    let outcome = std::thread::scope(|scope| {
        let swapping = scope.spawn(swap);
        let mut attack = || -> Result<(), String> {
            // At least so often; and until both sides of the coin were seen.
            for round in 0..600 {
                if round >= 12 && led_astray > 0 && released > 0 {
                    break;
                }
                // Who reads by the name is led astray: often enough, or this is no attack.
                led_astray += (0..50).filter(|_| fs::read(&file).is_ok_and(|read| read == SECRET.as_bytes())).count();
                let handed = bench.run(DIRECT, "true")?;
                for one in handed.list().iter().filter(|one| one["released"] == true) {
                    released += 1;
                    same(bench.get(one["id"].as_str().ok_or("an id")?)?, "fine")?;
                }
            }
            Ok(())
        };
        let attacked = attack();
        done.store(true, Ordering::Relaxed);
        let swapped = swapping.join().unwrap_or_else(|_| Err("the swapping ended early".to_owned()));
        attacked.and(swapped)
    });
    outcome?;
    if led_astray == 0 || released == 0 {
        return Err(format!("the control failed: {led_astray} led astray, {released} released"));
    }
    bench.never_kept(SECRET.as_bytes())
}

fn beside(who: Who) -> Result<(), String> {
    let bench = Bench::of(who)?;
    bench.project.put("direct/here", "").map_err(text)?;
    bench.project.let_it_age();
    let script = "echo real > direct/a; mkdir layered; echo apart > layered/b";
    let handed = bench.run(&["--write", "direct", "--artifact", "*/?"], script)?;
    same(bench.get(handed.released("direct/a")?)?, "real\n")?;
    same(bench.get(handed.released("layered/b")?)?, "apart\n")?;
    same(fs::read(bench.project.work.join("direct/a")).map_err(text)?, "real\n")?;
    match bench.project.work.join("layered").exists() {
        true => Err("the layer was no layer".to_owned()),
        false => Ok(()),
    }
}
