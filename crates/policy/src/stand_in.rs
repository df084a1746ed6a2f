//! What stands for a secret inside: made for one sandbox, and worth nothing anywhere else.

/// `belljar-NAME-…`, or with the beginning that a picky tool looks for.
pub fn of(name: &str, prefix: Option<&str>, seed: &[u8; 32]) -> String {
    let digest = blake3::keyed_hash(seed, format!("stand-in\0{name}").as_bytes()).to_hex();
    let digits = &digest.as_str()[..40];
    // Kept without one, it has an empty one.
    match prefix.filter(|prefix| !prefix.is_empty()) {
        Some(prefix) => format!("{prefix}{digits}"),
        None => format!("belljar-{name}-{digits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sandbox_and_each_secret_has_its_own() {
        let one = of("TOKEN", None, &[0; 32]);
        assert!(one.starts_with("belljar-TOKEN-") && one.len() == "belljar-TOKEN-".len() + 40, "{one}");
        assert_eq!(one, of("TOKEN", None, &[0; 32]));
        assert_ne!(one, of("TOKEN", None, &[1; 32]));
        assert_ne!(of("A", Some("ghp_"), &[0; 32]), of("B", Some("ghp_"), &[0; 32]));
        assert!(of("A", Some("ghp_"), &[0; 32]).starts_with("ghp_"));
        assert_eq!(of("TOKEN", Some(""), &[0; 32]), one);
    }
}
