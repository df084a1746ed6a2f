//! Programs that people use, as far as they are here.

use super::*;

/// What curl says, run beside the gate. `None` where there is none.
async fn curl(gate: &Gate, words: &[&str]) -> Option<String> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let bundle = std::env::temp_dir().join(format!("belljar-curl-{}-{number}.pem", std::process::id()));
    std::fs::write(&bundle, &gate.bundle).unwrap();
    let mut command = std::process::Command::new("curl");
    command.args(["-sS", "--max-time", "20", "--cacert"]).arg(&bundle);
    command.arg("--connect-to").arg(format!("{NAME}:443:127.0.0.1:{}", gate.address.port()));
    command.args(words);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
    std::fs::remove_file(bundle).unwrap();
    let output = output.ok()?;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "curl {words:?}: {error}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn curl_speaks_both_versions_through_it_and_sends_large_things() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &["h2", "http/1.1"])), seen.service()).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
        let place = format!("https://{NAME}/a");
        let file = std::env::temp_dir().join(format!("belljar-curl-body-{}", std::process::id()));
        std::fs::write(&file, vec![b'x'; 3 << 20]).unwrap();
        let data = format!("@{}", file.display());
        for version in ["--http1.1", "--http2"] {
            let format = "-w %{http_version}";
            let Some(said) = curl(&gate, &[version, format, &place, &place]).await else { break };
            let spoken = if version == "--http2" { "2" } else { "1.1" };
            assert_eq!(said.replace(' ', ""), format!("ok{spoken}ok{spoken}"));
            for more in [&["-H", "Expect: 100-continue"][..], &["-H", "Transfer-Encoding: chunked"]] {
                let words = [&[version, "--data-binary", data.as_str()], more, &[place.as_str()]].concat();
                assert_eq!(curl(&gate, &words).await.as_deref(), Some("ok"));
                assert_eq!(seen.0.borrow().last().unwrap().1.len(), 3 << 20);
            }
        }
        std::fs::remove_file(file).unwrap();
    });
}
