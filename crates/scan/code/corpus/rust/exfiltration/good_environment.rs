fn main() {
    let version = env!("CARGO_PKG_VERSION");
    reqwest::blocking::Client::new().post("https://telemetry.example").body(version).send().ok();
}
