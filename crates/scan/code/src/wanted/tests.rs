//! Which code commands, manifests and scripts lead to.

use super::*;

fn of(line: &[&str]) -> Vec<Wanted> {
    wanted(&line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

/// All places of files that are wanted, in order.
fn places(found: &[Wanted]) -> Vec<&str> {
    let files = found.iter().filter_map(|wanted| match wanted {
        Wanted::File(script) => Some(script.places.iter().map(String::as_str)),
        _ => None,
    });
    files.flatten().collect()
}

fn manifests(found: &[Wanted]) -> Vec<String> {
    let of = |wanted: &Wanted| match wanted {
        Wanted::Manifest(Manifest { folder, name, .. }) => Some(joined(folder, name)),
        _ => None,
    };
    found.iter().filter_map(of).collect()
}

#[test]
fn code_in_words_is_wanted_in_shells_too() {
    let found = of(&["bash", "-c", "cd x && python3 -c 'import os' && node y.js"]);
    let texts: Vec<_> = found
        .iter()
        .filter_map(|wanted| match wanted {
            Wanted::Text { language, text, name, .. } => Some((name.as_str(), *language, text.as_str())),
            _ => None,
        })
        .collect();
    assert!(texts.contains(&("`python3 -c` code", Some(Language::Python), "import os")), "{texts:?}");
    assert!(texts.iter().any(|(_, language, _)| *language == Some(Language::Shell)), "{texts:?}");
    assert_eq!(places(&found), ["y.js", "x/y.js"]);
}

#[test]
fn scripts_are_wanted_by_name() {
    assert_eq!(places(&of(&["python3.11", "-u", "tools/x.py", "-c"])), ["tools/x.py"]);
    assert_eq!(places(&of(&["./configure", "--prefix=/x"])), ["./configure"]);
    assert_eq!(of(&["bash"]), [Wanted::Input { language: Some(Language::Shell) }]);
    assert_eq!(of(&["ls", "-la"]), []);
    assert_eq!(of(&["python3", "--version"]), []);
}

#[test]
fn a_module_or_a_folder_is_followed_to_its_files() {
    let found = of(&["python3", "-Im", "a.b", "-m", "c"]);
    assert_eq!(places(&found), ["a.py", "a/__init__.py", "a/b.py", "a/b/__init__.py", "a/b/__main__.py"]);
    assert!(matches!(&found[0], Wanted::File(Script { missing: Some(_), name, .. }) if name == "python3 -m a.b"));
    assert_eq!(places(&of(&["python3", "tool"])), ["tool", "tool/__main__.py"]);
    assert_eq!(places(&of(&["node", "tool"])), ["tool", "tool.js", "tool/index.js"]);
    assert!(places(&of(&["python3", "-m", "pytest", "t/test_a.py::b"])).contains(&"t/conftest.py"));
    let found = of(&["env", "PYTHONPATH=lib", "python3", "-m", "a"]);
    assert!(places(&found).contains(&"lib/a.py") && places(&found).contains(&"lib/sitecustomize.py"), "{found:?}");
}

#[test]
fn what_options_and_variables_take_in_is_wanted() {
    for (line, place) in [
        (&["node", "-r", "./x.js", "y.js"][..], "./x.js"),
        (&["node", "--import=./x.mjs", "y.js"], "./x.mjs"),
        (&["node", "--require", "./x", "y.js"], "./x.js"),
        (&["env", "NODE_OPTIONS=--require ./x.js", "node", "y.js"], "./x.js"),
        (&["ruby", "-r./x", "y.rb"], "./x.rb"),
        (&["ruby", "-I", "lib", "-rx", "y.rb"], "lib/x.rb"),
        (&["bash", "--rcfile", "rc", "-i"], "rc"),
        (&["env", "BASH_ENV=env.sh", "bash", "-c", "true"], "env.sh"),
        (&["deno", "run", "-A", "x.ts"], "x.ts"),
        (&["go", "run", "./x.go"], "./x.go"),
        (&["make", "-f", "x.mk"], "x.mk"),
    ] {
        let found = of(line);
        assert!(places(&found).contains(&place), "{line:?}: {found:?}");
    }
    assert_eq!(places(&of(&["node", "-r", "dotenv/config", "y.js"])), ["y.js"]);
}

#[test]
fn what_is_printed_into_an_interpreter_is_wanted() {
    for line in [
        "cat a.txt | sh", "sh < a.txt", ". ./a.txt", "source a.txt", "sh -c \"$(cat a.txt)\"", "eval \"$(cat a.txt)\"",
        "bash <(cat a.txt)", "cat a.txt | sed s/x/y/ | bash", "cat <a.txt | bash", "cat a.txt | python3",
        "cat a.txt | sudo bash",
    ] {
        let found = of(&["bash", "-c", line]);
        assert!(places(&found).iter().any(|place| place.trim_start_matches("./") == "a.txt"), "{line}: {found:?}");
    }
    let found = of(&["bash", "-c", "base64 -d a.b64 | sh"]);
    assert!(found.iter().any(|wanted| matches!(wanted, Wanted::Unfollowed(why) if why.contains("a.b64"))), "{found:?}");
    assert_eq!(places(&of(&["bash", "-c", "cat a.txt | grep x"])), Vec::<&str>::new());
}

#[test]
fn installers_obey_manifests() {
    assert!(manifests(&of(&["npm", "ci"])).contains(&"package.json".to_owned()));
    assert!(manifests(&of(&["npm", "--prefix", "web", "install"])).contains(&"web/package.json".to_owned()));
    assert!(manifests(&of(&["sh", "-c", "cd web && npm i"])).contains(&"web/package.json".to_owned()));
    assert!(manifests(&of(&["sh", "-c", "pip install -e ./lib[dev]"])).contains(&"./lib/setup.py".to_owned()));
    assert!(manifests(&of(&["python3", "-m", "pip", "install", "."])).contains(&"setup.py".to_owned()));
    assert!(manifests(&of(&["make", "-C", "sub"])).contains(&"sub/Makefile".to_owned()));
    assert!(manifests(&of(&["cargo", "build", "--manifest-path", "a/Cargo.toml"])).contains(&"a/build.rs".to_owned()));
    assert_eq!(manifests(&of(&["npm", "ls"])), Vec::<String>::new());
    assert_eq!(manifests(&of(&["python3", "-m", "http.server"])), Vec::<String>::new());
    let found = of(&["gem", "install", "./x.gem"]);
    assert!(found.iter().any(|wanted| matches!(wanted, Wanted::Unfollowed(why) if why.contains("x.gem"))), "{found:?}");
}

fn manifest(line: &[&str], name: &str) -> Manifest {
    let found = of(line);
    let of = |wanted| match wanted {
        Wanted::Manifest(manifest) if manifest.name == name => Some(manifest),
        _ => None,
    };
    found.into_iter().find_map(of).expect("it is obeyed")
}

#[test]
fn manifests_lead_to_the_files_that_they_run() {
    let package = r#"{"scripts": {"postinstall": "node tools/a.js", "build": "node tools/b.js"}}"#;
    assert_eq!(places(&manifest(&["npm", "ci"], "package.json").leads_to(package)), ["tools/a.js"]);
    assert_eq!(places(&manifest(&["npm", "run", "build"], "package.json").leads_to(package)), ["tools/b.js"]);
    let found = manifest(&["npm", "--prefix", "web", "ci"], "package.json").leads_to(package);
    assert_eq!(places(&found), ["tools/a.js"]);
    let web = Manifest { folder: "web".to_owned(), ..manifest(&["npm", "ci"], "package.json") };
    assert_eq!(places(&web.leads_to(package)), ["tools/a.js", "web/tools/a.js"]);
    let make = manifest(&["make"], "Makefile");
    assert_eq!(places(&make.leads_to("all:\n\t@python3 gen.py > x\n")), ["gen.py"]);
    let python = manifest(&["pip", "install", "."], "pyproject.toml");
    let backend = "[build-system]\nrequires = []\nbuild-backend = \"ours\"\nbackend-path = [\"build\"]\n";
    assert_eq!(places(&python.leads_to(backend)), ["build/ours.py", "build/ours/__init__.py"]);
    assert_eq!(places(&python.leads_to("[build-system]\nbuild-backend = \"hatchling\"\n")), Vec::<&str>::new());
    let cargo = manifest(&["cargo", "test"], "Cargo.toml");
    let found = cargo.leads_to("[package]\nbuild = \"b.rs\"\n[workspace]\nmembers = [\"a\", \"crates/*\"]\n");
    assert_eq!(manifests(&found), ["b.rs", "a/build.rs", "crates/*/build.rs"]);
    let gem = Manifest { name: "x.gemspec".to_owned(), ..manifest(&["gem", "build"], "*.gemspec") };
    assert_eq!(manifests(&gem.leads_to("s.extensions = %w[ext/x/extconf.rb]\n")), ["ext/x/extconf.rb"]);
}

fn taken(text: &str, language: Language, file: &str) -> Vec<String> {
    let found = taken_in(text, language, Some(file), &[]);
    places(&found).into_iter().map(str::to_owned).collect()
}

#[test]
fn code_takes_in_what_lies_beside_it() {
    for (language, file, text, place) in [
        (Language::Python, "s/x.py", "import os, a.b as c", "s/a/b.py"),
        (Language::Python, "s/x.py", "try: import a\nexcept: pass", "s/a.py"),
        (Language::Python, "s/p/x.py", "from . import a", "s/p/a.py"),
        (Language::Python, "s/p/x.py", "from ..a import (\n  b, # c\n  d)", "s/p/../a/d.py"),
        (Language::Python, "x.py", "__import__('a')", "a.py"),
        (Language::Python, "x.py", "exec(open('a.py').read())", "a.py"),
        (Language::JavaScript, "s/x.js", "const a = require('./a')", "s/a.js"),
        (Language::JavaScript, "s/x.js", "import {b}\n from \"../a.js\"", "s/../a.js"),
        (Language::TypeScript, "x.ts", "import './a.js'", "./a.ts"),
        (Language::JavaScript, "x.js", "await import('./a.mjs')", "./a.mjs"),
        (Language::Shell, "s/x.sh", "source ./a.sh", "./a.sh"),
        (Language::Shell, "s/x.sh", ". \"$(dirname \"$0\")\"/a.sh", "s/a.sh"),
        (Language::Shell, "s/x.sh", "cd \"$(dirname \"$0\")\" && python3 a.py", "s/a.py"),
        (Language::Ruby, "s/x.rb", "require_relative 'a'", "s/a.rb"),
        (Language::Php, "s/x.php", "<?php require_once(__DIR__ . '/a.php');", "s/a.php"),
    ] {
        let found = taken(text, language, file);
        assert!(found.iter().any(|found| found == place), "{text}: {found:?}");
    }
}

#[test]
fn code_that_takes_in_nothing_leads_nowhere() {
    for (language, text) in [
        (Language::Python, "print('the import of it')\nimportant = from_x"),
        (Language::JavaScript, "const a = require('fs'); import b from 'react'"),
        (Language::Shell, "ls -la | wc -l\necho source x"),
        (Language::Ruby, "require 'json'"),
        (Language::Php, "<?php $x = 'y';"),
    ] {
        assert_eq!(taken(text, language, "x"), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn hostile_text_is_only_text() {
    for text in [
        "import ", "from ", "from . import (", "require('", "import \\\n", ". ", "é'\"`", "from \u{301}import é",
        "x:import x",
    ] {
        for language in Language::ALL {
            taken_in(text, language, Some("x"), &[]);
            taken_in(&text.repeat(20_000), language, Some("/x"), &[]);
        }
        for name in ["package.json", "pyproject.toml", "Cargo.toml", "x.gemspec", "Makefile"] {
            let manifest = Manifest { name: name.to_owned(), ..manifest(&["npm", "ci"], "package.json") };
            manifest.leads_to(text);
        }
    }
}
