//! Who proves what to whom.

use super::*;

#[test]
fn both_sides_speak_what_the_server_chose() {
    run(async {
        let roots = TestRoots::new();
        for (server_speaks, client_speaks, spoken) in [
            (&["h2", "http/1.1"][..], &["h2", "http/1.1"][..], Some(&b"h2"[..])),
            (&["http/1.1"], &["h2", "http/1.1"], Some(b"http/1.1")),
            (&["h2", "http/1.1"], &["http/1.1"], Some(b"http/1.1")),
            (&[], &["h2", "http/1.1"], None),
            (&["h2", "http/1.1"], &[], None),
        ] {
            let upstream = server(Some(roots.server(NAME, server_speaks)), Seen::default().service()).await;
            let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
            let stream = gate.connect(client_speaks).await;
            assert_eq!(stream.get_ref().1.alpn_protocol(), spoken);
        }
    });
}

#[test]
fn a_server_that_cannot_prove_who_it_is_gets_nothing_and_the_client_hears_why() {
    run(async {
        let (roots, strangers) = (TestRoots::new(), TestRoots::new());
        let seen = Seen::default();
        for config in [strangers.server(NAME, &["http/1.1"]), roots.server("other.example", &["http/1.1"])] {
            let upstream = server(Some(config), seen.service()).await;
            let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
            let (status, _, body) = gate.get(Request::get("/")).await;
            assert_eq!(status, 502);
            assert!(body.contains("did not prove who it is") && body.lines().count() == 1, "{body}");
            let answer =
                gate.http2().await.send_request(Request::get(format!("https://{NAME}/")).body(full("")).unwrap());
            assert_eq!(answer.await.unwrap().status(), 502);
            assert_eq!(gate.porter.denied()[0].rule, "egress.tls");
        }
        assert_eq!(seen.count(), 0);
    });
}

#[test]
fn another_name_in_the_hello_is_refused() {
    run(async {
        let roots = TestRoots::new();
        let upstream = server(Some(roots.server(NAME, &[])), Seen::default().service()).await;
        let gate = gate(Setting::tls(), &roots, TestPorter::new(allow), upstream).await;
        for other in ["other.example", "example.org", "127.0.0.1"] {
            assert!(gate.connect_as(other, &[]).await.is_err(), "{other}");
        }
        let denied = gate.porter.denied();
        assert_eq!(denied.len(), 3);
        assert!(denied.iter().all(|event| event.rule == "egress.sni" && event.what == NetworkDeed::Connect));
        assert!(gate.connect_as(NAME, &["postgresql"]).await.is_err());
        assert_eq!(gate.porter.denied()[3].rule, "egress.protocol");
    });
}

#[test]
fn an_address_is_vouched_for_as_one_and_has_no_name() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server("127.0.0.1", &[])), seen.service()).await;
        let endpoint = Endpoint { host: Host::Address("127.0.0.1".parse().unwrap()), port: 8443 };
        let gate = gate(Setting { endpoint, ..Setting::tls() }, &roots, TestPorter::new(allow), upstream).await;
        for (host, status) in [
            ("127.0.0.1:8443", 200),
            ("127.0.0.1", 200),
            ("127.1", 400),
            ("localhost", 200),
            ("localhost:1", 400),
            ("0x7f.1", 400),
        ] {
            let mut stream = gate.connect_as("127.0.0.1", &[]).await.unwrap();
            stream
                .write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
                .await
                .unwrap();
            assert!(until(&mut stream, None).await.starts_with(&format!("HTTP/1.1 {status} ")), "{host}");
        }
        assert!(gate.connect_as(NAME, &[]).await.is_err());
        assert_eq!(seen.count(), 3);
    });
}

#[test]
fn without_an_authority_nothing_is_read_and_nothing_passes() {
    run(async {
        let roots = TestRoots::new();
        let seen = Seen::default();
        let upstream = server(Some(roots.server(NAME, &[])), seen.service()).await;
        let gate = gate(Setting { authority: false, ..Setting::tls() }, &roots, TestPorter::new(allow), upstream).await;
        let stream = TcpStream::connect(gate.address).await.unwrap();
        let pem = std::fs::read(&roots.file).unwrap();
        let name = ServerName::try_from(NAME).unwrap();
        assert!(TlsConnector::from(trusting(&pem, &[])).connect(name, stream).await.is_err());
        assert_eq!(gate.porter.denied()[0].rule, "egress.authority");
        assert_eq!(seen.count(), 0);
    });
}

#[test]
fn openssl_and_java_read_what_programs_inside_are_given() {
    let (authority, other) = (Authority::new().unwrap(), Authority::new().unwrap());
    let host: Vec<CertificateDer> =
        CertificateDer::pem_slice_iter(other.certificate_pem().as_bytes()).map(|read| read.unwrap()).collect();
    let bundle = authority.bundle(&host);
    assert_eq!(CertificateDer::pem_slice_iter(&bundle).count(), 2);
    let place = std::env::temp_dir().join(format!("belljar-stores-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("own.pem"), authority.certificate_pem()).unwrap();
    std::fs::write(place.join("bundle.pem"), &bundle).unwrap();
    let leaf = authority.vouches_for(&named(443).host).unwrap().cert[0].clone();
    std::fs::write(place.join("leaf.pem"), super::super::authority::written(&leaf)).unwrap();
    std::fs::write(place.join("store.jks"), authority.java_store(&host)).unwrap();
    let said = |program: &str, words: &[&str]| -> Option<String> {
        let output = std::process::Command::new(program).args(words).current_dir(&place).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}: {text}");
        Some(text)
    };
    if let Some(text) = said("openssl", &["verify", "-x509_strict", "-CAfile", "bundle.pem", "own.pem"]) {
        assert!(text.contains("OK"), "{text}");
    }
    let words = [
        "verify", "-x509_strict", "-verify_hostname", NAME, "-purpose", "sslserver", "-CAfile", "bundle.pem",
        "leaf.pem",
    ];
    if let Some(text) = said("openssl", &words) {
        assert!(text.contains("OK"), "{text}");
    }
    if let Some(text) = said("keytool", &["-list", "-keystore", "store.jks", "-storepass", "changeit"]) {
        assert!(text.contains("2 entries") && text.contains("belljar") && text.contains("trustedCertEntry"), "{text}");
    }
    std::fs::remove_dir_all(&place).unwrap();
}
