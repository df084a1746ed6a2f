use libloading::Library;

pub fn load(path: &str) -> Library {
    unsafe { Library::new(path).unwrap() }
}
