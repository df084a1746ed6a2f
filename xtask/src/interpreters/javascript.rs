//! QuickJS-NG, from the sources that the crate `rquickjs-sys` carries, with a `main` of our own that is called as Node's is.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Built, is_fresh, quietly, stamp, tools};
use crate::place;

const VERSION: &str = "QuickJS-NG of rquickjs-sys 0.14.0";
const SOURCES: &[&str] = &["libregexp.c", "libunicode.c", "dtoa.c", "quickjs-libc.c"];
const FLAGS: &[&str] = &[
    "--target=wasm32-wasi", "-O2", "-w", "-D_GNU_SOURCE", "-D_WASI_EMULATED_PROCESS_CLOCKS", "-D_WASI_EMULATED_SIGNAL",
    "-D_WASI_EMULATED_GETPID",
];
const LINKED: &[&str] = &[
    "-lm", "-lwasi-emulated-process-clocks", "-lwasi-emulated-signal", "-lwasi-emulated-getpid",
    // Its stack lies before all else: one that overflows ends the module, and overwrites nothing.
    "-Wl,-z,stack-size=2097152", "-Wl,--stack-first", "-Wl,--strip-all",
];

/// The one thing that is changed: for WASI it does not look how deep its stack is, and a script that calls itself for ever
/// would end the module instead of getting an error that it can catch.
const UNLIMITED: &str = "#if defined(__wasi__)\n    rt->stack_limit = 0; /* no limit */\n#else";

pub fn build(work: &Path) -> Result<Built, String> {
    let recipe = place::tree().join("xtask/interpreters/javascript");
    let read =
        |name: &str| fs::read(recipe.join(name)).map_err(|error| format!("{}: {error}", recipe.join(name).display()));
    let (main, prelude, library) = (read("main.c")?, read("prelude.js")?, read("library.js")?);
    let lock = read("Cargo.lock")?;
    let module = work.join("javascript.wasm");
    let built = Built {
        language: "javascript",
        version: VERSION.to_owned(),
        source: "crates.io: rquickjs-sys 0.14.0, pinned by xtask/interpreters/javascript/Cargo.lock".to_owned(),
        module: module.clone(),
        libraries: Vec::new(),
        variables: Vec::new(),
    };
    let tools = tools::version();
    let flags = FLAGS.join(" ") + &LINKED.join(" ") + UNLIMITED;
    let inputs: [&[u8]; 6] = [&main, &prelude, &library, &lock, tools.as_bytes(), flags.as_bytes()];
    let done = work.join("javascript.stamp");
    if is_fresh(&done, &inputs) && module.exists() {
        println!("javascript: built before");
        return Ok(built);
    }
    println!("javascript: fetching and building {VERSION}");
    // Checked by cargo against the digests in the lock file; from its own store where it was fetched before.
    let sources = work.join("javascript-sources");
    let mut vendor = Command::new("cargo");
    vendor.args(["vendor", "--locked", "--quiet", "--manifest-path"]).arg(recipe.join("Cargo.toml"));
    quietly(vendor.arg(&sources))?;
    let quickjs = sources.join("rquickjs-sys/quickjs");
    let header = [("PRELUDE", &prelude), ("LIBRARY", &library)].map(|(name, text)| {
        // With a zero byte after it: the parser wants one.
        let bytes: Vec<String> = text.iter().chain(&[0]).map(u8::to_string).collect();
        format!("static const unsigned char {name}[] = {{{}}};\n", bytes.join(","))
    });
    fs::write(work.join("prelude.h"), header.concat()).map_err(|error| error.to_string())?;
    let text = fs::read_to_string(quickjs.join("quickjs.c")).map_err(|error| error.to_string())?;
    if text.matches(UNLIMITED).count() != 1 {
        return Err("QuickJS is not as it was: nothing to change in quickjs.c".to_owned());
    }
    let own = work.join("quickjs.c");
    fs::write(&own, text.replace(UNLIMITED, "#if 0\n#else")).map_err(|error| error.to_string())?;
    let mut clang = Command::new("clang");
    clang.args(FLAGS).arg("-I").arg(&quickjs).arg("-I").arg(work).arg("-o").arg(&module).arg(recipe.join("main.c"));
    clang.arg(&own).args(SOURCES.iter().map(|name| quickjs.join(name))).args(LINKED);
    quietly(&mut clang)?;
    stamp(&done, &inputs)?;
    Ok(built)
}
