fn main() {
    println!("cargo::rerun-if-changed=src/schema.json");
}
