//! Installers of packages, from registries of one package each.

use std::fs;
use std::process::Command;

use belljar_testkit::Who;

use crate::needing::{Needing, PYTHON, python};
use crate::told;
use crate::world::World;

pub const ALL: &[Needing] = &[
    ("pip_and_uv_install_from_an_index_and_uploads_are_refused", &[PYTHON], pip),
    ("npm_installs_from_a_registry_and_publishing_is_refused", &["npm"], npm),
    ("cargo_fetches_from_a_sparse_registry", &[], cargo),
];

pub const WHEEL: &str = "import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('tiny_thing.py', 'def said(): return \"tiny works\"\\n')
    wheel.writestr('tiny_thing-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny-thing\\nVersion: 1.0\\n')
    wheel.writestr('tiny_thing-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('tiny_thing-1.0.dist-info/RECORD', 'tiny_thing.py,,\\ntiny_thing-1.0.dist-info/METADATA,,\\ntiny_thing-1.0.dist-info/WHEEL,,\\ntiny_thing-1.0.dist-info/RECORD,,\\n')";

fn pip(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let simple = world.folder.join("files/simple/tiny-thing");
    told(fs::create_dir_all(&simple))?;
    let wheel = "tiny_thing-1.0-py3-none-any.whl";
    run(Command::new("/usr/bin/python3").args(["-c", WHEEL]).arg(simple.join(wheel)))?;
    told(fs::write(simple.join("index.html"), format!("<!DOCTYPE html><a href=\"{wheel}\">{wheel}</a>\n")))?;
    let script = format!(
        "{0} -m pip install -q --disable-pip-version-check --retries 0 --no-cache-dir --target here --index-url {1} tiny-thing && \
         {0} -m uv pip install -q --no-cache --no-config --python {0} --target there --index-url {1} tiny-thing && \
         PYTHONPATH=here {0} -c 'import tiny_thing; print(tiny_thing.said())' && cmp here/tiny_thing.py there/tiny_thing.py; \
         curl -sS -m 10 -F file=@here/tiny_thing.py {2}",
        python(),
        world.url("/files/simple"),
        world.url("/legacy/")
    );
    let said = world.expect(&[], &["sh", "-c", &script], 0, "tiny works\nrefused by belljar: POST")?;
    match world.arrived()?.iter().all(|one| one["method"] == "GET" || one["method"] == "HEAD") {
        true => Ok(()),
        false => Err(format!("{said:?} {:?}", world.arrived())),
    }
}

fn npm(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let files = world.folder.join("files");
    let package = world.folder.join("package");
    told(fs::create_dir_all(&package))?;
    told(fs::write(package.join("package.json"), r#"{"name":"tiny-thing","version":"1.0.0","main":"index.js"}"#))?;
    told(fs::write(package.join("index.js"), "module.exports = 'tiny works';\n"))?;
    run(Command::new("tar").args(["-czf"]).arg(files.join("tiny.tgz")).arg("-C").arg(&world.folder).arg("package"))?;
    let about = serde_json::json!({
        "name": "tiny-thing", "dist-tags": { "latest": "1.0.0" },
        "versions": { "1.0.0": {
            "name": "tiny-thing", "version": "1.0.0", "dist": { "tarball": world.url("/files/tiny.tgz") },
        }},
    });
    told(fs::write(files.join("tiny-thing"), about.to_string()))?;
    world.desk.put("package.json", r#"{"name":"mine","version":"1.0.0"}"#)?;
    let registry = world.url("/files/");
    let quiet = "--no-audit --no-fund --no-update-notifier --fetch-retries=0 --cache=$PWD/cache";
    let script = format!(
        "npm install {quiet} --registry={registry} tiny-thing >&2 && node -e 'console.log(require(\"tiny-thing\"))' && \
         npm config set --location=project //{}_authToken=anything && npm publish {quiet} --registry={registry} 2>&1",
        registry
            .trim_start_matches("https://")
            .split_once('/')
            .map_or(String::new(), |(host, path)| format!("{host}/{path}:"))
    );
    let said = world.run(&[], &["sh", "-c", &script])?;
    let out = String::from_utf8_lossy(&said.out).into_owned();
    if said.code == Some(0) || !out.contains("tiny works") || !out.contains("403") {
        return Err(format!("{said:?}"));
    }
    match world.arrived()?.iter().all(|one| one["method"] == "GET" || one["method"] == "HEAD") {
        true => Ok(()),
        false => Err(format!("{said:?} {:?}", world.arrived())),
    }
}

fn cargo(who: Who) -> Result<(), String> {
    let world = World::of(who)?;
    world.reads("download", "1ms")?;
    let index = world.folder.join("files/index");
    let package = world.folder.join("tiny-thing-1.0.0");
    told(fs::create_dir_all(index.join("ti/ny")))?;
    told(fs::create_dir_all(package.join("src")))?;
    let manifest = "[package]\nname = \"tiny-thing\"\nversion = \"1.0.0\"\nedition = \"2021\"\n";
    told(fs::write(package.join("Cargo.toml"), manifest))?;
    told(fs::write(package.join("src/lib.rs"), ""))?;
    let file = index.join("tiny.crate");
    run(Command::new("tar").arg("-czf").arg(&file).arg("-C").arg(&world.folder).arg("tiny-thing-1.0.0"))?;
    let digest = run(Command::new("sha256sum").arg(&file))?;
    let digest = digest.split_whitespace().next().ok_or("a digest")?;
    let entry = serde_json::json!({
        "name": "tiny-thing", "vers": "1.0.0", "deps": [], "cksum": digest, "features": {}, "yanked": false,
    });
    told(fs::write(index.join("ti/ny/tiny-thing"), format!("{entry}\n")))?;
    let settings = serde_json::json!({ "dl": world.url("/files/index/tiny.crate?x={crate}") });
    told(fs::write(index.join("config.json"), settings.to_string()))?;
    let mine = "[package]\nname = \"mine\"\nedition = \"2021\"\n[dependencies]\ntiny-thing = { version = \"1\", registry = \"tiny\" }\n";
    world.desk.put("Cargo.toml", mine)?;
    world.desk.put("src/lib.rs", "")?;
    let registry = world.url("/files/index/");
    let settings = format!("[registries.tiny]\nindex = \"sparse+{registry}\"\n[net]\nretry = 0\n");
    world.desk.put(".cargo/config.toml", &settings)?;
    // The one that builds this test: it may be below a home that the ordinary user can't enter.
    told(fs::copy(env!("CARGO"), world.desk.project.work.join("cargo")))?;
    told(world.desk.project.give(&world.desk.project.work.join("cargo")))?;
    recorded_compiler(&world)?;
    let script = "CARGO_HOME=$PWD/home RUSTC=$PWD/rustc ./cargo fetch && find home -name lib.rs";
    world.expect(&[], &["sh", "-c", script], 0, "tiny-thing-1.0.0/src/lib.rs").map(drop)
}

/// cargo asks the compiler who it is before it fetches. What it would say is known outside: its libraries stay there.
fn recorded_compiler(world: &World) -> Result<(), String> {
    let rustc = std::path::Path::new(env!("CARGO")).with_file_name("rustc");
    let kinds = ["bin", "rlib", "dylib", "cdylib", "staticlib", "proc-macro"];
    let kinds = kinds.iter().flat_map(|kind| ["--crate-type", kind]);
    let mut asked = Command::new(&rustc);
    asked.args(["-", "--crate-name", "___", "--print=file-names"]).args(kinds);
    asked.args(["--print=sysroot", "--print=split-debuginfo", "--print=crate-name", "--print=cfg"]);
    let told_of = run(asked.stdin(std::process::Stdio::null()))?;
    let version = run(Command::new(&rustc).arg("-vV"))?;
    world.desk.put("rustc.cfg", &told_of)?;
    world.desk.put("rustc.version", &version)?;
    world.desk.put("rustc", "#!/bin/sh\ncase \"$1\" in -vV) cat rustc.version ;; *) cat rustc.cfg ;; esac\n")?;
    use std::os::unix::fs::PermissionsExt;
    told(fs::set_permissions(world.desk.project.work.join("rustc"), fs::Permissions::from_mode(0o755)))
}

pub fn run(command: &mut Command) -> Result<String, String> {
    let done = told(command.output())?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("{command:?}: {done:?}")),
    }
}
