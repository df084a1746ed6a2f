fn main() {
    std::fs::remove_dir_all("target/tmp").unwrap();
}
