//! Files that somebody delivers: any bytes are typed and looked into within bounds, and what is said is safe to show.

use std::time::Duration;

use malware::archive::{Limits, Visitor, hides_one, look, opens};
use malware::{Kind, Report, kind};
use model::Finding;

/// Small ones, so that what passes them by is found with few bytes.
const LIMITS: Limits = Limits {
    entries: 500,
    unpacked: 1 << 20,
    ratio: 100,
    ratio_from: 64 * 1024,
    depth: 3,
    name: 256,
    window: 64 * 1024,
    dictionary: 8 << 20,
    time: Duration::from_secs(2),
    findings: 20,
    listed: 30,
};
/// In a build without optimisation, on a machine that others use: far above what any file may take.
const SECONDS: u64 = 20;
/// One entry may be read on by a step before its cost is known.
const STEP: u64 = 64 * 1024;

pub fn law(bytes: &[u8]) {
    let kind = kind::of(bytes, "name.zip");
    assert_eq!(kind, kind::of(bytes, "name.zip"), "the same bytes are two kinds");
    assert_eq!(kind == Kind::Empty, bytes.is_empty());
    for finding in kind::mismatch(kind, &String::from_utf8_lossy(&bytes[..bytes.len().min(200)])) {
        is_safe(&finding);
    }
    if !opens(kind) && !hides_one(bytes, kind) {
        return;
    }
    let began = std::time::Instant::now();
    let mut watching = Watching::default();
    let contents = look(bytes, "name.zip", &LIMITS, &mut watching);
    assert!(began.elapsed().as_secs() < SECONDS, "looking takes {:?}", began.elapsed());
    assert!(contents.unpacked <= LIMITS.unpacked + STEP, "{} bytes came out", contents.unpacked);
    assert!(contents.count <= LIMITS.entries + 1 && contents.entries.len() <= LIMITS.listed);
    assert!(contents.findings.len() <= LIMITS.findings);
    assert!(watching.longest <= LIMITS.window, "{} bytes were shown at once", watching.longest);
    assert!(contents.complete || !contents.findings.is_empty(), "not all was seen, and nobody says so");
    contents.findings.iter().for_each(is_safe);
    let report = Report { kind, findings: contents.findings.clone(), contents: Some(contents), complete: true };
    let read = Report::from_bytes(&report.to_bytes()).expect("what we say ourselves is a report");
    assert_eq!(read, report, "a report reads back as another");
}

fn is_safe(finding: &Finding) {
    for text in [&finding.message, &finding.at.name, &finding.excerpt] {
        assert!(!text.chars().any(char::is_control) && text.len() < 8000, "{text:?} is not safe to show");
    }
}

#[derive(Default)]
struct Watching {
    longest: usize,
}

impl Visitor for Watching {
    fn file(&mut self, _: &str, _: Kind, content: &[u8], _: bool) -> Vec<Finding> {
        self.longest = self.longest.max(content.len());
        Vec::new()
    }
}
