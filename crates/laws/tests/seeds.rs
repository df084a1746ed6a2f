//! Every law on the seeds of its fuzz target, on their neighbours, and on plain noise: the same each time, in seconds.
//! What the fuzzer finds becomes a seed; from then on it is tried here.

use std::path::{Path, PathBuf};

/// Neighbours of all seeds of a law together, and as many pieces of noise.
const TRIES: u64 = 20_000;

#[test]
fn questions_are_shown_whole_and_answers_are_not_understood_in_part() {
    holds("approvals");
}

#[test]
fn any_file_is_looked_into_within_bounds() {
    // Decoders are slow where nothing is optimised.
    tried("archive", TRIES / 4);
}

#[test]
fn any_line_is_read_and_no_wrapping_hides_a_command() {
    holds("shell");
}

#[test]
fn no_rule_in_cedar_is_understood_in_part() {
    // It reads and judges slowly where nothing is optimised.
    tried("cedar", TRIES / 4);
}

#[test]
fn what_is_told_of_cells_is_read_the_same_however_it_is_cut() {
    holds("cells");
}

#[test]
fn any_program_is_scanned_and_what_is_left_out_is_said() {
    // It scans each text eight times.
    tried("code", TRIES / 40);
}

#[test]
fn denials_are_few_and_safe_to_look_at() {
    holds("denials");
}

#[test]
fn what_is_kept_of_downloads_is_what_was_said() {
    holds("downloads");
}

#[test]
fn every_entry_has_a_form_in_each_format_and_none_ends_a_line() {
    // Each try maps what it finds five times.
    tried("exports", TRIES / 20);
}

#[test]
fn nothing_that_two_could_read_in_two_ways_passes_the_fence() {
    holds("fence");
}

#[test]
fn what_is_told_of_files_is_read_the_same_however_it_is_cut() {
    holds("files");
}

#[test]
fn a_program_says_what_its_rules_say() {
    holds("filter");
}

#[test]
fn a_hello_is_read_the_same_however_it_is_cut() {
    holds("hello");
}

#[test]
fn layers_are_what_a_sandbox_sees_and_no_text_breaks_a_merge() {
    holds("layers");
}

#[test]
fn an_entry_of_the_record_has_one_form() {
    holds("ledger");
}

#[test]
fn any_question_about_a_name_is_answered_once_or_not_at_all() {
    holds("names");
}

#[test]
fn no_policy_is_understood_in_part() {
    holds("policy");
}

#[test]
fn no_name_hides_a_process_from_its_limits() {
    holds("records");
}

#[test]
fn words_become_a_request_or_one_complaint() {
    holds("request");
}

#[test]
fn no_value_leaves_a_stream_however_it_is_cut() {
    // Each try reads its bytes several times, slowly where nothing is optimised.
    tried("secrets", TRIES / 10);
}

#[test]
fn no_output_acts_on_a_terminal() {
    holds("terminal");
}

#[test]
fn what_is_read_as_a_quantity_reads_back() {
    holds("units");
}

#[test]
fn a_file_of_a_secret_has_one_form_and_is_not_understood_in_part() {
    holds("vault");
}

#[test]
fn only_records_are_taken_for_records() {
    holds("wire");
}

#[test]
fn what_is_said_is_safe_to_look_at_and_reads_back() {
    holds("words");
}

#[test]
fn every_law_has_a_fuzz_target_and_seeds() {
    let names = |folder: &str| -> Vec<String> {
        let mut names: Vec<String> = files(&fuzz().join(folder)).iter().map(|path| stem(path)).collect();
        names.sort();
        names
    };
    let laws: Vec<&str> = belljar_laws::ALL.iter().map(|(name, _)| *name).collect();
    assert_eq!(names("fuzz_targets"), laws);
    assert_eq!(names("corpus"), laws);
}

fn holds(law: &str) {
    tried(law, TRIES);
}

fn tried(law: &str, tries: u64) {
    let seeds: Vec<Vec<u8>> = files(&fuzz().join("corpus").join(law))
        .iter()
        .map(|path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .collect();
    assert!(!seeds.is_empty(), "{law} has no seeds");
    for seed in &seeds {
        belljar_laws::hold(law, seed);
    }
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for _ in 0..tries {
        let noise: Vec<u8> = (0..chance.below(96)).map(|_| chance.next() as u8).collect();
        belljar_laws::hold(law, &noise);
        let mut bytes = seeds[chance.below(seeds.len())].clone();
        for _ in 0..=chance.below(4) {
            change(&mut bytes, &seeds, &mut chance);
        }
        belljar_laws::hold(law, &bytes);
    }
}

/// One small change: what fuzzers do, without knowing where it leads.
fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    match chance.below(6) {
        0 => bytes.insert(at, chance.next() as u8),
        1 => bytes.truncate(at),
        2 if at < bytes.len() => drop(bytes.remove(at)),
        3 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        4 if at < bytes.len() => bytes[at] = [0, 0xff, b'\n', 0x1b, b'0'][chance.below(5)],
        _ => {
            let other = &seeds[chance.below(seeds.len())];
            let from = chance.below(other.len() + 1);
            bytes.splice(at.., other[from..].iter().copied());
        }
    }
}

/// The same numbers each time.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
