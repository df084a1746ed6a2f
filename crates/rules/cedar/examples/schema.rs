//! Prints the schema in the form that is fast to read; it goes to `src/schema.json`.

use cedar_policy::SchemaFragment;

// An example prints: it is no library.
#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (schema, _) = SchemaFragment::from_cedarschema_str(include_str!("../src/schema.cedarschema"))?;
    let json: serde_json::Value = serde_json::from_str(&schema.to_json_string()?)?;
    println!("{json:#}");
    Ok(())
}
