//! The JSON Schema of policy files, made from their form.

#[test]
fn the_schema_is_fresh() {
    let schema = schemars::schema_for!(crate::file::File);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/policy.schema.json");
    if std::env::var_os("BELLJAR_WRITE_SCHEMA").is_some() {
        std::fs::write(place, &text).expect("the schema can be written");
    }
    // As values: the order of keys is not the schema's, and depends on what else is built along.
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("a schema is JSON");
    assert!(
        read(crate::SCHEMA) == read(&text),
        "policy.schema.json is stale: `BELLJAR_WRITE_SCHEMA=1 cargo test -p belljar-policy schema`"
    );
}
