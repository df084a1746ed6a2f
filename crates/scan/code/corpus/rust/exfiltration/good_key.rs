use std::fs;

fn main() {
    let report = fs::read_to_string("report.txt").unwrap();
    ureq::post("https://reports.example").send_string(&report).ok();
}
