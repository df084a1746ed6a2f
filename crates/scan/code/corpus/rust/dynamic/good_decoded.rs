use base64::engine::general_purpose::STANDARD;
use base64::Engine;

fn main() {
    let picture = STANDARD.decode(BLOB).unwrap();
    println!("{}", picture.len());
}
