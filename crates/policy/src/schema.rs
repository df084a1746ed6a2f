//! The JSON Schema of policy files, made from their form.

#[test]
fn the_schema_is_fresh() {
    let schema = schemars::schema_for!(crate::file::File);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/policy.schema.json");
    if std::env::var_os("BELLJAR_WRITE_SCHEMA").is_some() {
        std::fs::write(place, &text).expect("the schema can be written");
    }
    assert!(
        crate::SCHEMA == text,
        "policy.schema.json is stale: `BELLJAR_WRITE_SCHEMA=1 cargo test -p belljar-policy schema`"
    );
}
