//! How long scans take: `measure FOLDER` for a tree, `measure` for a snippet of each language, cold and warm.

use std::path::{Path, PathBuf};
use std::time::Instant;

use code::{Language, Rules, Scanner, Source};

fn main() {
    match std::env::args().nth(1) {
        Some(folder) => tree(Path::new(&folder)),
        None => snippets(),
    }
}

#[allow(clippy::print_stdout)]
fn tree(folder: &Path) {
    let (mut todo, mut files) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(path) = todo.pop() {
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                files.push((path.to_string_lossy().into_owned(), bytes));
            }
        }
    }
    let scanner = Scanner::new(Rules::built_in());
    if std::env::var_os("PARSE_ONLY").is_some() {
        // What the parser alone costs: no scan of trees can be faster.
        let began = Instant::now();
        let mut parser = tree_sitter::Parser::new();
        parser.set_language(&tree_sitter_python::LANGUAGE.into()).expect("a language");
        let trees = files.iter().filter(|(_, content)| parser.parse(content, None).is_some()).count();
        println!("{trees} trees in {:.2} s", began.elapsed().as_secs_f64());
        return;
    }
    let began = Instant::now();
    let (mut bytes, mut slowest) = (0, (0.0, String::new()));
    let mut by_rule = std::collections::BTreeMap::<(model::Severity, String), usize>::new();
    let show = std::env::args().nth(2);
    for (name, content) in &files {
        let one = Instant::now();
        let scanned = scanner.scan(&Source { name, language: None, bytes: content });
        let took = one.elapsed().as_secs_f64();
        if took > slowest.0 {
            slowest = (took, name.clone());
        }
        bytes += content.len();
        for finding in scanned.findings {
            if show.as_ref().is_some_and(|show| finding.rule.contains(show.as_str())) {
                println!("{}:{}: {}: {}", finding.at.name, finding.at.line, finding.rule, finding.excerpt);
            }
            *by_rule.entry((finding.severity, finding.rule)).or_default() += 1;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} files, {:.1} MB in {seconds:.2} s: {:.1} MB/s",
        files.len(),
        bytes as f64 / 1e6,
        bytes as f64 / 1e6 / seconds
    );
    println!("slowest: {:.3} s, {}", slowest.0, slowest.1);
    for ((severity, rule), count) in by_rule.iter().rev().take(60) {
        println!("{count:6} {} {rule}", severity.name());
    }
}

#[allow(clippy::print_stdout)]
fn snippets() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let rules = Rules::default();
    let scanner = Scanner::new(&rules);
    for language in Language::ALL {
        let mut text = String::new();
        let mut todo = vec![folder.join(language.name())];
        while let Some(path) = todo.pop() {
            for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    todo.push(path);
                } else if path.to_string_lossy().contains("good_") {
                    text += &std::fs::read_to_string(path).unwrap_or_default();
                    text.push('\n');
                }
            }
        }
        if text.is_empty() {
            continue;
        }
        while text.lines().count() < 200 {
            text = text.repeat(2);
        }
        let text: String = text.lines().take(200).map(|line| format!("{line}\n")).collect();
        let source = Source { name: "snippet", language: Some(language), bytes: text.as_bytes() };
        let began = Instant::now();
        scanner.scan(&source);
        let cold = began.elapsed();
        let mut warm = Vec::new();
        for _ in 0..200 {
            let began = Instant::now();
            scanner.scan(&source);
            warm.push(began.elapsed());
        }
        warm.sort();
        println!(
            "{:12} {:6} bytes  cold {cold:>10.1?}  warm {:>10.1?} (median) {:>10.1?} (least)",
            language.name(),
            text.len(),
            warm[100],
            warm[0]
        );
    }
}
