pub fn client() -> reqwest::Client {
    reqwest::Client::builder().https_only(true).build().unwrap()
}
